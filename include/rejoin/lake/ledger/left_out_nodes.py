"""Outputs that runs have left out and whose rows are not to be made anew: what they saw stays, they only take up what has come since. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rejoin.plan.model.plan import Plan


@dataclass(frozen=True)
class LeftOutNode:
    """How far an output is behind.

    ``since``: the newest committed run that left it up to date. ``asked``: a run after that one asked for the rows that the output holds back
    to be judged again.
    """

    since: int
    asked: bool


@dataclass(frozen=True)
class CommittedRun:
    """A committed run: its number, its plan, and the fingerprints of the outputs that it left up to date."""

    number: int
    plan: Plan
    prints: Mapping[str, str]


def behind(plan: Plan, prints: Mapping[str, str], runs: Iterable[CommittedRun]) -> dict[str, LeftOutNode]:
    """The outputs that keep what they saw, are defined as they were, and were left out by the newest runs.

    One that a plan in between did not have is no such output: it comes back, and is made anew.

    Args:
        plan: of the run that is opened.
        prints: the fingerprints of its outputs.
        runs: the run that it starts from, the one which that started from, and so on; read only as far as it takes.
    """
    open_ = {n.name for n in plan.nodes if n.keeps_what_it_saw}
    found, asked, newest = dict[str, LeftOutNode](), set[str](), True
    for run in runs if open_ else ():
        known = {n.name for n in run.plan.nodes}
        found |= {
            name: LeftOutNode(run.number, name in asked)
            for name in open_
            if not newest and name in known and run.prints.get(name) == prints[name]
        }
        open_ = {name for name in open_ if name in known and name not in run.prints}
        asked |= set(run.plan.replay) & open_
        newest = False
        if not open_:
            break
    return found

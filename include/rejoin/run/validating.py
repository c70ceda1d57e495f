"""validate: the changes of a node are judged; what passes becomes visible with the run, rows that are to be held back do not (ADR 0010)."""

from pathlib import Path

from pyspark.sql import DataFrame, Observation

from rejoin.checks import Counts
from rejoin.lake import names
from rejoin.lake.reader import Reader
from rejoin.lake.records import Write
from rejoin.plan.model import Node
from rejoin.plan.rules import Expectation
from rejoin.plan.steps import Verb
from rejoin.run.facts import watched
from rejoin.run.judging import Judging, hours_since_newest, measured, share_matched
from rejoin.run.output import OPS, apply, counted
from rejoin.run.work import Outcome, Work, small
from rejoin.stages import hold
from rejoin.stages.frames import packed, quoted


class Validating:
    """One attempt to validate a node.

    Args:
        work: what the attempt works with.
        place: where the results are kept; None: only in the ledger.
    """

    def __init__(self, work: Work, place: Path | None) -> None:
        self._work, self._facts, self._place = work, work.facts, place

    def run(self, node: Node) -> Outcome:
        """Judges the node's changes; writes them if ``resolve`` has not done so already."""
        made = self._facts.counts(Verb.RESOLVE, node.name)
        judging = Judging(self._work.spark, node, self._facts.run.number, self._place)
        if self._facts.left_as_it_was(node):
            return Outcome(kept(made))
        if not self._facts.may_hold(node):
            changes = self._work.now.changes(node.name, self._facts.run.number) if made["changes"] else None
            if changes is not None:
                judging.changed_rows(_new_rows(changes, node), made["changes"])
            return self._finish(node, judging, kept(made), ())
        candidates = self._work.now.candidates(node)
        if candidates is None:
            return self._finish(node, judging, kept(made), ())
        bad = judging.changed_rows(_new_rows(candidates, node), made["changes"])
        judging.computed(made["uncomputable"], made["changes"] + made["uncomputable"])
        return self._finish(node, judging, *self._split(node, candidates, bad))

    def _split(self, node: Node, candidates: DataFrame, bad: DataFrame | None) -> tuple[Counts, tuple[Write, ...]]:
        """Writes the output and its changes without the rows to be held back, and what happened to those."""
        run, made = self._facts.run.number, self._facts.counts(Verb.RESOLVE, node.name)
        judged = hold.judged(candidates, bad, node.key)
        at_most = made["changes"] + made["held_before"] + made["uncomputable"]
        seen = Observation()
        good = hold.published(judged, node.key, run).observe(seen, *counted(OPS))
        written = small(good, at_most)
        log = self._work.writer.append(names.changes(node.name), written, node.key)
        counts = {k: int(v) for k, v in seen.get.items()}
        counts["changes"] = counts["inserted"] + counts["updated"] + counts["deleted"]
        writes = apply(self._work, self._work.writer, node, written, log, counts, None)
        counts |= {"held_back": 0, "released": 0}
        if bad is not None or made["held_before"] or made["uncomputable"]:
            seen = Observation()
            ops = {"held_back": "Q", "released": "R"}
            aside = hold.set_aside(judged, node, run).observe(seen, *counted(ops))
            quarantine = self._work.writer.append(names.quarantine(node.name), small(aside, at_most), node.key)
            counts |= {k: int(v) for k, v in seen.get.items()}
            writes = (*writes, quarantine)
        return counts, writes

    def _finish(self, node: Node, judging: Judging, counts: Counts, writes: tuple[Write, ...]) -> Outcome:
        """Judges the table as it would become."""
        after, facts = self._work.after(writes), self._facts
        if counts["changes"] or facts.asked_again(node.name) or watched(node):
            judging.table(after, after.live(node.name), {n: self._measure(node, e, after) for n, e in measured(node)})
        return Outcome(counts, writes, judging.detail())

    def _measure(self, node: Node, one: Expectation, after: Reader) -> float | None:
        match one.type:
            case "row_count":
                before = self._facts.before.live(node.name)
                return after.live(node.name) / before - 1 if before else None
            case "matched":
                return share_matched(self._facts.plan, node, one.kwargs["table"], after)
            case _:
                return hours_since_newest(node.name, one.kwargs["column"], after, self._facts.run.opened_at)


def kept(made: Counts) -> Counts:
    """The counts of a node whose changes ``resolve`` has written."""
    return {**{name: made[name] for name in (*OPS, "changes")}, "held_back": 0, "released": 0}


def _new_rows(changes: DataFrame, node: Node) -> DataFrame:
    """``_row``: the new row of each change, with the node's columns only."""
    rows = changes.where("_op IN ('I', 'U')")
    return rows.select(packed((p.name, f"_after.{quoted(p.name)}") for p in node.columns).alias("_row"))

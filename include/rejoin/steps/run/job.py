"""One step of a run as a process of its own: what the files in ``jobs/`` call, by hand, by ``spark-submit`` or by a scheduler.

The steps of one run share nothing but the ledger and the lake, and find their run by its owner: the same ``--owner`` for every step.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rejoin.engines.choice import EngineChoice, of_environment
from rejoin.errors import RunSuperseded, UnknownTable
from rejoin.failures.engine_errors import at_the_rim, named_errors, told
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.lake.ledger.runs import RunState
from rejoin.lake.spark.expression_analysis import refuse_wrong_expressions
from rejoin.lake.spark.session import session
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import RunOptions
from rejoin.plan.model.steps import Verb, step_id, steps
from rejoin.steps.run.lease import alive
from rejoin.steps.run.topology import EVERYTHING, Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BETWEEN_STEPS = 900.0
"""Seconds that a scheduler may take to start a run's next step before others may take the run over."""

Session = Callable[[], "SparkSession"]


def step(
    topology: Topology, owner: str, verb: Verb, target: str, spark: Session | None = None, options: RunOptions = EVERYTHING
) -> StepRecord:
    """Does one step of the owner's run, which its cut opens; a repeated step returns what the first one registered.

    Args:
        topology: the topology.
        owner: whose run.
        verb: the step's verb.
        target: its table, node, or ``node.edge``; empty for cut and publish.
        spark: makes the session where the step needs one; default: the usual one.
        options: for the cut that opens a new run.

    ``deliver`` needs no run: it delivers what is committed and not delivered yet.

    Raises:
        RunUnknown: the owner has no run, and the step is not its cut.
        RunSuperseded: the run was abandoned.
        UnknownTable: the plan has no such step.
        RejoinError: whatever else went wrong, in our words: a scheduler logs it.
    """
    with named_errors(f"step {step_id(verb, target)} of topology {topology.plan.topology!r}"):
        return _once(topology, owner, verb, target, spark, options)


def _once(topology: Topology, owner: str, verb: Verb, target: str, spark: Session | None, options: RunOptions) -> StepRecord:
    if verb is Verb.DELIVER:
        made = topology.deliver(target)
        return StepRecord(step_id(verb, target), {"records": made.records}, made.seconds, 0, made.detail)
    if verb is Verb.CUT:
        refuse_wrong_expressions(topology.plan, topology.ledger, spark or partial(session, topology.config))
    run = topology.open(owner, options) if verb is Verb.CUT else topology.mine(owner)
    if run.state == RunState.COMMITTED:
        return _again(topology, run, verb, target)
    try:
        with alive(topology.ledger, run):
            done = _step(topology, run, verb, target, spark or partial(session, topology.config), options.note)
    except Exception as error:
        if not isinstance(error, RunSuperseded):
            topology.ledger.fail(run.number, told(error), step_id(verb, target))
        raise
    if verb is not Verb.PUBLISH:
        topology.ledger.renew(run.number, BETWEEN_STEPS)
    return done


def _again(topology: Topology, run: Run, verb: Verb, target: str) -> StepRecord:
    """A step of a run that is visible already."""
    if verb is Verb.PUBLISH:
        return topology.publish(run)
    name = step_id(verb, target)
    made = topology.ledger.steps(run.number)
    if name not in made:
        raise UnknownTable(f"run {run.number} of topology {run.topology!r} has no step {name}", expected=", ".join(made))
    return made[name]


def _step(topology: Topology, run: Run, verb: Verb, target: str, spark: Session, note: str) -> StepRecord:
    if verb is Verb.CUT:
        return topology.cut(run, note)
    if verb is Verb.PUBLISH:
        return topology.publish(run)
    known = {s.target: s for s in steps(run.plan) if s.verb is verb}
    if target not in known:
        raise UnknownTable(f"topology {run.topology!r} has no step {verb}.{target}", expected=", ".join(known) or "(none)")
    return _by_spark(topology).stage(cache(spark), run, known[target])


def _by_spark(topology: Topology) -> Topology:
    """The topology, whose stages are Spark jobs unless its lake, or else the environment of the task, says ``local``: a scheduler chains jobs."""
    said = topology.config.engine or of_environment()
    config = replace(topology.config, engine=EngineChoice.LOCAL if said is EngineChoice.LOCAL else EngineChoice.SPARK)
    return Topology(topology.plan, config, topology.root)


def main(verb: str) -> None:
    """The command line of ``jobs/<verb>.py``; prints the step's record as JSON and exits with the error's code."""

    @click.command(help=f"{verb}: one step of a run. TARGET is a table, a node, node.edge or output.sink (none for cut and publish).")
    @click.argument("topology_file")
    @click.argument("target", default="")
    @click.option("--lake", "location", envvar="REJOIN_LAKE", default="lake", show_default=True)
    @click.option("--root", envvar="REJOIN_ROOT", default=".", show_default=True)
    @click.option("--owner", required=verb != Verb.DELIVER, default="", help="Whose run: the same for all steps of one run.")
    def command(topology_file: str, target: str, location: str, root: str, owner: str) -> None:
        try:
            topology = Topology(load(topology_file), lake_config(location), str(Path(root).resolve()))
            done = step(topology, owner, Verb(verb), target)
        except Exception as error:  # noqa: BLE001  whatever it is, it is told in our words
            found = at_the_rim(error, f"jobs/{verb}.py")
            click.echo(str(found), err=True)
            sys.exit(found.exit_code)
        click.echo(json.dumps({"step": done.step, "seconds": round(done.seconds, 3), "jobs": done.jobs, "counts": done.counts}))

    command()

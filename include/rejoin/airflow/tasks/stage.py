"""The task of one stage: the same step as ``rejoin run`` does, on the engine that the deployment has chosen."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoin.airflow.tasks import dag_run, trigger_form
from rejoin.airflow.tasks.deployment import Engine, place
from rejoin.airflow.tasks.links import RunLink
from rejoin.airflow.tasks.spark_submit import RejoinOperator
from rejoin.lake.ledger.runs import RunState
from rejoin.plan.model.steps import ON_ROWS, Verb, step_id

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context
    from pyspark.sql import SparkSession

    from rejoin.lake.ledger.records import StepRecord
    from rejoin.steps.run.topology import Topology


class StageOperator(RejoinOperator):
    """One step of the DAG run's rejoin run.

    Args:
        topology_file: ``path:topology name``, as the command line takes it.
        verb: the step's verb.
        target: its table, node, or ``node.edge``.
        settings: those of any operator.

    Returns (as the task's XCom): what the step has counted, its seconds and Spark jobs, and the engine.

    Raises:
        RejoinError: terminal ones fail the task, transient ones are tried again (``rejoin.airflow.tasks.retry``).
    """

    operator_extra_links = (RunLink(),)
    ui_color = "#e3eefc"

    def __init__(self, *, topology_file: str, verb: str, target: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.topology_file, self.verb, self.target = topology_file, verb, target

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]  # its result is worth keeping
        """Does the step, or returns what an earlier attempt registered."""
        return self.step(context, topology_of(self.topology_file, context), _owner(context))

    def step(self, context: "Context", topology: "Topology", who: str) -> dict[str, Any]:
        """Does it on the deployment's engine and logs what it did; returns the task's XCom."""
        engine = self.engine() if Verb(self.verb) in ON_ROWS else Engine.PROCESS
        again = self._done_before(topology, who)
        done = self._submit(context, topology, who) if engine is Engine.SUBMIT else self._here(context, topology, who, engine)
        if again:
            self.log.info("%s was done by try %d: nothing is done again, this is what it has counted", done.step, again)
        self.log.info("%s: %s in %.2f s", done.step, done.counts, done.seconds)
        for what, why in done.detail.items():
            self.log.info("%s: %s", what, why)
        return {"step": done.step, "counts": done.counts, "seconds": round(done.seconds, 3), "jobs": done.jobs, "engine": str(engine)}

    def _done_before(self, topology: "Topology", who: str) -> int:
        """The try that has registered the step; 0: none has. The cut of a DAG run that is published opens a new run; a delivery looks at its sink."""
        run = topology.ledger.newest(who)
        if run is None or (self.verb == Verb.CUT and run.state != RunState.OPEN):
            return 0
        name = step_id(self.verb, self.target)
        done = name in topology.ledger.steps(run.number) and (self.verb != Verb.PUBLISH or run.state == RunState.COMMITTED)
        return topology.ledger.tries(run.number, name) if done else 0

    def _here(self, context: "Context", topology: "Topology", who: str, engine: Engine) -> "StepRecord":
        from rejoin.steps.run.job import step

        if engine is Engine.CONNECT:
            os.environ["SPARK_REMOTE"] = self.remote()
        return step(topology, who, Verb(self.verb), self.target, options=trigger_form.options(context["params"]))

    def _submit(self, context: "Context", topology: "Topology", who: str) -> "StepRecord":
        """By ``jobs/<verb>.py``, unless there is nothing to do: that is found out without Spark."""
        from rejoin.steps.run.job import step

        try:
            return step(topology, who, Verb(self.verb), self.target, spark=_none)
        except _SparkNeeded:
            pass
        where = place()
        arguments = [self.topology_file, self.target, "--owner", who, "--lake", where.lake, "--root", where.root]
        self.submit(context, topology.config, f"{self.verb}.py", arguments)
        return topology.ledger.steps(topology.mine(who).number)[step_id(self.verb, self.target)]


class PublishOperator(StageOperator):
    """The commit. Its outlets are the outputs; an output that the run did not change starts nobody, and a run starts others once."""

    ui_color = "#d9f2e1"

    def execute(self, context: "Context") -> dict[str, Any]:  # type: ignore[override]
        """Publishes; returns the run as ``rejoin history --run N --json`` prints it."""
        from rejoin.report.history import summary_data

        topology, who = topology_of(self.topology_file, context), _owner(context)
        again = self._done_before(topology, who)
        self.step(context, topology, who)
        done = topology.mine(who)
        steps = topology.ledger.steps(done.number)
        changed = {f"{done.topology}.{n.name}": steps[step_id(Verb.VALIDATE, n.name)].counts["changes"] for n in done.plan.nodes}
        self.outlets = [a for a in self.outlets if changed.get(a.name) and not (again and _told(a, done.number))]
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"run": done.number, "changes": changed[asset.name]}
        return summary_data(done, list(steps.values()))


def _told(asset: "Asset", run: int) -> bool:
    """Whether Airflow has an event of this run: a try that has committed may have been killed before Airflow took its events."""
    from airflow.sdk.execution_time.context import InletEventsAccessor

    newest = InletEventsAccessor(asset_name=asset.name, asset_uri=asset.uri).ascending(False).limit(1000)
    return any((event.extra or {}).get("run") == run for event in newest)


class _SparkNeeded(BaseException):
    """The step has something to do. No Exception: what names errors and keeps them in the ledger lets it pass."""


def _none() -> "SparkSession":
    raise _SparkNeeded


def _owner(context: "Context") -> str:
    return dag_run.owner_of(context["dag_run"].dag_id, context["dag_run"].run_id)


def topology_of(file: str, context: "Context") -> "Topology":
    """The topology of a file, as a task has it."""
    from rejoin.lake.config import lake_config
    from rejoin.plan.check.topology_file import load
    from rejoin.steps.run.topology import Topology

    where = place()
    return Topology(load(file), lake_config(where.lake), str(Path(where.root).resolve()), dag_run.life(context))

"""A plan as a DAG: a task a step, in the order that ``plan.model.steps`` says, grouped by what they make."""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, BaseOperator, Context, TaskGroup
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from rejoin.airflow import assets, descriptions
from rejoin.airflow.arguments import RUN_TIMEOUT, UNSAID, checked, task_defaults
from rejoin.airflow.tasks import trigger_form
from rejoin.airflow.tasks.approval import question
from rejoin.airflow.tasks.capture import CaptureOperator
from rejoin.airflow.tasks.dag_run import owner_of
from rejoin.airflow.tasks.retry import WAIT_FOR_RUN
from rejoin.airflow.tasks.stage import PublishOperator, StageOperator, topology_of
from rejoin.capture.tables import captured_tables
from rejoin.declare.topology import Topology
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import Step, Verb, steps

WAIT_AT_MOST = timedelta(hours=12)
"""How long a DAG run waits for somebody else's run to end."""
SOURCES, CAPTURE = "sources", "capture"


def build(
    topology: Topology,
    *,
    schedule: Any = None,
    dag_id: str | None = None,
    start_date: datetime = datetime(2024, 1, 1, tzinfo=UTC),
    catchup: bool = False,
    retries: int = UNSAID,
    retry_delay: timedelta = UNSAID,
    execution_timeout: timedelta | None = UNSAID,
    dagrun_timeout: timedelta | None = RUN_TIMEOUT,
    deadline: timedelta | None = None,
    on_deadline: Callable[..., None] | None = None,
    on_failure: Any = None,
    tags: Collection[str] = (),
    owner: str = UNSAID,
    pool: str = UNSAID,
    queue: str = UNSAID,
    default_args: Mapping[str, Any] = MappingProxyType({}),
) -> DAG:
    """The DAG of a topology.

    Args:
        topology: what to run.
        schedule: any schedule of Airflow: ``"@hourly"``, a timetable, assets; None: only by hand.
        dag_id: default: the topology's name.
        start_date: of the schedule.
        catchup: whether missed intervals get a run each. A cut takes everything that is there, so the first of them does all the work.
        retries: how often a task is tried again after an error that may pass (default 4); waiting for another run does not count.
        retry_delay: before the first of them (default 15 s); doubled each time, at most five minutes.
        execution_timeout: the longest time of one try of a task (default 6 hours); None: no limit.
        dagrun_timeout: the longest time of a run from its start, waiting for another run or for an approval included; None: no limit.
        deadline: the longest time from the queueing of a run to its end; later, ``on_deadline`` is called.
        on_deadline: a function that can be imported by its name, called with ``context``; default: writes an error to the scheduler's log.
        on_failure: Airflow's ``on_failure_callback`` of the DAG: a notifier or a function.
        tags: more tags.
        owner: of the tasks, as Airflow shows it.
        pool: Airflow's pool that the tasks take their slots from.
        queue: of the executor.
        default_args: more arguments of every task; those above go before the same ones in here.

    Raises:
        TopologyError: the topology has mistakes.
        TopologyFileError: an argument that no task takes, or with a value that does not fit.
    """
    plan = compile(topology)
    checked(plan.topology, dagrun_timeout=dagrun_timeout, deadline=deadline, tags=tags)
    said = {"retries": retries, "retry_delay": retry_delay, "execution_timeout": execution_timeout}
    alert = None
    if deadline is not None:
        callback = SyncCallback(
            on_deadline or late, kwargs={"what": f"{plan.topology} is not published {deadline} after its run was queued"}
        )
        alert = DeadlineAlert(reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=deadline, callback=callback)
    dag = DAG(
        dag_id or plan.topology,
        description=f"rejoin: {', '.join(n.name for n in plan.nodes if n.published)}",
        schedule=schedule,
        start_date=start_date,
        catchup=catchup,
        max_active_runs=1,
        params=trigger_form.form(plan),
        tags=["rejoin", *tags],
        doc_md=descriptions.topology(plan),
        deadline=alert,
        on_failure_callback=on_failure,
        dagrun_timeout=dagrun_timeout,
        default_args=task_defaults(plan.topology, default_args, owner=owner, pool=pool, queue=queue, **said),
    )
    file = f"{topology.place.file}:{plan.topology}"
    groups: dict[str, TaskGroup] = {}
    tasks: dict[str, BaseOperator] = {}
    for step in steps(plan):
        name = _group(plan, step)
        if name is not None and name not in groups:
            groups[name] = TaskGroup(name, dag=dag, prefix_group_id=False, tooltip=descriptions.group(plan, name))
        with groups[name] if name else nullcontext():
            made = tasks[step.id] = _task(dag, plan, step, file)
        before = [tasks[b] for b in step.after]
        if step.verb is Verb.PUBLISH:
            subject = f"Publish this run of {dag.dag_id}?"
            # A person may take longer than a task; the run's own limit holds for it.
            question = Approval(
                task_id="approve", dag=dag, topology_file=file, subject=subject, doc_md=descriptions.APPROVE, execution_timeout=None
            )
            before >> question
            before = [question]
        before >> made
    return _capturing(dag, plan, file)


def _capturing(dag: DAG, plan: Plan, file: str) -> DAG:
    """The DAG, with a first task that captures what the plan reads of databases."""
    if captured_tables(plan):
        first = CaptureOperator(task_id=CAPTURE, dag=dag, topology_file=file, doc_md=descriptions.CAPTURE)
        first >> dag.task_dict[str(Verb.CUT)]
    return dag


def _group(plan: Plan, step: Step) -> str | None:
    if step.verb is Verb.INGEST:
        return SOURCES
    name = step.target.partition(".")[0]
    return name if any(n.name == name for n in plan.nodes) else None


def _task(dag: DAG, plan: Plan, step: Step, file: str) -> BaseOperator:
    common: dict[str, Any] = {
        "task_id": step.id,
        "dag": dag,
        "topology_file": file,
        "verb": str(step.verb),
        "target": step.target,
        "doc_md": descriptions.step(plan, step),
    }
    if step.verb is Verb.CUT:
        return StageOperator(**common | {"retries": int(WAIT_AT_MOST / WAIT_FOR_RUN)})
    if step.verb is Verb.INGEST:
        return StageOperator(**common, inlets=[assets.source(plan.topology, step.target)])
    if step.verb is Verb.PUBLISH:
        return PublishOperator(**common, outlets=[assets.output(plan.topology, n.name) for n in plan.nodes if n.published])
    return StageOperator(**common)


class Approval(ApprovalOperator):
    """Waits for a person, if the run was asked to; a rejected run is not published, and the next one reads its input."""

    def __init__(self, *, topology_file: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.topology_file = topology_file

    def execute(self, context: Context) -> Any:
        """Asks, with what the run would change; goes on at once where nobody asked to be asked."""
        if not context["params"][trigger_form.STOP]:
            return None
        made = context["dag_run"]
        topology = topology_of(self.topology_file, context)
        self.body = question(topology, topology.mine(owner_of(made.dag_id, made.run_id)), (made.dag_id, made.run_id))
        return super().execute(context)


def late(context: dict[str, Any], what: str) -> None:  # noqa: ARG001  Airflow passes the context
    """The default alert of a missed deadline."""
    import logging

    logging.getLogger("rejoin").error("DEADLINE %s", what)

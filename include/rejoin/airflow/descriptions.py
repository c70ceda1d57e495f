"""What a person reads about a DAG and its tasks in Airflow's UI. Markdown, made of the plan."""

from rejoin.plan import explain
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import Step, Verb
from rejoin.plan.sql.defining_query import topology_query

APPROVE = "Waits for an approval if the run was asked to stop before publish. Rejected: nothing becomes visible, the next run reads the same input."
CAPTURE = (
    "Lands what is committed now in the databases that the topology reads (`rejoin capture --once`). Tried again, it goes on where it was."
)

_STEPS = {
    Verb.CUT: "Opens the run, or goes on with this DAG run's own: pins the plan and exactly which files every source reads, so that every retry reads the same.",
    Verb.INGEST: "Reads what the cut pinned of `{target}`: at most one change a key; every record is counted with what became of it.",
    Verb.SUBSCRIBE: "Changed left rows of `{target}` say which right rows they need.",
    Verb.RESPOND: "`{target}`: changed subscriptions and changed right rows meet; each answer carries the hash of the left row that it is for.",
    Verb.RESOLVE: "Answers and left changes become changes of `{target}`; stale answers are dropped, rows that stay the same are not written.",
    Verb.VALIDATE: "The changes of `{target}` are checked against what is expected of them, and by the checks that every run makes on itself; bad rows are held back or the run stops.",
    Verb.PUBLISH: "One compare-and-swap makes all tables of the run visible, or none. Its result is the summary of the run.",
    Verb.DELIVER: "The sink `{target}` catches up with what is published and not delivered yet. A sink that is down fails this task only.",
}
_OF_GROUPS = {
    Verb.SUBSCRIBE: "Changed members of the groups of `{target}` say which group they leave and which one they have, and what is aggregated of them.",
    Verb.RESOLVE: "The groups of `{target}` with a changed member are computed from all of their members; those that stay the same are not written.",
}


def topology(plan: Plan) -> str:
    """The DAG's documentation."""
    return f"```\n{explain.text(plan)}\n```\n\nRuns, counts, quarantine and rows: [rejoin's page](/rejoin/t/{plan.topology})."


def group(plan: Plan, name: str) -> str:
    """A task group's tooltip."""
    nodes = [n for n in plan.nodes if n.name == name]
    return f"output {name}, key ({', '.join(nodes[0].key)})" if nodes else "source tables"


def step(plan: Plan, step: Step) -> str:
    """A task's documentation."""
    text = _STEPS[step.verb].format(target=step.target)
    if any(node.name == step.target and node.grouping is not None for node in plan.nodes):
        text = _OF_GROUPS.get(step.verb, text).format(target=step.target)
    if step.verb is Verb.RESOLVE:
        text += f"\n\nThe output is by definition\n\n```sql\n{topology_query(plan, plan.node(step.target))}\n```"
    return f"{text}\n\nClearing this task goes on with the same cut; a step that is done is not done again."

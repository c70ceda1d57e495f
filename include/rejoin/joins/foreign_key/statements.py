"""Every statement of a star, in the order of its steps."""

from collections.abc import Iterator

from rejoin.joins.foreign_key import resolve, respond, subscribe
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.steps import Verb, step_id
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import numbered


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    """What finds the results of a node, whose texts are in the dialect: the step, a title and the statement."""
    key, pks = plan.key_of(node.left.table), len(plan.key_of(node.left.table))
    for edge in node.edges:
        yield step_id(Verb.SUBSCRIBE, node.name), f"subscriptions on {edge.name}", subscribe.subscribe(sql, node.left, edge, key, 0)
    for edge in node.edges:
        step, right = step_id(Verb.RESPOND, f"{node.name}.{edge.name}"), plan.key_of(edge.right.table)
        yield step, "answers, from subscriptions and rights", respond.answer_subscriptions(sql, edge, right, pks)
        yield step, "moved, from changes of the right table", respond.moved(sql, edge, right)
        yield step, "answers, from moved and subscribers", respond.answer_right_changes(sql, edge, pks, 0)
    step, answers = step_id(Verb.RESOLVE, node.name), {e.name: f"answers_{i}" for i, e in enumerate(node.edges, start=1)}
    yield step, "state, from changes, lefts and answers", resolve.pair(sql, node, key, answers, changed=True, looked_up=True)
    columns = [*numbered("pk", pks), "l", "changed"]
    for i, edge in enumerate(node.edges, start=1):
        columns += [f"r{i}", f"stale_{i}", f"lacks_{i}"]
        yield step, f"state, with right rows of {edge.name}", resolve.fill(sql, columns, i, edge, plan.key_of(edge.right.table))
    if not node.two_sided:
        text = resolve.lefts_before(sql, key, changed=True, looked_up=True)
        yield step, "lefts before, from changes and lefts, where DuckDB makes many old rows of the output once more", text

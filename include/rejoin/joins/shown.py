"""The statements of the joins beside the star, for ``explain --sql``."""

from collections.abc import Iterator

from rejoin.joins.as_of import statements as as_of
from rejoin.joins.outer import statements as outer
from rejoin.joins.same_key import statements as same_key
from rejoin.joins.window import statements as window
from rejoin.plan.match import AsOf, SameKey, Window
from rejoin.plan.model import Node, Plan
from rejoin.stages.dialect import Dialect


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str]]:
    """What finds the results of a node, whose texts are in the dialect: a title and the statement."""
    left, right = plan.key_of(node.left.table), plan.key_of(node.edges[0].right.table)
    match node.match:
        case SameKey():
            yield "state, from lefts and rights", same_key.state(sql, node, left, right)
        case AsOf() as match:
            if match.left_time is not None:
                yield "valid, from versions and rights", as_of.valid(sql, node.edges[0], right)
                yield "touched, from lefts and valid", as_of.touched(sql, node, left)
            yield "wanted, from lefts", as_of.wanted(sql, node, left, right[: len(match.on)])
            yield "state, from lefts and rights", as_of.state(sql, node, left, right)
        case Window() as match:
            keys, both = window.Keys(left, right), ("left_changes", "right_changes")
            yield "marks, from the newest times", window.marks(match, before=["before"], now=["now"])
            for of_left, kept in ((True, node.edges[0].kind.keeps_left), (False, node.edges[0].kind.keeps_right)):
                if kept:
                    yield f"lonely_{'left' if of_left else 'right'}", window.lonely(sql, node, keys, left=of_left, given=both)
            yield "state, from lefts, rights, marks and changes", window.state(sql, node, keys, scoped=both)
        case None:
            yield "rights, of changed keys without a left row", outer.free(sql, right)
            yield "state, by both keys, from state and rights", outer.results(sql, node, len(left), right)

"""How the comparison of an output is cut by ranges of its key: which rows have that key, and what each of them may need beside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rejoin.lake import table_names
from rejoin.plan.model.match import SameKey
from rejoin.plan.model.plan import Node, Plan
from rejoin.statements.own_columns import numbered


@dataclass(frozen=True)
class KeyCut:
    """What is read to compare an output.

    Attributes:
        root: the table, or the output that is taken as it is, whose key it has.
        keys: what only rows of a range are read of: a table's name -> its columns with that key.
        whole: the tables and outputs of which a row of any range may need any row.
        nulls: parts of the key may be null.
    """

    root: str
    keys: Mapping[str, Sequence[str]]
    whole: Sequence[str] = ()
    nulls: bool = False


def key_cut(plan: Plan, node: Node) -> KeyCut | None:
    """How an output is cut; None: a row of it is neither a group nor made of one left row and what that one needs.

    Groups of a source table have the key of what is stored of their members. The members themselves are laid apart by it as they are read (``members``).
    """
    if node.grouping is not None:
        sent = table_names.subscriptions(node, node.grouping)
        keys = {sent: numbered("fk", len(node.grouping.keys)), node.name: node.key}
        return KeyCut(sent, keys, nulls=True) if plan.is_table(node.left.table) else None
    return _of_left_rows(plan, node)


def members(plan: Plan, node: Node) -> KeyCut:
    """How the members of groups are cut by their own key."""
    left = node.left.table
    return KeyCut(left, {left: plan.key_of(left)})


def _of_left_rows(plan: Plan, node: Node) -> KeyCut | None:
    pks = numbered("pk", len(plan.key_of(node.left.table)))
    keys: dict[str, Sequence[str]] = {table_names.subscriptions(node, to): pks for to in node.subscribes_to}
    whole, root = list[str](), node.name
    while not plan.is_table(root):
        of = plan.node(root)
        keys[root] = of.key
        if of.keeps_what_it_saw and of is not node:
            break
        if of.two_sided or of.grouping is not None:
            return None
        for edge in of.edges:
            right = edge.right.table
            if not isinstance(edge.match, SameKey):
                whole.append(right)
            elif plan.is_table(right) and right not in keys:
                keys[right] = plan.key_of(right)
            else:
                return None
        root = of.left.table
    if root in keys and plan.is_table(root):
        return None
    keys[root] = plan.key_of(root)
    return None if set(whole) & set(keys) else KeyCut(root, keys, tuple(dict.fromkeys(whole)))

"""The kinds of nodes: one folder each, with its statements and how a run follows changes with them. ``KINDS`` lists them.

``foreign_key`` the star of tables by foreign keys; ``outer`` what right and full foreign-key joins add to it; ``same_key`` two tables by their
primary keys; ``as_of`` a stream with a table; ``window`` two streams; ``group`` the groups of one table.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rejoin.joins.as_of import statements as of_as_of
from rejoin.joins.as_of.changes import AsOfJoin
from rejoin.joins.foreign_key import statements as of_foreign_key
from rejoin.joins.foreign_key.changes import StarJoin
from rejoin.joins.group import statements as of_group
from rejoin.joins.group.changes import GroupKind
from rejoin.joins.kind import KindOfJoin
from rejoin.joins.outer import statements as of_outer
from rejoin.joins.outer.changes import OuterJoin
from rejoin.joins.same_key import statements as of_same_key
from rejoin.joins.same_key.changes import SameKeyJoin
from rejoin.joins.window import statements as of_window
from rejoin.joins.window.changes import WindowJoin
from rejoin.plan.extensions import join_kinds
from rejoin.plan.extensions.join_kinds import Faces
from rejoin.plan.model.plan import Node, Plan
from rejoin.statements.dialect import Dialect

if TYPE_CHECKING:
    from rejoin.context.uncomputable_rows import UncomputableRows
    from rejoin.context.work import Work


KINDS = {
    "foreign_key": Faces(of_foreign_key.shown, StarJoin),
    "outer": Faces(of_outer.shown, OuterJoin),
    "same_key": Faces(of_same_key.shown, SameKeyJoin),
    "as_of": Faces(of_as_of.shown, AsOfJoin),
    "window": Faces(of_window.shown, WindowJoin),
    "group": Faces(of_group.shown, GroupKind),
}
"""By the ``kind`` of a node's match; a star and groups have none. Packages add others (``plan.extensions.join_kinds``)."""


def _faces(node: Node) -> Faces:
    if node.match is not None:
        name = node.match.kind
    else:
        name = "group" if node.grouping is not None else "outer" if node.two_sided else "foreign_key"
    return KINDS[name] if name in KINDS else join_kinds.faces(name)


def kind_of(work: "Work", node: Node, sieve: "UncomputableRows | None") -> KindOfJoin:
    """How the results of a node are found. ``sieve``: as of ``KindOfJoin``."""
    made: KindOfJoin = _faces(node).found(work, node, sieve)
    return made


def shown(sql: Dialect, plan: Plan, node: Node) -> Iterator[tuple[str, str, str]]:
    """What finds the results of a node, whose texts are in the dialect: the step, a title and the statement."""
    return _faces(node).shown(sql, plan, node)

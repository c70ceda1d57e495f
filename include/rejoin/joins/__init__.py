"""The kinds of joins beside the star of foreign keys: one folder each, with its statements and how a run follows changes with them.

``same_key`` two tables by their primary keys; ``as_of`` a stream with a table; ``window`` two streams; ``outer`` what right and full foreign-key
joins add to the star. ``kind_of`` finds the one of a node.
"""

from typing import TYPE_CHECKING

from rejoin.joins.as_of import AsOfJoin
from rejoin.joins.kind import Found, Kind
from rejoin.joins.same_key import SameKeyJoin
from rejoin.joins.window import WindowJoin
from rejoin.plan.match import AsOf, SameKey, Window
from rejoin.plan.model import Node

if TYPE_CHECKING:
    from rejoin.run.work import Work

__all__ = ["Found", "Kind", "kind_of"]


def kind_of(work: "Work", node: Node) -> Kind | None:
    """How the results of a node are found; None for a star of foreign keys."""
    match node.match:
        case SameKey():
            return SameKeyJoin(work, node)
        case AsOf():
            return AsOfJoin(work, node)
        case Window():
            return WindowJoin(work, node)
        case None:
            return None

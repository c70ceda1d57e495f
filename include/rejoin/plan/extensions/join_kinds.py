"""The kinds of joins that installed packages bring, as far as a plan has to know them. Loaded when a plan is printed or run, not when it is made."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from rejoin.plan.extensions.installed import known_points, loaded

if TYPE_CHECKING:
    from rejoin.plan.model.plan import Node, Plan

GROUP = "rejoin.joins"
"""The entry points by which a package adds kinds of joins."""


@dataclass(frozen=True)
class Faces:
    """What a kind of join shows of itself.

    Attributes:
        shown: every statement that it may need, for ``explain --sql``: of a dialect, a plan and a node the step, a title and the text.
        found: how a run finds its results: of a ``context.work.Work``, a node and a ``context.uncomputable_rows.UncomputableRows`` or None a ``joins.kind.KindOfJoin``.
        condition: SQL text that a part of the foreign key meets a column of the right key; the rule in the output's defining query, which
            takes the right row with the smallest key of those that meet it. None where the plan knows the rule.
    """

    shown: "Callable[[Any, Plan, Node], Iterator[tuple[str, str, str]]]"
    found: Callable[[Any, "Node", Any], Any]
    condition: Callable[[str, str], str] | None = None


def known() -> dict[str, EntryPoint]:
    """Every such kind by its name."""
    return known_points(GROUP, {})


def faces(name: str) -> Faces:
    """Those of one.

    Raises:
        SetupError: no package that is installed here brings it.
    """
    found: Faces = loaded(known(), name, GROUP, "kind of join")
    return found

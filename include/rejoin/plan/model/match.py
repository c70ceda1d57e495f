"""What a join is: which rows it keeps, and how it finds right rows where it is not by a foreign key alone. Part of the plan: frozen, JSON both ways."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class JoinKind(StrEnum):
    """Which rows without a partner are in the output, with nulls for the other side."""

    INNER = "inner"  # none
    LEFT = "left"  # those of the left
    RIGHT = "right"  # those of the right
    FULL = "full"  # those of both

    @property
    def keeps_left(self) -> bool:
        return self in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_right(self) -> bool:
        return self in (JoinKind.RIGHT, JoinKind.FULL)


@dataclass(frozen=True)
class SameKey:
    """Two tables by their primary keys: the result has that key, too."""

    kind: str = "same_key"


@dataclass(frozen=True)
class AsOf:
    """A stream with a table: the right row that was valid at the time of the left one, or that is there in the run which reads the left one.

    ``on``: the columns of the right view that the foreign key is equal to. ``left_time``, ``right_time``: columns of the views, the event time
    of a left row and when a version of a right row became valid; a version ends with the next one of its row. Without them the row
    is the one of the run, and later changes of the right do not reach the result.
    """

    on: tuple[str, ...]
    left_time: str | None = None
    right_time: str | None = None
    kind: str = "as_of"


@dataclass(frozen=True)
class Window:
    """Two streams: right records from ``before`` microseconds before a left one to ``after`` microseconds after it, both ends included.

    ``on``: the columns of the right view that the foreign key is equal to. ``left_time``, ``right_time``: columns of the views, the event times.
    ``lateness``: the watermark stays so many microseconds behind the newest record; a record without partner is in the result
    once the watermark has passed the end of its window, or with ``at_once`` as long as it has none. ``left_clock``, ``right_clock``: columns of the
    views, equal in a pair, whose every value has a watermark of its own; without them there is one. ``each``: the watermark is that of the stream
    that is behind, not of the one that is ahead; there is none before both have records.
    """

    on: tuple[str, ...]
    left_time: str
    right_time: str
    before: int
    after: int
    lateness: int = 0
    at_once: bool = False
    left_clock: tuple[str, ...] = ()
    right_clock: tuple[str, ...] = ()
    each: bool = False
    kind: str = "window"


@dataclass(frozen=True)
class Other:
    """A left row and at most one right row, by a rule that an installed package brings (``kinds``). Inner and left; the result has the left key.

    ``on``: the columns of the right view that the rule compares with the foreign key, part by part: those of its key.
    """

    kind: str
    on: tuple[str, ...]


Match = SameKey | AsOf | Window | Other


def match_of(data: dict[str, Any] | None) -> Match | None:
    """The match that ``dataclasses.asdict`` made this of."""
    if data is None:
        return None
    kinds: dict[str, Callable[..., Match]] = {"same_key": SameKey, "as_of": AsOf, "window": Window}
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return kinds.get(data["kind"], Other)(**fields)

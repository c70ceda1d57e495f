"""How a join found its right row where no foreign key of a left row tells it: by time, by the rule of a package, or because right rows stand alone. Data only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rejoin.lake.query.typed_keys import key_text

MOST_SHOWN = 3
"""So many keys are named, of more it is said that they are more."""
Keys = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Valid:
    """As of event time: the version that was valid at the time of the left row.

    Args:
        at: the time of the left row.
        since: when the source committed the version; None: none was valid then.
        until: when it committed the next one; None: there is none.
        gone: that version says that the row was deleted.
    """

    at: datetime
    since: datetime | None
    until: datetime | None
    gone: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"as_of": "event_time", **self.__dict__}

    def said(self) -> str:
        if self.since is None:
            first = "" if self.until is None else f": its first version is valid since {self.until}"
            return f"none was valid at {self.at}, when the record happened{first}"
        until = "which is the newest" if self.until is None else f"until before {self.until}"
        return f"{'deleted' if self.gone else 'valid'} since {self.since}, {until}; the record happened at {self.at}"


@dataclass(frozen=True)
class OfRun:
    """As of the run that read the left row: the right row as it was then. ``expired``: what the run saw is not kept any more."""

    run: int
    expired: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"as_of": "run", **self.__dict__}

    def said(self) -> str:
        if self.expired:
            return f"that of run {self.run}, which read the record; its state is expired, and only what the row keeps of it is left"
        return f"as it was in run {self.run}, which read the record; later changes do not reach the row"


@dataclass(frozen=True)
class Within:
    """Two streams: the times of both records (None: the result has no such record), and where a partner can be.

    Args:
        left: the time of the left record.
        right: that of the right one.
        first: the first time of a partner: of the left record, where there is one, else of the right one.
        last: the last one.
        watermark: no record without partner is in the result whose window ends at this time or later; None: not known, or there is none.
        partners: of a record alone, the keys of its partners; None: not known, or there are two records.
        let_go: of a record alone, there may be partners that a compaction has let go.
    """

    left: datetime | None
    right: datetime | None
    first: datetime
    last: datetime
    watermark: datetime | None = None
    partners: Keys | None = None
    let_go: bool = False

    def to_dict(self) -> dict[str, Any]:
        known = None if self.partners is None else [list(key) for key in self.partners]
        return {"as_of": "window", **self.__dict__, "partners": known}

    def said(self) -> str:
        if self.left is not None and self.right is not None:
            return f"it happened at {self.right}, the left one at {self.left}; a partner is from {self.first} to {self.last}"
        side, at = ("right", self.left) if self.right is None else ("left", self.right)
        span = f"from {self.first} to {self.last}; the record happened at {at}"
        if self.partners:
            return f"{side} records that are its partners: {keys_said(self.partners)}; {span}"
        if self.let_go:
            return f"no stored {side} record is its partner, and older ones were let go; {span}"
        mark = "" if self.watermark is None else f", the watermark is at {self.watermark}"
        return f"{'no' if self.partners is not None else 'which'} {side} record is its partner{'' if self.partners is not None else ' is not known'}, {span}{mark}"


@dataclass(frozen=True)
class Alone:
    """A right row of a right or full join by a foreign key: ``lefts``, keys of left rows that have it."""

    lefts: Keys

    def to_dict(self) -> dict[str, Any]:
        return {"as_of": None, "lefts": [list(key) for key in self.lefts]}

    def said(self) -> str:
        return f"left rows have it as their foreign key: {keys_said(self.lefts)}" if self.lefts else "no left row has it as its foreign key"


@dataclass(frozen=True)
class Rule:
    """By the rule of an installed package (``by=``), which says nothing of single rows."""

    name: str

    def to_dict(self) -> dict[str, Any]:
        return {"as_of": None, "rule": self.name}

    def said(self) -> str:
        return f"by {self.name}, a rule of a package, which `why` does not follow"


How = Valid | OfRun | Within | Alone | Rule


def keys_said(keys: Sequence[Sequence[Any]]) -> str:
    """Some keys, as they are typed."""
    named = ", ".join(" ".join(map(key_text, key)) for key in keys[:MOST_SHOWN])
    return named + (f" and {len(keys) - MOST_SHOWN:,} more" if len(keys) > MOST_SHOWN else "")

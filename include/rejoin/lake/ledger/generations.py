"""How far the snapshots within the feed of a source table are, as the ledger keeps it with the run that read them. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Generation:
    """The newest snapshot that was taken of one captured table.

    ``begun``: the position of its rows; ``run``: the one that read the first of them; ``rows``: how many were read so far; ``ended``: the position of the
    newest snapshot that was read to its end, None if there is none.
    """

    begun: str
    run: int
    rows: int
    ended: str | None = None

    @property
    def whole(self) -> bool:
        """Whether it was read to its end."""
        return self.ended is not None and self.ended >= self.begun


@dataclass(frozen=True)
class Generations:
    """Of one source table: the newest snapshot of each captured table that its feed has rows of, by its name; in nearly all feeds it is one.

    ``only``: the position of the only snapshot that there was, if nothing is older; None: there may be rows that are older than the newest one.
    ``since``: the run in which ``floor`` became what it is. ``place``: where the feed is read; read elsewhere, it has other snapshots.
    ``torn``: records were lost: the end of a snapshot up to this position says nothing, since rows of it may be among them; None: nothing was lost
    before the newest whole one.
    """

    origins: Mapping[str, Generation]
    only: str | None = None
    since: int | None = None
    place: str = ""
    torn: str | None = None

    @property
    def floor(self) -> str:
        """The position that every row has reached that was there when the newest snapshots were taken; empty if none is known."""
        ended = [g.ended or "" for g in self.origins.values()]
        return min(ended, default="")

    @property
    def incomplete(self) -> dict[str, int]:
        """The captured tables whose newest snapshot was not read to its end, each with the run that read the first row of it."""
        return {name: g.run for name, g in self.origins.items() if not g.whole}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    @staticmethod
    def of(data: Mapping[str, Any]) -> "Generations":
        """What ``to_dict`` gave."""
        return Generations(**{**data, "origins": {name: Generation(**g) for name, g in data["origins"].items()}})

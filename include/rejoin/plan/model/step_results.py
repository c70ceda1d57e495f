"""What the steps of a run come to: what each verb counts, and an ending where numbers alone would not say what became of its work."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Self

Counts = dict[str, int]

NET_CHANGES = ("inserted", "updated", "deleted")
"""What is counted of the net changes of an output: every row that changes is one of these (``Changed``)."""


class Ending(StrEnum):
    """What became of a step's work."""

    DONE = "done"  # what its counts say is written
    PROPOSED = "proposed"  # resolve: some rows may have to be held back, so validate decides on the changes and writes them
    KEPT = "kept"  # resolve: the output stays as it was, and the next run recomputes it
    INCOMPLETE = "incomplete"  # ingest: done, but a snapshot within the feed goes on, and what is made of the table waits for its end
    DEFERRED = "deferred"  # respond: nobody is told, since resolve will recompute the whole output


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one step."""

    ending: Ending = Ending.DONE

    @property
    def counts(self) -> Counts:
        """What the ledger keeps and people read."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "ending"}

    @classmethod
    def of(cls, counts: Mapping[str, int], ending: Ending = Ending.DONE) -> Self:
        """A result by its counts, as they were counted or as the ledger keeps them. A count that this version does not know is left out; one that the writer did not know is 0."""
        known = {f.name for f in fields(cls)}
        return cls(ending=ending, **{name: count for name, count in counts.items() if name in known})


@dataclass(frozen=True, kw_only=True)
class Ingested(Result):
    """Of a source table. ``applied`` to ``quarantined`` are the fates of its records (``steps.ingest.fates.Fate``).

    ``changes``: rows whose used columns changed, ``deleted`` of them, ``implied`` by absence from a snapshot, or ``reconciled``: one within a feed; ``live``:
    rows that a snapshot found.
    """

    read: int = 0
    skipped: int = 0
    truncates: int = 0
    applied: int = 0
    noop: int = 0
    superseded: int = 0
    duplicate: int = 0
    stale: int = 0
    quarantined: int = 0
    changes: int = 0
    deleted: int = 0
    implied: int = 0
    live: int = 0
    reconciled: int = 0

    @property
    def accounted(self) -> int:
        """Records whose end is known."""
        fates = self.applied + self.noop + self.superseded + self.duplicate + self.stale + self.quarantined
        return fates + self.skipped + self.truncates


@dataclass(frozen=True, kw_only=True)
class Subscribed(Result):
    """Of a node, over all its edges: subscriptions made and ended."""

    subscribed: int = 0
    unsubscribed: int = 0

    @property
    def sent(self) -> int:
        """How many subscriptions changed."""
        return self.subscribed + self.unsubscribed


@dataclass(frozen=True, kw_only=True)
class Responded(Result):
    """Of an edge."""

    responses: int = 0


@dataclass(frozen=True, kw_only=True)
class Changed(Result):
    """Of a node: net changes of its output."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def changes(self) -> int:
        """How many rows change."""
        return self.inserted + self.updated + self.deleted

    @property
    def counts(self) -> Counts:
        """With their sum."""
        return {**super().counts, "changes": self.changes}


@dataclass(frozen=True, kw_only=True)
class Resolved(Changed):
    """Net changes as computed.

    ``unchanged``: rows that were looked at and stay; ``stale``: responses that an older left row had asked for; ``held_before``: keys among them that
    are held back; ``uncomputable``: rows that an expression cannot compute; ``withheld``: changes that were not made, so that the output stays as it was.
    """

    unchanged: int = 0
    stale: int = 0
    held_before: int = 0
    uncomputable: int = 0
    withheld: int = 0


@dataclass(frozen=True, kw_only=True)
class Validated(Changed):
    """Net changes that become visible with the run; ``held_back``: rows that do not; ``released``: rows that were held back until now."""

    held_back: int = 0
    released: int = 0

    @staticmethod
    def as_resolved(made: Changed) -> "Validated":
        """The result where what was computed is what becomes visible."""
        return Validated(inserted=made.inserted, updated=made.updated, deleted=made.deleted)

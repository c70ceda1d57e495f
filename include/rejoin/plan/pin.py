"""What one run reads of one source: found once by the cut and kept in the ledger, so that every retry reads the same (ADR 0019)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rejoin.plan.model.sources import Meaning, meaning_of

VERSION = 2
FILES = "files"
"""The transport of every pin that rejoin wrote before pins named theirs."""


@dataclass(frozen=True)
class Part:
    """What one task reads: a file, a range of a partition, what changed between two snapshots of a table.

    Attributes:
        id: what errors, the column ``_file`` and ``rejoin why`` call it.
        size: its bytes as they are stored, or about so many; decides who reads it.
        place: what its transport finds the same records by, as JSON types.
        records: how many it has at most; None: that is known when they are read.
    """

    id: str
    size: int
    place: Mapping[str, Any] = field(default_factory=dict)
    records: int | None = None


@dataclass(frozen=True)
class Pin:
    """Exactly what one run reads of one source.

    Attributes:
        kind: of the source, as ``plan.model.sources.SOURCES`` names it.
        parts: in the order in which they are read.
        ordinal: grows with every pin of a source; for snapshots by the number of snapshots passed.
        superseded: snapshots newer than the last pin that were skipped because a still newer one exists.
        columns: the column names found in a snapshot, or in files of records.
        transport: which transport made it.
        mark: where the source stands after this pin, as JSON types; only that transport reads it.
        partial: of a snapshot: these are its changes since the last pin, deletes included, not all of its rows.
        torn: records of the source were lost, and these are the first that are there after them: a snapshot within them may lack rows.
    """

    kind: str
    parts: tuple[Part, ...]
    ordinal: int
    superseded: int = 0
    columns: tuple[str, ...] = ()
    transport: str = FILES
    mark: Mapping[str, Any] = field(default_factory=dict)
    partial: bool = False
    torn: bool = False

    @property
    def of_a_feed(self) -> bool:
        """Whether its records are changes."""
        return meaning_of(self.kind) is Meaning.FEED

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def records(self) -> int | None:
        """How many records it has at most, where that is known before they are read."""
        known = [part.records for part in self.parts if part.records is not None]
        return sum(known) if len(known) == len(self.parts) else None

    @property
    def files(self) -> tuple[Part, ...]:
        """The parts that are files, which no later run may take again."""
        return self.parts if self.transport == FILES else ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, for the ledger."""
        data = asdict(self)
        return {"v": VERSION, **data, "parts": list(data["parts"]), "columns": list(self.columns)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Pin":
        """Reads pins of this version and of the first one, which knew files only."""
        rest = (data["ordinal"], data["superseded"], tuple(data["columns"]))
        if "v" not in data:
            return Pin(data["kind"], tuple(Part(f["path"], f["size"], {"sha256": f["sha256"]}) for f in data["files"]), *rest)
        parts = tuple(Part(part["id"], part["size"], part["place"], part.get("records")) for part in data["parts"])
        return Pin(data["kind"], parts, *rest, data["transport"], data["mark"], data["partial"], data.get("torn", False))

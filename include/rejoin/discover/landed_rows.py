"""Whose rows these are, by the names of their fields: what a tool adds to the rows that it lands says which call of a topology file reads them. Pure."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoin.discover.columns import Column, key_of, named_as_key
from rejoin.discover.table import UNKNOWN, FoundTable
from rejoin.sources.recognition import FLATTENED

_PLAIN = (
    "rows without any word of order: snapshot(...) takes the newest file as all rows that there are; "
    "changes(..., order_by=...) each as its row is now; records(...) of a stream adds them"
)
_LASTING = "deletes are not in it: no row has __deleted (delete.tombstone.handling.mode=rewrite)"
_UNORDERED = f"{UNKNOWN}: no field says which of two rows is newer"


@dataclass(frozen=True)
class Landed:
    """How rows of some tool are read.

    Attributes:
        call: the function of a topology file.
        options: what it is called with, behind the path.
        marks: fields that are the tool's own.
        notes: what a reader should look at.
    """

    call: str
    options: str
    marks: frozenset[str]
    notes: tuple[str, ...]

    def table(self, name: str, path: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> FoundTable:
        """The table that is proposed.

        Args:
            name: of the table.
            path: of the source, as a topology file has it.
            columns: all fields of the rows.
            rows: some of them.
        """
        own = [column for column in columns if column.name not in self.marks]
        rows = [{n: value for n, value in row.items() if n not in self.marks} for row in rows]
        named, unique = named_as_key(own), key_of(name, own, rows)
        key = named or unique if self.marks else unique or named  # a row that has changed comes twice
        return FoundTable(name, own, key, f"{self.call}({path}{self.options})", rows, self.notes, [self.call])


def landed(names: Collection[str]) -> Landed:
    """Who has landed rows with these fields; of plain rows a snapshot."""
    if marks := frozenset(n for n in names if n.startswith("_fivetran_")):
        return Landed("fivetran", "", marks, ("rows that Fivetran landed",))
    if marks := frozenset(n for n in names if n.startswith(("_ab_", "_airbyte_"))):
        known = next((n for n in ("_ab_cdc_lsn", "_ab_cdc_cursor") if n in marks), None)
        return Landed("airbyte", _ordered(known), marks, ("rows that Airbyte landed", *_unordered(known)))
    if not set(FLATTENED).isdisjoint(names):
        marks = frozenset(n for n in names if n.startswith("__"))
        order = position(marks)
        deleted, notes = ("", ()) if "__deleted" in marks else (", deleted=None", (_LASTING,))
        said = "events of Debezium that ExtractNewRecordState has flattened"
        return Landed("flattened", _ordered(order) + deleted, marks, (said, *notes, *_unordered(order)))
    if "Op" in names:
        marks = frozenset(n for n in names if n == "Op" or n.startswith("AR_H_"))
        told = "AR_H_CHANGE_SEQ" in marks
        lacking = () if told else (f"{_UNORDERED}; add $AR_H_CHANGE_SEQ in DMS",)
        return Landed("dms", "" if told else f', sequence="{UNKNOWN}"', marks, ("rows of AWS DMS", *lacking))
    return Landed("snapshot", "", frozenset(), (_PLAIN,))


def position(marks: Collection[str]) -> str | list[str] | None:
    """What orders flattened rows, as ``order_by=`` of ``flattened(...)`` says it; None if no field does."""
    for prefix in ("__", "__source_"):
        lsn, file, at, row, commit, change = (prefix + n for n in ("lsn", "file", "pos", "row", "commit_lsn", "change_lsn"))
        if lsn in marks:
            return lsn
        if {file, at} <= set(marks):
            return [f"CAST(split_part({file}, '.', 2) AS BIGINT)", at, *([row] if row in marks else [])]
        if {commit, change} <= set(marks):
            return f"concat({commit}, {change})"
    return None


def _ordered(order: str | list[str] | None) -> str:
    return f", order_by={json.dumps(order or UNKNOWN)}"


def _unordered(order: object) -> tuple[str, ...]:
    return () if order else (_UNORDERED,)

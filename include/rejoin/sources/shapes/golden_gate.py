"""Oracle GoldenGate's operations as JSON (formatter ``json``, operation-modelled), as lines or values of a topic. ``only``: the table as it is named.

| op_type | event |
|---|---|
| I | upsert |
| U | upsert; one that gives the row another key also deletes the old one; columns that ``after`` lacks (a compressed update) keep their values |
| D | delete |
| T | truncate |

Order is ``pos``, the operation's place in the trail. Values come as JSON values or as texts (``treatAllColumnsAsStrings``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rejoin.errors import BadRecord
from rejoin.sources.decode.line_shape import TEXT, Leaf, Part, Shape, at, kind_at
from rejoin.sources.decode.shape_learning import Habits
from rejoin.sources.decode.sql_values import Typed, of_text
from rejoin.sources.decode.values import Convert, converter, csv_converter
from rejoin.sources.shapes.lines import Event, LineDialect, json_object, positioned
from rejoin.sources.shapes.row_changes import RowChanges


class GoldenGate(LineDialect):
    """The decoder of one file."""

    habits = Habits(repeated=("primary_keys",), tables=("table",))

    def convert(self, column: str, type_: str) -> Convert:
        of_text, of_json = csv_converter(column, type_), converter(column, type_, base64_decimals=False)
        return lambda value: of_text(value) if isinstance(value, str) else of_json(value)

    def read(self, line: int, raw: bytes) -> Event | Sequence[Event]:
        operation = json_object(raw)
        if not {"table", "op_type"} <= operation.keys():
            raise BadRecord("GOLDENGATE_TYPE", "the record has no 'table' and 'op_type', as operations of GoldenGate have")
        if self.only is not None and operation.get("table") != self.only:
            return self.skipped(line)
        kind, at = operation.get("op_type"), _position(operation)
        if kind == "T":
            return self.truncate(line, at)
        if kind == "D":
            return self.delete(line, _row(operation, "before"), at)
        if kind not in ("I", "U"):
            raise BadRecord("GOLDENGATE_TYPE", "the operation is none that GoldenGate is known to write")
        row = _row(operation, "after")
        upsert = self.upsert(line, row, at, unchanged=kind == "U")
        before = self.changed_key(row, _row(operation, "before")) if kind == "U" and operation.get("before") else None
        if before is None:
            return upsert
        if upsert.missing:
            raise BadRecord(
                "GOLDENGATE_KEY", "the update gives the row another key and leaves columns out, whose values stand under the old key"
            )
        return self.delete(line, before, at), upsert

    def plainly(self, shape: Shape) -> RowChanges:
        at_, is_told = at("j", ("pos",)), kind_at(shape.root, ("pos",)) == TEXT
        position = Typed(f"lpad({at_}, 20, '0')", f"regexp_full_match({at_}, '[0-9]{{1,20}}')") if is_told else Typed("''", "false")
        return RowChanges("op_type", ("I", "U"), ("U",), ("D",), row="after", old="before", gone="before", partial=True, position=position)

    def typed(self, part: Part, written: str, type_: str) -> Typed | None:
        is_text = isinstance(part, Leaf) and part.kind == TEXT
        return of_text(written, type_) if is_text else super().typed(part, written, type_)


def _row(operation: Mapping[str, Any], member: str) -> Mapping[str, Any]:
    row = operation.get(member)
    if not isinstance(row, dict):
        raise BadRecord("GOLDENGATE_DATA", f"the operation has no row in {member!r}")
    return row


def _position(operation: Mapping[str, Any]) -> str:
    at = operation.get("pos")
    if not (isinstance(at, str) and at.isascii() and at.isdigit()):
        raise BadRecord("UNKNOWN_POSITION", "the operation does not say its place in the trail (pos)")
    return positioned(int(at))

"""Maxwell's change events (https://maxwells-daemon.io/dataformat/), as lines of JSON or values of a topic. ``only``: ``database.table``.

| type | event |
|---|---|
| insert, update | upsert; an update that gives the row another key (``old``) also deletes the old one |
| delete | delete |
| bootstrap-insert | upsert by a snapshot, that is older than every change: where nothing else is known, it only fills in what the log says nothing of |
| bootstrap-start, bootstrap-complete | skipped: where a snapshot begins and ends (``steps.ingest.bootstraps``) |
| DDL (table-*, database-*) | skipped |

Order is the binlog's: file, position, and ``xoffset``, which counts the rows of a transaction; its last row has ``commit`` instead. Maxwell writes
the position with ``output_binlog_position=true``, ``xoffset`` with ``output_xoffset=true``.

A SET comes as an array, and becomes a text with commas, as MySQL shows it. Zero dates are refused (``VALUE_RANGE``). With ``output_nulls=false`` a
column that is null is absent: such columns are declared ``optional``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rejoin.errors import BadRecord
from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import FLAG, NULL, TEXT, WHOLE, Items, Leaf, Part, Shape, at, kind_at
from rejoin.sources.decode.shape_learning import Habits
from rejoin.sources.decode.sql_values import Typed
from rejoin.sources.events import ReadMark
from rejoin.sources.shapes.lines import Event, LineDialect, json_object, positioned
from rejoin.sources.shapes.row_changes import RowChanges

_POSITION = re.compile(r".*?(\d+):(\d+)", re.DOTALL)
_PLAIN_POSITION = "([ -~]*[ -/:-~])?[0-9]{1,18}:[0-9]{1,18}"
"""The same, as SQL reads it, where both find the same numbers: of ASCII, whose digits are those that `\\d` means."""
_LAST = 10**19
"""The place of a transaction's last row among its rows."""
_ENDS = {"bootstrap-start": ReadMark.FIRST, "bootstrap-complete": ReadMark.LAST}


class Maxwell(LineDialect):
    """The decoder of one file."""

    habits = Habits(tables=("database", "table"))

    def read(self, line: int, raw: bytes) -> Event | Sequence[Event]:
        event = json_object(raw)
        kind = event.get("type")
        if not isinstance(kind, str) or "database" not in event:
            raise BadRecord("MAXWELL_TYPE", "the record has no 'database' and 'type', as events of Maxwell have")
        origin = f"{event.get('database')}.{event.get('table')}"
        if self.only not in (None, origin):
            return self.skipped(line)
        if kind in _ENDS:
            return self.skipped(line)._replace(snapshot=f"{_ENDS[kind]} {origin}")
        if kind.startswith(("table-", "database-")):
            return self.skipped(line)
        row = _row(event.get("data"))
        match kind:
            case "bootstrap-insert":
                return self.upsert(line, row, positioned(0, 0, 0))._replace(snapshot=f"{ReadMark.ROW} {origin}")
            case "insert":
                return self.upsert(line, row, _position(event))
            case "update":
                old = event.get("old") or {}
                if not isinstance(old, dict):
                    raise BadRecord("MAXWELL_DATA", "the member 'old' is no object")
                upsert, before = self.upsert(line, row, _position(event)), self.changed_key(row, old)
                return upsert if before is None else (self.delete(line, before, _position(event)), upsert)
            case "delete":
                return self.delete(line, row, _position(event))
        raise BadRecord("MAXWELL_TYPE", "the event is none that Maxwell is known to write")

    def plainly(self, shape: Shape) -> RowChanges:
        placed, snapped = _placed(shape), f"{at('j', ('type',))} = 'bootstrap-insert'"
        at_first = f"CASE WHEN {snapped} THEN {quoted(positioned(0, 0, 0))} ELSE {placed.value} END"
        position = Typed(at_first, f"{snapped} OR ({placed.holds})")
        origin = ", '.', ".join(at("j", (name,)) for name in self.habits.tables)
        return RowChanges(
            kind="type",
            puts=("insert", "update", "bootstrap-insert"),
            updates=("update",),
            deletes=("delete",),
            row="data",
            old="old",
            gone="data",
            position=position,
            snapshot=f"CASE WHEN {snapped} THEN concat({quoted(f'{ReadMark.ROW} ')}, {origin}) END",
        )

    def typed(self, part: Part, written: str, type_: str) -> Typed | None:
        if isinstance(part, Items) and isinstance(part.each, Leaf) and part.each.kind == TEXT and not part.each.nullable:
            part, written = Leaf(TEXT), f"CASE WHEN len({written}) = 0 THEN '' ELSE array_to_string({written}, ',') END"
        return super().typed(part, written, type_)


def _placed(shape: Shape) -> Typed:
    """What ``_position`` makes of the members of a line of that shape."""
    position, nth, commit = (at("j", (name,)) for name in ("position", "xoffset", "commit"))
    kinds = [kind_at(shape.root, (name,)) for name in ("position", "xoffset", "commit")]
    if kinds[0] != TEXT or kinds[1] not in (WHOLE, NULL, None) or kinds[2] not in (FLAG, NULL, None):
        return Typed("CAST(NULL AS VARCHAR)", "false")
    number = f"CAST({nth} AS VARCHAR)" if kinds[1] == WHOLE else "CAST(NULL AS VARCHAR)"
    last = commit if kinds[2] == FLAG else "false"
    file, place = f"regexp_extract(split_part({position}, ':', -2), '[0-9]+$')", f"split_part({position}, ':', -1)"
    parts = ", '.', ".join(f"lpad({part}, 20, '0')" for part in (file, place, f"coalesce({number}, '{_LAST}')"))
    counted = f"{nth} >= 0 OR ({nth} IS NULL AND {last})" if kinds[1] == WHOLE else last
    return Typed(f"concat({parts})", f"regexp_full_match({position}, '{_PLAIN_POSITION}') AND ({counted})")


def _row(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise BadRecord("MAXWELL_DATA", "the event has no row in 'data'")
    return {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in data.items()}


def _position(event: Mapping[str, Any]) -> str:
    found = _POSITION.fullmatch(str(event.get("position")))
    if found is None:
        raise BadRecord(
            "UNKNOWN_POSITION", "the event does not say its position in the binlog: Maxwell writes it with output_binlog_position=true"
        )
    nth = event.get("xoffset")
    if nth is None and event.get("commit") is not True:
        raise BadRecord(
            "UNKNOWN_POSITION", "the event does not say its place in its transaction: Maxwell writes it with output_xoffset=true"
        )
    if nth is not None and not (isinstance(nth, int) and 0 <= nth < _LAST):
        raise BadRecord("UNKNOWN_POSITION", "the member 'xoffset' is no count")
    return positioned(int(found[1]), int(found[2]), _LAST if nth is None else nth)

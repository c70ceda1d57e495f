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
from rejoin.sources.events import ReadMark
from rejoin.sources.shapes.lines import Event, LineDialect, json_object, positioned

_POSITION = re.compile(r".*?(\d+):(\d+)", re.DOTALL)
_LAST = 10**19
"""The place of a transaction's last row among its rows."""
_ENDS = {"bootstrap-start": ReadMark.FIRST, "bootstrap-complete": ReadMark.LAST}


class Maxwell(LineDialect):
    """The decoder of one file."""

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

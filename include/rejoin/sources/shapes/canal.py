"""Canal's flat messages, and TiCDC's in the same format (canal-json), as lines of JSON or values of a topic. ``only``: ``database.table``.

A message has the rows of one statement: ``data[i]``, and of an update their earlier values, ``old[i]``.

| type | events |
|---|---|
| INSERT, UPDATE | an upsert a row; an update that gives a row another key also deletes the old one |
| DELETE | a delete a row |
| TRUNCATE | truncate |
| other DDL (``isDdl``), QUERY, TIDB_WATERMARK, TIDB_BOOTSTRAP | skipped |

Messages have no position. So order is arrival: the feed has to bring all changes of a key in their order, as a topic does whose messages are
partitioned by primary key. A message that is written again later would make its old rows the newest.

All values are texts, typed by the declared schema as fields of CSV are; binary ones are texts of ISO 8859-1.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rejoin.errors import BadRecord
from rejoin.sources.decode.line_shape import FLAG, NULL, TEXT, Leaf, Part, Shape, at, kind_at
from rejoin.sources.decode.shape_learning import Habits
from rejoin.sources.decode.sql_values import Typed, of_text
from rejoin.sources.decode.values import Convert, csv_converter
from rejoin.sources.shapes.lines import Event, LineDialect, json_object
from rejoin.sources.shapes.row_changes import RowChanges

_NOTHING = ("QUERY", "TIDB_WATERMARK", "TIDB_BOOTSTRAP")


class Canal(LineDialect):
    """The decoder of one file."""

    by_arrival = True
    habits = Habits(repeated=("pkNames", "mysqlType", "sqlType"), tables=("database", "table"))

    def convert(self, column: str, type_: str) -> Convert:
        made = _octets(column) if type_ == "BINARY" else csv_converter(column, type_)

        def converted(value: Any) -> Any:
            if not isinstance(value, str):
                raise BadRecord("VALUE_TYPE", f"column {column!r}: Canal writes values as texts")
            return made(value)

        return converted

    def read(self, line: int, raw: bytes) -> Event | Sequence[Event]:
        message = json_object(raw)
        if not {"database", "type"} <= message.keys():
            raise BadRecord("CANAL_TYPE", "the record has no 'database' and 'type', as messages of Canal have")
        if self.only is not None and f"{message.get('database')}.{message.get('table')}" != self.only:
            return self.skipped(line)
        kind = message.get("type")
        if kind == "TRUNCATE":
            return self.truncate(line)
        if message.get("isDdl") is True or kind in _NOTHING:
            return self.skipped(line)
        if kind not in ("INSERT", "UPDATE", "DELETE"):
            raise BadRecord("CANAL_TYPE", "the message is none that Canal is known to write")
        rows = _rows(message.get("data"), "data")
        if not rows:
            return self.skipped(line)
        if kind == "DELETE":
            return [self.delete(line, row) for row in rows]
        old = _rows(message.get("old") or [{}] * len(rows), "old") if kind == "UPDATE" else [{}] * len(rows)
        if len(old) != len(rows):
            raise BadRecord("CANAL_DATA", "the message has not as many rows in 'old' as in 'data'")
        return [event for row, before in zip(rows, old, strict=True) for event in self._written(line, row, before)]

    def plainly(self, shape: Shape) -> RowChanges:
        holds = f"coalesce(NOT {at('j', ('isDdl',))}, true)" if kind_at(shape.root, ("isDdl",)) == FLAG else "true"
        return RowChanges("type", ("INSERT", "UPDATE"), ("UPDATE",), ("DELETE",), row="data", old="old", gone="data", holds=holds)

    def typed(self, part: Part, written: str, type_: str) -> Typed | None:
        if not isinstance(part, Leaf) or part.kind not in (TEXT, NULL):
            return None
        return of_text(written, type_) if part.kind == TEXT else super().typed(part, written, type_)

    def _written(self, line: int, row: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Event]:
        before = self.changed_key(row, old)
        if before is not None:
            yield self.delete(line, before)
        yield self.upsert(line, row)


def _rows(found: object, member: str) -> list[Mapping[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(row, dict) or (member == "old" and row is None) for row in found):
        raise BadRecord("CANAL_DATA", f"the message has no rows in {member!r}")
    return [row or {} for row in found]


def _octets(column: str) -> Convert:
    def converted(text: str) -> bytes:
        try:
            return text.encode("iso-8859-1")
        except UnicodeEncodeError:
            raise BadRecord("VALUE_TYPE", f"column {column!r}: a text that is not ISO 8859-1 does not fit BINARY") from None

    return converted

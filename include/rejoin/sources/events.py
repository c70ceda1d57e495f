"""The contract of the events frame: what every source hands to ``ingest``, whatever its format.

One row is one change that a record of the input says, so that rows read = applied + ... + skipped + quarantined can be counted (I4). Nearly
every record says one; one of Canal can say many, an update of a key says two. A record without any is a row, too, and one that is refused is one row.

| column | type | meaning |
|---|---|---|
| ``_kind`` | STRING | an ``EventKind`` |
| key and value columns | declared | in declared order; null where the event carries none (a delete carries only its key) |
| ``_position`` | STRING | order in the source, compared as text; null for a tombstone whose position is unknown and where there is none |
| ``_arrival`` | BIGINT | order in the pin: (index of the part << 43) + (line << 13) + which change of its record, from 0 |
| ``_missing`` | ARRAY<STRING> | declared columns that the event left out as unchanged (TOAST): keep the stored value |
| ``_absent`` | ARRAY<STRING> | declared columns that the row of an upsert does not have, without those that it may lack (``Table.optional``) |
| ``_old_key`` | STRUCT of the key columns | the key this row had before (``__debezium.oldkey``), else null |
| ``_file``, ``_line`` | STRING, BIGINT | coordinates: path as pinned, first line from 1 (row number in Parquet) |
| ``_lines`` | BIGINT | how many lines the record takes: 1, but for CSV records with line ends in quotes |
| ``_code``, ``_reason`` | STRING | why a record is quarantined; the reason holds no values |
| ``_raw`` | STRING | a quarantined record as it was written, cut at 1 MiB |
| ``_snapshot`` | STRING | of a row that a snapshot read, and of a change right after one, a ``ReadMark``, with what was read behind a blank where it begins or ends; else null. Where records of their own say that it begins and ends, they are skipped and have the mark, and all rows say what was read |

A quarantined record carries its key columns if the key is readable, else they are null; if a snapshot read it, its position and mark as well, where they are. TIMESTAMP is an instant,
``pa.timestamp("us", tz="UTC")``; TIMESTAMP_NTZ is a wall clock, ``pa.timestamp("us")``. Blank lines are no records.

Codes of quarantined records: those of ``values`` and BAD_JSON, AMBIGUOUS_JSON, BAD_CSV, MISSING_KEY, MISSING_AFTER, TOAST_KEY,
UNKNOWN_OP, UNKNOWN_POSITION.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import BadRecord
from rejoin.plan.model.plan import Column, Table
from rejoin.plan.sql.nested import ARRAY, STRUCT, parts_of
from rejoin.sources.decode.values import decimal_of

BATCH_ROWS = 10_000
RARE = ("_missing", "_absent", "_old_key", "_code", "_reason", "_raw", "_snapshot")
"""Columns that hold nothing in nearly all events."""
RAW_BYTES = 1 << 20  # of the size that Kafka takes by default, so that what was refused can be replayed
INDEX_BITS, LINE_BITS = 43, 13
"""Of ``_arrival``: so far left stand the part's index, and the line."""
MOST_CHANGES = 1 << LINE_BITS
"""A record says fewer changes than that."""
MISSING_KEY = "MISSING_KEY"
"""The code of a record that has no value in a key column, in every format."""


class EventKind(StrEnum):
    """What one record of the input asks for."""

    UPSERT = "upsert"  # the row has these values now (insert, update, snapshot row)
    DELETE = "delete"  # the row of this key is gone
    TRUNCATE = "truncate"  # all rows older than the position are gone; no key
    SKIPPED = "skipped"  # not about rows of this table (heartbeat, transaction, other topic); only counted
    QUARANTINED = "quarantined"  # cannot be applied; kept with code, reason, coordinates and raw text


class ReadMark(StrEnum):
    """Where an event stands in a snapshot within a feed, or that it comes right after one."""

    FIRST = "first"  # its first row of what is named behind
    LAST = "last"  # its last one: all rows that there were came with it; the mark of an only row, too
    ROW = "row"  # any other
    AFTER = "after"  # no row of one, but of the first transaction after it: newer than what it read of the row, whatever the positions say
    ADDED = "added"  # of a snapshot among the changes, which sees all of them: it says nothing of rows that it lacks


class Event(NamedTuple):
    """One record on its way into a batch. ``key`` and ``values`` follow ``Layout.key`` and ``Layout.values``."""

    kind: EventKind
    line: int
    key: tuple[Any, ...]
    values: Sequence[Any]
    position: str | None = None
    missing: Sequence[str] = ()
    old_key: dict[str, Any] | None = None
    code: str | None = None
    reason: str | None = None
    raw: str | None = None
    lines: int = 1
    absent: Sequence[str] = ()
    nth: int = 0
    snapshot: str | None = None


class Layout:
    """The columns of a table split into key (in key order) and others (in declared order), with what is null in each."""

    def __init__(self, table: Table) -> None:
        declared = {column.name: column for column in table.columns}
        self.key: tuple[Column, ...] = tuple(declared[name] for name in table.key)
        self.values: tuple[Column, ...] = tuple(column for column in table.columns if column.name not in table.key)
        self.no_key: tuple[Any, ...] = (None,) * len(self.key)
        self.no_values: tuple[Any, ...] = (None,) * len(self.values)
        self.schema = events_schema(table)
        self.names = [column.name for column in table.columns]
        self.required = tuple(column.name for column in self.values if column.name not in table.optional)

    def quarantined(self, line: int, bad: BadRecord, raw: bytes, key: tuple[Any, ...] | None = None, lines: int = 1) -> Event:
        """The row of a record that cannot be applied; ``key`` if it could be read."""
        text = raw_text(raw)
        return Event(EventKind.QUARANTINED, line, key or self.no_key, self.no_values, None, (), None, bad.code, bad.reason, text, lines)

    def batch(self, events: Sequence[Event], file: str, index: int) -> pa.RecordBatch:
        """Events of one file -> a record batch of ``schema``. Raises UnicodeEncodeError for text that is not Unicode."""
        kinds, lines, keys, values, positions, missing, old_keys, codes, reasons, raws, counts, absent, nths, marks = zip(
            *events, strict=True
        )
        columns: dict[str, Sequence[Any]] = {
            **dict(zip((c.name for c in self.key), zip(*keys, strict=True), strict=True)),
            **dict(zip((c.name for c in self.values), zip(*values, strict=True), strict=True)),
            "_kind": kinds,
            "_position": positions,
            "_missing": missing,
            "_absent": absent,
            "_old_key": old_keys,
            "_code": codes,
            "_reason": reasons,
            "_raw": raws,
            "_lines": counts,
            "_nth": nths,
            "_snapshot": marks,
        }
        return self.arranged(
            {name: pa.array(column, pa.int64() if name == "_nth" else self.schema.field(name).type) for name, column in columns.items()},
            lines,
            file,
            index,
        )

    def arranged(self, arrays: dict[str, pa.Array], lines: Sequence[int], file: str, index: int) -> pa.RecordBatch:
        """Columns of the records on ``lines`` -> a record batch of ``schema``; columns left out are null, but lists are empty, ``_lines`` 1.

        ``_nth``: which change of its record a row is, where some say several; left out: each says one.
        """
        n = len(lines)
        arrays["_line"] = pa.array(lines, pa.int64())
        places = pc.add(pc.shift_left(arrays["_line"], LINE_BITS), index << INDEX_BITS)
        arrays["_arrival"] = pc.add(places, arrays.pop("_nth")) if "_nth" in arrays else places
        arrays["_file"] = pa.repeat(pa.scalar(file, pa.string()), n)
        for name in {"_missing", "_absent"} - arrays.keys():
            arrays[name] = pa.ListArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), n + 1), pa.array([], pa.string()))
        if "_lines" not in arrays:
            arrays["_lines"] = pa.repeat(pa.scalar(1, pa.int64()), n)
        ordered = [arrays[field.name] if field.name in arrays else pa.nulls(n, field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(ordered, schema=self.schema)


def raw_text(raw: bytes) -> str:
    """A record as quarantine keeps it."""
    return raw[:RAW_BYTES].decode("utf-8", "replace")


def arrow_type(type_: str | None) -> pa.DataType:
    """The Arrow type of a declared Spark SQL type."""
    plain = {
        "BOOLEAN": pa.bool_(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        "TIMESTAMP_NTZ": pa.timestamp("us"),
    }
    if type_ in plain:
        return plain[type_]
    if made := parts_of(type_ or ""):
        inner = [(name, arrow_type(of)) for name, of in made.parts]
        return (
            pa.struct(inner) if made.kind == STRUCT else pa.list_(inner[0][1]) if made.kind == ARRAY else pa.map_(pa.string(), inner[1][1])
        )
    decimal = decimal_of(type_ or "")
    if decimal is None:
        raise ValueError(f"rejoin cannot read the type {type_!r} from a source")
    return pa.decimal128(*decimal)


@lru_cache(64)
def events_schema(table: Table) -> pa.Schema:
    """The Arrow schema of the events frame of ``table``."""
    types = {column.name: arrow_type(column.type) for column in table.columns}
    return pa.schema(
        [
            ("_kind", pa.string()),
            *types.items(),
            ("_position", pa.string()),
            ("_arrival", pa.int64()),
            ("_missing", pa.list_(pa.string())),
            ("_absent", pa.list_(pa.string())),
            ("_old_key", pa.struct([(name, types[name]) for name in table.key])),
            ("_file", pa.string()),
            ("_line", pa.int64()),
            ("_lines", pa.int64()),
            ("_code", pa.string()),
            ("_reason", pa.string()),
            ("_raw", pa.string()),
            ("_snapshot", pa.string()),
        ]
    )


def events_ddl(table: Table) -> str:
    """The same schema as Spark DDL."""
    types = {column.name: column.type for column in table.columns}
    declared = [f"{quoted(name)} {type_}" for name, type_ in types.items()]
    old_key = ", ".join(f"{quoted(name)}: {types[name]}" for name in table.key)
    front = ["`_kind` STRING", *declared, "`_position` STRING", "`_arrival` BIGINT", "`_missing` ARRAY<STRING>", "`_absent` ARRAY<STRING>"]
    back = [f"`_old_key` STRUCT<{old_key}>", "`_file` STRING", "`_line` BIGINT", "`_lines` BIGINT", "`_code` STRING", "`_reason` STRING"]
    return ", ".join([*front, *back, "`_raw` STRING", "`_snapshot` STRING"])


def quoted(name: str) -> str:
    """A column name as a Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"

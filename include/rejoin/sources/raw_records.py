"""Records as they were written: found again for those that are refused after they were decoded, and decoded again in a replay."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import BadRecord
from rejoin.plan.model.added_columns import delivered
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import ChangesSource, DebeziumSource
from rejoin.plan.pin import Part, Pin
from rejoin.plan.topic_path import names_topic
from rejoin.sources.access import SourceAccess
from rejoin.sources.events import RAW_BYTES, EventKind, events_ddl, events_schema
from rejoin.sources.formats.json_text import loads
from rejoin.sources.read import is_small, marked_errors, tasks
from rejoin.sources.shapes import registry
from rejoin.sources.shapes.debezium.message import message
from rejoin.sources.shapes.mapped import decoder as mapped
from rejoin.sources.stream_columns import completed
from rejoin.sources.transports.registry import transport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 10_000
_RAW = pa.schema([("_file", pa.string()), ("_line", pa.int64()), ("_raw", pa.string())])
_RAW_DDL = "`_file` STRING, `_line` BIGINT, `_raw` STRING"
Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def read_raw_here(
    table: Table, pin: Pin, access: SourceAccess, places: Mapping[str, frozenset[int]], *, large: bool = False
) -> pa.Table | None:
    """Records of a small pin as they were written: ``_file``, ``_line``, ``_raw``; None if it is large.

    They are read again, since keeping the text of every record beside its values would double what is held of each cut.

    Args:
        table: the table.
        pin: what was read.
        access: how its source is reached.
        places: id of a part -> the places (``_line``) of the wanted ones in it.
        large: read a large pin, too.

    Raises:
        SourceError: the pinned records are no longer there.
    """
    if not (large or is_small(pin)):
        return None
    found = [batch for part in pin.parts if part.id in places for batch in _raw_of(table, access, part, places[part.id])]
    return pa.Table.from_batches(found, _RAW)


def read_raw(spark: "SparkSession", table: Table, pin: Pin, access: SourceAccess, places: "DataFrame") -> "DataFrame":
    """The same of any pin by Spark. ``places``: ``_file`` and ``_line`` of the wanted ones."""
    from pyspark.sql import functions as F

    wanted = places.groupBy(F.col("_file").alias("id")).agg(F.collect_set("_line").alias("lines"))
    work: Work = partial(_raw_rows, table, pin, access.to(table.source.path))
    return tasks(spark, pin).join(wanted, on="id").mapInArrow(work, _RAW_DDL)


def _raw_rows(table: Table, pin: Pin, access: SourceAccess, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on a worker: rows (id, index, lines) -> records."""
    for batch in rows:
        for row in batch.to_pylist():
            with marked_errors():
                yield from _raw_of(table, access, pin.parts[row["index"]], frozenset(row["lines"]))


def _raw_of(table: Table, access: SourceAccess, part: Part, wanted: frozenset[int]) -> Iterator[pa.RecordBatch]:
    """The records of one part that stand at these places."""
    found: list[dict[str, Any]] = []
    for line, raw in transport(delivered(table), access).raw(part, wanted):
        found.append({"_file": part.id, "_line": line, "_raw": raw})
        if len(found) == _BATCH:
            yield pa.RecordBatch.from_pylist(found, _RAW)
            found = []
    yield pa.RecordBatch.from_pylist(found, _RAW)


def row_columns(raw: str) -> list[str]:
    """The column names of the row in the text of a change event; none if it cannot be read."""
    try:
        value = message(raw.encode()).value
        value = loads(value) if isinstance(value, str) else value
        return list(value.get("payload", value)["after"])
    except (BadRecord, KeyError, TypeError, AttributeError):
        return []


def read_again(table: Table, records: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """The upserts and deletes among refused records of a feed that can be decoded now, as events.

    A record whose text is not all that was written is left out, and so are those of a dialect whose order is arrival: where they would stand among those
    that came later, nothing tells. Records of one file that follow each other are decoded together, as
    what one says of the feed (how it writes decimals) may help another.

    Args:
        table: the table.
        records: ``_file``, ``_line``, ``_reason``, ``_raw`` and ``_arrival``: no two the same, ``REPLAYED`` or less, so that none is a
            record of the cut.
    """
    given, named = delivered(table), isinstance(table.source, ChangesSource)
    if (not named or names_topic(table.source.path)) and registry.is_by_arrival(given):
        return
    decode = mapped.decode_lines if named else partial(registry.decode, index=0)
    facts = pa.array([str(EventKind.UPSERT), str(EventKind.DELETE)])
    whole = (record for record in records if _is_as_written(table, record))
    for file, group in groupby(whole, key=lambda record: record["_file"]):
        those = list(group)
        arrival = {record["_line"]: record["_arrival"] for record in those}
        numbered = ((record["_line"], record["_raw"].encode()) for record in those)
        for batch in completed(table, decode(given, file, lines=numbered)):
            at = pa.array([arrival[line] for line in batch["_line"].to_pylist()], pa.int64())
            yield batch.set_column(batch.schema.get_field_index("_arrival"), "_arrival", at).filter(pc.is_in(batch["_kind"], facts))


def _is_as_written(table: Table, record: Mapping[str, Any]) -> bool:
    """Whether the text of a refused record (``raw_text``) is what was written: neither cut, nor with U+FFFD in place of other bytes.

    rejoin's own decoder says of every record with such bytes that it is not UTF-8, so a U+FFFD that it does not speak of was written. A
    dialect of another package may read other encodings, and refuse a record for any reason.
    """
    text = record["_raw"]
    if text is None or len(text.encode()) >= RAW_BYTES:
        return False
    return "\ufffd" not in text or (isinstance(table.source, DebeziumSource | ChangesSource) and "UTF-8" not in record["_reason"])


def read_again_here(table: Table, records: Iterable[Mapping[str, Any]]) -> pa.Table:
    """``read_again`` in this process."""
    return pa.Table.from_batches(read_again(table, records), events_schema(table))


def read_again_on_workers(table: Table, records: "DataFrame") -> "DataFrame":
    """``read_again`` by Spark, for more records than one process should hold."""
    work: Work = partial(_again_rows, table)
    return records.select("_file", "_line", "_reason", "_raw", "_arrival").mapInArrow(work, events_ddl(table))


def _again_rows(table: Table, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield from read_again(table, batch.to_pylist())

"""Where the record of a stored version stands: its file and line, found by decoding again what its run has read. Never Spark."""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rejoin.errors import SourceError
from rejoin.limits import limits
from rejoin.plan.model.added_columns import PLACE
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.events import EventKind, arrow_type
from rejoin.sources.read import events_of_part, is_parquet, is_small
from rejoin.sources.stored_files import place
from rejoin.sources.transports.registry import transport

Found = tuple[str, int]
"""A file as it was pinned, and the record's first line (from 1; the row number in Parquet)."""
NO_RECORD = "its run's files have no such record"


def locate(table: Table, pin: Pin, access: SourceAccess, key: Mapping[str, Any], position: str) -> Found | str:
    """Where the record stands that became the version of ``key`` at ``position``; a text that says why that is not known.

    Args:
        table: the table, as the run that read the pin declared it.
        pin: what that run read.
        access: how its source is reached.
        key: values of the key columns.
        position: the version's (``_version``).
    """
    if table.by_place:
        path, _, line = str(key[PLACE.name]).rpartition(":")
        return path, int(line)
    if not is_parquet(table, pin) and not is_small(pin):
        return f"its run read more than {limits().fetched_bytes >> 20} MiB, which is not read again for one record"
    found: list[Found] = []
    problem = ""
    for index, part in enumerate(pin.parts):
        try:
            transport(table, access).check(part)
            found += (
                _rows(table, access.root, part.id, key) if is_parquet(table, pin) else _records(table, pin, access, index, key, position)
            )
        except SourceError as error:
            problem = problem or error.what
        except (pa.ArrowException, OSError):
            problem = problem or f"source {part.id!r} cannot be read"
    if not found:
        return problem or NO_RECORD
    # Of equal rows of a snapshot, and of records with one id, the first counts; of events that repeat a position the last.
    return found[-1] if pin.of_a_feed else found[0]


def _records(table: Table, pin: Pin, access: SourceAccess, index: int, key: Mapping[str, Any], position: str) -> list[Found]:
    """The records of one file, all of which is read, so that its bytes are those that were pinned."""
    found: list[Found] = []
    truncates: list[Found] = []
    for batch in events_of_part(table, pin, index, access):
        kind, at = batch["_kind"], pc.fill_null(pc.equal(batch["_position"], position), fill_value=False)
        if position.endswith("~"):  # what a delete without a position of its own got
            at = pc.or_(at, pc.and_(pc.is_null(batch["_position"]), pc.equal(kind, str(EventKind.DELETE))))
        own = pc.is_in(kind, pa.array([str(EventKind.UPSERT), str(EventKind.DELETE)]))
        found += _places(batch, [at, own, *_matches(table, batch, key)])
        truncates += _places(batch, [at, pc.equal(kind, str(EventKind.TRUNCATE))])
    return found or truncates


def _places(batch: pa.RecordBatch, conditions: list[pa.Array]) -> list[Found]:
    chosen = batch.filter(reduce(pc.and_, conditions))
    return list(zip(chosen["_file"].to_pylist(), chosen["_line"].to_pylist(), strict=True))


def _matches(table: Table, rows: pa.RecordBatch | pa.Table, key: Mapping[str, Any]) -> Iterator[pa.Array]:
    types = {column.name: arrow_type(column.type) for column in table.columns}
    for name, value in key.items():
        yield pc.fill_null(pc.equal(rows[name].cast(types[name]), pa.scalar(value, types[name])), fill_value=False)


def _rows(table: Table, root: str, file: str, key: Mapping[str, Any]) -> list[Found]:
    """The rows of a Parquet file with this key, by its key columns alone."""
    where = place(root, file)
    rows = pq.read_table(where.native, columns=list(key), filesystem=where.fs, partitioning=None)
    chosen = reduce(pc.and_, _matches(table, rows, key))
    return [(file, n + 1) for n in pc.indices_nonzero(chosen).to_pylist()]

"""The rows of a table as they were at one moment -> Parquet files of change events: by a few connections that see the same snapshot, each a range of the table's pages."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as adbc
import psycopg2
import psycopg2.extras
import pyarrow as pa
import pyarrow.parquet as pq

from rejoin.capture.envelope import nothing, older_gone
from rejoin.capture.landing import TableFiles
from rejoin.capture.row_columns import RowColumns, selected
from rejoin.capture.server import Relation, Server, coded, number, told
from rejoin.capture.tables import CapturedTable

_CONNECTIONS: Final = 2
"""More would take the database's cores away from those whom it is there for; two already read faster than one process writes."""
_RANGE_PAGES: Final = 8192
"""64 MB of the table a file."""


@dataclass(frozen=True)
class Moment:
    """A snapshot that sessions can see. ``lsn``: everything that committed before is in it, nothing else is."""

    snapshot: str
    lsn: int


@contextmanager
def moment(server: Server) -> Iterator[Moment]:
    """A snapshot, as long as this lasts: that of a temporary slot, whose beginning says what is in it. Waits for transactions that are open now."""
    with told(server.at, "taking a snapshot"):
        session = psycopg2.connect(server.url, connection_factory=psycopg2.extras.LogicalReplicationConnection)
        try:
            cursor = session.cursor()
            name = f"{server.name}_{session.info.backend_pid}"
            cursor.execute(f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT")
            ((_, point, snapshot, _),) = cursor.fetchall()
            yield Moment(snapshot, number(point))
        finally:
            session.close()


def land(server: Server, table: CapturedTable, relation: Relation, at: Moment, files: TableFiles) -> int:
    """Lands the rows that a table had at a moment; how many these are.

    The first and the last row say so, so they stand in files of their own: that of the first rows of all ranges, and that of the last ones. The last file, which
    is also the last to appear, says what no row can: that there are none, and that older rows are gone, if it is not the first snapshot of the table.
    """
    micros = server.rows("asking for the time", "SELECT (extract(epoch FROM now()) * 1000000)::int8")[0][0]
    made = RowColumns(table, {c.name: c.base for c in relation.columns}, at.lsn, micros)
    again, scratch = files.has_files, files.begin_snapshot()
    reader = _Reader(server, relation, at, made)
    starts = range(0, max(relation.pages, 1), _RANGE_PAGES)
    names = [scratch / f"{at.lsn:020d}-snapshot-{i:06d}" for i in range(len(starts) + 3)]
    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        ranges = list(threads.map(reader.land, starts, [*starts[1:], None], names[1:-2]))
    _land_edges(made, [found.edges for found in ranges], names[0], names[-2])
    count = sum(found.rows for found in ranges)
    if said := (b"" if count else nothing(table, at.lsn, micros)) + (older_gone(table, at.lsn, micros) if again else b""):
        names[-1].with_suffix(".jsonl").write_bytes(said)
    files.end_snapshot()
    files.place_snapshot()
    return count


def _land_edges(made: RowColumns, edges: Sequence[Sequence[pa.RecordBatch]], first: Path, last: Path) -> None:
    """Lands the first row of each range, and the last one if it has two."""
    heads, tails = ([rows for of in edges for rows in of[part]] for part in (slice(1), slice(1, 2)))
    count = len(heads) + len(tails)
    words = (["first"] if count > 1 else []) + ["true"] * (count - 2) + ["last"]
    for path, rows, of in ((first, heads, words[: len(heads)]), (last, tails, words[len(heads) :])):
        if rows:
            with _writer(path, made) as file:
                file.write_table(pa.Table.from_batches(map(made.envelopes, rows, of)))


def _writer(path: Path, made: RowColumns) -> pq.ParquetWriter:
    return pq.ParquetWriter(path.with_suffix(".parquet"), made.schema, compression="zstd")


@dataclass(frozen=True)
class _Range:
    """What was read of a range. ``edges``: its first row and its last, if it has so many."""

    rows: int
    edges: tuple[pa.RecordBatch, ...]


@dataclass(frozen=True)
class _Reader:
    server: Server
    relation: Relation
    at: Moment
    made: RowColumns

    def land(self, start: int, end: int | None, path: Path) -> _Range:
        """Lands the rows of pages from ``start`` to before ``end``, but for the first and the last."""
        edges, rows = list[pa.RecordBatch](), 0
        with _writer(path, self.made) as file:
            for batch in _inner(self._batches(self._select(start, end)), edges):
                file.write_batch(self.made.envelopes(batch))
                rows += batch.num_rows
        if not rows:
            path.with_suffix(".parquet").unlink()
        return _Range(rows + len(edges), tuple(edges))

    def _select(self, start: int, end: int | None) -> str:
        path, forms = self.made.table.path, self.made.forms
        read = ", ".join(selected(_quoted(c.name), c.type, forms[c.name]) for c in self.relation.columns)
        until = "" if end is None else f" AND ctid < '({end},0)'"
        return f"SELECT {read} FROM {_quoted(path.schema)}.{_quoted(path.table)} WHERE ctid >= '({start},0)'{until}"

    def _batches(self, statement: str) -> Iterator[pa.RecordBatch]:
        try:
            with adbc.connect(self.server.url, autocommit=False) as session, session.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{self.at.snapshot}'")
                cursor.execute(statement)
                yield from cursor.fetch_record_batch()
        except adbc_driver_manager.Error as error:
            raise coded(error.sqlstate, str(error), self.server.at, f"reading {self.made.table.name}") from None


def _inner(batches: Iterator[pa.RecordBatch], edges: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows but the first and the last, which are added to ``edges``, without the memory that they came in."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is None:
            edges.append(batch.take(pa.array([0])))
            held = batch.slice(1)
            continue
        if held.num_rows:
            yield held
        held = batch
    if held is not None and held.num_rows:
        edges.append(held.take(pa.array([held.num_rows - 1])))
        yield held.slice(0, held.num_rows - 1)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

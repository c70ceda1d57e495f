"""The rows of a table as they were at one moment -> files of change events: by a few connections that see the same snapshot, each a range of the table's pages."""

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

from rejoin.capture.envelope import Form, form_of, marked, nothing, older_gone, row_lines
from rejoin.capture.landing import TableFiles
from rejoin.capture.server import Column, Relation, Server, coded, number, told
from rejoin.capture.tables import CapturedTable
from rejoin.engines.duckdb_connection import fresh

_CONNECTIONS: Final = 2
"""More would take the database's cores away from those whom it is there for; two already read faster than one process writes."""
_RANGE_PAGES: Final = 8192
"""64 MB of the table a file."""
_TEXTS: Final = (25, 1043)


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

    The first and the last row say so, so they stand in files of their own: that of the first rows of all ranges, and that of the last ones. If it is not the
    first snapshot of the table, the last file, which is also the last to appear, says that older rows are gone.
    """
    micros = server.rows("asking for the time", "SELECT (extract(epoch FROM now()) * 1000000)::int8")[0][0]
    reader = _Reader(server, table, relation, at, micros)
    again, scratch = files.has_files, files.begin_snapshot()
    starts = range(0, max(relation.pages, 1), _RANGE_PAGES)
    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        named = [scratch / f"{at.lsn:020d}-snapshot-{i:06d}.jsonl" for i in range(len(starts) + 2)]
        ranges = list(threads.map(reader.land, starts, [*starts[1:], None], named[1:-1]))
    heads = [line for found in ranges for line in found.edges[:1]]
    tails = [line for found in ranges for line in found.edges[1:]]
    edges = [*heads, *tails]
    if len(edges) > 1:
        edges[0] = marked(edges[0], b"first")
    edges = [*edges[:-1], marked(edges[-1], b"last")] if edges else [nothing(table, at.lsn, micros)]
    named[0].write_bytes(b"".join(edges[: len(heads) or 1]))
    ends = edges[len(heads) or 1 :] + ([older_gone(table, at.lsn, micros)] if again else [])
    if ends:
        named[-1].write_bytes(b"".join(ends))
    files.end_snapshot()
    files.place_snapshot()
    return sum(found.rows for found in ranges)


@dataclass(frozen=True)
class _Range:
    """What was read of a range. ``edges``: its first line and its last, if it has so many."""

    rows: int
    edges: tuple[bytes, ...]


@dataclass(frozen=True)
class _Reader:
    server: Server
    table: CapturedTable
    relation: Relation
    at: Moment
    micros: int

    def land(self, start: int, end: int | None, path: Path) -> _Range:
        """Lands the rows of pages from ``start`` to before ``end``, but for the first and the last."""
        forms = {c.name: form_of(c.base, self.table.types.get(c.name)) for c in self.relation.columns}
        lines = row_lines(self.table, forms, self.at.lsn, self.micros)
        rows, first, last = 0, b"", b""
        with path.open("wb") as file, fresh() as database:
            for batch in self._batches(_select(self.table, self.relation.columns, forms, start, end)):
                database.register("rows", pa.Table.from_batches([batch]))
                found: pa.Table = database.sql(lines).to_arrow_table()
                made = found["line"].to_pylist()
                if not made:
                    continue
                if rows > 1:
                    file.write(last)
                encoded = [f"{line}\n".encode() for line in (made[:1] if not rows else []) + made[-1:]]
                first, body = (encoded[0], made[1:-1]) if not rows else (first, made[:-1])
                last, rows = encoded[-1], rows + len(made)
                file.write("".join(f"{line}\n" for line in body).encode())
        if rows <= 2:
            path.unlink()
        return _Range(rows, (first, last)[:rows])

    def _batches(self, statement: str) -> Iterator[pa.RecordBatch]:
        try:
            with adbc.connect(self.server.url, autocommit=False) as session, session.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{self.at.snapshot}'")
                cursor.execute(statement)
                yield from cursor.fetch_record_batch()
        except adbc_driver_manager.Error as error:
            raise coded(error.sqlstate, str(error), self.server.at, f"reading {self.table.name}") from None


def _select(table: CapturedTable, columns: Sequence[Column], forms: dict[str, Form], start: int, end: int | None) -> str:
    """The values as PostgreSQL prints them: a cast to text would print some otherwise (booleans, ``char(n)``)."""
    written = []
    for i, column in enumerate(columns):
        name = _quoted(column.name)
        if forms[column.name] is Form.BINARY:
            value = f"{name}::bytea"
        elif column.type in _TEXTS:
            value = name
        else:
            value = f"CASE WHEN {name} IS NULL THEN NULL ELSE format('%s', {name}) END"
        written.append(f"{value} AS c{i}")
    until = "" if end is None else f" AND ctid < '({end},0)'"
    return f"SELECT {', '.join(written)} FROM {_quoted(table.path.schema)}.{_quoted(table.path.table)} WHERE ctid >= '({start},0)'{until}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

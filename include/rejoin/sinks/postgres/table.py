"""Delivery to a table in PostgreSQL: a run is one transaction, and so is the row that says how far the table is."""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.sql import SQL, Identifier

from rejoin import crash
from rejoin.errors import SinkSchemaRefused
from rejoin.lake.ledger.deliveries import fenced
from rejoin.lake.query.arrow_values import values
from rejoin.lake.query.json_values import plain
from rejoin.plan.model.plan import Node
from rejoin.plan.model.sinks import CURSORS, PostgresSink, sink_id
from rejoin.sinks.position import Position
from rejoin.sinks.postgres import statements as sql
from rejoin.sinks.postgres.errors import CONFLICTS, coded
from rejoin.sinks.target import Rows

T = TypeVar("T")

CONNECT_SECONDS = 10
SETTINGS = {"lock_timeout": "20s", "idle_in_transaction_session_timeout": "60s"}
"""Of our sessions, unless the URL's ``options`` set them. The second ends a process of ours that stands still and holds locks."""
PAUSE_SECONDS = 0.1
"""Before the first repetition; then twice as long each time, and a random part, so that two do not meet again."""


class PostgresTarget:
    """One table.

    Args:
        topology: the topology's name.
        node: the output.
        sink: the table, and how often to repeat.
        url: where it is.
        types: the output's columns.
    """

    at_once: int | None = None

    def __init__(self, topology: str, node: Node, sink: PostgresSink, url: str, types: pa.Schema) -> None:
        self._name, self._sink, self._key, self._nulls = sink_id(node.name, sink), sink, node.key, node.null_keys
        self._row = f"{topology}.{self._name}"
        self._schema, self._table = sink.table.split(".", 1)
        self._target = Identifier(self._schema, self._table)
        self._columns = [(field.name, sql.type_of(field.type)) for field in types]
        self._attempt, self._transactions, self._repeated = 0, 0, 0
        self.identity = ""
        self._db = _connected(url, self._name, sink.table)

    def take_over(self, known: Position | None) -> Position | None:  # noqa: ARG002 -- the table's own cursor counts
        """As ``Target`` says. Makes the table and the cursor's table where there are none.

        Raises:
            SinkSchemaRefused: the table is there and does not fit, or the server is too old for keys with null parts.
        """
        if self._nulls and self._db.info.server_version < sql.NULLS_SINCE:
            raise SinkSchemaRefused(
                f"sink {self._name!r}: parts of the key ({', '.join(self._key)}) may be null, and PostgreSQL {self._db.info.server_version // 10_000} has no unique index for that",
                expected=f"PostgreSQL {sql.NULLS_SINCE // 10_000} or newer",
                next_step="deliver to a newer server",
            )
        self._repeatedly(self._prepare)
        self._check()
        self._attempt, position, self.identity = self._repeatedly(self._begin)
        return None if position is None else Position.from_json(position)

    def write(self, rows: Rows, position: Position, *, whole: bool, cleared: Sequence[str] = ()) -> int:
        """As ``Target`` says, in one transaction."""
        self._transactions += 1
        return int(self._repeatedly(lambda: self._write(rows, position, whole=whole, cleared=cleared)))

    def summary(self) -> dict[str, Any]:
        """How many transactions there were, and how many were repeated."""
        return {"transactions": self._transactions, "repeated": self._repeated}

    def close(self) -> None:
        """Rolls back what is open."""
        self._db.close()

    def _prepare(self) -> None:
        with self._db.transaction():
            # Two first deliveries at once would both find nothing and both create.
            self._db.execute("SELECT pg_advisory_xact_lock(hashtext('rejoin'))")
            if self._db.execute("SELECT to_regnamespace(%s)", (_quoted(self._schema),)).fetchone() == (None,):
                self._db.execute(SQL("CREATE SCHEMA {}").format(Identifier(self._schema)))
            if self._db.execute("SELECT to_regclass(%s)", (_quoted(self._schema, CURSORS),)).fetchone() == (None,):
                self._db.execute(sql.create_cursors(self._schema))
            if self._db.execute("SELECT to_regclass(%s)", (self._regclass,)).fetchone() == (None,):
                self._db.execute(sql.create_target(self._target, self._columns, self._key, nulls=self._nulls))
                self._db.execute(sql.forget(self._schema), (self._row,))

    @property
    def _regclass(self) -> str:
        return _regclass(self._sink.table)

    def _check(self) -> None:
        with self._db.transaction():
            found = dict(self._db.execute(sql.COLUMNS, (self._regclass,)).fetchall())
            unique = self._db.execute(sql.UNIQUE_NULLS if self._nulls else sql.UNIQUE, (self._regclass, sorted(self._key))).fetchone()
        wrong = [f"column {n!r} is missing ({t})" for n, t in self._columns if n not in found]
        wrong += [f"column {n!r} is {found[n]}, not {t}" for n, t in self._columns if n in found and not sql.fits(t, found[n])]
        index = "unique index with NULLS NOT DISTINCT" if self._nulls else "primary key or unique index"
        wrong += [] if unique else [f"no {index} of ({', '.join(self._key)})"]
        if wrong:
            raise SinkSchemaRefused(
                f"sink {self._name!r}: table {self._sink.table!r} does not fit the output: {'; '.join(wrong)}",
                expected=", ".join(f"{n} {t}" for n, t in self._columns),
                next_step=f"alter the table, or name another; then `rejoin publish --sink {self._name}`",
            )

    def _begin(self) -> tuple[int, str | None, str]:
        with self._db.transaction():
            found = self._db.execute(sql.begin(self._schema), (self._row,)).fetchone()
            table = _oid(self._db, self._regclass)
        assert found is not None
        return found[0], found[1], table or ""

    def _write(self, rows: Rows, position: Position, *, whole: bool, cleared: Sequence[str]) -> int:
        with self._db.transaction():
            self._point("begun")
            locked = self._db.execute(sql.lock(self._schema), (self._row,)).fetchone()
            if locked != (self._attempt,):
                raise fenced(self._name)
            self._point("locked")
            count = self._stage(rows)
            self._point("staged")
            found = self._patterns() if count or whole or cleared else []
            if count or whole:
                self._merge(count, found, whole=whole)
            if cleared:
                self._db.execute(sql.clear(self._target, cleared, self._key, found))
            self._db.execute(sql.move(self._schema), (position.to_json(), self._row))
            self._point("moved")
        self._point("committed")
        return count

    def _stage(self, rows: Rows) -> int:
        self._db.execute(sql.create_staging(self._columns))
        count = 0
        with self._db.cursor() as cursor, cursor.copy(sql.copy(self._columns)) as copy:
            for batch in rows():
                for row in _tuples(batch, [n for n, _ in self._columns], self._key):
                    copy.write_row(row)
                if not count:
                    self._point("copying")
                count += batch.num_rows
        return count

    def _patterns(self) -> list[sql.Nulls]:
        """Which parts of keys are null together in what is staged."""
        if not self._nulls:
            return [sql.NO_NULLS]
        found = self._db.execute(sql.patterns(self._key)).fetchall()
        return [frozenset(k for k, null in zip(self._key, row, strict=True) if null) for row in found]

    def _merge(self, count: int, found: Sequence[sql.Nulls], *, whole: bool) -> None:
        if count > 1_000:
            self._db.execute(SQL("ANALYZE {}").format(Identifier(sql.STAGING)))  # a new table has no statistics, and the plan would be poor
        for nulls in found:
            self._db.execute(sql.lock_rows(self._target, self._key, nulls))
        self._point("rows_locked")
        for nulls in found:
            self._db.execute(sql.delete(self._target, self._key, nulls))
        if whole:
            self._db.execute(sql.delete_others(self._target, self._key, found))
        self._point("deleted")
        self._db.execute(sql.upsert(self._target, self._columns, self._key))
        self._point("merged")

    def _repeatedly(self, work: Callable[[], T]) -> T:
        tries = 0
        while True:
            tries += 1
            try:
                return work()
            except psycopg.Error as error:
                if not isinstance(error, CONFLICTS) or tries > self._sink.retries:
                    raise coded(error, self._name, self._sink.table, tries) from None
                self._repeated += 1
                time.sleep(PAUSE_SECONDS * 2 ** (tries - 1) * random.uniform(0.5, 1.5))

    def _point(self, name: str) -> None:
        crash.point(f"deliver.{self._name}:{self._transactions}:{name}")


def identity(name: str, sink: PostgresSink, url: str) -> str | None:
    """What tells the sink's table from an earlier one of its name; None if there is no such table.

    Raises:
        SinkDown, SinkDenied: it cannot be reached.
    """
    with closing(_connected(url, name, sink.table)) as db:
        try:
            return _oid(db, _regclass(sink.table))
        except psycopg.Error as error:
            raise coded(error, name, sink.table) from None


def _connected(url: str, name: str, table: str) -> "psycopg.Connection[Any]":
    address = url.replace("postgresql+psycopg://", "postgresql://", 1)
    try:
        made = psycopg.connect(address, connect_timeout=CONNECT_SECONDS, application_name="rejoin", prepare_threshold=None)
        with made.transaction():
            for setting, value in SETTINGS.items():
                made.execute("SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s AND source <> 'client'", (value, setting))
    except psycopg.Error as error:
        raise coded(error, name, table) from None
    return made


def _oid(db: "psycopg.Connection[Any]", table: str) -> str | None:
    """The number that a table has for as long as it is there; the next one of its name has another."""
    found = db.execute("SELECT to_regclass(%s)::oid::text", (table,)).fetchone()
    return None if found is None else found[0]


def _regclass(table: str) -> str:
    return _quoted(*table.split(".", 1))


def _quoted(*names: str) -> str:
    """A name as ``to_regclass`` reads it."""
    return ".".join('"' + n.replace('"', '""') + '"' for n in names)


def _tuples(batch: pa.RecordBatch, columns: Sequence[str], key: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of the staging table: letter, then the row after the change; of a delete only the key."""
    after = batch["_after"]
    found = [_written(batch[name] if name in key else pc.struct_field(after, name)) for name in columns]
    return zip(values(batch["_op"]), *found, strict=True)


def _written(column: pa.Array) -> list[Any]:
    """The values of a column as PostgreSQL takes them in a copy."""
    if not pa.types.is_nested(column.type) or sql.type_of(column.type) != sql.JSON:
        return values(column)
    return [None if value is None else json.dumps(plain(value), ensure_ascii=False) for value in values(column)]

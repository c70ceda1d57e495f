"""The database that is captured from: connections, what has to be set there, the publication and the slot."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg2
import psycopg2.extensions
import psycopg2.extras
from psycopg2.sql import SQL, Composed, Identifier

from rejoin.capture.tables import CapturedTable
from rejoin.errors import CaptureBusy, CaptureRefused, RejoinError, SetupError, SourceDenied, SourceDown

_SETTINGS: Final = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "synchronous_commit": "local",
    "lock_timeout": "20s",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
"""Of every session: how values are printed, that a commit is on the disk, and that nothing ends a long snapshot."""
_CONNECT_SECONDS: Final = 10
_SLOT_SECONDS: Final = 65
"""How long a slot may belong to a process that is gone: as long as the server waits for one that is silent (``wal_sender_timeout``)."""
_DENIED = re.compile(
    r"authentication failed|no pg_hba\.conf entry|does not exist|not permitted|permission denied|no password|must be superuser"
)


class Column(NamedTuple):
    """A column of a table. ``type``: its own; ``base``: what that is made of, if it is a domain."""

    name: str
    type: int
    base: int


@dataclass(frozen=True)
class Relation:
    """What the database has of a table. ``pages``: its size."""

    columns: tuple[Column, ...]
    pages: int


class SlotState(NamedTuple):
    """Of a slot that is there. ``lost``: the server has removed what it stood for."""

    lost: bool


def name_of(at: str) -> str:
    """The slot and the publication of a connection."""
    return "rejoin_" + re.sub(r"[^a-z0-9_]", "_", at.lower())


def url_of(connections: Mapping[str, Mapping[str, str]], at: str) -> str:
    """Where a database is, with what every session sets.

    Raises:
        SetupError: nothing says it, or what says it is no URL.
    """
    given = {**connections.get(at.lower(), {}), **connections.get(at, {})}
    url = given.get("url") or given.get("address")
    expected = f"url in [sources.{at}] of the lake's .toml file, or the environment variable REJOIN_SOURCE_{at.upper()}"
    if not url:
        raise SetupError(f"nothing says where the database {at!r} is", expected=expected, next_step="write postgresql://... there")
    try:
        parts = psycopg2.extensions.parse_dsn(url)
    except psycopg2.ProgrammingError:  # its words quote the URL
        raise SetupError(f"the URL of the database {at!r} is not a URL of PostgreSQL", expected=expected) from None
    options = f"{parts.pop('options', '')} {' '.join(f'-c {k}={v}' for k, v in _SETTINGS.items())}".strip()
    defaults = {"connect_timeout": _CONNECT_SECONDS, "application_name": "rejoin"}
    return str(psycopg2.extensions.make_dsn(**{**defaults, **parts, "options": options, "client_encoding": "UTF8"}))


@contextmanager
def told(at: str, doing: str) -> Iterator[None]:
    """Raises errors of the client as ours: without its words, which have addresses and values."""
    try:
        yield
    except psycopg2.Error as error:
        raise coded(error.pgcode, str(error), at, doing) from None


def coded(state: str | None, words: str, at: str, doing: str) -> RejoinError:
    """The error to raise for one of PostgreSQL, by its SQLSTATE; of one without, which is of the connection, by its words."""
    what = f"{doing} in the database {at!r} failed" + (f" (SQLSTATE {state})" if state else "")
    if state == "55006":
        return CaptureBusy(what + ": another process reads the slot", next_step="wait until it ends, or end it")
    if state in ("42501", "28000", "28P01", "3D000") or (not state and _DENIED.search(words)):
        return SourceDenied(
            what,
            expected="a user with the attribute REPLICATION that may read the tables, and owns them for the publication",
            next_step=f"correct [sources.{at}] or REJOIN_SOURCE_{at.upper()}, or ask for the rights; then try again",
        )
    if state == "53400":
        return CaptureRefused(
            what + ": there are no free slots", expected="two more", next_step="raise max_replication_slots and restart the server"
        )
    if state is None or state.startswith(("08", "40", "53", "57")) or state == "55P03":
        return SourceDown(what, next_step="try again later: what was captured stays, and capture goes on where it was")
    return CaptureRefused(what, next_step="look up the code in PostgreSQL's list of errors, correct what it says, and try again")


class Server:
    """A connection for questions and statements, each a transaction of its own.

    Args:
        at: the name of the connection.
        url: as ``url_of`` gives it.
    """

    def __init__(self, at: str, url: str) -> None:
        self.at, self.url, self.name = at, url, name_of(at)
        with told(at, "connecting"):
            self._db = psycopg2.connect(url)
        self._db.autocommit = True

    def close(self) -> None:
        """Ends the session."""
        self._db.close()

    def rows(self, doing: str, statement: str | Composed, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What a statement gives."""
        with told(self.at, doing), self._db.cursor() as cursor:
            cursor.execute(statement, values or None)
            return [] if cursor.description is None else cursor.fetchall()

    def written(self) -> int:
        """Up to where the log is written and on the disk: the end of a record that this adds. Without it the newest ones could get there some seconds later,
        and a slot waits for that.
        """
        ((text,),) = self.rows("asking for the position", "SELECT pg_logical_emit_message(true, 'rejoin', '')::text")
        return number(text)

    def wal_level(self) -> str:
        """How much the server logs."""
        ((level,),) = self.rows("asking for wal_level", "SELECT current_setting('wal_level')")
        return str(level)

    def check(self) -> None:
        """Refuses a server whose log does not have what it takes."""
        if (level := self.wal_level()) != "logical":
            raise CaptureRefused(
                f"the database {self.at!r} does not log what a capture needs: wal_level is {level}",
                expected="wal_level = logical",
                next_step="ALTER SYSTEM SET wal_level = logical, and restart the server",
            )

    def relation(self, table: CapturedTable) -> Relation:
        """What the database has of a table.

        Raises:
            CaptureRefused: it cannot be captured.
        """
        found = self.rows(f"looking at {table.path}", _RELATION, (table.path.schema, table.path.table))
        if not found:
            raise CaptureRefused(f"there is no table {table.path}, or no right to see its schema", next_step="correct captured(...)")
        ((oid, kind, persistence, identity, pages),) = found
        if kind not in ("r", "p") or persistence != "p":
            raise CaptureRefused(
                f"{table.path} is no table whose changes are in the log", expected="a table, partitioned or not, that is logged"
            )
        columns = tuple(Column(*row) for row in self.rows(f"looking at {table.path}", _COLUMNS, (oid,)))
        kept = (
            {c.name for c in columns}
            if identity == "f"
            else {n for (n,) in self.rows("looking at the identity", _IDENTITY, (oid, identity))}
        )
        if not set(table.key) <= kept:
            raise CaptureRefused(
                f"{table.path} does not say which row a change is about: its replica identity has {', '.join(sorted(kept)) or 'no columns'}",
                expected=f"the declared key ({', '.join(table.key)})",
                next_step="ALTER TABLE ... ADD PRIMARY KEY (...), or REPLICA IDENTITY USING INDEX of a unique index of these columns, or REPLICA IDENTITY FULL",
            )
        return Relation(columns, pages)

    def base_type(self, type_: int) -> int:
        """The number of the type that a domain is made of; any other number as it is."""
        found = self.rows("looking at a type", "SELECT typbasetype FROM pg_type WHERE oid = %s AND typtype = 'd'", (type_,))
        return self.base_type(found[0][0]) if found else type_

    def published(self, identity: str, *, take_over: bool) -> set[tuple[str, str]] | None:
        """Schema and name of the tables that the publication holds; None if there is none.

        Raises:
            CaptureRefused: it belongs to the files of another directory.
        """
        found = self.rows("looking at the publication", _PUBLICATION, (self.name,))
        if found and found[0][0] != identity and not take_over:
            raise CaptureRefused(
                f"publication and slot {self.name!r} of the database {self.at!r} belong to the files of another directory: what one captures the other would miss",
                expected="one directory a slot",
                next_step="use that root; or another [sources.<name>] with the same URL; or, if those files are gone, `rejoin capture --resnapshot`",
            )
        if not found:
            return None
        return {(schema, name) for schema, name in self.rows("looking at the publication", _PUBLISHED, (self.name,))}

    def publish(self, tables: Sequence[CapturedTable], identity: str) -> None:
        """Makes the publication hold exactly these tables, with a comment that says whose it is."""
        names = SQL(", ").join([SQL("{}.{}").format(Identifier(t.path.schema), Identifier(t.path.table)) for t in tables])
        made = bool(self.rows("looking at the publication", _PUBLICATION, (self.name,)))
        change = (
            "ALTER PUBLICATION {} SET TABLE {}" if made else "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)"
        )
        both = SQL(change + "; COMMENT ON PUBLICATION {} IS %s")
        self.rows("making the publication", both.format(Identifier(self.name), names, Identifier(self.name)), (identity,))

    def slot(self) -> SlotState | None:
        """The state of the slot; None if there is none.

        Raises:
            CaptureRefused: a slot of that name belongs to another database of the server.
        """
        asked = "SELECT wal_status, database = current_database() FROM pg_replication_slots WHERE slot_name = %s"
        found = self.rows("looking at the slot", asked, (self.name,))
        if found and not found[0][1]:
            raise CaptureRefused(
                f"the slot {self.name!r} belongs to another database of the server that {self.at!r} names",
                next_step="give the connection another name: slots are named by it, and are one namespace a server",
            )
        return SlotState(found[0][0] == "lost") if found else None

    def make_slot(self) -> None:
        """Makes the slot. Waits for transactions that are open now."""
        self.rows("making the slot", "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self.name,))

    def drop_slot(self) -> None:
        """Drops it, if it is there."""
        self.rows(
            "dropping the slot", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (self.name,)
        )

    def following(self) -> Any:
        """A cursor that reads the slot.

        Raises:
            CaptureBusy: another process does, and goes on doing so.
        """
        until = time.monotonic() + _SLOT_SECONDS
        while True:
            try:
                with told(self.at, "reading the slot"):
                    cursor = psycopg2.connect(self.url, connection_factory=psycopg2.extras.LogicalReplicationConnection).cursor()
                    options = {"proto_version": "1", "publication_names": f'"{self.name}"'}
                    cursor.start_replication(slot_name=self.name, decode=False, options=options)
                    return cursor
            except CaptureBusy:
                cursor.connection.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)  # the server has not noticed yet that its process is gone


def number(text: str) -> int:
    """A position as PostgreSQL prints it."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


_RELATION: Final = """
SELECT c.oid, c.relkind::text, c.relpersistence::text, c.relreplident::text,
       greatest(pg_relation_size(c.oid), (SELECT max(pg_relation_size(relid)) FROM pg_partition_tree(c.oid))) / current_setting('block_size')::int
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""
_COLUMNS: Final = """
WITH RECURSIVE base AS (
    SELECT a.attname::text AS name, a.attnum, a.atttypid AS type, a.atttypid AS base FROM pg_attribute a
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  UNION ALL
    SELECT base.name, base.attnum, base.type, t.typbasetype FROM base JOIN pg_type t ON t.oid = base.base AND t.typtype = 'd'
)
SELECT name, type::int8, (array_agg(base::int8 ORDER BY typtype = 'd'))[1] FROM base JOIN pg_type ON pg_type.oid = base
GROUP BY name, attnum, type ORDER BY attnum
"""
"""The log does not have columns that are computed from others."""
_IDENTITY: Final = """
SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
WHERE i.indrelid = %s AND CASE %s WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END
"""
_PUBLICATION: Final = "SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s"
_PUBLISHED: Final = "SELECT schemaname::text, tablename::text FROM pg_publication_tables WHERE pubname = %s"

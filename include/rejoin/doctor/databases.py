"""A database of PostgreSQL whose tables are captured."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta

from rejoin.capture import catalog
from rejoin.capture.condition import Condition, condition
from rejoin.capture.landing import captured_at
from rejoin.capture.server import Server, url_of
from rejoin.capture.tables import CapturedTable
from rejoin.doctor.findings import Finding, ok, problem, raised, warning
from rejoin.errors import RejoinError
from rejoin.sources.access import SourceAccess

_MIB = 1 << 20
_SLOTS = 2
"""So many are made, one of them only while rows are read."""


def findings(at: str, tables: Sequence[CapturedTable], access: SourceAccess, every: timedelta) -> Iterator[Finding]:
    """What is found of a database.

    Raises:
        SetupError, SourceDenied, SourceDown.
    """
    with closing(Server(at, url_of(access.connections, at))) as server:
        yield ok(at, "connection", "it answers")
        now = condition(server)
        yield from _server(at, now)
        yield from slot(at, now, captured=captured_at(access.root, at) is not None)
        yield from _published(at, now, tables)
        yield _last(at, access.root, every)
        known = {table.name: table for table in catalog.tables(server)}
        for table in tables:
            try:
                server.relation(table)
            except RejoinError as error:
                yield raised(table.name, "table", error)
            else:
                yield _table(table, known.get(table.name), now)


def _server(at: str, now: Condition) -> Iterator[Finding]:
    if now.wal_level == "logical":
        yield ok(at, "wal_level", "logical")
    else:
        yield problem(at, "wal_level", now.wal_level, "ALTER SYSTEM SET wal_level = logical, and restart the server")
    if not now.replication:
        yield problem(at, "rights", "this user may not replicate", "ALTER ROLE ... REPLICATION")
    elif now.published is None and not now.create:
        yield problem(
            at, "rights", "this user may not CREATE in the database, as the publication needs", "GRANT CREATE ON DATABASE ... TO ..."
        )
    else:
        yield ok(at, "rights", "this user may replicate")
    if now.slot is None and now.free_slots < _SLOTS:
        yield problem(
            at, "slots", f"{now.free_slots} free, and a capture makes {_SLOTS}", "raise max_replication_slots and restart the server"
        )
    if now.keep_size == "-1":
        yield warning(
            at,
            "max_slot_wal_keep_size",
            "without limit: a slot that nobody reads fills the server's disk",
            "set it to what the disk can hold",
        )
    else:
        yield ok(at, "max_slot_wal_keep_size", now.keep_size)


def slot(at: str, now: Condition, *, captured: bool) -> Iterator[Finding]:
    """What is found of the slot. ``captured``: there was one, as something was captured."""
    slot = now.slot
    if slot is None and captured:
        yield problem(
            at, "slot", "it is gone: changes are missing", "`rejoin capture FILE --resnapshot` makes a new one, and reads all rows again"
        )
        return
    if slot is None:
        yield warning(
            at, "slot", "there is none: no change is kept for a capture yet", "`rejoin capture FILE --once` makes it, and reads all rows"
        )
        return
    held = f"{slot.status}; it holds back {slot.held_bytes // _MIB} MiB of the log"
    if slot.safe_bytes is not None:
        held += f", and is lost after {max(slot.safe_bytes, 0) // _MIB} MiB more"
    if slot.status == "lost":
        yield problem(
            at,
            "slot",
            "the server has removed what it stood for",
            "`rejoin capture FILE --resnapshot`; then capture more often, or raise max_slot_wal_keep_size",
        )
    elif slot.status == "unreserved":
        yield problem(at, "slot", held, "capture now: the next checkpoint may remove what it stands for")
    elif slot.safe_bytes is not None and slot.safe_bytes < slot.held_bytes:
        yield warning(at, "slot", held, "capture more often, or raise max_slot_wal_keep_size")
    else:
        yield ok(at, "slot", held)


def _published(at: str, now: Condition, tables: Sequence[CapturedTable]) -> Iterator[Finding]:
    missing = sorted(table.name for table in tables if table.name not in (now.published or ()))
    if now.published is None and now.slot is not None:
        yield problem(at, "publication", "it is gone, and the slot is there: changes are missing", "`rejoin capture FILE --resnapshot`")
    elif missing:
        yield warning(
            at,
            "publication",
            f"it does not have {', '.join(missing)} yet",
            "the next capture adds what is missing, and reads all rows of it",
        )
    else:
        yield ok(at, "publication", f"it has {len(tables)} tables")


def _last(at: str, root: str, every: timedelta) -> Finding:
    when = captured_at(root, at)
    if when is None:
        return warning(
            at, "last capture", "none has ended well below this root", "`rejoin capture FILE --once` before each run, with the same --root"
        )
    passed = time.time() - when
    ago = timedelta(seconds=int(passed))
    if passed > every.total_seconds():
        return warning(at, "last capture", f"it ended {ago} ago, and runs are {every} apart", "capture before each run")
    return ok(at, "last capture", f"it ended {ago} ago")


def _table(table: CapturedTable, known: catalog.CatalogTable | None, now: Condition) -> Finding:
    if known is not None and not known.readable:
        return problem(table.name, "table", "this user may not SELECT from it", f"GRANT SELECT ON {table.name} TO ...")
    if known is not None and not known.owned and table.name not in (now.published or ()):
        return problem(
            table.name, "table", "this user does not own it, and it is in no publication yet", f"ALTER TABLE {table.name} OWNER TO ..."
        )
    return ok(table.name, "table", f"it may be read, and tells changes by {', '.join(table.key)}")

"""What a topology reads of databases -> files below the root, up to now or until it is stopped. Killed anywhere, the next call goes on without loss."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from rejoin import crash
from rejoin.capture import rows
from rejoin.capture.landing import TableFiles, locked
from rejoin.capture.server import Relation, Server, url_of
from rejoin.capture.stream import Stream
from rejoin.capture.tables import CapturedTable, captured_tables
from rejoin.errors import CaptureRefused, SlotLost, SourceEpoch
from rejoin.plan.model.plan import Plan


@dataclass(frozen=True)
class Captured:
    """What a call has landed from a database."""

    at: str
    tables: int
    rows: int
    changes: int
    files: int


@dataclass(frozen=True)
class Request:
    """How to capture.

    Attributes:
        root: where relative paths start.
        connections: name of a database -> its settings.
        once: up to what is committed now; else until stopped.
        resnapshot: take a new snapshot of every table.
        tell: takes sentences of what is being done.
        stopped: whether somebody wants it to end.
    """

    root: str
    connections: Mapping[str, Mapping[str, str]]
    once: bool = True
    resnapshot: bool = False
    tell: Callable[[str], None] = print
    stopped: Callable[[], bool] = bool


def capture(plan: Plan, request: Request) -> list[Captured]:
    """Captures what a plan reads of databases.

    Raises:
        CaptureRefused: nothing is to be captured; or a database or table is not set up for it.
        SlotLost: changes are missing. ``resnapshot`` goes on from what there is now.
        SourceEpoch, SourceDenied, SourceDown, CaptureBusy, SetupError.
    """
    found = captured_tables(plan)
    if not found:
        raise CaptureRefused(
            f"topology {plan.topology!r} has no table that is captured",
            expected="debezium(captured('public.orders', at='shop'))",
            next_step="declare one; other sources need no capture",
        )
    if len(found) > 1 and not request.once:
        raise CaptureRefused(
            f"topology {plan.topology!r} captures from {len(found)} databases, and one process follows one", next_step="capture with --once"
        )
    done = []
    for at, tables in found.items():
        with locked(request.root, at, plan.topology) as identity:
            done.append(_capture(at, tables, identity, request))
    return done


def _capture(at: str, tables: Sequence[CapturedTable], identity: str, request: Request) -> Captured:
    files = {table.name: TableFiles(request.root, table.path) for table in tables}
    with closing(Server(at, url_of(request.connections, at))) as server:
        server.check()
        relations = {table.name: server.relation(table) for table in tables}
        for of_table in files.values():
            of_table.place_snapshot()
        until = server.written()
        _check_epoch(at, files, until)
        _prepare(server, tables, files, identity, request)
        read = sum(_snapshots(server, tables, relations, files, request))
        until = server.written() if read else until
        stream = Stream(server, {t.name: t for t in tables}, files, request.stopped)
        if not request.once:
            request.tell(f"{at}: following the log")
        changes = stream.follow(until if request.once else None)
        return Captured(at, len(tables), read, changes, stream.appeared)


def _check_epoch(at: str, files: Mapping[str, TableFiles], written: int) -> None:
    if ahead := [name for name, of_table in files.items() if of_table.newest() > written]:
        raise SourceEpoch(
            f"the log of the database {at!r} ends before what was captured of {', '.join(ahead)}: it is another server, or an older copy of it",
            next_step="correct the connection; if this is the database now, capture it as another connection (captured(..., at=...)), whose tables are read anew",
        )


def _prepare(server: Server, tables: Sequence[CapturedTable], files: Mapping[str, TableFiles], identity: str, request: Request) -> None:
    """Publication and slot. Which tables need a new snapshot is on the disk before anything is changed that makes one necessary."""
    slot, there = server.slot(), server.published(identity, take_over=request.resnapshot)
    usable = slot is not None and not slot.lost and there is not None  # what the log has from before a publication cannot be read by it
    wanted = [name for name, of_table in files.items() if of_table.has_snapshot]
    if wanted and not usable and not request.resnapshot:
        gone = "the publication" if there is None else "the slot"
        raise SlotLost(
            f"{gone} {server.name!r} of the database {server.at!r} is {'lost' if slot is not None and slot.lost else 'gone'}: "
            f"changes of {', '.join(wanted)} are missing",
            next_step="`rejoin capture FILE --resnapshot` makes a new one and reads the tables again; the next run deletes rows that are gone. "
            "Raise max_slot_wal_keep_size, or capture more often",
        )
    needed = {(table.path.schema, table.path.table) for table in tables}
    for table in tables:
        new = (table.path.schema, table.path.table) not in (there or ())
        if files[table.name].has_files and (request.resnapshot or new):
            files[table.name].ask_again()
    crash.point("capture.asked")
    if not usable:
        server.drop_slot()
    if there != needed or request.resnapshot:
        server.publish(tables, identity)
        request.tell(f"{server.at}: publication {server.name} has {', '.join(sorted(files))}")
    if not usable:
        server.make_slot()
        request.tell(f"{server.at}: slot {server.name} made")
    crash.point("capture.prepared")


def _snapshots(
    server: Server, tables: Sequence[CapturedTable], relations: Mapping[str, Relation], files: Mapping[str, TableFiles], request: Request
) -> list[int]:
    """The rows of every table that has no snapshot."""
    missing = [table for table in tables if not files[table.name].has_snapshot]
    if not missing:
        return []
    read = []
    with rows.moment(server) as at:
        for table in missing:
            if request.stopped():
                break
            read.append(rows.land(server, table, relations[table.name], at, files[table.name]))
            request.tell(f"{server.at}: {table.name} read, {read[-1]} rows")
    return read

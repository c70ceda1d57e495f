"""Reads what is stored of a key, from an output down to the records of its source tables: the ledger, PyIceberg, and files of sources."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from rejoin.errors import SnapshotExpired, UnknownTable
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.runs import RunKind, RunState
from rejoin.lake.query.point_query import PointQuery
from rejoin.lake.query.quarantine_entries import open_entries
from rejoin.plan.model.added_columns import unversioned
from rejoin.plan.model.plan import Node
from rejoin.plan.model.sources import SnapshotSource
from rejoin.sources import Pin, SourceAccess
from rejoin.sources.record_location import NO_RECORD, locate
from rejoin.statements.own_columns import HASH, HELD_CODES, RECONCILED, REPLAYED_CODE, SOURCE_FILE
from rejoin.why.answer import APPLIED, NOOP, Answer, Change, OutputRow, Record, RightRow, SourceRow, State, differing
from rejoin.why.members import members
from rejoin.why.members import reasons as reasons_of_group
from rejoin.why.reasons import StoredKey, foreign_key_shown, judge, shown
from rejoin.why.right_sides import named, side

Row = Mapping[str, Any]


def why(ledger: Ledger, refs: Refs, access: SourceAccess, name: str, key: Sequence[str | None], run: int | None = None) -> Answer:
    """Which records made, changed, withheld or removed the row of a table or output with this key (texts, in key order; None: null).

    Args:
        ledger: the topology's ledger.
        refs: its tables.
        access: how sources are reached, to find a record in what its run read.
        name: the table or output.
        key: the key.
        run: as of this committed run; None: the newest.

    Raises:
        RunUnknown: the run was not committed, or nothing was.
        UnknownTable: no such table, another number of key columns, or a text that is no value of its column.
        SnapshotExpired: the run is beyond retention.
    """
    query = PointQuery(ledger, refs, run)
    trace = _Trace(query, ledger, refs, access)
    query.get(name, tuple(key))  # refuses a name or key that nothing has
    return Answer(query.plan.topology, query.run, trace.row(name, key))


class _Trace:
    def __init__(self, query: PointQuery, ledger: Ledger, refs: Refs, access: SourceAccess) -> None:
        self.query, self.plan, self._ledger, self._refs, self._access = query, query.plan, ledger, refs, access
        self._kept = ledger.kept(query.run)

    def row(self, name: str, key: Sequence[Any]) -> SourceRow | OutputRow:
        return self.any(name, key)[0]

    def of_run(self, run: int) -> "_Trace":
        """The same as of another run."""
        return _Trace(PointQuery(self._ledger, self._refs, run), self._ledger, self._refs, self._access)

    def any(self, name: str, key: Sequence[Any]) -> tuple[SourceRow | OutputRow, Row | None]:
        """What is known of a key, and its stored row, if there is one, with its hash."""
        return self._source(name, key) if self.plan.is_table(name) else self._output(self.plan.node(name), key)

    # --- outputs ------------------------------------------------------------------------------------------------------

    def _output(self, node: Node, key: Sequence[Any]) -> tuple[OutputRow, Row | None]:
        stored = next(iter(self.query.stored(node.name, key)), None)
        columns = [p.name for p in node.columns]
        row = None if stored is None else {c: stored.get(c) for c in columns}
        held = next(iter(open_entries(self.plan, node.name, self.query.kept_aside(node.name, key))), None)
        change = self._change(node, key)
        state = State.HELD if held else State.THERE if row else State.REMOVED if change else State.NEVER
        made = OutputRow(node.name, node.published, _known(self.plan.key_of(node.name), key, stored, change), state, row, change, held)
        return (self._group if node.grouping is not None else self._joined)(node, key, made, stored), stored

    def _group(self, node: Node, _key: Sequence[Any], made: OutputRow, stored: Row | None) -> OutputRow:
        """What is known of a group, with its members."""
        found, held = members(self, node, tuple(made.key.values())), None if made.held is None else made.held.code
        reasons, certain = reasons_of_group(node, found, there=stored is not None, held=held, kept=node.name in self._kept)
        return replace(made, reasons=reasons, certain=certain, members=found)

    def _joined(self, node: Node, key: Sequence[Any], made: OutputRow, stored: Row | None) -> OutputRow:
        """What is known of a result of joins, with its sides."""
        own = key[: len(self.plan.left_key(node))]
        left, left_row = (None, None) if all(part is None for part in own) else self.any(node.left.table, own)
        sides = [side(self, node, edge, key, (stored, left_row)) for edge in node.edges]
        seen = StoredKey(
            left=left_row,
            left_hash=None if left_row is None else left_row[HASH],
            rights=tuple(s.seen for s in sides),
            there=stored is not None,
            hash=None if stored is None else stored[HASH],
            held=None if made.held is None else made.held.code,
            kept=node.name in self._kept,
            told=tuple(reason for s in sides for reason in s.told),
        )
        matches, reasons, certain = judge(self.plan, node, seen)
        rights = tuple(
            RightRow(
                edge=named(self.plan, edge)[0],
                table=named(self.plan, edge)[1],
                kind=str(edge.kind),
                sql=foreign_key_shown(edge),
                foreign_key=found.foreign_key,
                match=match,
                filter=None if edge.right.where is None else shown(edge.right.where),
                row=found.row,
                how=found.how,
            )
            for edge, match, found in zip(node.edges, matches, sides, strict=True)
        )
        return replace(made, reasons=tuple(reasons), certain=certain, left=left, rights=rights)

    def _change(self, node: Node, key: Sequence[Any]) -> Change | None:
        for found in self.query.history(node.name, tuple(key), 1):
            before, after = found["before"], found["after"]
            return Change(found["run"], found["op"], differing(before, after), before, after, self._redefined(node, found["run"]))
        return None

    def _redefined(self, node: Node, number: int) -> bool:
        """Whether a run had another definition of a node than the run before it."""
        run = self._ledger.run(number)
        known = run.base is not None and node.name in {n.name for n in self._ledger.run(run.base).plan.nodes}
        return known and node.name in run.rebuild and node.name not in run.plan.repair

    # --- source tables ------------------------------------------------------------------------------------------------

    def _source(self, name: str, key: Sequence[Any]) -> tuple[SourceRow, Row | None]:
        now = _newest_first(self.query.stored(name, key))
        kept = self.query.kept_aside(name, key)
        aside = tuple(open_entries(self.plan, name, kept))
        older, forgotten = self._compacted(name, key) if all(map(_noop, now)) else ([], False)
        versions = now if any(not _noop(v) for v in now) or not older else older
        there = bool(now) and now[0]["_op"] != "D"
        state = State.THERE if there else State.HELD if any(e.code in HELD_CODES for e in aside) else State.REMOVED
        if state is State.REMOVED and not versions:
            lost = isinstance(self.plan.table(name).source, SnapshotSource) or self.plan.stored_from(name) is not None
            state = State.UNTOLD if forgotten and lost else State.NEVER
        elif state is State.REMOVED and not now and self.plan.stored_from(name) is not None:
            state = State.LET_GO  # records of a stream are never deleted
        known = _known(self.plan.key_of(name), key, versions[0] if versions else None, None)
        record = self._record(name, known, versions, kept) if versions else None
        return SourceRow(name, known, state, record, aside), now[0] if there else None

    def _compacted(self, name: str, key: Sequence[Any]) -> tuple[list[Row], bool]:
        """The versions of a key that compactions have dropped, as far as a state that still has them is not expired; and whether one is."""
        for base in self._compactions:
            try:
                rows = _newest_first(PointQuery(self._ledger, self._refs, base).stored(name, key))
            except UnknownTable:
                return [], False
            except SnapshotExpired:
                return [], True
            if any(not _noop(v) for v in rows):
                return rows, False
        return [], False

    @cached_property
    def _compactions(self) -> list[int]:
        """The runs that compactions started from, newest first."""
        made = [
            r for r in self._ledger.runs() if r.kind == RunKind.COMPACT and r.state == RunState.COMMITTED and r.number <= self.query.run
        ]
        return [r.base for r in reversed(made) if r.base is not None]

    def _record(self, name: str, key: Row, versions: Sequence[Row], kept: Sequence[Row]) -> Record:
        """The newest version that changed something; if none is left, the newest."""
        counts = next((v for v in versions if not _noop(v)), versions[0])
        later = versions[0]["_run"] if counts is not versions[0] else None
        place = self._place(name, key, counts, kept)
        return Record(counts["_run"], counts["_op"], NOOP if _noop(counts) else APPLIED, counts["_version"], later=later, **place)

    def _place(self, name: str, key: Row, version: Row, kept: Sequence[Row]) -> dict[str, Any]:
        """Where the record of a version stands: the fields of ``Record`` about that."""
        # A row that was held back and released came in an earlier run, with its file and line.
        if held := [r for r in kept if r.get("_version") is not None and r["_version"] == version["_version"]]:
            return _place_aside(held[-1])
        pinned, table = self._ledger.pins(version["_run"]).get(name), self._ledger.run(version["_run"]).plan.table(name)
        table = table if table.versions_of is None else unversioned(table)  # the files have no such key
        pin = None if pinned is None else Pin.from_dict(pinned)
        files = () if pin is None else tuple(part.id for part in pin.parts)
        if files and version["_op"] == "D" and isinstance(table.source, SnapshotSource):
            return {"files": files, "absent": True}
        if snapshot := str(version["_version"]).partition(RECONCILED)[2]:  # of a tombstone nothing is behind it
            return {"files": files, "absent": True, "snapshot": snapshot}
        asked = {k: key[k] for k in table.key}
        found = NO_RECORD if pin is None else locate(table, pin, self._access, asked, version["_version"])
        # A record that had been refused and was tried again: where the run's own files do not have it.
        replayed = [r for r in kept if r["_code"] == REPLAYED_CODE and r["_run"] == version["_run"]]
        if found == NO_RECORD and len(replayed) == 1:
            return _place_aside(replayed[0])
        if isinstance(found, str):
            return {"file": files[0] if len(files) == 1 else None, "files": files, "unlocated": found}
        return {"file": found[0], "line": found[1]}


def _place_aside(row: Row) -> dict[str, Any]:
    return {"file": row[SOURCE_FILE], "line": row["_line"]}


def _newest_first(versions: Iterable[Row]) -> list[Row]:
    return sorted(versions, key=lambda r: -int(r["_run"]))


def _noop(version: Row) -> bool:
    """Whether a stored version changed no column that any join uses."""
    return version["_op"] == "N" or (version["_op"] == "D" and version["_before"] is None)


def _known(columns: Sequence[str], key: Sequence[Any], stored: Row | None, change: Change | None) -> dict[str, Any]:
    """The key with the values of a row that has it; else as it was asked for."""
    row = stored or (change and (change.after or change.before)) or dict(zip(columns, key, strict=True))
    return {c: row[c] for c in columns}

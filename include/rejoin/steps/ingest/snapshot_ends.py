"""What the snapshots within a cut's feed come to: ``generations``, asked of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rejoin.context.open_snapshots import of_base, place_of, says_all
from rejoin.context.outcome import Outcome
from rejoin.context.work import Work
from rejoin.engines.relation import Relation
from rejoin.errors import SnapshotAgain, SnapshotShrunk
from rejoin.lake.ledger.generations import Generations
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import ChangesSource, FeedSource, WithSnapshots
from rejoin.plan.model.step_results import Ingested
from rejoin.sources.shapes.debezium.positions import OF_A_CHANGE
from rejoin.statements.dialect import aggregated, text
from rejoin.steps.ingest import generations as of
from rejoin.steps.ingest.event_counts import EventCounts
from rejoin.steps.ingest.generations import Reads
from rejoin.steps.ingest.stream_records import READ


@dataclass(frozen=True)
class SnapshotEnds:
    """The generations of a table before and after a cut.

    Args:
        work: what the attempt works with.
        table: the table.
        reads: what the cut has of snapshots.
        before: as of the run's base.
        after: with this cut.
    """

    work: Work
    table: Table
    reads: Reads
    before: Generations | None
    after: Generations | None

    @property
    def floor(self) -> str:
        """The position of the newest whole snapshot; empty if there is none."""
        return "" if self.after is None else self.after.floor

    @property
    def stored(self) -> str:
        """The newest position of a stored row that a snapshot read, or what sorts behind it."""
        if self.before is None or not self.before.origins:
            return "~" if self.work.before.has(self.table.name) else ""
        return max((self.before.torn or "", *(g.begun for g in self.before.origins.values())))

    @property
    def due(self) -> bool:
        """Whether a snapshot ends in this cut that may not have brought all rows that live."""
        risen = self.floor > ("" if self.before is None else self.before.floor)
        return risen and self.after is not None and self.floor != self.after.only

    @property
    def at(self) -> int:
        """The ``_arrival`` of that end."""
        return max(m.at for m in self.reads.marks if m.last and m.position >= self.floor)

    def reconciled(self, facts: Relation, events: Relation, stored: Relation | None) -> Relation:
        """The facts with a delete for every row that the snapshot did not bring."""
        engine, table = self.work.engine, self.table
        statement = of.reconciled(engine.sql, table, self.floor, self.at, stored=stored is not None)
        unread = engine.query(f"SELECT {engine.sql.names(table.key)} FROM unread", unread=self._unread(events))
        return engine.query(statement, events=facts, unread=unread, **({} if stored is None else {"stored": stored}))

    def unreadable(self, events: Relation) -> int:
        """How many records came with the snapshot of which not even the key can be read: any row may be one of them."""
        statement = f"SELECT count(*) AS n FROM unread WHERE {self.work.engine.sql.name(self.table.key[0])} IS NULL"
        return int(self.work.engine.one(statement, unread=self._unread(events))["n"])

    def _unread(self, events: Relation) -> Relation:
        """The keys of records that came with the snapshot and could not be read, in this cut and before."""
        assert self.after is not None
        engine, key = self.work.engine, self.work.engine.sql.names(self.table.key)
        here = f"SELECT {key} FROM events WHERE _kind = 'quarantined' AND _arrival <= {self.at}"
        refused = self.work.before.refused(self.table.name)
        if refused is None:
            return engine.query(here, events=events)
        began = min(g.run for g in self.after.origins.values() if g.begun >= self.floor)
        return engine.query(f"{here} UNION ALL SELECT {key} FROM refused WHERE _run >= {began}", events=events, refused=refused)

    def outcome(self, made: Outcome[Ingested], live: int) -> Outcome[Ingested]:
        """The outcome of the ingest with the generations, if they are others now.

        Raises:
            SnapshotShrunk: more rows would be deleted than the source allows; ``live``: of so many.
        """
        source, gone, run = self.table.source, made.result.reconciled, self.work.facts.run.number
        if isinstance(source, WithSnapshots) and gone > source.max_delete_share * live:
            raise SnapshotShrunk(
                f"the end of a new snapshot in the feed of table {self.table.name!r} would delete {gone} of {live} rows, which it did not bring, in run {run}; "
                "nothing was committed",
                expected=f"at most {source.max_delete_share:.0%} (max_delete_share)",
                next_step="check that all files of the snapshot are there; if they are, raise max_delete_share for one run",
            )
        return replace(made, generations=None if self.after == self.before else self.after)


def followed(work: Work, table: Table, events: Relation, kinds: EventCounts, *, torn: bool) -> SnapshotEnds:
    """What the snapshots of a cut come to.

    Args:
        work: what the attempt works with.
        table: the table.
        events: those of the cut.
        kinds: their counts.
        torn: as of its pin.

    Raises:
        SnapshotAgain: there are rows of a second snapshot whose beginning and end are not told.
    """
    if isinstance(table.source, ChangesSource) and kinds.reads:
        _check_first(work, table, events, kinds)
    before = of_base(work.facts, table)
    if not says_all(table) or not (kinds.reads or before):
        return SnapshotEnds(work, table, Reads(), None, None)
    reads = replace(_read(work, events, before) if kinds.reads else _no_reads(kinds), torn=torn)
    if apart(table):
        reads = replace(reads, newest=None)  # changes come while a snapshot is open, and do not say that it has ended
    if not torn:  # else beginnings may be lost, and no end counts
        _check_told(work, table, reads)
        _check_even(work, table, reads, before)
    ends = _ends(work, table, reads, before)
    if ends.due and ends.unreadable(events):
        return _ends(work, table, reads.endless(), before)
    return ends


def apart(table: Table) -> bool:
    """Whether records of their own say where snapshots begin and end, and rows of theirs have no position yet (``bootstraps``)."""
    return isinstance(table.source, FeedSource)


def loaded_reads(table: Table, found: Mapping[str, Any], kinds: EventCounts) -> Reads | None:
    """What a first load has of snapshots, by ``generations.LOADED``; None if it has to be looked at first."""
    if not says_all(table):
        return Reads()
    return None if kinds.reads and apart(table) else of.loaded(found, kinds.reads, kinds.read_to)


def loaded(work: Work, table: Table, reads: Reads, made: Outcome[Ingested]) -> Outcome[Ingested]:
    """The outcome of a first load, with the generations."""
    return _ends(work, table, reads, None).outcome(made, 0) if says_all(table) else made


def torn(table: Table, before: Generations | None) -> Generations | None:
    """The generations of a table after records of its feed were lost: a snapshot that has begun may lack rows. None if it has none at all."""
    if not says_all(table):
        return None
    known = before if before is not None and before.place == place_of(table) else Generations({}, place=place_of(table))
    return of.torn(known)


def _ends(work: Work, table: Table, reads: Reads, before: Generations | None) -> SnapshotEnds:
    after = of.followed(before, reads, work.facts.run.number, empty=not work.before.has(table.name))
    return SnapshotEnds(work, table, reads, before, None if after is None else replace(after, place=place_of(table)))


def _no_reads(kinds: EventCounts) -> Reads:
    """Of a cut of nothing but changes: their positions do not matter, but that they came."""
    return Reads(newest="~") if kinds.read > kinds.skipped + kinds.quarantined else Reads()


def _read(work: Work, events: Relation, before: Generations | None) -> Reads:
    engine, known = work.engine, [] if before is None else sorted({g.begun for g in before.origins.values()})
    found = engine.query(of.marked(engine.sql, known), events=events).here().to_pylist()
    generations = sorted({r["_position"] for r in found} | set(known))
    return of.reads(found, engine.one(aggregated(engine.sql, of.others(generations), "events"), events=events))


def _check_even(work: Work, table: Table, reads: Reads, before: Generations | None) -> None:
    """All rows of a snapshot have one position: where they had several, the older ones would be taken for rows of a snapshot before, and be deleted."""
    if of.uneven(before, reads):
        raise SnapshotAgain(
            f"the feed of table {table.name!r} has the end of a snapshot (op r) at a position at which none has begun, in run {work.facts.run.number}; nothing was "
            "committed",
            expected="one position in the log for all rows of a snapshot, as Debezium writes them, and its first row before its last",
            next_step="deliver the file with the first row of that snapshot as well, if it is only late; or, if its rows have positions of their own, declare "
            "debezium(..., snapshots='additive'): then they only add and update",
        )


def _check_first(work: Work, table: Table, events: Relation, kinds: EventCounts) -> None:
    """No row comes from a full load after changes, and none a second time: of rows that another one lacks nobody could say whether they are gone."""
    if not work.before.has(table.name):
        return
    again = f"EXISTS (SELECT 1 FROM events AS e WHERE {READ} AND {work.engine.sql.on(table.key, 'e', 's')})"
    statement = f"SELECT count(*) AS n FROM stored AS s WHERE _version > {text(str(kinds.read_to))} OR {again}"
    stored = work.before.every(table.name, [*table.key, "_version"])
    if work.engine.one(statement, events=events, stored=stored)["n"]:
        raise SnapshotAgain(
            f"the source of table {table.name!r} has rows of a full load after changes, or a second time, in run {work.facts.run.number}; nothing was committed",
            expected="one full load, before all changes: a row that a second one lacks may or may not have been deleted",
            next_step="if a file of the first one is only late, declare loaded=None for this run: then its rows only add what is not there. "
            "Else declare a table of a new name whose path has the new full load and what came after it",
        )


def _check_told(work: Work, table: Table, reads: Reads) -> None:
    """No row comes from a snapshot without beginning and end that was taken after changes: of rows that it lacks nobody could say whether they are gone."""
    if reads.unmarked is None:
        return
    older = reads.oldest is not None and reads.oldest < reads.unmarked
    if not older and work.before.has(table.name):
        changed = f"_version LIKE {text(OF_A_CHANGE)} AND _version < {text(reads.unmarked)}"
        stored = work.before.every(table.name, ["_version"])
        older = bool(work.engine.one(f"SELECT count(*) AS n FROM stored WHERE {changed}", stored=stored)["n"])
    if older:
        raise SnapshotAgain(
            f"the feed of table {table.name!r} has rows of another snapshot (op r) after changes, in run {work.facts.run.number}, and says neither where that begins "
            "nor where it ends; nothing was committed",
            expected="source.snapshot with the words first, last, first_in_data_collection, last_in_data_collection, as Debezium 2 and later writes it",
            next_step="deliver the file with the first row of that snapshot as well, if it is only late; or, if no row was deleted before it that has no delete "
            "event, declare debezium(..., snapshots='additive'): then its rows only add and update; or take these files away and deliver full snapshots "
            "of the table to snapshot(...)",
        )

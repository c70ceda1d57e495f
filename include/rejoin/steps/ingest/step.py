"""ingest: events and stored versions become new versions of a source table."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rejoin import sources
from rejoin.context.facts import watched
from rejoin.context.open_snapshots import of_base, says_all
from rejoin.context.outcome import Outcome
from rejoin.context.work import Cut, Work
from rejoin.engines.relation import KeySpread, LocalRelation, Relation
from rejoin.lake import table_names
from rejoin.lake.iceberg.table_schemas import source_schema
from rejoin.lake.ledger.records import Write
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.read.reader import Reader
from rejoin.limits import limits
from rejoin.plan.model.expectations import Expectation, Level, Which, of_level
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import Meaning, SnapshotSource
from rejoin.plan.model.step_results import Ingested
from rejoin.sources.events import events_schema
from rejoin.statements.own_columns import REPLAYED, SOURCE_FILE
from rejoin.steps.ingest import bootstraps, generations, snapshot_ends, statements
from rejoin.steps.ingest import held_versions as hold
from rejoin.steps.ingest.column_drift import check_columns
from rejoin.steps.ingest.event_counts import EventCounts, alone, count_kinds, kind_counts, kinds_of, no_kinds, with_replayed
from rejoin.steps.ingest.new_versions import Storing
from rejoin.steps.ingest.passed_over import all_stale, passed_over
from rejoin.steps.ingest.record_checks import check_any, check_deletes, check_policy, check_rows
from rejoin.steps.ingest.statements import event_columns
from rejoin.steps.ingest.stream_records import Ages
from rejoin.steps.validate.judging import hours_since_newest, measured


class Ingesting:
    """One attempt to ingest a source table.

    Args:
        work: what the attempt works with.
        table: the table.
        cut: what the run reads of it.
        results: where the results of the table's validation are kept; None: only in the ledger.
    """

    def __init__(self, work: Work, table: Table, cut: Cut, results: Path | None) -> None:
        self._work, self._facts, self._table, self._cut, self._results = work, work.facts, table, cut, results
        self._engine, self._sql = work.engine, work.engine.sql
        self._storing = Storing(work, table, cut, results)
        self._held_rows, self._again = work.facts.held(table), work.facts.judged_again(table)
        self._latest = work.before.latest(table)

    def run(self) -> Outcome[Ingested]:
        """Ingests what the cut has pinned, and judges what it comes to."""
        table = self._table
        outcome = self._ingested(self._cut.pin)
        after = self._work.after(outcome.writes)
        if not table.expectations or not (outcome.result.changes or self._facts.asked_again(table.name) or watched(table)):
            return outcome
        measures = {n: self._measure(e, after) for n, e in measured(table)}
        judging = self._storing.judging()
        judging.table(after, after.stored(table.name), measures)
        return replace(outcome, detail={**outcome.detail, **judging.detail()})

    def _ingested(self, pin: sources.Pin | None) -> Outcome[Ingested]:
        if pin is None:
            known, held = self._work.before.has(self._table.name), self._held(None)
            if known and held is not None and self._again:
                return self._ingest_feed(
                    LocalRelation(events_schema(self._table).empty_table()), no_kinds(), LookupKeys(held, self._held_rows)
                )
            return Outcome(Ingested(), () if known else (self._touch(),))
        here = sources.read_here(self._table, pin, self._cut.access)
        if here is not None:
            return self._ingest(LocalRelation(here), kinds_of(self._table, here), here)
        if self._engine.in_process:
            streams = sources.read_streams(self._table, pin, self._cut.access, self._engine.at_once)
            landed = self._engine.landed(events_schema(self._table), streams, sources.RARE, self._table.order)
            return self._ingest(landed, count_kinds(self._engine, self._table, landed), None)
        spark = self._engine.by_spark(f"the input of {self._table.name!r} is large")
        events = spark.of(sources.read(spark.spark, self._table, pin, self._cut.access))
        if (loaded := self._load(events)) is not None:
            return loaded
        with self._engine.kept(events) as kept:  # decoding is the dearest part: once
            return self._ingest(kept, count_kinds(self._engine, self._table, kept), None)

    def _load(self, events: Relation) -> Outcome[Ingested] | None:
        """The first load of a feed in one pass, if it turns out to be plain; None if it has to be looked at first: what was written is garbage.

        Events are counted before a shuffle: where Spark lost an executor it has counted some of them twice, and they are counted again in peace.
        """
        judged = of_level(self._table.expectations, Level.ROW, Which.CHANGED)
        if (
            judged
            or self._table.retention is not None
            or isinstance(self._table.source, SnapshotSource)
            or self._work.before.has(self._table.name)
        ):
            return None
        observed, seen = self._engine.counted(events, {**kind_counts(self._sql, self._table), **generations.LOADED})
        statement = statements.feed(self._sql, self._table, stored=False, placed=True)
        classified = self._engine.query(statement, events=self._facts_of(observed))
        fates, _, write = self._storing.write(self._versions(classified, keep_unchanged=True), self._spread(events, limits().large))
        found = seen()
        marks = {name: found.pop(name) for name in generations.LOADED}
        kinds = EventCounts(**found)
        reads = snapshot_ends.loaded_reads(self._table, marks, kinds)
        if (
            reads is None
            or not kinds.plain
            or kinds.read == kinds.skipped
            or fates.quarantined
            or kinds.read != kinds.skipped + fates.accounted
        ):
            self._work = replace(self._work, writer=self._work.writer.again())
            self._storing = Storing(self._work, self._table, self._cut, self._results)
            return None
        return snapshot_ends.loaded(self._work, self._table, reads, Outcome(self._storing.accounted(fates, kinds), (write,)))

    def _facts_of(self, events: Relation) -> Relation:
        return self._engine.query("SELECT * FROM events WHERE _kind IN ('upsert', 'delete')", events=events)

    def _versions(self, classified: Relation, *, keep_unchanged: bool) -> Relation:
        return self._engine.query(statements.versions(self._sql, self._table, keep_unchanged=keep_unchanged), classified=classified)

    def _ingest(self, events: Relation, kinds: EventCounts, here: pa.Table | None) -> Outcome[Ingested]:
        check_policy(self._engine, self._table, kinds.whole, kinds.refused, events, self._facts.run.number)
        check_any(self._engine, self._table, kinds, events, self._facts.run.number)
        if isinstance(self._table.source, SnapshotSource):
            return self._ingest_changes(events, kinds, here) if self._cut.given.partial else self._ingest_snapshot(events, kinds)
        if kinds.absent:
            check_columns(self._engine, self._table, events, self._work.before, self._cut.given, self._cut.access)
        said = passed_over(self._work, self._cut, self._table, events, kinds)
        outcome = self._ingest_feed(events, kinds, self._keys(events, here, kinds))
        return replace(outcome, detail={**outcome.detail, **said, **all_stale(self._work, self._cut, self._table, events, outcome.result)})

    def _ingest_feed(self, events: Relation, kinds: EventCounts, keys: LookupKeys) -> Outcome[Ingested]:
        if kinds.reads and says_all(self._table) and snapshot_ends.apart(self._table):
            before = of_base(self._facts, self._table)
            events = bootstraps.placed(self._work, self._table, events, before, in_order=bool(self._cut.given.files))
        ends = snapshot_ends.followed(self._work, self._table, events, kinds, torn=self._cut.torn)
        parts, every = [self._facts_of(events)], kinds.truncated is not None or ends.due
        held = self._held(None if every or self._again else keys)
        if held is not None:
            fields = tuple(f.name for f in held.schema.field("_row").type) if "_row" in held.columns else ()
            parts.append(self._engine.query(hold.held_events(self._sql, self._table, fields), held=held))
        if self._again:
            replayed = self._replayed()
            if replayed is not None:
                parts.append(replayed[0])
                kinds = with_replayed(kinds, replayed[1])
            keys = LookupKeys(self._looked_up(self._together(parts), kinds), keys.at_most + kinds.adopted + self._held_rows)
        facts = self._together(parts)
        looked = not self._table.by_place  # no place comes twice
        stored = self._work.before.versions(self._table.name, None if every else keys, before=kinds.incomplete > 0) if looked else None
        known, given = stored is not None, {} if stored is None else {"stored": stored}
        if kinds.overtaken(ends.stored):
            facts = self._engine.query(statements.behind_reads(self._sql, self._table, stored=known), events=facts, **given)
        if kinds.truncated is not None:
            facts = self._engine.query(statements.truncation(self._sql, self._table, kinds.truncated, stored=known), events=facts, **given)
        if ends.due:
            facts = ends.reconciled(facts, events, stored)
        placed, ages = (
            kinds.unplaced == 0,
            Ages(self._latest, self._facts.plan.taken_from(self._table.name), ends.floor),
        )
        single = placed and alone(self._engine, self._table, facts)
        statement = statements.feed(self._sql, self._table, stored=known, placed=placed, alone=single, ages=ages)
        classified = self._engine.query(statement, events=facts, **given)
        if kinds.incomplete:
            classified = self._engine.query(statements.unsettled(self._sql, self._table, stored=known), classified=classified, **given)
        made = self._versions(classified, keep_unchanged=True)
        at_most = kinds.read + (self._facts.before.rows(self._table.name) if every else 0)
        at_most += self._held_rows if self._again or held is not None else 0
        live = self._live(self._work.before) if ends.due and known else 0
        return ends.outcome(self._storing.store(made, kinds, self._refused(events), self._spread(facts, at_most), held), live)

    def _spread(self, events: Relation, at_most: int) -> KeySpread:
        """How the keys of new versions lie. The event time of a record that is none is null."""
        return KeySpread(events, self._table.order, at_most, nulls=self._table.event_time is not None)

    def _together(self, parts: list[Relation]) -> Relation:
        """Events of several origins."""
        inputs = {f"part_{i}": part for i, part in enumerate(parts)}
        columns = self._sql.names(event_columns(self._table))
        return self._engine.query(" UNION ALL ".join(f"SELECT {columns} FROM {name}" for name in inputs), **inputs)

    def _refused(self, events: Relation) -> Relation:
        return self._engine.query("SELECT * FROM events WHERE _kind = 'quarantined'", events=events)

    def _ingest_snapshot(self, events: Relation, kinds: EventCounts) -> Outcome[Ingested]:
        check_rows(self._table, kinds, self._facts.run.number)
        rows, refused = self._engine.query("SELECT * FROM events WHERE _kind = 'upsert'", events=events), self._refused(events)
        key = self._sql.names(self._table.key)
        bad = self._engine.query(f"SELECT {key} FROM refused", refused=refused)
        stored = self._work.before.versions(self._table.name, None, before=False)
        inputs = {"events": rows, "bad_keys": bad, **({} if stored is None else {"stored": stored})}
        statement = statements.snapshot(self._sql, self._table, stored=stored is not None, deletes=kinds.quarantined_without_key == 0)
        made = self._versions(self._engine.query(statement, **inputs), keep_unchanged=False)
        spread = self._spread(rows, kinds.read + self._facts.before.rows(self._table.name))
        outcome = self._storing.store(made, kinds, refused, spread, self._held(None))
        check_deletes(self._table, outcome.result, self._facts.run.number)
        return outcome

    def _ingest_changes(self, events: Relation, kinds: EventCounts, here: pa.Table | None) -> Outcome[Ingested]:
        """What changed since the snapshot that the last run read; the share of deletes is bounded as that of a whole snapshot."""
        outcome = self._ingest_feed(events, kinds, self._keys(events, here, kinds))
        if outcome.result.deleted:
            live = self._live(self._work.before)
            check_deletes(self._table, replace(outcome.result, implied=outcome.result.deleted, live=live), self._facts.run.number)
        return outcome

    def _held(self, keys: LookupKeys | None) -> Relation | None:
        """The rows that are held back, of some keys or of all."""
        return self._work.before.held(self._table.name, keys) if self._held_rows else None

    def _replayed(self) -> tuple[Relation, EventCounts] | None:
        """The records in quarantine that can be decoded now. The next snapshot decides about those of a snapshot, and those of ``records`` come anew."""
        refused = self._work.before.refused(self._table.name)
        if refused is None or self._table.source.meaning is not Meaning.FEED:
            return None
        # In the order of their arrival, before all that arrive in this run.
        latest_first = f"row_number() OVER (ORDER BY _run DESC, {SOURCE_FILE} DESC, _line DESC)"
        arrival = self._sql.cast(f"{REPLAYED + 1} - {latest_first}", "BIGINT")
        wanted = f"{SOURCE_FILE} AS _file, _line, _reason, _raw, {arrival} AS _arrival"
        records = self._engine.query(f"SELECT {wanted} FROM refused", refused=refused)
        if not self._engine.in_process and not limits().small(self._facts.before.rows(table_names.quarantine(self._table.name))):
            spark = self._engine.by_spark(f"many records of {self._table.name!r} are replayed")
            again = spark.of(sources.read_again_on_workers(self._table, spark.frame(records)), records)
            return again, count_kinds(self._engine, self._table, again)
        found = sources.read_again_here(self._table, sorted(records.here().to_pylist(), key=lambda record: record["_arrival"]))
        return LocalRelation(found), kinds_of(self._table, found)

    def _measure(self, one: Expectation, after: Reader) -> float | None:
        if one.type == "fresh":
            return hours_since_newest(self._table.name, one.kwargs["column"], after, self._facts.run.opened_at)
        before = self._live(self._work.before) if self._work.before.has(self._table.name) else 0
        return self._live(after) / before - 1 if before else None

    def _live(self, reader: Reader) -> int:
        return int(str(self._engine.one("SELECT count(*) AS live FROM alive", alive=reader.current(self._table.name))["live"]))

    def _touch(self) -> Write:
        return self._work.writer.touch(self._table.name, source_schema(self._table), self._table.order)

    def _keys(self, events: Relation, here: pa.Table | None, kinds: EventCounts) -> LookupKeys:
        """The keys whose stored versions matter: those of the events, and the old keys of rows that changed their key. ``here``: small events."""
        at_most = kinds.read + kinds.adopted
        if here is not None and not kinds.adopted:
            facts = here.filter(pc.is_in(here["_kind"], pa.array(["upsert", "delete"])))
            return LookupKeys(events, at_most, facts.select(list(self._table.key)))
        return LookupKeys(self._looked_up(self._facts_of(events), kinds), at_most)

    def _looked_up(self, facts: Relation, kinds: EventCounts) -> Relation:
        statement = f"SELECT {self._sql.names(self._table.key)} FROM facts"
        if kinds.adopted:
            old = ", ".join(f"{self._sql.get('_old_key', k)} AS {self._sql.name(k)}" for k in self._table.key)
            statement += f" UNION ALL SELECT {old} FROM facts WHERE _old_key IS NOT NULL"
        return self._engine.query(statement, facts=facts)

"""ingest: events and stored versions become new versions of a source table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from rejoin import sources
from rejoin.checks import (
    Kinds,
    Share,
    check_conservation,
    check_deletes,
    check_policy,
    check_rows,
    count_kinds,
    kind_counts,
    kinds_of,
    no_kinds,
    with_replayed,
)
from rejoin.lake import names, probe
from rejoin.lake.access import Keys
from rejoin.lake.local import LocalRows, collected
from rejoin.lake.reader import Reader
from rejoin.lake.records import Write
from rejoin.lake.tables import source_ddl
from rejoin.plan.expect import of_level
from rejoin.plan.model import DebeziumSource, SnapshotSource, Table
from rejoin.plan.results import Ingested
from rejoin.plan.rules import Expectation, Level, Rows
from rejoin.run.drift import check_columns
from rejoin.run.facts import watched
from rejoin.run.judging import Judging, hours_since_newest, measured
from rejoin.run.work import Outcome, Work, small
from rejoin.sources.events import REPLAYED
from rejoin.stages import hold, ingest
from rejoin.stages.columns import SOURCE_FILE
from rejoin.stages.ingest import Fate


class Ingesting:
    """One attempt to ingest a source table.

    Args:
        work: what the attempt works with.
        place: where the results of the table's validation are kept; None: only in the ledger.
    """

    def __init__(self, work: Work, place: Path | None) -> None:
        self._work, self._facts, self._place = work, work.facts, place
        self._judge: Judging | None = None
        self._pin: sources.Pin | None = None
        self._root = ""

    def run(self, table: Table, pinned: dict[str, Any] | None, root: str) -> Outcome[Ingested]:
        """Ingests what the cut has pinned, and judges what it comes to."""
        self._pin, self._root = None if pinned is None else sources.Pin.from_dict(pinned), root
        outcome = self._ingested(table, self._pin)
        after = self._work.after(outcome.writes)
        if not table.expectations or not (outcome.result.changes or self._facts.asked_again(table.name) or watched(table)):
            return outcome
        measures = {n: self._measure(table, e, after) for n, e in measured(table)}
        judging = self._judging(table)
        judging.table(after, after.stored(table.name), measures)
        return replace(outcome, detail={**outcome.detail, **judging.detail()})

    def _ingested(self, table: Table, pin: sources.Pin | None) -> Outcome[Ingested]:
        if pin is None:
            known, held = self._work.before.has(table.name), self._held(table, None)
            if known and held is not None and self._facts.judged_again(table):
                return self._ingest_feed(
                    table, hold.no_events(table, held), no_kinds(), Keys(held.select(*table.key), self._facts.held(table))
                )
            return Outcome(Ingested(), () if known else (self._touch(table),))
        here = sources.read_here(table, pin, self._root)
        if here is not None:
            rows = LocalRows.of(here)
            return self._ingest(table, rows.frame(self._work.spark), kinds_of(table, here), rows)
        events = sources.read(self._work.spark, table, pin, self._root)
        if (loaded := self._load(table, events)) is not None:
            return loaded
        events = events.persist()  # decoding is the dearest part: once
        try:
            return self._ingest(table, events, count_kinds(table, events), None)
        finally:
            events.unpersist()

    def _load(self, table: Table, events: DataFrame) -> Outcome[Ingested] | None:
        """The first load of a feed in one pass, if it turns out to be plain; None if it has to be looked at first: what was written is garbage."""
        judged = of_level(table.expectations, Level.ROW, Rows.CHANGED)
        if judged or isinstance(table.source, SnapshotSource) or self._work.before.has(table.name):
            return None
        seen = Observation()
        counted = events.observe(seen, *kind_counts(table))
        classified = ingest.feed(table, counted.where("_kind IN ('upsert', 'delete')"), None, placed=True)
        made = ingest.versions(table, classified, keep_unchanged=True)
        fates, _, write = self._write(table, made, probe.LOCAL_ROWS + 1)
        kinds = Kinds(**seen.get)
        if not kinds.plain:
            self._work = replace(self._work, writer=self._work.writer.again())
            return None
        return Outcome(self._accounted(table, fates, kinds), (write,))

    def _ingest(self, table: Table, events: DataFrame, kinds: Kinds, rows: LocalRows | None) -> Outcome[Ingested]:
        check_policy(table, kinds.whole, kinds.refused, events, self._facts.run.number)
        if isinstance(table.source, SnapshotSource):
            return self._ingest_snapshot(table, events, kinds)
        if kinds.absent:
            check_columns(table, events, self._work.before, self._given(), self._root)
        return self._ingest_feed(table, events, kinds, _keys_of(table, events, rows, kinds))

    def _ingest_feed(self, table: Table, events: DataFrame, kinds: Kinds, keys: Keys) -> Outcome[Ingested]:
        facts = events.where("_kind IN ('upsert', 'delete')")
        truncated = kinds.truncated is not None
        again = self._facts.judged_again(table)
        held = self._held(table, None if truncated or again else keys)
        if held is not None:
            facts = facts.unionByName(hold.held_events(table, held), allowMissingColumns=True)
        if again:
            mended = self._mended(table)
            if mended is not None:
                facts = facts.unionByName(mended[0])
                kinds = with_replayed(kinds, mended[1])
            keys = Keys(_looked_up(table, facts, kinds), keys.at_most + kinds.adopted + self._facts.held(table))
        stored = self._work.before.versions(table.name, None if truncated else keys, before=kinds.incomplete > 0)
        if kinds.truncated is not None:
            facts = ingest.truncation(table, facts, stored, kinds.truncated)
        classified = ingest.feed(table, facts, stored, placed=kinds.unplaced == 0)
        if kinds.incomplete:
            classified = ingest.unsettled(table, classified, stored)
        made = ingest.versions(table, classified, keep_unchanged=True)
        at_most = (
            kinds.read
            + (self._facts.before.rows(table.name) if truncated else 0)
            + (self._facts.held(table) if again or held is not None else 0)
        )
        return self._store(table, made, kinds, events.where("_kind = 'quarantined'"), at_most, held)

    def _ingest_snapshot(self, table: Table, events: DataFrame, kinds: Kinds) -> Outcome[Ingested]:
        check_rows(table, kinds, self._facts.run.number)
        rows, refused = events.where("_kind = 'upsert'"), events.where("_kind = 'quarantined'")
        stored = self._work.before.versions(table.name, None, before=False)
        readable = kinds.quarantined_without_key == 0
        classified = ingest.snapshot(table, rows, refused.where(f"`{table.key[0]}` IS NOT NULL"), stored, deletes=readable)
        made = ingest.versions(table, classified, keep_unchanged=False)
        outcome = self._store(table, made, kinds, refused, kinds.read + self._facts.before.rows(table.name), self._held(table, None))
        check_deletes(table, outcome.result, self._facts.run.number)
        return outcome

    def _store(
        self, table: Table, made: DataFrame, kinds: Kinds, refused: DataFrame, at_most: int, held: DataFrame | None
    ) -> Outcome[Ingested]:
        """Judges the new versions and appends those that pass; appends what is kept aside; counts every record's fate and checks that none is lost (I4).

        Args:
            table: the table.
            made: the frame of ``ingest.versions``.
            kinds: counts of the cut.
            refused: records that could not be decoded.
            at_most: rows of ``made`` at most.
            held: what the quarantine table holds back of the keys of this cut.
        """
        if not of_level(table.expectations, Level.ROW, Rows.CHANGED):
            return self._append(table, made, kinds, refused, at_most, held)
        kept = collected(made).frame(self._work.spark) if at_most <= probe.LOCAL_ROWS else made.persist()
        try:
            judging = self._judging(table)
            bad = judging.changed_rows(hold.new_rows(table, kept), at_most)
            marked = kept if bad is None else hold.held_back(kept, bad, table.key)
            return replace(self._append(table, marked, kinds, refused, at_most, held), detail=judging.detail())
        finally:
            if at_most > probe.LOCAL_ROWS:
                kept.unpersist()

    def _write(self, table: Table, made: DataFrame, at_most: int) -> tuple[Ingested, int, Write]:
        """Appends the new versions, and counts the fate of every record among them, what changes, and the lines of what is refused."""
        seen = Observation()
        real = _real()
        effective = F.col("_op").isin("I", "U") | ((F.col("_op") == "D") & F.col("_before").isNotNull())
        fates = [F.count(F.when(real & (F.col("_fate") == str(fate)), 1)).alias(str(fate)) for fate in Fate]
        others = {
            "changes": effective,
            "deleted": effective & (F.col("_op") == "D"),
            "implied": effective & ~real,
            "live": F.col("_row").isNotNull() & F.col("_fate").isin(str(Fate.APPLIED), str(Fate.NOOP)),
        }
        bad = F.sum(F.when(real & (F.col("_fate") == str(Fate.QUARANTINED)), F.col("_lines"))).alias("bad_lines")
        observed = made.observe(seen, *fates, bad, *(F.count(F.when(c, 1)).alias(n) for n, c in others.items()))
        rows = small(ingest.table_rows(table, observed, self._facts.run.number), at_most)
        write = self._work.writer.append(table.name, rows, table.key)
        counts = {k: int(v or 0) for k, v in seen.get.items()}
        bad_lines = counts.pop("bad_lines")
        return Ingested.of(counts), bad_lines, write

    def _accounted(self, table: Table, fates: Ingested, kinds: Kinds) -> Ingested:
        """The result of the step: the fates of ``_write``, and of the records that never came so far."""
        quarantined = fates.quarantined + kinds.quarantined
        done = replace(fates, read=kinds.read, skipped=kinds.skipped, truncates=kinds.truncates, quarantined=quarantined)
        check_conservation(table, done, self._facts.run.number)
        return done

    def _append(
        self, table: Table, made: DataFrame, kinds: Kinds, refused: DataFrame, at_most: int, held: DataFrame | None
    ) -> Outcome[Ingested]:
        fates, late_lines, write = self._write(table, made, at_most)
        late, writes = fates.quarantined, [write]
        done, judged = self._accounted(table, fates, kinds), made.where(_real())
        if done.quarantined:
            bad = judged.where(F.col("_fate") == str(Fate.QUARANTINED))
            bad = refused.unionByName(bad, allowMissingColumns=True) if late else refused
            all_bad = Share(done.quarantined, kinds.quarantined_lines + late_lines)
            check_policy(table, kinds.whole, all_bad, bad, self._facts.run.number)
        if done.quarantined or held is not None or self._facts.judged_again(table):
            judged = self._as_written(table, judged) if late else judged
            aside = hold.records_aside(table, refused, judged, held, made, self._facts.run.number)
            at_most = done.quarantined + self._facts.held(table)
            writes.append(self._work.writer.append(names.quarantine(table.name), small(aside, at_most), table.key))
        return Outcome(done, tuple(writes))

    def _as_written(self, table: Table, judged: DataFrame) -> DataFrame:
        """Records of the cut, those that were refused after they were decoded with their text."""
        bad = judged.where(F.col("_fate") == str(Fate.QUARANTINED)).drop("_raw")
        texts = sources.read_raw(self._work.spark, table, self._given(), self._root, bad.select("_file", "_line"))
        return bad.join(texts, on=["_file", "_line"], how="left")

    def _given(self) -> sources.Pin:
        """What this run reads, where there is something."""
        assert self._pin is not None
        return self._pin

    def _held(self, table: Table, keys: Keys | None) -> DataFrame | None:
        """The rows that are held back, of some keys or of all."""
        return self._work.before.held(table.name, keys) if self._facts.held(table) else None

    def _mended(self, table: Table) -> tuple[DataFrame, Kinds] | None:
        """The records in quarantine that can be decoded now; the next snapshot decides about those of a snapshot."""
        refused = self._work.before.refused(table.name)
        if refused is None or not isinstance(table.source, DebeziumSource):
            return None
        # In the order of their arrival, before all that arrive in this run.
        latest_first = Window.orderBy(F.desc("_run"), F.desc(SOURCE_FILE), F.desc("_line"))
        arrival = (F.lit(REPLAYED + 1) - F.row_number().over(latest_first)).cast("bigint").alias("_arrival")
        records = refused.select(F.col(SOURCE_FILE).alias("_file"), "_line", "_raw", arrival)
        if self._facts.before.rows(names.quarantine(table.name)) > probe.LOCAL_ROWS:
            again = sources.read_again_on_workers(table, records)
            return again, count_kinds(table, again)
        found = sources.read_again_here(table, collected(records.orderBy("_arrival")).arrow.to_pylist())
        return LocalRows.of(found).frame(self._work.spark), kinds_of(table, found)

    def _judging(self, table: Table) -> Judging:
        """One for the table's rows and the table, so that the results are kept together."""
        if self._judge is None:
            self._judge = Judging(self._work.spark, table, self._facts.run.number, self._place)
        return self._judge

    def _measure(self, table: Table, one: Expectation, after: Reader) -> float | None:
        if one.type == "fresh":
            return hours_since_newest(table.name, one.kwargs["column"], after, self._facts.run.opened_at)
        before = self._work.before.current(table.name).count() if self._work.before.has(table.name) else 0
        return after.current(table.name).count() / before - 1 if before else None

    def _touch(self, table: Table) -> Write:
        return self._work.writer.touch(table.name, self._work.spark.createDataFrame([], source_ddl(table)).schema, table.key)


def _real() -> Column:
    """Whether a row is a record of the cut."""
    return F.coalesce(F.col("_arrival") >= 0, F.lit(False))


def _keys_of(table: Table, events: DataFrame, rows: LocalRows | None, kinds: Kinds) -> Keys:
    """The keys whose stored versions matter: those of the events, and the old keys of rows that changed their key."""
    at_most = kinds.read + kinds.adopted
    if rows is not None and not kinds.adopted:
        facts = rows.arrow.filter(pc.is_in(rows.arrow["_kind"], pa.array(["upsert", "delete"])))
        return Keys(events.select(*table.key), at_most, facts.select(list(table.key)))
    return Keys(_looked_up(table, events.where("_kind IN ('upsert', 'delete')"), kinds), at_most)


def _looked_up(table: Table, facts: DataFrame, kinds: Kinds) -> DataFrame:
    keys = facts.select(*table.key)
    if not kinds.adopted:
        return keys
    return keys.union(facts.where("_old_key IS NOT NULL").select(*(F.col(f"_old_key.`{k}`") for k in table.key)))

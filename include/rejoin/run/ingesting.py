"""ingest: events and stored versions become new versions of a source table."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin import sources
from rejoin.checks import Kinds, check_conservation, check_deletes, check_policy, check_rows, count_kinds, kinds_of, no_input
from rejoin.lake import names
from rejoin.lake.ledger import Write
from rejoin.lake.local import LocalRows
from rejoin.lake.reader import Keys
from rejoin.lake.tables import source_ddl
from rejoin.plan.model import SnapshotSource, Table
from rejoin.run.work import Outcome, Work, small
from rejoin.stages import ingest
from rejoin.stages.ingest import Fate


class Ingesting:
    """One attempt to ingest a source table."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts = work, work.facts

    def run(self, table: Table, pinned: dict[str, Any] | None, root: str) -> Outcome:
        """Ingests what the cut has pinned (None: nothing, and the table is new)."""
        if pinned is None:
            return Outcome(no_input(), (self._touch(table),))
        pin = sources.Pin.from_dict(pinned)
        here = sources.read_here(table, pin, root)
        if here is not None:
            rows = LocalRows(here, from_arrow_schema(here.schema))
            return self._ingest(table, rows.frame(self._work.spark), kinds_of(table, here), rows)
        events = sources.read(self._work.spark, table, pin, root).persist()  # decoding is the dearest part: once
        try:
            return self._ingest(table, events, count_kinds(table, events), None)
        finally:
            events.unpersist()

    def _ingest(self, table: Table, events: DataFrame, kinds: Kinds, rows: LocalRows | None) -> Outcome:
        check_policy(table, kinds.read, kinds.quarantined, events, self._facts.run.number)
        if isinstance(table.source, SnapshotSource):
            return self._ingest_snapshot(table, events, kinds)
        return self._ingest_feed(table, events, kinds, _keys_of(table, events, rows, kinds))

    def _ingest_feed(self, table: Table, events: DataFrame, kinds: Kinds, keys: Keys) -> Outcome:
        facts = events.where("_kind IN ('upsert', 'delete')")
        truncated = kinds.truncated is not None
        stored = self._work.before.versions(table.name, None if truncated else keys, before=kinds.incomplete > 0)
        if kinds.truncated is not None:
            facts = ingest.truncation(table, facts, stored, kinds.truncated)
        classified = ingest.feed(table, facts, stored, placed=kinds.unplaced == 0)
        if kinds.incomplete:
            classified = ingest.unsettled(table, classified, stored)
        made = ingest.versions(table, classified, keep_unchanged=True)
        at_most = kinds.read + (self._facts.before.rows(table.name) if truncated else 0)
        return self._store(table, made, kinds, refused=events.where("_kind = 'quarantined'"), at_most=at_most)

    def _ingest_snapshot(self, table: Table, events: DataFrame, kinds: Kinds) -> Outcome:
        check_rows(table, kinds, self._facts.run.number)
        rows, refused = events.where("_kind = 'upsert'"), events.where("_kind = 'quarantined'")
        stored = self._work.before.versions(table.name, None, before=False)
        readable = kinds.quarantined_without_key == 0
        classified = ingest.snapshot(table, rows, refused.where(f"`{table.key[0]}` IS NOT NULL"), stored, deletes=readable)
        made = ingest.versions(table, classified, keep_unchanged=False)
        outcome = self._store(table, made, kinds, refused, at_most=kinds.read + self._facts.before.rows(table.name))
        check_deletes(table, outcome.counts, self._facts.run.number)
        return outcome

    def _store(self, table: Table, made: DataFrame, kinds: Kinds, refused: DataFrame, at_most: int) -> Outcome:
        """Appends the new versions and the refused records; counts every record's fate and checks that none is lost (I4)."""
        seen = Observation()
        real = F.col("_arrival").isNotNull()
        effective = F.col("_op").isin("I", "U") | ((F.col("_op") == "D") & F.col("_before").isNotNull())
        fates = [F.count(F.when(real & (F.col("_fate") == str(fate)), 1)).alias(str(fate)) for fate in Fate]
        others = {
            "changes": effective,
            "deleted": effective & (F.col("_op") == "D"),
            "implied": effective & ~real,
            "live": F.col("_row").isNotNull() & F.col("_fate").isin(str(Fate.APPLIED), str(Fate.NOOP)),
        }
        observed = made.observe(seen, *fates, *(F.count(F.when(c, 1)).alias(n) for n, c in others.items()))
        rows = small(ingest.table_rows(table, observed, self._facts.run.number), at_most)
        writes = [self._work.writer.append(table.name, rows, table.key)]
        counts = {"read": kinds.read, "skipped": kinds.skipped, "truncates": kinds.truncates, **{k: int(v) for k, v in seen.get.items()}}
        late = counts[Fate.QUARANTINED]
        counts[Fate.QUARANTINED] += kinds.quarantined
        check_conservation(table, counts, self._facts.run.number)
        if counts[Fate.QUARANTINED]:
            bad = refused.unionByName(made.where(F.col("_fate") == str(Fate.QUARANTINED)), allowMissingColumns=True) if late else refused
            check_policy(table, kinds.read, counts[Fate.QUARANTINED], bad, self._facts.run.number)
            writes.append(self._quarantine(table, bad))
        return Outcome(counts, tuple(writes))

    def _quarantine(self, table: Table, bad: DataFrame) -> Write:
        rows = bad.select(
            *table.key, F.lit(self._facts.run.number).cast("bigint").alias("_run"), "_code", "_reason", "_file", "_line", "_raw"
        )
        return self._work.writer.append(names.quarantine(table.name), rows, table.key)

    def _touch(self, table: Table) -> Write:
        return self._work.writer.touch(table.name, self._work.spark.createDataFrame([], source_ddl(table)).schema, table.key)


def _keys_of(table: Table, events: DataFrame, rows: LocalRows | None, kinds: Kinds) -> Keys:
    """The keys whose stored versions matter: those of the events, and the old keys of rows that changed their key."""
    at_most = kinds.read + kinds.adopted
    if rows is not None and not kinds.adopted:
        facts = rows.arrow.filter(pc.is_in(rows.arrow["_kind"], pa.array(["upsert", "delete"])))
        return Keys(events.select(*table.key), at_most, facts.select(list(table.key)))
    facts = events.where("_kind IN ('upsert', 'delete')")
    keys = facts.select(*table.key)
    if kinds.adopted:
        keys = keys.union(facts.where("_old_key IS NOT NULL").select(*(F.col(f"_old_key.`{k}`") for k in table.key)))
    return Keys(keys.distinct(), at_most)

"""Records of which none comes to anything: whether that is a mistake, and what they are about."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rejoin import sources
from rejoin.context.work import Cut, Work
from rejoin.engines.relation import Relation
from rejoin.errors import BadRecord, SourceEpoch, SourceMissing
from rejoin.lake import table_names
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, Source, chosen
from rejoin.plan.model.step_results import Ingested
from rejoin.sources.shapes.debezium.decoder import Decoder
from rejoin.steps.ingest.event_counts import EventCounts
from rejoin.steps.ingest.raw_records import raw_of

LOOKED_AT = 1_000
"""So many records are read again to say what they are about."""
CLOCKS_DIFFER = 600
"""Seconds by which the clock of a source may be fast."""
NAMED = 5


def passed_over(work: Work, cut: Cut, table: Table, events: Relation, kinds: EventCounts) -> dict[str, Any]:
    """What a run says of a table that has no row yet, and of which no record was found: ``warnings``, of the detail of its step. Empty of any other.

    Args:
        work: what the attempt works with.
        cut: what it reads.
        table: the table.
        events: those of the cut.
        kinds: their counts.

    Raises:
        SourceMissing: the records are of others, and no table of the topology reads those from there: a name is misspelt.
    """
    of_table = sum(work.facts.before.rows(name) for name in (table.name, table_names.quarantine(table.name)))
    if of_table or not 0 < kinds.read == kinds.skipped:
        return {}
    first = work.engine.query(f"SELECT _file, _line FROM events ORDER BY _arrival LIMIT {LOOKED_AT}", events=events)
    texts = raw_of(work.engine, table, cut.given, cut.access, first).here()["_raw"].to_pylist()
    about = Counter(name for text in texts if (name := sources.about(text)) is not None)
    own, names = chosen(table.source), [name for name, _ in about.most_common(NAMED)]
    if own in about:
        return {}
    if about and own is not None and not any(_reads(t.source, table, about) for t in work.facts.plan.tables):
        raise SourceMissing(
            f"source path {table.source.path!r} of table {table.name!r} holds no record of {own!r}, and never did: {kinds.read} of others, such "
            f"as {', '.join(names)}, in run {work.facts.run.number}; nothing was committed",
            expected="records of what topic= or only= of the source names, or of another table of the topology that reads them there",
            next_step="correct topic= or only=; if the first row is only still to come, leave the table out until then",
        )
    of = f"they are of {', '.join(names)}" if names else "none of them is about rows"
    return {"warnings": [f"no record of {table.name} was ever found: {kinds.read} records read, and {of}"]}


def all_stale(work: Work, cut: Cut, table: Table, events: Relation, result: Ingested) -> dict[str, Any]:
    """What a run says of a table all of whose changes are older than its rows: ``warnings``, of the detail of its step. Empty of any other.

    Raises:
        SourceEpoch: some of them were committed after all that is stored had been read. Changes of a row have positions in the order of their commits, so
            these are of another log.
    """
    if not result.stale or result.applied or result.noop or result.duplicate or result.truncates:
        return {}
    known, newest = work.facts.read_before, _newest_commit(work, cut, table, events)
    if known is not None and newest is not None and newest > known + CLOCKS_DIFFER:
        raise SourceEpoch(
            f"the log of {table.name!r} has begun again: all {result.stale} changes that run {work.facts.run.number} reads have older positions than its rows, "
            "and some were committed after those rows had been read; nothing was committed",
            expected="positions that go on; those of another server, after a fail-over or a restore, do not",
            next_step="declare a table of a new name, whose feed begins with a snapshot of the server that is there now; "
            f"if the clock of the source is more than {CLOCKS_DIFFER // 60} minutes fast, correct it and run again later",
        )
    said = (
        f"all {result.stale} changes of {table.name} are older than its rows, and count for nothing: files came late, or the log is another server's, whose positions "
        "begin again; then a table of a new name has to read it"
    )
    return {"warnings": [said]}


def _newest_commit(work: Work, cut: Cut, table: Table, events: Relation) -> float | None:
    """When the source committed the newest of some changes, in seconds since the epoch; None if they do not say it."""
    if not isinstance(table.source, DebeziumSource) or table.versions_of is not None:
        return None
    changes = f"SELECT _file, _line FROM events WHERE _kind IN ('upsert', 'delete') AND _snapshot IS NULL ORDER BY _arrival DESC LIMIT {LOOKED_AT}"
    places, decoder, found = work.engine.query(changes, events=events), Decoder(table), []
    for text in raw_of(work.engine, table, cut.given, cut.access, places).here()["_raw"].to_pylist():
        with suppress(BadRecord):
            found.append(decoder.committed(text.encode()))
    return max((micros / 1_000_000 for micros in found if micros is not None), default=None)


def _reads(source: Source, table: Table, about: Mapping[str, int]) -> bool:
    """Whether another source of that place reads some of the records."""
    return source.path == table.source.path and source != table.source and (chosen(source) is None or chosen(source) in about)

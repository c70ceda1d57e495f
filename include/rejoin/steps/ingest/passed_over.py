"""Records of which none comes to anything: whether that is a mistake, and what they are about."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rejoin import sources
from rejoin.context.work import Cut, Work
from rejoin.engines.relation import Relation
from rejoin.errors import SourceMissing
from rejoin.lake import table_names
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import Source, chosen
from rejoin.plan.model.step_results import Ingested
from rejoin.steps.ingest.event_counts import EventCounts
from rejoin.steps.ingest.raw_records import raw_of

LOOKED_AT = 1_000
"""So many records are read again to say what they are about."""
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


def all_stale(table: Table, result: Ingested) -> dict[str, Any]:
    """What a run says of a table all of whose changes are older than its rows: ``warnings``, of the detail of its step. Empty of any other."""
    if not result.stale or result.applied or result.noop or result.duplicate or result.truncates:
        return {}
    said = (
        f"all {result.stale} changes of {table.name} are older than its rows, and count for nothing: files came late, or the log is another server's, whose positions "
        "begin again; then a table of a new name has to read it"
    )
    return {"warnings": [said]}


def _reads(source: Source, table: Table, about: Mapping[str, int]) -> bool:
    """Whether another source of that place reads some of the records."""
    return source.path == table.source.path and source != table.source and (chosen(source) is None or chosen(source) in about)

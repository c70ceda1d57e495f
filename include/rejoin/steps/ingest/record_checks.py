"""What every ingest checks: the policy on bad records, the conservation of records (I4), the share of deletes."""

from rejoin import sources
from rejoin.engines.relation import Engine, Relation
from rejoin.errors import BadRecords, InvariantBroken, SnapshotEmpty, SnapshotShrunk
from rejoin.limits import limits
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import OnBadRecord, SnapshotSource
from rejoin.plan.model.step_results import Ingested
from rejoin.statements.dialect import text
from rejoin.statements.own_columns import HELD_CODE
from rejoin.steps.ingest.event_counts import EventCounts, RecordCount
from rejoin.steps.ingest.statements import UNRESOLVED
from rejoin.steps.ingest.stream_records import TOO_LATE

OF_OTHERS = (TOO_LATE, UNRESOLVED, HELD_CODE)
"""Codes of records that are refused for what is stored, or for what is expected of rows, and not for what they say themselves."""


def check_conservation(table: str, done: Ingested, run: int) -> None:
    """Every record that was read has exactly one fate (I4).

    Raises:
        InvariantBroken: the counts do not add up.
    """
    if done.accounted != done.read:
        raise InvariantBroken(
            f"ingest of table {table!r} in run {run}: {done.read} records read, {done.accounted} accounted for; nothing was committed",
            expected="every record has exactly one fate (I4)",
            next_step="run again; if it stays, report it with `rejoin history --run`",
        )


def check_policy(engine: Engine, table: Table, read: RecordCount, refused: RecordCount, records: Relation, run: int) -> None:
    """The source's policy on records that cannot be applied. A record over several lines counts as that many: where the damage is a
    quote that is not closed, nobody knows how many records they were.

    Args:
        engine: runs the statement that looks for coordinates.
        table: the table.
        read: records read.
        refused: records refused.
        records: rows that hold the refused ones (with ``_code``), for the first few coordinates of the message.
        run: the run.

    Raises:
        BadRecords: there are more than the policy allows.
    """
    source = table.source
    failing = source.on_bad_record is OnBadRecord.FAIL
    if not refused.records or not (failing or refused.lines > max(limits().refused_records, source.max_bad_share * read.lines)):
        return
    limit = "none" if failing else f"at most {source.max_bad_share:.0%} (or {limits().refused_records} records)"
    lines = f", which are {refused.lines} of {read.lines} lines," if refused.lines > refused.records else ""
    raise BadRecords(
        f"{refused.records} of {read.records} records{lines} of table {table.name!r} cannot be applied in run {run}; nothing was committed; "
        f"first: {_first(engine, records)}",
        expected=f"{limit}, by on_bad_record={source.on_bad_record.value!r} and max_bad_share of the source",
        next_step=f"{_hint(engine, table, records)}mend the files or raise the limit, and run again: the same files are read again",
    )


def check_any(engine: Engine, table: Table, kinds: EventCounts, records: Relation, run: int) -> None:
    """A source of which every record is refused as it is read is not what its declaration says, however few records these are.

    Args:
        engine: as above.
        table: the table.
        kinds: counts of the cut.
        records: as above.
        run: the run.

    Raises:
        BadRecords: all of them are refused.
    """
    read = kinds.read - kinds.skipped
    if 0 < kinds.quarantined == read:
        raise _all_refused(engine, table, read, records, run)


def check_any_applied(engine: Engine, table: Table, done: Ingested, records: Relation, run: int) -> None:
    """Neither is one of which every record is refused, as it is read or later, for what it says itself: its event time, a key that others of its
    snapshot have. Records that are too late, or have a value that is not known, are the source's own, whose time has come or gone.

    Args:
        engine: as above.
        table: the table.
        done: the fates of the cut's records.
        records: where and why they are refused.
        run: the run.

    Raises:
        BadRecords: all of them are refused.
    """
    read = done.read - done.skipped
    if not 0 < done.quarantined == read:
        return
    others = engine.one(f"SELECT count(*) AS n FROM records WHERE _code IN ({', '.join(map(text, OF_OTHERS))})", records=records)
    if not int(str(others["n"])):
        raise _all_refused(engine, table, read, records, run)


def _all_refused(engine: Engine, table: Table, read: int, records: Relation, run: int) -> BadRecords:
    every = "the only record" if read == 1 else f"each of the {read} records"
    return BadRecords(
        f"{every} of table {table.name!r} cannot be applied in run {run}; nothing was committed; first: {_first(engine, records)}",
        expected="a record that can be: max_bad_share is about some of them",
        next_step=f"{_hint(engine, table, records)}compare the source's declaration with the file; mend the file or take it away, and run again",
    )


def _hint(engine: Engine, table: Table, records: Relation) -> str:
    """What the first refused records look like, if their texts are at hand."""
    if "_raw" not in records.columns:
        return ""
    some = f"SELECT _raw FROM records WHERE _raw IS NOT NULL ORDER BY _file, _line LIMIT {sources.SAMPLE}"
    return sources.hint(table.source, engine.query(some, records=records).here()["_raw"].to_pylist())


def _first(engine: Engine, records: Relation) -> str:
    """Where and why the first few records are refused, each reason once."""
    bad = "SELECT _code, _file, _line, _reason FROM records WHERE _code IS NOT NULL ORDER BY _file, _line LIMIT 5"
    places = dict[tuple[str, str], list[str]]()
    for r in engine.query(bad, records=records).here().to_pylist():
        places.setdefault((r["_code"], r["_reason"]), []).append(f"{r['_file']}:{r['_line']}")
    told = ((f"{code} at {at}: {reason}", others) for (code, reason), (at, *others) in places.items())
    return "; ".join(f"{first} (also at {', '.join(others)})" if others else first for first, others in told)


def check_rows(table: Table, kinds: EventCounts, run: int) -> None:
    """A snapshot without rows would delete everything.

    Raises:
        SnapshotEmpty: it has none.
    """
    if not kinds.read:
        raise SnapshotEmpty(
            f"the snapshot of table {table.name!r} has no rows in run {run}; nothing was committed",
            expected="at least one row: absence means deletion",
            next_step="write the snapshot again; to empty a table on purpose, delete its rows in a feed",
        )


def check_deletes(table: Table, done: Ingested, run: int) -> None:
    """A snapshot may not delete more than the stated share of the live rows.

    Raises:
        SnapshotShrunk: it would.
    """
    source = table.source
    assert isinstance(source, SnapshotSource)
    if done.implied > source.max_delete_share * done.live:
        raise SnapshotShrunk(
            f"the snapshot of table {table.name!r} would delete {done.implied} of {done.live} rows in run {run}; nothing was committed",
            expected=f"at most {source.max_delete_share:.0%} (max_delete_share)",
            next_step="check that the snapshot is complete; if it is, raise max_delete_share for one run",
        )

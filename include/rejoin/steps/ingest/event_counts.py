"""What an ingest counts of the events of a cut, by their kinds."""

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.engines.relation import Engine, Relation
from rejoin.plan.model.plan import Table
from rejoin.sources.events import ReadMark
from rejoin.statements.dialect import Dialect, aggregated, counted
from rejoin.steps.ingest.stream_records import FIRST_AFTER, OF_NO_WHOLE, READ


@dataclass(frozen=True)
class RecordCount:
    """So many records, and so many lines that they take."""

    records: int
    lines: int


@dataclass(frozen=True)
class EventCounts:
    """How many events of each kind a cut holds. ``unplaced``: without a position of their own (tombstones). ``lines``,
    ``quarantined_lines``: how many lines the records take, and the refused ones of them. ``absent``: without a column that they should have. ``reads``: rows of snapshots that
    say which rows there are; ``read_to``: the newest position of them. ``first_after``: the oldest position of the first transaction after a snapshot.
    """

    read: int
    lines: int
    quarantined_lines: int
    skipped: int
    quarantined: int
    quarantined_without_key: int
    truncates: int
    truncated: str | None
    incomplete: int
    adopted: int
    unplaced: int
    absent: int
    reads: int = 0
    read_to: str | None = None
    first_after: str | None = None

    def overtaken(self, stored: str = "") -> bool:
        """Whether the first transaction after a snapshot has changes with positions before it. ``stored``: the newest position of a row that a snapshot read."""
        return self.first_after is not None and self.first_after < max(stored, self.read_to or "")

    @property
    def whole(self) -> RecordCount:
        """All records."""
        return RecordCount(self.read, self.lines)

    @property
    def refused(self) -> RecordCount:
        """The refused ones."""
        return RecordCount(self.quarantined, self.quarantined_lines)

    @property
    def plain(self) -> bool:
        """Whether every record is skipped, or an upsert or delete that says all there is to say."""
        return not (self.quarantined or self.truncates or self.incomplete or self.unplaced or self.absent or self.overtaken())


def kind_counts(sql: Dialect, table: Table) -> dict[str, str]:
    """What ``EventCounts`` are made of, as aggregates over events."""
    missing, no_key = f"{sql.size('_missing')} > 0", f"{sql.name(table.key[0])} IS NULL"
    counts = {
        "skipped": "_kind = 'skipped'",
        "quarantined": "_kind = 'quarantined'",
        "quarantined_without_key": f"_kind = 'quarantined' AND {no_key}",
        "truncates": "_kind = 'truncate'",
        "incomplete": missing,
        "adopted": f"{missing} AND _old_key IS NOT NULL",
        "unplaced": "_kind IN ('upsert', 'delete') AND _position IS NULL",
        "absent": f"{sql.size('_absent')} > 0",
        "reads": READ,
    }
    return {
        "read": "count(*)",
        "lines": "coalesce(sum(_lines), 0)",
        "quarantined_lines": "coalesce(sum(CASE WHEN _kind = 'quarantined' THEN _lines END), 0)",
        "truncated": "max(CASE WHEN _kind = 'truncate' THEN _position END)",
        "read_to": f"max(CASE WHEN {READ} THEN _position END)",
        "first_after": f"min(CASE WHEN {FIRST_AFTER} THEN _position END)",
        **counted(counts),
    }


def alone(engine: Engine, table: Table, facts: Relation) -> bool:
    """Whether it is known that no two of many events have one key: then nothing has to be put in order."""
    if table.by_place:
        return True
    if not engine.in_process or facts.local is not None:
        return False
    distinct = f"SELECT count(*) FROM (SELECT DISTINCT {engine.sql.names(table.key)} FROM facts)"
    return bool(engine.one(f"SELECT count(*) = ({distinct}) AS alone FROM facts", facts=facts)["alone"])


_POSITIONS = ("truncated", "read_to", "first_after")


def count_kinds(engine: Engine, table: Table, events: Relation) -> EventCounts:
    """Counts the events of a cut by kind."""
    found = engine.one(aggregated(engine.sql, kind_counts(engine.sql, table), "events"), events=events)
    counts: dict[str, Any] = {
        name: value if name in _POSITIONS else int(value) for name, value in found.items()
    }  # DuckDB's sums are decimals
    return EventCounts(**counts)


def kinds_of(table: Table, events: pa.Table) -> EventCounts:
    """The same of events on the driver."""
    kind, missing = events["_kind"], pc.greater(pc.list_value_length(events["_missing"]), 0)

    def count(condition: pa.ChunkedArray) -> int:
        return int(pc.sum(condition).as_py() or 0)

    def has(name: str) -> pa.ChunkedArray:
        return pc.equal(kind, name)

    position, said = events["_position"], events["_snapshot"]
    read = pc.and_(pc.is_valid(said), pc.invert(pc.is_in(said, pa.array(OF_NO_WHOLE))))
    return EventCounts(
        read=events.num_rows,
        lines=count(events["_lines"]),
        quarantined_lines=count(events.filter(has("quarantined"))["_lines"]),
        skipped=count(has("skipped")),
        quarantined=count(has("quarantined")),
        quarantined_without_key=count(pc.and_(has("quarantined"), pc.is_null(events[table.key[0]]))),
        truncates=count(has("truncate")),
        truncated=pc.max(position.filter(has("truncate"))).as_py(),
        incomplete=count(missing),
        adopted=count(pc.and_(missing, pc.is_valid(events["_old_key"]))),
        unplaced=count(pc.and_(pc.or_(has("upsert"), has("delete")), pc.is_null(events["_position"]))),
        absent=count(pc.greater(pc.list_value_length(events["_absent"]), 0)),
        reads=count(read),
        read_to=pc.max(position.filter(read)).as_py(),
        first_after=pc.min(position.filter(pc.equal(said, str(ReadMark.AFTER)))).as_py(),
    )


def no_kinds() -> EventCounts:
    """Of a cut without events."""
    return EventCounts(0, 0, 0, 0, 0, 0, 0, None, 0, 0, 0, 0)


def with_replayed(cut: EventCounts, replayed: EventCounts) -> EventCounts:
    """Of a cut and of records that come again with it: those are not read in this run, but may be incomplete or without position."""
    incomplete, adopted = cut.incomplete + replayed.incomplete, cut.adopted + replayed.adopted
    return replace(cut, incomplete=incomplete, adopted=adopted, unplaced=cut.unplaced + replayed.unplaced)

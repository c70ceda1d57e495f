"""Records of a stream: which of them count."""

from collections.abc import Sequence
from dataclasses import dataclass

from rejoin.plan.model.plan import Table
from rejoin.sources.events import ReadMark
from rejoin.statements.dialect import Dialect, text
from rejoin.steps.ingest.fates import Fate

TOO_LATE = "TOO_LATE"
"""Quarantine code of a record that is older than its stream's retention allows."""
NO_TIME = "NO_EVENT_TIME"
"""Quarantine code of a record for which the expression of its stream's event time gives null, or has no value."""
OF_NO_WHOLE = (str(ReadMark.ADDED), str(ReadMark.AFTER))
"""The marks of events that no snapshot has read which says which rows there are."""
READ = f"(_snapshot IS NOT NULL AND _snapshot NOT IN ({', '.join(map(text, OF_NO_WHOLE))}))"
"""Of an event: a snapshot that says which rows there are read it."""
FIRST_AFTER = f"_snapshot = {text(ReadMark.AFTER)}"
"""Of an event: it is of the first transaction after a snapshot."""


@dataclass(frozen=True)
class Ages:
    """What decides whether a record is too old: of a stream with a retention, in microseconds, and of a snapshot within a feed.

    ``newest``: the newest stored event time; None: nothing is stored. ``taken``: records before it are refused in any case, since a compaction has let
    go of what they meet; None: there is no such time. ``floor``: the position of the newest whole snapshot; rows of earlier ones say nothing any more.
    """

    newest: int | None = None
    taken: int | None = None
    floor: str = ""

    @property
    def void(self) -> str:
        """SQL text: whether an event is a row of a snapshot before ``floor``."""
        return f"{READ} AND _position < {text(self.floor)}" if self.floor else "false"


ANY_AGE = Ages()
"""Of what is no stream, and in an empty one."""


def once(sql: Dialect, table: Table, columns: Sequence[str], known: str, *, alone: bool, ages: Ages) -> str:
    """The fates of a stream's records: one counts, the first of its id; whatever comes later for that id, a delete too, is its duplicate.

    What has no event time, where that is computed, never counts, and is quarantined. So is what is older than the retention allows, also what was
    told before: whether a compaction has let go of it since does not matter then. The newest record is that of all that came before, in this cut or
    an earlier one, so that it does not matter how records are cut into runs.

    Args:
        sql: the dialect.
        table: the stream.
        columns: those of the result, beside ``_fate``.
        known: SQL text of the events, with the stored ``_version`` of their ids.
        alone: no two events have one id.
        ages: which records are too old.
    """
    timeless, old = _timeless(sql, table), _old(sql, table, ages)
    group = f"{sql.names(table.key)}, _kind" + (f", {timeless}" if timeless else "") + (f", {old}" if old else "")
    first = f"row_number() OVER (PARTITION BY {group} ORDER BY _position ASC NULLS FIRST, _arrival ASC NULLS FIRST)"
    counts = "_version IS NULL AND _kind = 'upsert'" + ("" if alone else f" AND {first} = 1") + (f" AND NOT {old}" if old else "")
    fate = f"CASE WHEN {counts} THEN {text(Fate.APPLIED)} ELSE {text(Fate.DUPLICATE)} END"
    once = f"SELECT {sql.names(columns)}, {fate} AS _fate FROM ({known})"
    if timeless:
        reason = f"its event time is null, or cannot be computed: {table.computed_time}"
        once = _quarantined(sql, columns, f"SELECT *, {timeless} AS _bad FROM ({once})", NO_TIME, reason)
    late = [text_ for text_ in (old, _behind(sql, table)) if text_]
    if not late:
        return once
    marked = f"SELECT *, _kind = 'upsert' AND ({' OR '.join(late)}) AS _bad FROM ({once})"
    return _quarantined(sql, columns, marked, TOO_LATE, "it is older than the retention of its stream allows")


def _old(sql: Dialect, table: Table, ages: Ages) -> str:
    """Whether a record is too old by what earlier cuts have brought; empty if that says nothing."""
    limits = [] if ages.taken is None else [ages.taken]
    if ages.newest is not None and table.retention is not None:
        limits.append(ages.newest - table.retention)
    return f"coalesce({_micros(sql, table)} < {sql.cast(str(max(limits)), 'BIGINT')}, false)" if limits else ""


def _behind(sql: Dialect, table: Table) -> str:
    """Whether a record is too old by those that came before it in its cut and count; empty if any age will do."""
    if table.retention is None or table.event_time is None:
        return ""
    counted = f"CASE WHEN _fate = {text(Fate.APPLIED)} THEN {_micros(sql, table)} END"
    order = "ORDER BY _arrival ASC NULLS FIRST, _position ASC NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return f"coalesce({_micros(sql, table)} < max({counted}) OVER ({order}) - {sql.cast(str(table.retention), 'BIGINT')}, false)"


def _micros(sql: Dialect, table: Table) -> str:
    """A record's event time in microseconds."""
    assert table.event_time is not None
    zoned = next(c.type for c in table.columns if c.name == table.event_time) == "TIMESTAMP"
    return sql.time_micros(sql.name(table.event_time), zoned=zoned)


def _timeless(sql: Dialect, table: Table) -> str:
    """Whether a record has no event time though one is computed for each; empty where none is."""
    if table.computed_time is None or table.event_time is None:
        return ""
    return f"(_kind = 'upsert' AND {sql.name(table.event_time)} IS NULL AND NOT {sql.has('_missing', sql.literal(table.event_time))})"


def _quarantined(sql: Dialect, columns: Sequence[str], marked: str, code: str, reason: str) -> str:
    """``marked``, classified records with ``_bad`` -> the same, in which those that are bad are quarantined."""
    instead = {"_fate": text(Fate.QUARANTINED), "_code": text(code), "_reason": sql.literal(reason)}
    line = ", ".join(f"CASE WHEN _bad THEN {instead[c]} ELSE {c} END AS {c}" if c in instead else sql.name(c) for c in [*columns, "_fate"])
    return f"SELECT {line} FROM ({marked})"

"""Records of a stream: which of them count."""

from collections.abc import Sequence

from rejoin.plan.model import Table
from rejoin.stages.dialect import Dialect, text
from rejoin.stages.fates import Fate

TOO_LATE = "TOO_LATE"
"""Quarantine code of a record that is older than its stream's retention allows."""
NO_TIME = "NO_EVENT_TIME"
"""Quarantine code of a record for which the expression of its stream's event time gives null, or has no value."""


def once(sql: Dialect, table: Table, columns: Sequence[str], known: str, *, alone: bool, latest: int | None) -> str:
    """The fates of a stream's records: one counts, the first of its id; whatever comes later for that id, a delete too, is its duplicate.

    What has no event time, where that is computed, never counts, and is quarantined. So is what is older than the retention allows. The newest record is that of all that came before, in this cut or an earlier one, so that
    it does not matter how records are cut into runs.

    Args:
        sql: the dialect.
        table: the stream.
        columns: those of the result, beside ``_fate``.
        known: SQL text of the events, with the stored ``_version`` of their ids.
        alone: no two events have one id.
        latest: the newest stored event time, in microseconds; None: nothing is stored, or any age is taken.
    """
    timeless = _timeless(sql, table)
    group = f"{sql.names(table.key)}, _kind" + (f", {timeless}" if timeless else "")
    first = f"row_number() OVER (PARTITION BY {group} ORDER BY _position ASC NULLS FIRST, _arrival ASC NULLS FIRST)"
    counts = "_version IS NULL AND _kind = 'upsert'" + ("" if alone else f" AND {first} = 1")
    fate = f"CASE WHEN {counts} THEN {text(Fate.APPLIED)} ELSE {text(Fate.DUPLICATE)} END"
    once = f"SELECT {sql.names(columns)}, {fate} AS _fate FROM ({known})"
    if timeless:
        reason = f"its event time is null, or cannot be computed: {table.computed_time}"
        once = _quarantined(sql, columns, f"SELECT *, {timeless} AS _bad FROM ({once})", NO_TIME, reason)
    if table.retention is None or table.event_time is None:
        return once
    zoned = next(c.type for c in table.columns if c.name == table.event_time) == "TIMESTAMP"
    at = f"CASE WHEN _fate = {text(Fate.APPLIED)} THEN {sql.time_micros(sql.name(table.event_time), zoned=zoned)} END"
    so_far = (
        f"max({at}) OVER (ORDER BY _arrival ASC NULLS FIRST, _position ASC NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    before = so_far if latest is None else f"greatest({so_far}, {sql.cast(str(latest), 'BIGINT')})"
    late = f"coalesce({at} < {before} - {sql.cast(str(table.retention), 'BIGINT')}, false)"
    marked = f"SELECT *, {late} AS _bad FROM ({once})"
    return _quarantined(sql, columns, marked, TOO_LATE, "it is older than the retention of its stream allows")


def _timeless(sql: Dialect, table: Table) -> str:
    """Whether a record has no event time though one is computed for each; empty where none is."""
    if table.computed_time is None or table.event_time is None:
        return ""
    return f"(_kind = 'upsert' AND {sql.name(table.event_time)} IS NULL AND NOT {sql.has('_missing', text(table.event_time))})"


def _quarantined(sql: Dialect, columns: Sequence[str], marked: str, code: str, reason: str) -> str:
    """``marked``, classified records with ``_bad`` -> the same, in which those that are bad are quarantined."""
    instead = {"_fate": text(Fate.QUARANTINED), "_code": text(code), "_reason": text(reason)}
    line = ", ".join(f"CASE WHEN _bad THEN {instead[c]} ELSE {c} END AS {c}" if c in instead else sql.name(c) for c in [*columns, "_fate"])
    return f"SELECT {line} FROM ({marked})"

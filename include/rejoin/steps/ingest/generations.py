"""Snapshots within a feed, one after the other: what a cut has of them, how far they are after it, and the rows that a whole one did not bring. Pure.

All rows of a snapshot have one position, that of the log where it was taken, so a position is a *generation*. A connector that is killed in its first snapshot
takes another one, at a later position; rows deleted in between never get an event. Whatever is older than a generation that was read to its end, and was not
brought by it, is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rejoin.lake.ledger.generations import Generation, Generations
from rejoin.plan.model.plan import Table
from rejoin.sources.events import ReadMark
from rejoin.statements.dialect import Dialect, text
from rejoin.statements.own_columns import RECONCILED
from rejoin.steps.ingest.statements import event_columns
from rejoin.steps.ingest.stream_records import FIRST_AFTER, READ

_FIRST, _LAST = f"{ReadMark.FIRST} ", f"{ReadMark.LAST} "
_MARKED = f"(_snapshot LIKE {text(f'{_FIRST}%')} OR _snapshot LIKE {text(f'{_LAST}%')})"
_CHANGE = f"NOT {READ} AND {FIRST_AFTER} IS NOT TRUE AND _kind IN ('upsert', 'delete', 'truncate')"


@dataclass(frozen=True)
class Mark:
    """A beginning or an end. ``at``: its ``_arrival``."""

    position: str
    origin: str
    last: bool
    at: int


@dataclass(frozen=True)
class Reads:
    """What a cut has of snapshots.

    ``rows``: position of a generation -> how many rows; ``unmarked``: the newest position of rows of none that is known; ``oldest``, ``newest``: of changes. ``torn``: records
    before these were lost, of which some may have belonged to a snapshot within these.
    """

    marks: tuple[Mark, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    unmarked: str | None = None
    oldest: str | None = None
    newest: str | None = None
    torn: bool = False

    def endless(self) -> "Reads":
        """The same without the ends."""
        return replace(self, marks=tuple(m for m in self.marks if not m.last))


def marked(sql: Dialect, known: Sequence[str]) -> str:
    """``events`` -> how many rows each generation has (``_position``, ``_mark``, ``_rows``, ``_at``): of those that begin or end in this cut, and ``known`` ones."""
    mark, positions = f"CASE WHEN {_MARKED} THEN _snapshot END", f"_position IN (SELECT _position FROM events WHERE {_MARKED})"
    here = f"({positions} OR {_among(known)})"
    counted = f"count(*) AS _rows, {sql.cast('max(_arrival)', 'BIGINT')} AS _at"
    return f"SELECT _position, {mark} AS _mark, {counted} FROM events WHERE {READ} AND {here} GROUP BY _position, {mark}"


def others(generations: Sequence[str]) -> dict[str, str]:
    """Aggregates over ``events``: what ``Reads`` says beside rows and marks."""
    return {"unmarked": f"max(CASE WHEN {READ} AND NOT {_among(generations)} THEN _position END)", **_CHANGES}


_CHANGES = {f"{word}est": f"{how}(CASE WHEN {_CHANGE} THEN _position END)" for word, how in (("old", "min"), ("new", "max"))}


def _among(positions: Sequence[str]) -> str:
    return f"_position IN ({', '.join(map(text, positions))})" if positions else "false"


def reads(found: Sequence[Mapping[str, Any]], beside: Mapping[str, Any]) -> Reads:
    """What ``marked`` and ``others`` have found."""
    rows = dict[str, int]()
    for r in found:
        rows[r["_position"]] = rows.get(r["_position"], 0) + int(r["_rows"])
    marks = tuple(_mark(r["_position"], r["_mark"], r["_at"]) for r in found if r["_mark"] is not None)
    return Reads(marks, rows, **beside)


def _mark(position: str, mark: str, at: int) -> Mark:
    last = mark.startswith(_LAST)
    return Mark(position, mark.removeprefix(_LAST if last else _FIRST), last, int(at))


LOADED = {
    "read_from": f"min(CASE WHEN {READ} THEN _position END)",
    **{
        f"{how}_{word}": f"{how}(CASE WHEN _snapshot LIKE {text(f'{mark}%')} THEN _snapshot END)"
        for word, mark in (("first", _FIRST), ("last", _LAST))
        for how in ("min", "max")
    },
    **_CHANGES,
}
"""Aggregates over the events of a first load, which are looked at once."""


def loaded(found: Mapping[str, Any], rows: int, position: str | None) -> Reads | None:
    """The reads of a first load by its ``LOADED``, their number and newest position; None if there may be rows that its newest snapshot has deleted, or several captured tables."""
    marks = {found[f"{how}_{word}"] for how in ("min", "max") for word in ("first", "last")} - {None}
    oldest = found["oldest"]
    if position is None:
        return Reads(oldest=oldest, newest=found["newest"])
    made = tuple(_mark(position, mark, 0) for mark in marks)
    if found["read_from"] != position or len({m.origin for m in made}) > 1 or (oldest is not None and oldest < position):
        return None
    return Reads(made, {position: rows} if made else {}, None if made else position, oldest, found["newest"])


def followed(before: Generations | None, cut: Reads, run: int, *, empty: bool) -> Generations | None:
    """The generations of a table after a cut; None if it has none. Those as they were are equal to ``before``.

    Args:
        before: as of the run's base.
        cut: what the run reads.
        run: its number.
        empty: nothing is stored of the table.
    """
    origins = dict(before.origins) if before is not None else {}
    torn = _torn(None if before is None else before.torn, cut)
    for mark in sorted(cut.marks, key=lambda m: (m.position, m.last)):
        one = origins.get(mark.origin)
        if one is None or mark.position > one.begun:
            one = Generation(mark.position, run, 0, None if one is None else one.ended)
            if torn is not None and mark.last:
                torn = max(torn, mark.position)  # its beginning may be lost
        ends = mark.last and (torn is None or mark.position > torn)
        origins[mark.origin] = replace(one, ended=max(one.ended or "", mark.position)) if ends else one
    if not origins and torn is None:
        return None
    origins = {name: replace(g, rows=g.rows + cut.rows.get(g.begun, 0)) for name, g in origins.items()}
    positions = {g.begun for g in origins.values()} | {m.position for m in cut.marks}
    sole = len(positions) == 1 and torn is None and cut.unmarked is None and (cut.oldest is None or cut.oldest > min(positions))
    only = min(positions) if sole and (empty if before is None else positions == {before.only}) else None
    # The only row of the first of several tables begins its snapshot and does not end it; that changes come says that it has ended.
    lone = {n: g for n, g in origins.items() if not g.whole and g.rows == 1 and g.begun == only and (cut.newest or "") > g.begun}
    made = Generations(
        {**origins, **{n: replace(g, ended=g.begun) for n, g in lone.items()}}, only, None if before is None else before.since, torn=torn
    )
    return replace(made, since=run, torn=None) if made.floor > ("" if before is None else before.floor) else made


def torn(before: Generations) -> Generations:
    """The generations after records were lost: the newest snapshot of each captured table may lack rows, whatever comes of it later."""
    return replace(before, only=None, torn=max((before.torn or "", *(g.begun for g in before.origins.values()))))


def _torn(before: str | None, cut: Reads) -> str | None:
    """Up to which position the end of a snapshot says nothing, after a cut."""
    if not cut.torn:
        return before
    return max((before or "", cut.unmarked or "", *cut.rows, *(m.position for m in cut.marks)))


def uneven(before: Generations | None, cut: Reads) -> bool:
    """Whether a snapshot ends at a position at which none has begun, though one has begun before it: then its rows do not have one position, or the rows
    with which it begins are not there yet. But a table of which one row is left has an end and no beginning.
    """
    for end in (m for m in cut.marks if m.last):
        begun = {m.position: cut.rows.get(m.position, 0) for m in cut.marks if not m.last and m.origin == end.origin}
        known = None if before is None else before.origins.get(end.origin)
        if known is not None and not known.whole:
            begun[known.begun] = cut.rows.get(known.begun, 0) + known.rows
        earlier = {position: rows for position, rows in begun.items() if position < end.position}
        if end.position in begun or not earlier:
            continue
        apart = cut.unmarked is not None and min(earlier) < cut.unmarked < end.position
        if apart or cut.rows.get(end.position, 0) > 1 or 1 in earlier.values():
            return True
    return False


def reconciled(sql: Dialect, table: Table, floor: str, at: int, *, stored: bool) -> str:
    """``events`` plus a delete for every key that lives and whose newest version is older than ``floor``: the snapshot there, which was whole, did not bring it.

    The delete stands right behind that version, so that a change which arrives after the snapshot's end finds its place, whatever its position: one that
    was not committed when the snapshot was taken may be older than it. It has a null ``_arrival``: it is nobody's input record.

    Args:
        sql: the dialect.
        table: the table.
        floor: the position of the snapshot.
        at: the ``_arrival`` of its end. What arrived later says more than it.
        stored: ``stored``, the ``Versions`` of all keys, is an input. ``unread`` always is: keys that came with it in records that could not be read.
    """
    key, low = sql.names(table.key), text(floor)
    old = f"SELECT {key}, _position AS _at FROM events WHERE _kind = 'upsert' AND NOT {READ} AND _arrival <= {at} AND _position < {low}"
    if stored:
        old += f" UNION ALL SELECT {key}, _version FROM stored WHERE _row IS NOT NULL AND _version < {low}"
    brought = f"SELECT 1 FROM events AS e WHERE {sql.on(table.key, 'e', 'o')} AND e._position >= {low}"
    unread = f"SELECT 1 FROM unread AS u WHERE {sql.on(table.key, 'u', 'o')}"
    gone = f"SELECT {key}, max(_at) AS _at FROM ({old}) AS o WHERE NOT EXISTS ({brought}) AND NOT EXISTS ({unread}) GROUP BY {key}"
    made = {"_kind": "'delete'", **{k: sql.name(k) for k in table.key}, "_position": f"_at || {text(RECONCILED + floor)}"}
    made["_missing"] = sql.array([])
    columns = event_columns(table)
    line = ", ".join(f"{made.get(c, 'NULL')} AS {sql.name(c)}" for c in columns)
    return f"SELECT {sql.names(columns)} FROM events UNION ALL SELECT {line} FROM ({gone})"

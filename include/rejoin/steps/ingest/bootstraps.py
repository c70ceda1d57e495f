"""Snapshots within a feed whose rows have no place in the log: those that records of their own begin and end, as Maxwell's bootstraps.

Between its beginning and its end a feed has, of a table, nothing but the rows that the snapshot read, and everything before is older. So all rows of a
snapshot get one position, right behind the newest change that arrived before it began: then they are a generation (``generations``) like any other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rejoin.context.work import Work
from rejoin.engines.relation import Relation
from rejoin.errors import SnapshotAgain
from rejoin.lake.ledger.generations import Generations
from rejoin.plan.model.plan import Table
from rejoin.sources.events import ReadMark
from rejoin.sources.shapes.lines import positioned
from rejoin.statements.dialect import Dialect, text
from rejoin.statements.own_columns import BEHIND, RECONCILED
from rejoin.steps.ingest.statements import event_columns
from rejoin.steps.ingest.stream_records import READ

_FIRST = f"{ReadMark.FIRST} "
_NO_CHANGE = positioned(0)
"""The position that a snapshot stands behind before which no change was seen."""


@dataclass(frozen=True)
class Beginning:
    """Where a snapshot of ``origin`` begins: what arrives from ``at`` on has ``position``."""

    origin: str
    at: int
    position: str


def placed(work: Work, table: Table, events: Relation, before: Generations | None, *, in_order: bool) -> Relation:
    """The events of a cut in which all rows of a snapshot, its beginning and its end have one position. Rows whose beginning was never seen only add.

    Args:
        work: what the attempt works with.
        table: the table.
        events: those of the cut, some of which a snapshot has read.
        before: the generations as of the run's base.
        in_order: the parts of the cut were written one after the other; else rows of a snapshot that lie in several of them are in no order.

    Raises:
        SnapshotAgain: rows of one snapshot lie in several partitions.
    """
    if not in_order:
        _check_together(work, table, events)
    open_ = [] if before is None else [Beginning(name, 0, g.begun) for name, g in before.origins.items() if not g.whole]
    return work.engine.query(_placed(work.engine.sql, table, [*open_, *_begun(work, table, events)]), events=events)


def _begun(work: Work, table: Table, events: Relation) -> list[Beginning]:
    """The snapshots that begin in a cut, in their order."""
    starts = f"SELECT _arrival, _snapshot FROM events WHERE _snapshot LIKE {text(f'{_FIRST}%')} ORDER BY _arrival"
    found = work.engine.query(starts, events=events).here().to_pylist()
    if not found:
        return []
    each = ", ".join(f"max(CASE WHEN _arrival < {r['_arrival']} THEN _position END) AS at_{n}" for n, r in enumerate(found))
    newest = work.engine.one(f"SELECT {each} FROM events WHERE NOT {READ}", events=events)
    stored = None
    if work.before.has(table.name):
        stored = work.engine.one("SELECT max(_version) AS v FROM stored", stored=work.before.every(table.name, ["_version"]))["v"]
    known = "" if stored is None else re.split(f"[{RECONCILED}{BEHIND}]", str(stored))[0]
    run = work.facts.run.number
    return [
        Beginning(
            r["_snapshot"].removeprefix(_FIRST),
            int(r["_arrival"]),
            f"{max(newest[f'at_{n}'] or _NO_CHANGE, known)}{BEHIND}{run:010d}.{n:05d}",
        )
        for n, r in enumerate(found)
    ]


def _placed(sql: Dialect, table: Table, begun: Sequence[Beginning]) -> str:
    """``events`` -> the same, placed. ``begun``: in their order."""
    of = [(f"{_is(sql, b.origin)} AND _arrival >= {b.at}", text(b.position)) for b in reversed(begun)]
    known = " ".join(f"WHEN {here} THEN {position}" for here, position in of)
    at = f"CASE WHEN NOT {READ} THEN _position {known} ELSE _position END"
    told = f"CASE WHEN {READ} AND NOT ({' OR '.join(here for here, _ in of) or 'false'}) THEN {text(ReadMark.ADDED)} ELSE _snapshot END"
    shown = {"_position": at, "_snapshot": told}
    return f"SELECT {', '.join(f'{shown[c]} AS {c}' if c in shown else sql.name(c) for c in event_columns(table))} FROM events"


def _is(sql: Dialect, origin: str) -> str:
    return f"_snapshot IN ({', '.join(sql.literal(f'{mark} {origin}') for mark in (ReadMark.FIRST, ReadMark.ROW, ReadMark.LAST))})"


def _check_together(work: Work, table: Table, events: Relation) -> None:
    each = f"SELECT count(DISTINCT _file) AS n FROM events WHERE {READ} GROUP BY split_part(_snapshot, ' ', 2)"
    parts = work.engine.one(f"SELECT max(n) AS n FROM ({each})", events=events)["n"]
    if int(str(parts)) > 1:
        raise SnapshotAgain(
            f"records of a snapshot of table {table.name!r} come in {parts} partitions, in run {work.facts.run.number}, so nobody can say which of them come before "
            "its end; nothing was committed",
            expected="all records of a table in one partition, in their order, as Maxwell writes them with producer_partition_by=database or table",
            next_step="declare feed(..., snapshots='additive'): then rows of snapshots only add and update",
        )

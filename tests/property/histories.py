"""Random histories, and how they reach the files of each run: split, shuffled, repeated, late, with tombstones, noise and bad records.

A history is a sequence of changes over a few keys of every table. Histories of one topology never share a key, so each is an
experiment of its own and all together cost what one costs.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topologies import FEED, TableSpec
from values import random_value

Row = dict[str, Any]
Key = tuple[Any, ...]
Position = tuple[int, int, int]

NULL_KEY, LATE, REPEATED, TOMBSTONE, SAME_LSN, DELETE, BACK = 0.1, 0.1, 0.15, 0.4, 0.15, 0.22, 0.15


@dataclass(frozen=True)
class Event:
    """A change of one row: its new values, or None for a delete. ``position``: lsn, rank (0 if a snapshot read it), order."""

    table: str
    key: Key
    position: Position
    row: Row | None
    home: int
    """The run by which a snapshot shows the change. A feed delivers it then or later."""


@dataclass(frozen=True)
class Feed:
    """What the files of a feed bring in one run, in the order of the lines: an event, an event with its tombstone, or another line."""

    lines: tuple[tuple[str, Event | None], ...]
    """(what, event): what is ``event``, ``tombstone``, ``noise`` (skipped by a reader) or ``bad`` (quarantined)."""


@dataclass(frozen=True)
class Snapshot:
    """A full snapshot: rows in file order (equal ones may stand twice). ``spoiled``: keys whose row cannot be read."""

    rows: tuple[Row, ...]
    spoiled: frozenset[Key] = frozenset()


@dataclass(frozen=True)
class Deliveries:
    """Per run and table what arrives; a table that is not there has no new files. Several snapshots: only the last one counts."""

    runs: list[dict[str, Feed | list[Snapshot]]]


def histories(rng: random.Random, specs: Mapping[str, TableSpec], numbers: Sequence[int], runs: int) -> list[Event]:
    """The changes of all histories, each split into ``runs`` at its own random places."""
    return [event for number in numbers for event in _history(rng, specs, number, runs)]


def _history(rng: random.Random, specs: Mapping[str, TableSpec], number: int, runs: int) -> list[Event]:
    length = rng.randint(8, 16 + 8 * len(specs))
    cuts = sorted(rng.randint(0, length) for _ in range(runs - 1))
    made: list[Event] = []
    alive: dict[tuple[str, Key], Row] = {}
    past: dict[tuple[str, Key], list[Row]] = {}
    lsn, order = 1000, 0
    for index in range(length):
        spec = rng.choice(list(specs.values()))
        key = spec.key_of(number, rng.randrange(spec.domain))
        lsn, order = (lsn, order + 1) if index and rng.random() < SAME_LSN else (lsn + rng.randint(1, 9), 0)
        old, earlier = alive.pop((spec.name, key), None), past.setdefault((spec.name, key), [])
        row = rng.choice(earlier) if earlier and rng.random() < BACK else _next_row(rng, specs, spec, number, key, old)
        if row is not None:
            alive[spec.name, key] = row
            earlier.append(row)
        rank = 0 if index < length // 4 and order == 0 and row is not None else 1
        made.append(Event(spec.name, key, (lsn, rank, order), row, sum(index >= cut for cut in cuts)))
    return made


def _next_row(rng: random.Random, specs: Mapping[str, TableSpec], spec: TableSpec, number: int, key: Key, old: Row | None) -> Row | None:
    """A new row; of an existing one: often only some columns change, often only foreign keys, sometimes nothing, sometimes it goes."""
    new = dict(zip(spec.key, key, strict=True)) | {c: random_value(rng, spec.columns[c]) for c in spec.payload}
    for fk in spec.foreign_keys:
        new |= _reference(rng, specs[fk.target], fk.columns, number)
    if old is None:
        return None if rng.random() < 0.05 else new  # sometimes the delete of a row that never was
    draw = rng.random()
    if draw < DELETE:
        return None
    foreign = {c for fk in spec.foreign_keys for c in fk.columns}
    if draw < 0.55 and foreign:
        return old | {c: new[c] for c in foreign}
    changed = {c for c in (*foreign, *spec.payload) if rng.random() < 0.4}
    return old | {c: new[c] for c in spec.columns if c in changed}


def _reference(rng: random.Random, target: TableSpec, columns: Sequence[str], number: int) -> Row:
    """A foreign key: an existing key or not, dangling, null, or null in one of its parts."""
    row = dict(zip(columns, target.key_of(number, rng.randrange(target.domain + 1)), strict=True))
    own = [c for c in columns if c != "h"]
    if rng.random() < NULL_KEY:
        row |= dict.fromkeys(own if rng.random() < 0.6 else [rng.choice(own)])
    return row


# --- how changes arrive -----------------------------------------------------------------------------------------------


def deliveries(rng: random.Random, specs: Mapping[str, TableSpec], events: Sequence[Event], runs: int) -> Deliveries:
    """The changes as they arrive in ``runs`` runs."""
    made = Deliveries([{} for _ in range(runs)])
    for spec in specs.values():
        mine = [e for e in events if e.table == spec.name]
        for run, delivery in enumerate(_fed(rng, mine, runs) if spec.source == FEED else _shown(rng, spec, mine, runs)):
            if delivery is not None:
                made.runs[run][spec.name] = delivery
    return made


def at_once(rng: random.Random, specs: Mapping[str, TableSpec], split: Deliveries) -> Deliveries:
    """Everything that arrived in several runs, in one: feeds shuffled anew, of the snapshots the last one."""
    made: dict[str, Feed | list[Snapshot]] = {}
    for name, spec in specs.items():
        parts = [run[name] for run in split.runs if name in run]
        lines = [line for part in parts if isinstance(part, Feed) for line in part.lines if line[0] != "bad"]
        shown = [part for part in parts if isinstance(part, list)]
        if spec.source == FEED:
            made[name] = _shuffled(rng, lines)
        elif shown:
            made[name] = shown[-1]
    return Deliveries([made])


def _fed(rng: random.Random, events: Sequence[Event], runs: int) -> list[Feed | None]:
    """A feed: an event arrives in the run it belongs to or late, and sometimes again in the same or a later run."""
    arrived: list[list[tuple[str, Event | None]]] = [[] for _ in range(runs)]
    for event in events:
        first = rng.randrange(event.home, runs) if rng.random() < LATE else event.home
        times = [first] + [rng.randrange(first, runs)] * (rng.random() < REPEATED)
        for run in times:
            tombstone = event.row is None and rng.random() < TOMBSTONE
            arrived[run].append(("tombstone" if tombstone else "event", event))
    for lines in arrived:
        lines.extend([("noise", None)] * (rng.random() < 0.3) + [("bad", None)] * rng.choice([0, 0, 0, 1, 3]))
    return [_shuffled(rng, lines) if lines else None for lines in arrived]


def _shuffled(rng: random.Random, lines: list[tuple[str, Event | None]]) -> Feed:
    """A tombstone has no position: it stays right behind its delete, as in Kafka."""
    return Feed(tuple(rng.sample(lines, len(lines))))


def _shown(rng: random.Random, spec: TableSpec, events: Sequence[Event], runs: int) -> list[list[Snapshot] | None]:
    """Snapshots: the state after each run's changes, none in some runs, two in others (the first of them is passed over)."""
    made: list[list[Snapshot] | None] = []
    for run in range(runs):
        state: dict[Key, Row | None] = {e.key: e.row for e in events if e.home <= run}
        rows = [row for row in state.values() if row is not None]
        if run == 0 and not rows:  # the first snapshot has to have a row
            rows = [e.row for e in events if e.row is not None][:1]
        if not rows or (0 < run < runs - 1 and rng.random() < 0.3):
            made.append(None)
            continue
        now = _written(rng, spec, rows, spoil=run < runs - 1)
        made.append([_written(rng, spec, rows[: len(rows) // 2 + 1], spoil=False), now] if rng.random() < 0.2 else [now])
    return made


def _written(rng: random.Random, spec: TableSpec, rows: Sequence[Row], *, spoil: bool) -> Snapshot:
    numbers = {c for c in spec.payload if spec.columns[c] == "BIGINT"}
    spoiled = rng.choice(rows) if spoil and numbers and spec.source != "parquet" and rng.random() < 0.4 else None
    twice = [row for row in rows if row is not spoiled and rng.random() < 0.05]
    bad = frozenset() if spoiled is None else frozenset({tuple(spoiled[c] for c in spec.key)})
    every = [*rows, *twice]
    return Snapshot(tuple(rng.sample(every, len(every))), bad)

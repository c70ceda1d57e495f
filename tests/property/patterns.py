"""Which of the hard situations of a foreign-key join the random histories really hold: a test that never meets one proves nothing about it."""

from collections import Counter
from collections.abc import Mapping

from histories import Deliveries, Feed, Key, Row, Snapshot
from model import Model
from topologies import TableSpec

State = dict[str, dict[Key, Row]]
Arriving = Mapping[str, Feed | list[Snapshot]]

ALL = (
    "foreign key moved",
    "foreign key set to null",
    "foreign key set from null",
    "foreign key there and back over runs",
    "foreign key there and back within a run",
    "left row gone",
    "left row gone and inserted again",
    "left row gone and inserted again within a run",
    "right row gone under a left row",
    "right row gone and inserted again under a left row",
    "left and right row changed in one run",
    "left row moved to a right row that is new in the same run",
    "stale event alone in a run",
    "only unused columns changed",
)


def patterns(specs: Mapping[str, TableSpec], model: Model, arriving: Deliveries) -> Counter[str]:
    """How often each situation occurs while ``model`` (fresh) receives everything."""
    states: list[State] = [{name: {} for name in specs}]
    found: Counter[str] = Counter()
    for run in arriving.runs:
        fates = model.receive(run)
        states.append({name: dict(model.rows(name)) for name in specs})
        found["stale event alone in a run"] += sum(counts["stale"] for counts in fates.values())
        found["only unused columns changed"] += _unused(specs, states, fates)
        for spec in specs.values():
            _left(spec, states, found)
            _within(spec, run.get(spec.name), states, found)
            for fk in spec.foreign_keys:
                _reference(spec, specs[fk.target], fk.columns, states, found)
    return found


def _unused(specs: Mapping[str, TableSpec], states: list[State], fates: Mapping[str, Counter[str]]) -> int:
    changed = {n: sum(states[-2][n].get(k) not in (None, row) for k, row in states[-1][n].items()) for n in specs}
    return sum(bool(changed[n] and fates[n]["noop"]) for n in specs)


def _left(spec: TableSpec, states: list[State], found: Counter[str]) -> None:
    before, after = states[-2][spec.name], states[-1][spec.name]
    ever = {key for state in states[:-2] for key in state[spec.name]}
    found["left row gone"] += len(before.keys() - after.keys())
    found["left row gone and inserted again"] += len((after.keys() - before.keys()) & ever)


def _within(spec: TableSpec, delivery: Feed | list[Snapshot] | None, states: list[State], found: Counter[str]) -> None:
    """What happened to one row within a run and is no longer to be seen after it."""
    if not isinstance(delivery, Feed):
        return
    by_key: dict[Key, dict[tuple[int, int, int], Row | None]] = {}
    for _, event in delivery.lines:
        if event is not None:
            by_key.setdefault(event.key, {})[event.position] = event.row
    for key, events in by_key.items():
        old, now = states[-2][spec.name].get(key), states[-1][spec.name].get(key)
        if old is None or now is None:
            continue
        rows = list(events.values())
        found["left row gone and inserted again within a run"] += None in rows
        for fk in spec.foreign_keys:
            away = any(row is not None and _values(row, fk.columns) != _values(old, fk.columns) for row in rows)
            found["foreign key there and back within a run"] += away and _values(old, fk.columns) == _values(now, fk.columns)


def _reference(spec: TableSpec, target: TableSpec, columns: tuple[str, ...], states: list[State], found: Counter[str]) -> None:
    lefts, rights = [s[spec.name] for s in states], [s[target.name] for s in states]
    for key in lefts[-2].keys() & lefts[-1].keys():
        old, now = _values(lefts[-2][key], columns), _values(lefts[-1][key], columns)
        if old != now:
            kind = "set to null" if None in now else "set from null" if None in old else "moved"
            found[f"foreign key {kind}"] += 1
            found["foreign key there and back over runs"] += len(lefts) > 2 and key in lefts[-3] and _values(lefts[-3][key], columns) == now
            found["left row moved to a right row that is new in the same run"] += now in rights[-1] and now not in rights[-2]
        elif now in rights[-2] and now not in rights[-1]:
            found["right row gone under a left row"] += 1
        elif now in rights[-1] and now not in rights[-2] and any(now in earlier for earlier in rights[:-2]):
            found["right row gone and inserted again under a left row"] += 1
        if lefts[-2][key] != lefts[-1][key] and now in rights[-1] and rights[-1][now] != rights[-2].get(now):
            found["left and right row changed in one run"] += 1


def _values(row: Row, columns: tuple[str, ...]) -> Key:
    return tuple(row[c] for c in columns)

"""The state that the sources are in, computed from what arrived by plain Python: the highest position of a key wins."""

from collections import Counter
from collections.abc import Mapping

from histories import Event, Feed, Key, Position, Row, Snapshot
from topologies import TableSpec
from values import same

from rejoin.plan.model.plan import Plan


class Model:
    """All source tables after the runs so far."""

    def __init__(self, specs: Mapping[str, TableSpec], plan: Plan) -> None:
        self._specs = specs
        self._used = {t.name: t.used for t in plan.tables}
        self._rows: dict[str, dict[Key, Row]] = {name: {} for name in specs}
        self._newest: dict[tuple[str, Key], Position] = {}

    def rows(self, table: str) -> dict[Key, Row]:
        """The live rows of a table by key."""
        return self._rows[table]

    def receive(self, arriving: Mapping[str, Feed | list[Snapshot]]) -> dict[str, Counter[str]]:
        """Applies what arrives in a run. Returns per table how many records meet each fate (I4)."""
        made = {}
        for name, spec in self._specs.items():
            delivery = arriving.get(name)
            counts = self._fed(name, delivery) if isinstance(delivery, Feed) else Counter[str]()
            if isinstance(delivery, list) and delivery:
                counts = self._shown(spec, delivery[-1])
            made[name] = counts
        return made

    def _fed(self, table: str, feed: Feed) -> Counter[str]:
        counts: Counter[str] = Counter()
        cut: dict[Key, list[Event]] = {}
        for what, event in feed.lines:
            counts["read"] += 1 + (what == "tombstone")
            if event is None:
                counts["skipped" if what == "noise" else "quarantined"] += 1
            else:
                cut.setdefault(event.key, []).extend([event] * (1 + (what == "tombstone")))
        for key, events in cut.items():
            self._place(table, key, events, counts)
        return counts

    def _place(self, table: str, key: Key, events: list[Event], counts: Counter[str]) -> None:
        """Events of one key in one cut. A tombstone counts as a repetition of its delete."""
        stored = self._newest.get((table, key), (-1, 0, 0))
        fresh = {e.position: e for e in events if e.position > stored}
        counts["stale"] += sum(e.position < stored for e in events)
        counts["duplicate"] += sum(e.position == stored for e in events)
        counts["duplicate"] += sum(e.position > stored for e in events) - len(fresh)
        if fresh:
            counts["superseded"] += len(fresh) - 1
            newest = fresh[max(fresh)]
            self._newest[table, key] = newest.position
            counts["noop" if self._put(table, key, newest.row) else "applied"] += 1

    def _shown(self, spec: TableSpec, snapshot: Snapshot) -> Counter[str]:
        counts = Counter({"read": len(snapshot.rows), "quarantined": len(snapshot.spoiled)})
        seen: set[Key] = set()
        for row in snapshot.rows:
            key = tuple(row[c] for c in spec.key)
            if key in seen:
                counts["duplicate"] += 1
            elif key not in snapshot.spoiled:
                counts["noop" if self._put(spec.name, key, row) else "applied"] += 1
            seen.add(key)
        for key in self._rows[spec.name].keys() - seen:
            self._put(spec.name, key, None)
        return counts

    def _put(self, table: str, key: Key, row: Row | None) -> bool:
        """Stores a row or deletes it. True if no join can tell the difference."""
        rows = self._rows[table]
        old = rows.pop(key, None)
        if row is None:
            return old is None
        rows[key] = row
        return old is not None and all(same(old[c]) == same(row[c]) for c in self._used[table])

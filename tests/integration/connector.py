"""A table and the Debezium connector that captures it, which can be killed in its snapshot: what it writes, and what is true."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

PLACES = ("only", "first", "middle", "last")
"""Where the table stands among those of its connector."""
CAPTURED = "shop.shop.public.notes"
"""What the ledger calls the table."""


@dataclass
class Connector:
    """``rows``: the table as it is; ``lines``: what was written and not taken yet; ``committed``: where in the log the transaction before the next one was
    committed, None after a snapshot.
    """

    place: str = "only"
    rows: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    lsn: int = 100
    table: str = "notes"
    name: str = "shop"
    committed: int | None = None

    def put(self, key: int, body: str, *, seen: bool = True, lsn: int | None = None) -> None:
        """Inserts or updates a row. ``seen``: the connector streams; ``lsn``: of a change that was made before, and commits now."""
        self.lsn += 10
        self.rows[key] = body
        if seen:
            self.lines.append(self._event("u", key, lsn or self.lsn, "false"))
            self.committed = self.lsn

    def delete(self, key: int, *, seen: bool = True, lsn: int | None = None) -> None:
        """Deletes a row, if it is there; as ``put``."""
        self.lsn += 10
        if self.rows.pop(key, None) is not None and seen:
            self.lines += [self._event("d", key, lsn or self.lsn, "false"), json.dumps({"key": {"id": key}, "value": None})]
            self.committed = self.lsn

    def snapshot(self, upto: int | None = None, how: str = "") -> None:
        """Reads the table; ``upto``: is killed after so many rows. ``how``: the word on every row (``incremental``, or that of an old connector)."""
        self.lsn += 10
        self.committed = self.committed if how == "incremental" else None
        count = len(self.rows)
        for number, key in enumerate(sorted(self.rows)):
            if upto is not None and number >= upto:
                break
            self.lines.append(self._event("r", key, self.lsn, how or self._mark(number == 0, number == count - 1)))

    def _mark(self, first: bool, last: bool) -> str:
        """As ``RelationalSnapshotChangeEventSource.setSnapshotMarker`` does."""
        if last and self.place in ("only", "last"):
            return "last"
        if first and self.place in ("only", "first"):
            return "first"
        return "last_in_data_collection" if last else "first_in_data_collection" if first else "true"

    def _event(self, op: str, key: int, lsn: int, mark: str) -> str:
        source = {"connector": "postgresql", "name": self.name, "db": "shop", "schema": "public", "table": self.table, "lsn": lsn}
        source["sequence"] = json.dumps([None if self.committed is None else str(self.committed), str(lsn)], separators=(",", ":"))
        after = None if op == "d" else {"id": key, "body": self.rows[key]}
        value = {"before": None, "after": after, "source": {**source, "snapshot": mark}, "op": op}
        return json.dumps({"key": {"id": key}, "value": value}, separators=(",", ":"))

    def take(self, count: int | None = None) -> list[str]:
        """The oldest of the lines, which are written to a file now."""
        taken, self.lines = self.lines[:count], self.lines[len(self.lines) if count is None else count :]
        return taken


def of_six_rows() -> Connector:
    """One whose table has rows of which no change tells."""
    return Connector(rows={key: f"n{key}" for key in range(6)})


def history(chance: random.Random, connector: Connector, steps: int = 3) -> Iterator[bool]:
    """Makes a history; yields after every piece of it, whether the rows are those that all lines tell of.

    Snapshots are killed and taken again, rows change in between without events, changes come that were made before a snapshot and commit after
    it, and snapshots among the changes.
    """
    rows, fresh, number = connector.rows, iter(range(1000, 100_000)), iter(range(10_000))

    def unseen() -> None:
        for _ in range(chance.randrange(6)):
            key = chance.randrange(12)
            connector.delete(key, seen=False) if chance.random() < 0.6 else connector.put(key, f"v{next(number)}", seen=False)
        while len(rows) < 2:  # an empty table, and an only row of the first of several tables, say nothing
            connector.put(chance.randrange(12), f"v{next(number)}", seen=False)

    for _ in range(steps):
        for _ in range(chance.randrange(3)):
            unseen()
            connector.snapshot(chance.randrange(len(rows)))
            yield False
        open_, before = connector.lsn, set(rows)
        unseen()
        gone = sorted(before - set(rows))
        connector.snapshot()
        yield True
        if chance.random() < 0.5:
            connector.put(next(fresh), "made before the snapshot", lsn=open_ + 1)
        if chance.random() < 0.5:
            key = chance.choice(sorted(rows))
            connector.delete(key, lsn=open_ + 3) if chance.random() < 0.3 else connector.put(key, "of a row that was read", lsn=open_ + 3)
        if gone and chance.random() < 0.5:
            connector.put(chance.choice(gone), "again, made before the snapshot", lsn=open_ + 2)
        for _ in range(chance.randrange(8)):
            key = chance.randrange(12)
            connector.delete(key) if chance.random() < 0.4 else connector.put(key, f"v{next(number)}")
            if chance.random() < 0.1:
                connector.snapshot(how="incremental")
            yield True

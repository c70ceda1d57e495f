"""A table and the Maxwell that captures it, which can be killed in a bootstrap: what it writes, and what is true."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Bootstrapper:
    """``rows``: the table as it is; ``lines``: what was written and not taken yet. Changes that commit during a bootstrap come after it."""

    rows: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    at: int = 100
    table: str = "notes"
    _waiting: list[str] | None = None

    def put(self, key: int, body: str, *, seen: bool = True) -> None:
        """Inserts or updates a row. ``seen``: Maxwell streams."""
        self.at += 10
        kind, self.rows[key] = "update" if key in self.rows else "insert", body
        if seen:
            self._stream(self._event(kind, {"id": key, "body": body}, **({"old": {}} if kind == "update" else {})))

    def delete(self, key: int, *, seen: bool = True) -> None:
        self.at += 10
        body = self.rows.pop(key, None)
        if body is not None and seen:
            self._stream(self._event("delete", {"id": key, "body": body}))

    def begin(self) -> None:
        """A bootstrap begins: the rows are read as they are now."""
        self._waiting = []
        self._rows = sorted(self.rows.items())
        self.lines.append(self._event("bootstrap-start"))

    def bring(self, count: int | None = None) -> None:
        """So many of the rows, or the rest and the end of the bootstrap, behind which stands what was changed meanwhile."""
        taken, self._rows = self._rows[:count], self._rows[len(self._rows) if count is None else count :]
        self.lines += [self._event("bootstrap-insert", {"id": key, "body": body}) for key, body in taken]
        if count is None:
            self.lines += [self._event("bootstrap-complete"), *(self._waiting or [])]
            self._waiting = None

    def kill(self) -> None:
        """Maxwell is killed in a bootstrap; it goes on in the log where it was, and begins the bootstrap again."""
        if self._waiting is not None:
            self.lines += self._waiting
            self._waiting = None

    def bootstrap(self, upto: int | None = None) -> None:
        """A whole bootstrap; ``upto``: it is killed after so many rows."""
        self.begin()
        self.bring(upto)
        if upto is not None:
            self.kill()

    def _stream(self, line: str) -> None:
        (self.lines if self._waiting is None else self._waiting).append(line)

    def _event(self, kind: str, row: dict[str, Any] | None = None, **more: Any) -> str:
        own: dict[str, Any] = {"database": "shop", "table": self.table, "type": kind, "ts": 1450557744, "data": row or {}, **more}
        if not kind.startswith("bootstrap"):
            own |= {"xid": self.at, "commit": True, "position": f"mysql-bin.000003:{self.at}"}
        return json.dumps(own)

    def take(self, count: int | None = None) -> list[str]:
        """The oldest of the lines, which are written to a file now."""
        taken, self.lines = self.lines[:count], self.lines[len(self.lines) if count is None else count :]
        return taken


def history(chance: random.Random, maxwell: Bootstrapper, steps: int = 3) -> Iterator[bool]:
    """Makes a history; yields after every piece of it, whether the rows are those that all lines tell of.

    Bootstraps are killed and begin again, rows change meanwhile, and while Maxwell was away changes come that nobody tells of.
    """
    number = iter(range(10_000))

    def change(*, seen: bool) -> None:
        for _ in range(chance.randrange(6)):
            key = chance.randrange(12)
            maxwell.delete(key, seen=seen) if chance.random() < 0.5 else maxwell.put(key, f"v{next(number)}", seen=seen)

    for _ in range(steps):
        change(seen=False)
        for _ in range(chance.randrange(3)):
            maxwell.begin()
            change(seen=True)
            maxwell.bring(chance.randrange(len(maxwell.rows) + 1))
            yield False
            change(seen=True)
            maxwell.kill()
            change(seen=chance.random() < 0.5)
            yield False
        maxwell.begin()
        change(seen=True)
        maxwell.bring(chance.randrange(len(maxwell.rows) + 1))
        yield False
        maxwell.bring()
        yield True
        change(seen=True)
        yield True

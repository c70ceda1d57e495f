"""What the ledger knows of sinks: how far each is, and what every delivery came to.

The position that counts is the sink's own where it has one (moved in the sink's transaction). The ledger's copy is never ahead of it; it
shows the lag, says which changes are still needed, and tells a newer attempt from an older one.
"""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, and_, insert, select, update
from sqlalchemy.exc import IntegrityError

from rejoin.errors import LedgerConflict, SinkFenced
from rejoin.lake.ledger import schema as t
from rejoin.lake.ledger.ledger import NOTE, Ledger
from rejoin.lake.ledger.runs import RunKind, RunState


@dataclass(frozen=True)
class Cursor:
    """A sink in the ledger. ``position``: JSON, None before the first delivery; ``needs``: the oldest run whose data it still needs."""

    sink: str
    attempt: int
    position: str | None
    needs: int | None
    moved_at: float | None


@dataclass(frozen=True)
class Delivery:
    """One attempt to bring a sink up to date. ``upto``: the run that it is at then; ``failed``: why it is not at the newest one."""

    sink: str
    attempt: int
    records: int
    seconds: float
    upto: int | None
    failed: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


class Deliveries:
    """The sinks of one topology in its ledger. Every method is one transaction."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._topology = ledger, ledger.topology

    def begin(self, sink: str) -> Cursor:
        """A new attempt, which ends all older ones: they can move the cursor no more."""
        for _ in range(50):
            try:
                with self._ledger.transaction() as db:
                    row = self._row(db, sink)
                    if row is None:
                        db.execute(insert(t.cursors).values(topology=self._topology, sink=sink, attempt=1))
                        return Cursor(sink, 1, None, None, None)
                    raised = update(t.cursors).where(self._is(sink), t.cursors.c.attempt == row.attempt).values(attempt=row.attempt + 1)
                    if db.execute(raised).rowcount == 1:
                        return Cursor(sink, row.attempt + 1, row.position, row.needs, row.moved_at)
            except IntegrityError:  # two first attempts insert the same row
                continue
        raise LedgerConflict(f"sink {sink!r}: 50 attempts to begin a delivery met other processes", next_step="try again")

    def move(self, cursor: Cursor, position: str, needs: int | None) -> None:
        """Notes how far the sink is now.

        Raises:
            SinkFenced: a newer attempt has begun.
        """
        with self._ledger.transaction() as db:
            mine = update(t.cursors).where(self._is(cursor.sink), t.cursors.c.attempt == cursor.attempt)
            if db.execute(mine.values(position=position, needs=needs, moved_at=time.time())).rowcount != 1:
                raise fenced(cursor.sink)

    def end(self, delivery: Delivery) -> None:
        """Keeps what an attempt came to."""
        failed = None if delivery.failed is None else delivery.failed[:NOTE]
        values = {"records": delivery.records, "seconds": delivery.seconds, "upto": delivery.upto, "failed": failed}
        key = {"topology": self._topology, "sink": delivery.sink, "attempt": delivery.attempt}
        with self._ledger.transaction() as db:
            db.execute(insert(t.deliveries).values(**key, **values, detail=json.dumps(delivery.detail), ended_at=time.time()))

    def cursors(self) -> dict[str, Cursor]:
        """Every sink that was ever delivered to."""
        with self._ledger.transaction() as db:
            rows = db.execute(select(t.cursors).where(t.cursors.c.topology == self._topology))
            return {r.sink: Cursor(r.sink, r.attempt, r.position, r.needs, r.moved_at) for r in rows}

    def last(self, sink: str) -> Delivery | None:
        """What the newest finished attempt came to."""
        found = select(t.deliveries).where(t.deliveries.c.topology == self._topology, t.deliveries.c.sink == sink)
        with self._ledger.transaction() as db:
            row = db.execute(found.order_by(t.deliveries.c.attempt.desc()).limit(1)).first()
        if row is None:
            return None
        return Delivery(sink, row.attempt, row.records, row.seconds, row.upto, row.failed, json.loads(row.detail))

    def runs(self) -> list[int]:
        """The committed runs, without upkeep such as compactions, ascending."""
        found = select(t.runs.c.run).where(
            t.runs.c.topology == self._topology, t.runs.c.state == RunState.COMMITTED, t.runs.c.kind == RunKind.RUN
        )
        with self._ledger.transaction() as db:
            return [r.run for r in db.execute(found.order_by(t.runs.c.run))]

    def upkeep_between(self, after: int, upto: int) -> bool:
        """Whether anything but runs was committed in between; it may have changed an output."""
        within = and_(t.runs.c.topology == self._topology, t.runs.c.run > after, t.runs.c.run <= upto)
        found = select(t.runs.c.run).where(within, t.runs.c.state == RunState.COMMITTED, t.runs.c.kind != RunKind.RUN).limit(1)
        with self._ledger.transaction() as db:
            return db.execute(found).first() is not None

    def _is(self, sink: str):  # type: ignore[no-untyped-def]  # a SQLAlchemy condition
        return and_(t.cursors.c.topology == self._topology, t.cursors.c.sink == sink)

    def _row(self, db: Connection, sink: str) -> Row[tuple[object, ...]] | None:
        return db.execute(select(t.cursors).where(self._is(sink))).first()


def fenced(sink: str) -> SinkFenced:
    """The error of an attempt that a newer one has replaced."""
    return SinkFenced(
        f"a newer attempt delivers to sink {sink!r}; this one stopped, and what it had not committed was discarded",
        next_step="nothing: the newer attempt goes on from what was committed; see `rejoin sinks`",
    )

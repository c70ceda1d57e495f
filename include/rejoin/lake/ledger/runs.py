"""Runs as both tell of them: who writes the ledger (``records``), and who only reads it (``history``)."""

import json
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, inspect, select

from rejoin.lake.ledger import schema as t
from rejoin.lake.ledger.generations import Generations
from rejoin.plan.model.steps import parts


class RunKind(StrEnum):
    """What a run is for. Runs of all kinds share their numbers and one place: at most one of them is open."""

    RUN = "run"  # reads input and brings the outputs up to date
    COMPACT = "compact"  # folds old versions, lets records of streams go
    EXPIRE = "expire"  # frees what old runs left
    MEND = "mend"  # rewrites what an older rejoin stored wrong
    DROP = "drop"  # forgets what is kept aside of a source table
    ACCEPT = "accept"  # lets a source table go on whose source does not go on as it was read


class RunState(StrEnum):
    """How far a run is."""

    OPEN = "open"  # it may write
    COMMITTED = "committed"  # what it wrote is visible
    ABANDONED = "abandoned"  # closed; what it wrote stays invisible


def standing(state: RunState, note: str | None) -> str:
    """The state as people call it: an open run whose last try has failed reads ``failed``, though its owner may go on with it."""
    return "failed" if state == RunState.OPEN and note else str(state)


@dataclass(frozen=True)
class Loss:
    """A source table went on though records of it were lost: ``run`` accepted that, where runs stopped with ``code``."""

    run: int
    code: str


class CommittedRuns(ABC):
    """What the committed runs of one topology have left."""

    def __init__(self, topology: str) -> None:
        self.topology = topology

    @abstractmethod
    def _connected(self) -> AbstractContextManager[Connection]:
        """A connection to the ledger, in a transaction."""

    def committed(self) -> list[int]:
        """All committed runs, newest first."""
        found = select(t.runs.c.run).where(t.runs.c.topology == self.topology, t.runs.c.state == RunState.COMMITTED)
        with self._connected() as db:
            return [r.run for r in db.execute(found.order_by(t.runs.c.run.desc()))]

    def states(self, run: int | None) -> dict[str, int]:
        """Table -> snapshot id of a committed run; these ids are one cut over all tables. Empty for None."""
        if run is None:
            return {}
        with self._connected() as db:
            return self._states(db, run)

    def consumed(self, source: str) -> dict[str, int]:
        """Path -> size of all files of a source that committed runs have applied."""
        found = select(t.files.c.path, t.files.c.size).where(t.files.c.topology == self.topology, t.files.c.source == source)
        with self._connected() as db:
            return dict(db.execute(found).all())

    def last_pin(self, source: str) -> dict[str, Any] | None:
        """The newest pin of a source in a committed run that was not empty, or None."""
        row = self._newest_pin(source)
        return None if row is None else json.loads(row.pin)

    def generations(self, run: int | None) -> dict[str, Generations]:
        """Source table -> how far the snapshots within its feed were as of a committed run. Empty for None, and of a table whose feed had none."""
        with self._connected() as db:
            # Without the table nobody has written since an older rejoin.
            return self._generations(db, run) if inspect(db).has_table(t.generations.name) else {}

    def losses(self, run: int | None) -> dict[str, Loss]:
        """Source table -> its newest loss up to a committed run, unless a whole snapshot within its feed came after it."""
        of, joined = t.steps.c, and_(t.steps.c.topology == t.runs.c.topology, t.steps.c.run == t.runs.c.run)
        committed = (of.topology == self.topology, t.runs.c.state == RunState.COMMITTED, of.run <= (run or 0))
        found = select(t.steps).select_from(t.steps.join(t.runs, joined)).where(*committed, of.step.startswith(f"{RunKind.ACCEPT}."))
        with self._connected() as db:
            rows = db.execute(found.order_by(of.run)).all()
        told = {parts(r.step)[1]: (r.run, json.loads(r.detail)) for r in rows}
        lost = {name: Loss(at, detail["code"]) for name, (at, detail) in told.items() if detail["lossy"]}
        whole = self.generations(run) if lost else {}
        return {name: loss for name, loss in lost.items() if name not in whole or (whole[name].since or 0) < loss.run}

    def _generations(self, db: Connection, run: int | None) -> dict[str, Generations]:
        of, joined = t.generations.c, and_(t.generations.c.topology == t.runs.c.topology, t.generations.c.run == t.runs.c.run)
        committed = (of.topology == self.topology, t.runs.c.state == RunState.COMMITTED, of.run <= (run or 0))
        found = select(t.generations).select_from(t.generations.join(t.runs, joined)).where(*committed).order_by(of.run)
        return {r.source: Generations.of(json.loads(r.state)) for r in db.execute(found)}

    def _newest_pin(self, source: str) -> Row[tuple[object, ...]] | None:
        """What the ledger keeps of the pin that ``last_pin`` gives."""
        joined = t.pins.join(t.runs, and_(t.pins.c.topology == t.runs.c.topology, t.pins.c.run == t.runs.c.run))
        of_source = (t.pins.c.topology == self.topology, t.pins.c.source == source, t.pins.c.pin != "null")
        found = select(t.pins).select_from(joined).where(*of_source, t.runs.c.state == RunState.COMMITTED)
        with self._connected() as db:
            return db.execute(found.order_by(t.pins.c.run.desc()).limit(1)).first()

    def _is(self, table: Table, run: int) -> ColumnElement[bool]:
        return t.of_run(table, self.topology, run)

    def _states(self, db: Connection, run: int) -> dict[str, int]:
        return {r.table_name: r.snapshot_id for r in db.execute(select(t.states).where(self._is(t.states, run)))}

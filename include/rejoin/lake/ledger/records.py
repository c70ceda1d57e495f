"""What the ledger tells: runs, their steps, and which snapshots of all tables are one cut. Every method is one transaction."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, select
from sqlalchemy.exc import OperationalError

from rejoin.errors import LedgerConflict, RunBusy, RunSuperseded, RunUnknown
from rejoin.lake.ledger import schema as t
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.ledger.left_out_nodes import CommittedRun, LeftOutNode, behind
from rejoin.lake.ledger.run_owner import Life
from rejoin.lake.ledger.runs import CommittedRuns, RunKind, RunState, standing
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.step_results import Ending
from rejoin.plan.model.steps import parts

IDLE = "idle"
"""The attempt of a step that had nothing to do."""


@dataclass(frozen=True)
class Run:
    """One run as the ledger knows it. ``rebuild`` are the nodes that are made anew: their definition differs from the base run's, that run has left
    them out (but for those that keep what they saw: ``lake.ledger.left_out_nodes``), or the run repairs them.
    """

    topology: str
    number: int
    kind: RunKind
    state: RunState
    owner: str
    base: int | None
    plan: Plan
    rebuild: tuple[str, ...]
    opened_at: float
    closed_at: float | None
    note: str | None

    @property
    def standing(self) -> str:
        """The state as people call it."""
        return standing(self.state, self.note)


@dataclass(frozen=True)
class Write:
    """A table's snapshot that one attempt wrote. ``transient``: for the later steps of this run only."""

    table: str
    snapshot_id: int
    transient: bool = False


@dataclass(frozen=True)
class StepRecord:
    """What the winning attempt of a step registered. ``detail`` says how it was done: JSON-able, for people. ``generations``: what an ingest has made of
    those of its table, None if nothing else than they were; only on the way into the ledger, which tells them by themselves.
    """

    step: str
    counts: dict[str, int]
    seconds: float
    jobs: int | None
    detail: dict[str, Any] = field(default_factory=dict)
    ending: Ending = Ending.DONE
    generations: Generations | None = None

    @property
    def verb(self) -> str:
        """The step's verb; of a run of upkeep, its kind."""
        return parts(self.step)[0]

    @property
    def target(self) -> str:
        """The step's target, empty where it has none."""
        return parts(self.step)[1]

    @classmethod
    def of(cls, row: Row[tuple[object, ...]]) -> "StepRecord":
        """The record that a row of the ledger's table of steps keeps."""
        counts = json.loads(str(row.counts))
        ending = Ending(row.ending) if row.ending else _ending_by(counts)
        return cls(row.step, counts, row.seconds, row.jobs, json.loads(row.detail or "{}"), ending)


@dataclass(frozen=True)
class AttemptContext:
    """What an attempt has to know of its run: what it reads of every source, the cut that it starts from, what its steps have done so far, and
    which of its nodes earlier runs have left out and only take up what has come since; how far the snapshots within its feeds are; and when the run that it
    starts from was closed.
    """

    pins: dict[str, dict[str, Any] | None]
    base: dict[str, int]
    writes: dict[str, Write]
    steps: dict[str, StepRecord]
    behind: dict[str, LeftOutNode] = field(default_factory=dict)
    generations: dict[str, Generations] = field(default_factory=dict)
    since: float | None = None


@lru_cache(maxsize=64)
def _plan(text: str) -> Plan:
    """A plan never changes, and a run asks for it a dozen times."""
    return json_form.from_json(text)


def _ending_by(counts: Mapping[str, int]) -> Ending:
    """Of a step that an older rejoin registered: a run may be open while rejoin is upgraded. There, a count told it by being there."""
    told = {"held": Ending.KEPT, "held_before": Ending.PROPOSED, "left_out": Ending.DEFERRED}
    return next((ending for name, ending in told.items() if name in counts), Ending.DONE)


class Records(CommittedRuns):
    """The records of one topology in one database."""

    def __init__(self, url: str, topology: str) -> None:
        super().__init__(topology)
        self._engine = t.connected(url)

    def run(self, number: int) -> Run:
        """One run. Raises ``RunUnknown``."""
        with self.transaction() as db:
            return self._run(self._row(db, number))

    def open_run(self) -> Run | None:
        """The open run, if there is one."""
        with self.transaction() as db:
            row = self._open_row(db)
            return None if row is None else self._run(row)

    def newest(self, owner: str | None = None) -> Run | None:
        """The newest run, or the newest of an owner, whatever became of it."""
        found = select(t.runs).where(t.runs.c.topology == self.topology)
        mine = found if owner is None else found.where(t.runs.c.owner == owner)
        with self.transaction() as db:
            row = db.execute(mine.order_by(t.runs.c.run.desc()).limit(1)).first()
            return None if row is None else self._run(row)

    def kept(self, run: int) -> list[str]:
        """The nodes that a committed run left as they were, so that the next one makes up for it."""
        with self.transaction() as db:
            row = self._row(db, run)
            return sorted({n.name for n in self._run(row).plan.nodes} - set(json.loads(str(row.fingerprints))))

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        with self.transaction() as db:
            rows = db.execute(select(t.runs).where(t.runs.c.topology == self.topology).order_by(t.runs.c.run))
            return [self._run(r) for r in rows]

    def head(self) -> int | None:
        """The newest committed run."""
        with self.transaction() as db:
            return db.execute(select(t.topologies.c.head).where(t.topologies.c.topology == self.topology)).scalar()

    def not_rolled_forward(self) -> list[int]:
        """Closed runs whose branches still have to be fast-forwarded or dropped."""
        with self.transaction() as db:
            left = (t.runs.c.topology == self.topology, ~t.runs.c.rolled_forward, t.runs.c.state != RunState.OPEN)
            found = select(t.runs.c.run).where(*left).order_by(t.runs.c.run)
            return [r.run for r in db.execute(found)]

    def pins(self, run: int) -> dict[str, dict[str, Any] | None]:
        """What ``pin`` recorded."""
        with self.transaction() as db:
            return self._pins(db, run)

    def steps(self, run: int) -> dict[str, StepRecord]:
        """The steps that are registered, in the order in which they ended."""
        with self.transaction() as db:
            return self._steps(db, run)

    def writes(self, run: int) -> dict[str, Write]:
        """Table -> what the winning attempts of this run wrote."""
        with self.transaction() as db:
            return self._writes(db, run)

    def known(self, run: int, base: int | None) -> AttemptContext:
        """``pins``, ``writes`` and ``steps`` of a run, and the ``states`` of the one that it starts from."""
        with self.transaction() as db:
            states = {} if base is None else self._states(db, base)
            of_run = (self._pins(db, run), states, self._writes(db, run), self._steps(db, run), self._late(db, run))
            since = None if base is None else db.execute(select(t.runs.c.closed_at).where(self._is(t.runs, base))).scalar()
            return AttemptContext(*of_run, self._generations(db, base), since)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction. ``lake.ledger.deliveries`` keeps tables of its own beside these.

        Raises:
            LedgerConflict: the database did not answer.
        """
        try:
            with self._engine.begin() as db:
                yield db
        except OperationalError as error:
            raise LedgerConflict(f"the ledger of topology {self.topology!r} did not answer", next_step="try again") from error

    def _connected(self) -> AbstractContextManager[Connection]:
        return self.transaction()

    # --- inside a transaction -----------------------------------------------------------------------------------------

    def _pins(self, db: Connection, run: int) -> dict[str, dict[str, Any] | None]:
        return {r.source: json.loads(r.pin) for r in db.execute(select(t.pins).where(self._is(t.pins, run)))}

    def _steps(self, db: Connection, run: int) -> dict[str, StepRecord]:
        rows = db.execute(select(t.steps).where(self._is(t.steps, run)).order_by(t.steps.c.ended_at))
        return {r.step: StepRecord.of(r) for r in rows}

    def _writes(self, db: Connection, run: int) -> dict[str, Write]:
        rows = db.execute(select(t.writes).where(self._is(t.writes, run)))
        return {r.table_name: Write(r.table_name, r.snapshot_id, r.transient) for r in rows}

    def _prints(self, db: Connection, run: int | None) -> dict[str, str]:
        return {} if run is None else dict(json.loads(str(self._row(db, run).fingerprints)))

    def _late(self, db: Connection, run: int) -> dict[str, LeftOutNode]:
        row = self._row(db, run)
        found = self._behind(db, _plan(row.plan), json.loads(str(row.fingerprints)), row.base)
        return {name: late for name, late in found.items() if name not in json.loads(str(row.rebuild))}

    def _behind(self, db: Connection, plan: Plan, prints: Mapping[str, str], base: int | None) -> dict[str, LeftOutNode]:
        def lines() -> Iterator[CommittedRun]:
            at = base
            while at is not None:
                row = self._row(db, at)
                yield CommittedRun(at, _plan(row.plan), json.loads(str(row.fingerprints)))
                at = row.base

        return behind(plan, prints, lines())

    def _is_open(self, run: int) -> ColumnElement[bool]:
        return and_(self._is(t.runs, run), t.runs.c.state == RunState.OPEN)

    def _open_row(self, db: Connection) -> Row[tuple[object, ...]] | None:
        return db.execute(select(t.runs).where(t.runs.c.topology == self.topology, t.runs.c.state == RunState.OPEN)).first()

    def _row(self, db: Connection, run: int) -> Row[tuple[object, ...]]:
        row = db.execute(select(t.runs).where(self._is(t.runs, run))).first()
        if row is None:
            raise RunUnknown(f"topology {self.topology!r} has no run {run}", next_step="see `rejoin history`")
        return row

    def _run(self, row: Row[tuple[object, ...]]) -> Run:
        return Run(
            topology=self.topology,
            number=row.run,
            kind=RunKind(row.kind),
            state=RunState(row.state),
            owner=row.owner,
            base=row.base,
            plan=_plan(row.plan),
            rebuild=tuple(json.loads(row.rebuild)),
            opened_at=row.opened_at,
            closed_at=row.closed_at,
            note=row.note,
        )


def topologies(url: str) -> list[str]:
    """Names of all topologies that the ledger database knows."""
    with t.connected(url).begin() as db:
        return [r.topology for r in db.execute(select(t.topologies.c.topology).order_by(t.topologies.c.topology))]


def superseded(topology: str, run: int, note: str | None = None) -> RunSuperseded:
    """What a process is told whose run is closed. ``note``: that of the run, of which the first line says why."""
    why = (note or "").partition("\n")[0]
    return RunSuperseded(
        f"run {run} of topology {topology!r} is closed{f' ({why})' if why else ''}; this attempt changed nothing",
        next_step="nothing: another attempt or run has taken over (see `rejoin history`); or start again from the cut",
    )


def is_alive(life: Life, lease_until: float) -> bool:
    """Whether the owner of an open run may still work on it, by what is known of it, else by its lease."""
    return life is Life.ALIVE or (life is Life.UNKNOWN and lease_until >= time.time())


def busy(topology: str, row: Row[tuple[object, ...]]) -> RunBusy:
    """What a process is told that finds the open run of another one, alive. ``row``: that run's."""
    left = row.lease_until - time.time()
    lease = f"lease ends in {left:.0f} s" if left > 0 else "waiting for its next step"
    return RunBusy(
        f"run {row.run} of topology {topology!r} is open and alive (owner {row.owner}, {lease})",
        expected="one open run a topology",
        next_step=f"wait for it, or close it with `rejoin abandon --run {row.run}` (in Airflow: the DAG rejoin_abandon) if its process is gone",
    )

"""The ledger for readers: what people and pages ask about runs. Takes no lock, cannot write, and reads at most what it is asked for."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, Row, Select, and_, create_engine, event, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from rejoin.errors import LedgerConflict, RunUnknown
from rejoin.lake.ledger import schema as t
from rejoin.lake.ledger.connections import Connections
from rejoin.lake.ledger.records import StepRecord
from rejoin.lake.ledger.runs import CommittedRuns, RunKind, RunState, standing
from rejoin.lake.ledger.sqlite import is_sqlite
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.step_results import NET_CHANGES
from rejoin.plan.model.steps import Verb, step_id
from rejoin.plan.pin import Pin


@dataclass(frozen=True)
class StepLine:
    """A step that ended: what its winning attempt registered, and when."""

    record: StepRecord
    ended_at: float


@dataclass(frozen=True)
class RunLine:
    """A run and its steps, in the order in which these ended. ``lease_until`` 0: the owner said that it failed."""

    topology: str
    number: int
    kind: RunKind
    state: RunState
    owner: str
    lease_until: float
    base: int | None
    rebuild: tuple[str, ...]
    opened_at: float
    closed_at: float | None
    note: str | None
    steps: tuple[StepLine, ...]

    @property
    def standing(self) -> str:
        """The state as people call it."""
        return standing(self.state, self.note)

    def step(self, name: str) -> StepLine | None:
        """A step that ended, or None."""
        return next((s for s in self.steps if s.record.step == name), None)


@dataclass(frozen=True)
class Input:
    """What a run read of a source: paths and bytes of its files."""

    source: str
    run: int
    files: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Recomputed:
    """How long a run took to compute all rows of an output: ``rows`` that it compared, in the seconds of the output's steps."""

    run: int
    rows: int
    seconds: float


def heads(url: str) -> dict[str, int | None]:
    """Every topology that the ledger database knows, with its newest committed run. Empty when there is no ledger yet."""
    with reading(url) as db:
        if db is None:
            return {}
        found = select(t.topologies.c.topology, t.topologies.c.head).order_by(t.topologies.c.topology)
        return {r.topology: r.head for r in db.execute(found)}


def owned(url: str, owner_prefix: str, most: int) -> list[tuple[str, int, str]]:
    """(topology, run, owner) of the newest runs whose owner's text starts so, newest first."""
    with reading(url) as db:
        if db is None:
            return []
        columns = (t.runs.c.topology, t.runs.c.run, t.runs.c.owner)
        wanted = t.runs.c.owner.startswith(owner_prefix, autoescape=True)
        found = select(*columns).where(wanted).order_by(t.runs.c.opened_at.desc()).limit(most)
        return [(r.topology, r.run, r.owner) for r in db.execute(found)]


class History(CommittedRuns):
    """The runs of one topology."""

    def __init__(self, url: str, topology: str) -> None:
        super().__init__(topology)
        self._url = url

    def runs(self, limit: int, before: int | None = None) -> list[RunLine]:
        """The newest runs, newest first; only those with a smaller number than ``before``."""
        found = select(t.runs).where(t.runs.c.topology == self.topology).order_by(t.runs.c.run.desc()).limit(limit)
        return self._lines(found if before is None else found.where(t.runs.c.run < before))

    def run(self, number: int) -> RunLine:
        """One run. Raises ``RunUnknown``."""
        lines = self._lines(select(t.runs).where(t.runs.c.topology == self.topology, t.runs.c.run == number))
        if not lines:
            raise RunUnknown(f"topology {self.topology!r} has no run {number}", next_step="see `rejoin history`")
        return lines[0]

    def owners(self, limit: int) -> list[str]:
        """The owners of the newest runs, newest first."""
        found = select(t.runs.c.owner).where(t.runs.c.topology == self.topology).order_by(t.runs.c.run.desc()).limit(limit)
        with self._connected() as db:
            return [r.owner for r in db.execute(found)]

    def published(self) -> RunLine | None:
        """The newest committed run that is no compaction: what is visible is as of its input."""
        wanted = (t.runs.c.topology == self.topology, t.runs.c.state == RunState.COMMITTED, t.runs.c.kind == RunKind.RUN)
        lines = self._lines(select(t.runs).where(*wanted).order_by(t.runs.c.run.desc()).limit(1))
        return lines[0] if lines else None

    def plan(self, number: int) -> Plan:
        """The plan of a run. Raises ``RunUnknown``."""
        with self._connected() as db:
            text = db.execute(select(t.runs.c.plan).where(self._is(t.runs, number))).scalar()
        if text is None:
            raise RunUnknown(f"topology {self.topology!r} has no run {number}", next_step="see `rejoin history`")
        return json_form.from_json(text)

    def published_at(self, numbers: Sequence[int]) -> dict[int, float]:
        """When these runs were committed; a run that was not is left out."""
        wanted = (t.runs.c.topology == self.topology, t.runs.c.run.in_(numbers), t.runs.c.state == RunState.COMMITTED)
        with self._connected() as db:
            return {r.run: r.closed_at for r in db.execute(select(t.runs.c.run, t.runs.c.closed_at).where(*wanted))}

    def writes(self, number: int) -> dict[str, int]:
        """Table -> snapshot id that a run wrote, responses included."""
        with self._connected() as db:
            return {r.table_name: r.snapshot_id for r in db.execute(select(t.writes).where(self._is(t.writes, number)))}

    def writers(self, states: Mapping[str, int]) -> dict[str, int]:
        """Table -> the run that wrote its snapshot, for the tables and snapshot ids of ``states``."""
        wanted = (t.writes.c.topology == self.topology, t.writes.c.snapshot_id.in_(list(states.values())))
        with self._connected() as db:
            rows = db.execute(select(t.writes.c.table_name, t.writes.c.snapshot_id, t.writes.c.run).where(*wanted))
            return {r.table_name: r.run for r in rows if states.get(r.table_name) == r.snapshot_id}

    def inputs(self, number: int) -> list[Input]:
        """What a run read of each source that had something new."""
        with self._connected() as db:
            rows = db.execute(select(t.pins).where(self._is(t.pins, number)).order_by(t.pins.c.source)).all()
        return [i for i in map(_input, rows) if i is not None]

    def newest_input(self, source: str) -> Input | None:
        """What the newest committed run that found something new of a source read of it."""
        row = self._newest_pin(source)
        return None if row is None else _input(row)

    def open_run(self) -> RunLine | None:
        """The open run, if there is one."""
        lines = self._lines(select(t.runs).where(t.runs.c.topology == self.topology, t.runs.c.state == RunState.OPEN))
        return lines[0] if lines else None

    def fingerprints(self, number: int) -> dict[str, str]:
        """Output -> fingerprint of its definition, for the outputs that a committed run left up to date."""
        with self._connected() as db:
            found: dict[str, str] = json.loads(db.execute(select(t.runs.c.fingerprints).where(self._is(t.runs, number))).scalar() or "{}")
        return found

    def recomputed(self, node: str) -> Recomputed | None:
        """The newest committed run that computed all rows of an output, and found some."""
        joined = t.steps.join(t.runs, and_(t.steps.c.topology == t.runs.c.topology, t.steps.c.run == t.runs.c.run))
        names = [step_id(verb, node) for verb in (Verb.SUBSCRIBE, Verb.RESOLVE, Verb.VALIDATE)]
        wanted = (t.steps.c.topology == self.topology, t.steps.c.step.in_(names), t.runs.c.state == RunState.COMMITTED)
        with self._connected() as db:
            found = db.execute(select(t.steps).select_from(joined).where(*wanted).order_by(t.steps.c.run.desc())).all()
        for s in (s for s in found if s.step == step_id(Verb.RESOLVE, node)):
            rows = sum(json.loads(s.counts).get(n, 0) for n in (*NET_CHANGES, "unchanged"))
            if rows and json.loads(s.detail or "{}").get("refresh") == "full":
                return Recomputed(s.run, rows, sum(other.seconds for other in found if other.run == s.run))
        return None

    def _lines(self, found: Select[tuple[object, ...]]) -> list[RunLine]:
        with self._connected() as db:
            rows = db.execute(found).all()
            numbers = [r.run for r in rows]
            steps = select(t.steps).where(t.steps.c.topology == self.topology, t.steps.c.run.in_(numbers)).order_by(t.steps.c.ended_at)
            by_run: dict[int, list[StepLine]] = {n: [] for n in numbers}
            for s in db.execute(steps):
                by_run[s.run].append(StepLine(StepRecord.of(s), s.ended_at))
        return [_line(r, by_run[r.run]) for r in rows]

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with reading(self._url) as db:
            if db is None:
                raise RunUnknown(f"topology {self.topology!r}: there is no ledger yet", next_step="run it once: `rejoin run`")
            yield db


def _line(row: Row[tuple[object, ...]], steps: Sequence[StepLine]) -> RunLine:
    return RunLine(
        topology=row.topology,
        number=row.run,
        kind=RunKind(row.kind),
        state=RunState(row.state),
        owner=row.owner,
        lease_until=row.lease_until,
        base=row.base,
        rebuild=tuple(json.loads(row.rebuild)),
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        note=row.note,
        steps=tuple(steps),
    )


def _input(row: Row[tuple[object, ...]]) -> Input | None:
    pin = json.loads(row.pin)
    return None if pin is None else Input(row.source, row.run, tuple((part.id, part.size) for part in Pin.from_dict(pin).parts))


@contextmanager
def reading(url: str) -> Iterator[Connection | None]:
    """A connection that only reads; None when the ledger was not made yet."""
    place = make_url(url)
    if is_sqlite(place) and not (place.database and Path(place.database).is_file()):
        yield None
        return
    try:
        with connected(url).connect() as db:
            yield db if inspect(db).has_table(t.topologies.name) else None
    except OperationalError as error:
        raise LedgerConflict("the ledger could not be read", next_step="try again; if it stays, look at the ledger's database") from error


ENGINES = Connections[Engine](Engine.dispose)
"""Pools of connections of who reads."""


def connected(url: str) -> Engine:
    """One pool of connections a database and process, apart from the writers': these take no lock."""
    return ENGINES.of(url, url, lambda: _connected(url))


def _connected(url: str) -> Engine:
    if not is_sqlite(make_url(url)):
        return create_engine(url, pool_pre_ping=True, execution_options={"postgresql_readonly": True})
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def _settings(connection, _record):  # type: ignore[no-untyped-def]
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA query_only=ON")

    return engine

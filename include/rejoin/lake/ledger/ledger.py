"""The ledger: which run is open, what every attempt registered, and the one compare-and-swap that makes a run visible.

Invariants (docs/adr/0002):

* at most one run of a topology is open; run numbers are never reused;
* the first attempt of a step that registers wins; the others read what it wrote;
* ``publish`` is one transaction: the run becomes committed, the head moves, the snapshot ids of all tables are recorded;
* a closed run accepts nothing more: whoever comes late gets ``RunSuperseded``.

Wall clock is used for leases and for display, never to order data.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from rejoin.errors import LedgerConflict, RunCommitted
from rejoin.lake.ledger import schema as t
from rejoin.lake.ledger.records import IDLE, Records, Run, StepRecord, Write, busy, is_alive, superseded
from rejoin.lake.ledger.run_owner import Life
from rejoin.lake.ledger.runs import RunKind, RunState
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.plan.pin import Pin

LEASE_SECONDS = 60.0
"""How long a run counts as alive after its owner's last sign of life."""
NOTE = 2000
"""At most so many characters of an error are kept."""
NOBODY: Mapping[str, Life] = {}
"""Nothing is known of any owner."""


class Ledger(Records):
    """The ledger of one topology in one database. Every method is one transaction."""

    # --- opening and closing ------------------------------------------------------------------------------------------

    def open(
        self, owner: str, plan: Plan, fingerprints: dict[str, str], *, kind: RunKind = RunKind.RUN, lives: Mapping[str, Life] = NOBODY
    ) -> Run:
        """The owner's open run, or a new one on top of the head.

        Another owner's open run is abandoned if its owner is gone, or its lease ran out (at once where the owner said that it
        failed) and nothing more is known of it. ``lives`` is what is known of owners.

        Raises:
            RunBusy: another owner's run is alive.
            LedgerConflict: others opened and closed runs faster than we could look.
        """
        for _ in range(50):
            with suppress(IntegrityError), self.transaction() as db:  # two first runs insert the same topology row
                version, head = self._topology(db)
                current = self._open_row(db)
                if current is not None and current.owner == owner:
                    self._renew(db, current.run, note=None)
                    return self._run(self._row(db, current.run))
                if current is not None and is_alive(lives.get(current.owner, Life.UNKNOWN), current.lease_until):
                    raise busy(self.topology, current)
                if not self._swap(db, version, head):
                    continue
                if current is not None:
                    self._close(db, current.run, RunState.ABANDONED, current.note or f"taken over by {owner}")
                return self._insert_run(db, owner, plan, fingerprints, head, kind)
        raise LedgerConflict(f"topology {self.topology!r}: 50 attempts to open a run met other processes", next_step="try again")

    def publish(self, run: int, kept: Sequence[str] = ()) -> bool:
        """Makes a run visible. False if it was visible already.

        Args:
            run: the open run.
            kept: nodes that the run left as they were: the next run makes up for it.

        Raises:
            RunSuperseded: the run was abandoned; nothing was made visible.
        """
        with self.transaction() as db:
            row = self._row(db, run)
            if row.state == RunState.COMMITTED:
                return False
            closed = update(t.runs).where(self._is_open(run)).values(state=RunState.COMMITTED, closed_at=time.time())
            moved = (
                update(t.topologies)
                .where(t.topologies.c.topology == self.topology, t.topologies.c.head.is_not_distinct_from(row.base))
                .values(head=run, version=t.topologies.c.version + 1)
            )
            if db.execute(moved).rowcount != 1 or db.execute(closed).rowcount != 1:
                raise superseded(self.topology, run, row.note)
            found, before = json.loads(str(row.fingerprints)), self._prints(db, row.base)
            # What a compaction finds to be rebuilt, or behind, stays so.
            prints = {n: p for n, p in found.items() if n not in kept and (row.kind == RunKind.RUN or before.get(n) == p)}
            db.execute(update(t.runs).where(self._is(t.runs, run)).values(fingerprints=json.dumps(prints, sort_keys=True)))
            self._record_states(db, run, row.base)
            self._record_files(db, run)
            return True

    def abandon(self, run: int, note: str) -> None:
        """Closes an open run; what it wrote stays invisible and its input is taken by the next run.

        Raises:
            RunCommitted: the run is visible and stays.
            RunUnknown: no such run.
        """
        with self.transaction() as db:
            row = self._row(db, run)
            if row.state == RunState.COMMITTED:
                raise RunCommitted(
                    f"run {run} of topology {self.topology!r} is committed and cannot be abandoned",
                    next_step="correct the input; the next run publishes the correction",
                )
            version, head = self._topology(db)
            if row.state == RunState.OPEN and self._swap(db, version, head):
                self._close(db, run, RunState.ABANDONED, note)

    def fail(self, run: int, note: str, step: str = "") -> None:
        """The owner gives up for now: its lease ends; it may come back, any other owner may take over.

        Args:
            run: the run.
            note: why.
            step: the step that failed, where others may go on beside it: only another try of it takes the note away.
        """
        values = {"lease_until": 0.0, "note": note[:NOTE] + (_of_step(step) if step else "")}
        with self.transaction() as db:
            db.execute(update(t.runs).where(self._is_open(run)).values(**values))

    def began(self, run: int, step: str) -> None:
        """A try of a step begins, a sign of life. The run no longer counts as failed if it was this step that did.

        Raises:
            RunSuperseded: the run is closed.
        """
        mine = t.runs.c.note.endswith(_of_step(step), autoescape=True)
        with self.transaction() as db:
            self._renew(db, run, note=case((mine, None), else_=t.runs.c.note))
            of, now = self._is(t.tries, run) & (t.tries.c.step == step), time.time()
            again = update(t.tries).where(of).values(tries=t.tries.c.tries + 1, began_at=now, error=None)
            if db.execute(again).rowcount == 0:
                db.execute(insert(t.tries).values(topology=self.topology, run=run, step=step, tries=1, began_at=now))

    def tries(self, run: int, step: str) -> int:
        """How often a step was begun; 1 where an older rejoin did not count."""
        of = self._is(t.tries, run) & (t.tries.c.step == step)
        with self.transaction() as db:
            return int(db.execute(select(t.tries.c.tries).where(of)).scalar() or 1)

    def broke(self, run: int, step: str, error: str) -> None:
        """The newest try of a step has failed; ``error``: why."""
        of = self._is(t.tries, run) & (t.tries.c.step == step)
        with self.transaction() as db:
            db.execute(update(t.tries).where(of).values(error=error[:NOTE]))

    def renew(self, run: int, seconds: float = LEASE_SECONDS) -> None:
        """A sign of life: the lease starts anew.

        Raises:
            RunSuperseded: the run is closed.
        """
        with self.transaction() as db:
            self._renew(db, run, seconds)

    # --- within a run -------------------------------------------------------------------------------------------------

    def pin(self, run: int, pins: dict[str, dict[str, Any] | None]) -> None:
        """Records what the run reads of every source (JSON-able; None = nothing new). The first attempt wins."""
        with self.transaction() as db:
            self._renew(db, run)
            if not db.execute(select(t.pins.c.source).where(self._is(t.pins, run)).limit(1)).first() and pins:
                rows = [{"topology": self.topology, "run": run, "source": s, "pin": json.dumps(p)} for s, p in pins.items()]
                db.execute(insert(t.pins), rows)

    def register(self, run: int, record: StepRecord, attempt: str, writes: tuple[Write, ...]) -> bool:
        """Registers what an attempt of a step wrote. False if another attempt was first: its writes count, ours are garbage.

        Raises:
            RunSuperseded: the run is closed.
        """
        try:
            with self.transaction() as db:
                self._renew(db, run)
                db.execute(insert(t.steps).values(**self._step(run, record, attempt)))
                if record.generations is not None:
                    state = json.dumps(record.generations.to_dict())
                    db.execute(insert(t.generations).values(topology=self.topology, source=record.target, run=run, state=state))
                key = {"topology": self.topology, "run": run, "step": record.step}
                for w in writes:
                    db.execute(insert(t.writes).values(**key, table_name=w.table, snapshot_id=w.snapshot_id, transient=w.transient))
        except IntegrityError:
            return False
        return True

    def register_idle(self, run: int, records: Sequence[StepRecord]) -> bool:
        """Registers steps that had nothing to do and wrote nothing. False, and none of them, if another attempt has registered one.

        Raises:
            RunSuperseded: the run is closed.
        """
        with suppress(IntegrityError), self.transaction() as db:
            self._renew(db, run)
            db.execute(insert(t.steps), [self._step(run, record, IDLE) for record in records])
            return True
        return False

    def rolled_forward(self, run: int) -> None:
        """The tables now show what the ledger says of this run."""
        with self.transaction() as db:
            db.execute(update(t.runs).where(self._is(t.runs, run)).values(rolled_forward=True))

    def verified(self, run: int, differences: int, *, fast: bool) -> None:
        """The outputs as of a committed run were compared with their SQL; ``fast``: by stored hashes."""
        of = self._is(t.verified, run) & (t.verified.c.fast == fast)
        values = {"differences": differences, "ended_at": time.time()}
        with self.transaction() as db:
            if db.execute(update(t.verified).where(of).values(**values)).rowcount == 0:
                db.execute(insert(t.verified).values(topology=self.topology, run=run, fast=fast, **values))

    # --- inside a transaction -----------------------------------------------------------------------------------------

    def _step(self, run: int, record: StepRecord, attempt: str) -> dict[str, Any]:
        """The row of a step that ends now."""
        counted = {"counts": json.dumps(record.counts), "seconds": record.seconds, "jobs": record.jobs, "ended_at": time.time()}
        told = {"detail": json.dumps(record.detail), "ending": str(record.ending)}
        return {"topology": self.topology, "run": run, "step": record.step, "attempt": attempt, **counted, **told}

    def _topology(self, db: Connection) -> tuple[int, int | None]:
        row = db.execute(select(t.topologies).where(t.topologies.c.topology == self.topology)).first()
        if row is None:
            db.execute(insert(t.topologies).values(topology=self.topology, version=0, head=None))
            return 0, None
        return row.version, row.head

    def _swap(self, db: Connection, version: int, head: int | None) -> bool:
        """The compare-and-swap, which also takes the row's lock until the transaction ends."""
        of = t.topologies.c
        at = and_(of.topology == self.topology, of.version == version, of.head.is_not_distinct_from(head))
        return db.execute(update(t.topologies).where(at).values(version=version + 1)).rowcount == 1

    def _renew(self, db: Connection, run: int, seconds: float = LEASE_SECONDS, **also: Any) -> None:
        """``also``: other columns of the run that get a value."""
        values = {"lease_until": time.time() + seconds, **also}
        alive = update(t.runs).where(self._is_open(run)).values(**values)
        if db.execute(alive).rowcount != 1:
            raise superseded(self.topology, run, db.execute(select(t.runs.c.note).where(self._is(t.runs, run))).scalar())

    def _close(self, db: Connection, run: int, state: RunState, note: str) -> None:
        db.execute(update(t.runs).where(self._is(t.runs, run)).values(state=state, closed_at=time.time(), note=note))

    def _insert_run(self, db: Connection, owner: str, plan: Plan, fingerprints: dict[str, str], head: int | None, kind: RunKind) -> Run:
        last = db.execute(select(func.max(t.runs.c.run)).where(t.runs.c.topology == self.topology)).scalar() or 0
        before, late = self._prints(db, head), self._behind(db, plan, fingerprints, head)
        rebuild = sorted(n for n, f in fingerprints.items() if (before.get(n) != f and n not in late) or n in plan.repair)
        now = time.time()
        db.execute(
            insert(t.runs).values(
                topology=self.topology,
                run=last + 1,
                kind=kind,
                state=RunState.OPEN,
                owner=owner,
                lease_until=now + LEASE_SECONDS,
                base=head,
                plan=json_form.to_json(plan),
                rebuild=json.dumps(rebuild),
                fingerprints=json.dumps(fingerprints, sort_keys=True),
                opened_at=now,
                rolled_forward=False,
            )
        )
        return self._run(self._row(db, last + 1))

    def _record_states(self, db: Connection, run: int, base: int | None) -> None:
        found = {} if base is None else {r.table_name: r.snapshot_id for r in db.execute(select(t.states).where(self._is(t.states, base)))}
        written = db.execute(select(t.writes).where(self._is(t.writes, run), ~t.writes.c.transient))
        found |= {r.table_name: r.snapshot_id for r in written}
        rows = [{"topology": self.topology, "run": run, "table_name": n, "snapshot_id": s} for n, s in found.items()]
        if rows:
            db.execute(insert(t.states), rows)

    def _record_files(self, db: Connection, run: int) -> None:
        for row in db.execute(select(t.pins).where(self._is(t.pins, run))).all():
            pin = json.loads(row.pin)
            files = () if pin is None else Pin.from_dict(pin).files
            if not files:
                continue
            # A path that is known already is of this run from now on.
            at = (t.files.c.topology == self.topology, t.files.c.source == row.source, t.files.c.path == bindparam("given"))
            db.execute(delete(t.files).where(*at), [{"given": part.id} for part in files])
            of_run = {"topology": self.topology, "source": row.source, "run": run}
            db.execute(insert(t.files), [{**of_run, "path": f.id, "size": f.size, "sha256": f.place["sha256"]} for f in files])


def _of_step(step: str) -> str:
    """The last line of the note of a step that failed."""
    return f"\n  step: {step}"

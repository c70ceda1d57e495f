"""The parts of a run: open, cut, each step, publish, roll forward.

The same functions serve one process that does everything (``schedule``) and a scheduler that does one step per task.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rejoin import crash
from rejoin.context.progress import SILENT, Progress
from rejoin.context.topology_lake import TopologyLake
from rejoin.errors import InvariantBroken, LedgerConflict, RunUnknown
from rejoin.failures import extras
from rejoin.failures.engine_errors import named_errors
from rejoin.lake.config import LakeConfig
from rejoin.lake.ledger import run_owner
from rejoin.lake.ledger.records import IDLE, Run, StepRecord, Write, superseded
from rejoin.lake.ledger.runs import RunKind, RunState
from rejoin.plan.change.compatibility import left_behind
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Plan, Table
from rejoin.plan.model.policy import RunOptions
from rejoin.plan.model.step_results import Ending
from rejoin.plan.model.steps import Step, Verb, step_id, steps
from rejoin.plan.sql import suspects
from rejoin.steps.publish import roll_forward as rolling
from rejoin.steps.run import opening
from rejoin.steps.run.lease import trying, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.lake.ledger.deliveries import Delivery
    from rejoin.sources import SourceAccess
    from rejoin.steps.deliver.catch_up import Restart
    from rejoin.steps.run.step_input import AttemptStart

MOST_IGNORED = 20
"""So many paths that a cut did not look into are named; all are counted."""
PARALLEL_SOURCES = 8
"""Sources that a cut looks at side by side: it waits for brokers, catalogs and stores more than for cores."""
OPENINGS = 5
"""Attempts to open a run while others commit theirs."""

EVERYTHING = RunOptions()
"""A run without special wishes."""


def _as_it_is(plan: Plan, _: int) -> Plan:
    return plan


class Topology(TopologyLake):
    """A topology's plan on a lake: everything a run needs except Spark.

    Args:
        plan: what to run.
        config: where the lake is.
        root: where relative source paths start.
        life: what is known of the owner of somebody else's open run.
    """

    def __init__(self, plan: Plan, config: LakeConfig, root: str, life: Callable[[str], run_owner.Life] = run_owner.life) -> None:
        super().__init__(plan, config)
        self.root, self._life = root, life

    @cached_property
    def access(self) -> "SourceAccess":
        """How the sources are reached."""
        from rejoin.lake.source_access import source_access

        return source_access(self.config, self.root)

    def open(self, who: str, options: RunOptions = EVERYTHING, progress: Progress = SILENT) -> Run:
        """The owner's open run, if it was opened with these options, or a new one; finishes first what a crash left between a commit and its
        roll-forward.

        Raises:
            RunBusy: somebody else's run is open and alive.
            SchemaRefused: stored rows cannot become what the plan says.
            SetupError: a package is missing that the plan needs.
        """
        from rejoin.steps.run.mend import mend

        extras.require_for_run(self.plan)
        current = self.ledger.open_run()
        if current is None or current.owner != who:
            mend(self, lambda work: self.upkeep(f"{who} mends", RunKind.MEND, work), progress)
        if options.repair:
            return self._open(who, lambda last, _: last.to_repair(options.repair), RunKind.RUN)
        return self._open(who, self.plan.with_options(options), RunKind.RUN)

    def mine(self, who: str) -> Run:
        """The owner's newest run, which its cut has opened; committed if all is done.

        Raises:
            RunUnknown: the owner never opened one.
            RunSuperseded: it was abandoned.
        """
        run = self.ledger.newest(who)
        if run is None:
            raise RunUnknown(f"{who} has no run of topology {self.plan.topology!r}", next_step="do its cut first")
        if run.state == RunState.ABANDONED:
            raise superseded(run.topology, run.number, run.note)
        return run

    def upkeep(self, who: str, kind: RunKind, work: Callable[[Run], None], planned: Callable[[Plan, int], Plan] = _as_it_is) -> Run:
        """A whole run that reads no input (a compaction, an expiry ...) and keeps the plan of the last committed run, or what ``planned`` makes
        of that plan and the number of that run.

        Raises:
            RunBusy: a run is open and alive.
        """
        run = self._open(who, planned, kind)
        with working(self.ledger, run), named_errors(f"{kind} of topology {run.topology!r} in run {run.number}"):
            work(run)
            self.publish(run)
        return self.ledger.run(run.number)

    def _open(self, who: str, plan: Plan | Callable[[Plan, int], Plan], kind: RunKind) -> Run:
        """``plan``: the plan, or what makes it of that of the run which this one starts from."""
        for _ in range(OPENINGS):
            self.roll_forward()
            current = self.ledger.open_run()
            lives = {} if current is None or current.owner == who else {current.owner: self._life(current.owner)}
            past = opening.of_ledger(self.ledger, opening.stored_columns(lambda: self.refs))
            if past is None:
                self.refs.ensure_namespace()
            made = self._on(past, plan, kind)
            if current is not None and current.owner == who and current.kind == kind == RunKind.RUN and _asks_otherwise(current.plan, made):
                self.ledger.abandon(current.number, f"{who} asks for other options")
            run = self.ledger.open(who, made, {n.name: fingerprint(made, n) for n in made.nodes}, kind=kind, lives=lives)
            if run.base == (None if past is None else past.head):
                crash.point("open:opened")
                if current is not None and current.number != run.number:
                    self.roll_forward(run.number)  # the run that was taken over: what it has changed goes before this one writes
                return run
            # The plan was made for another base: a compaction with the plan before an edit would take its new columns away again.
            self.ledger.abandon(run.number, f"run {run.base} was committed while this one was opened")
        raise LedgerConflict(
            f"topology {self.plan.topology!r}: {OPENINGS} attempts to open a run met runs that were committed", next_step="try again"
        )

    def _on(self, past: opening.PastRuns | None, plan: Plan | Callable[[Plan, int], Plan], kind: RunKind) -> Plan:
        """The plan of a run that starts from the newest committed run."""
        last = self.plan if past is None else past.plan(past.head)
        if callable(plan):
            return plan(last.to_repair(()), 0 if past is None else past.head)
        if past is None:
            return plan
        from rejoin.plan.check import expectations

        opening.refuse(past, plan)
        return plan.with_replay(expectations.changed(last, plan) if kind == RunKind.RUN else ()).with_horizons(last.horizons)

    def cut(self, run: Run, note: str = "") -> StepRecord:
        """Pins what every source reads in this run. A repeated cut keeps the first one's pins."""
        done = self.ledger.steps(run.number).get(Verb.CUT)
        if done is not None:
            return done
        with trying(self.ledger, run, Verb.CUT):
            return self._cut(run, note)

    def _cut(self, run: Run, note: str) -> StepRecord:
        from rejoin import sources
        from rejoin.sources import Pin, Waiting
        from rejoin.steps.run.going_on import going_on

        started, found = time.monotonic(), dict[str, dict[str, Any] | None]()
        ignored, left, warnings = list[str](), dict[str, int](), list[str]()

        def look(table: Table) -> Waiting:
            return Waiting(None) if run.plan.repair else sources.waiting(table, self.access, *going_on(self, run, table))

        with ThreadPoolExecutor(PARALLEL_SOURCES) as pool:
            for table, there in zip(run.plan.tables, pool.map(look, run.plan.tables), strict=True):
                found[table.name] = None if there.pin is None else there.pin.to_dict()
                ignored += there.ignored
                warnings += there.warnings
                left |= {table.name: there.left} if there.left else {}
        self.ledger.pin(run.number, found)
        crash.point("cut:pinned")
        pins = [Pin.from_dict(p) for p in self.ledger.pins(run.number).values() if p is not None]
        counts = {
            "files": sum(len(p.parts) for p in pins if p.records is None),
            "bytes": sum(p.size for p in pins if p.records is None),
            "superseded_snapshots": sum(p.superseded for p in pins),
            "ignored": len(set(ignored)),
        }
        if records := sum(p.records or 0 for p in pins):
            counts["records"] = records
        detail: dict[str, Any] = {"note": note} if note else {}
        if ignored:
            detail["ignored"] = sorted(set(ignored))[:MOST_IGNORED]
        detail |= {"left": left} if left else {}
        detail |= {"warnings": warnings} if warnings else {}
        if run.base is not None and (gone := left_behind(self.ledger.run(run.base).plan, run.plan)):
            detail["left_behind"] = {"names": gone, "as_of": run.base}
        return self._register(run, StepRecord(Verb.CUT, counts, time.monotonic() - started, 0, detail), "cut")

    def stage(self, spark: "Callable[[], SparkSession]", run: Run, step: Step, progress: Progress = SILENT) -> StepRecord:
        """Does one stage of an open run, or returns what the attempt that was first registered.

        ``spark`` is called only if the step has work for it.
        """
        from rejoin.steps.run.step_input import StepInput

        started, start = time.monotonic(), self.start(run)
        if (done := start.known.steps.get(step.id)) is not None:
            return done
        of_step = named_errors(start.called(step), suspects.of_step(run.plan, step.verb, step.target))
        with trying(self.ledger, run, step.id), of_step:
            idle = StepInput(start, lambda: self.refs).nothing_to_do(step)
            if idle is None:
                from rejoin.steps.run.placed_step import StepAttempts

                doing = StepAttempts(start, self.refs, spark, progress)
                outcome, jobs, waited, attempt = doing.done(step), doing.jobs, doing.waited, doing.attempt
            else:
                outcome, jobs, waited, attempt = idle, 0, 0.0, IDLE
        made, seconds = outcome.result, time.monotonic() - started - waited
        record = StepRecord(step.id, made.counts, seconds, jobs, outcome.detail, made.ending, outcome.generations)
        return self._register(run, record, attempt, outcome.writes)

    def start(self, run: Run) -> "AttemptStart":
        """What an attempt at a step of an open run starts from."""
        from rejoin.steps.run.step_input import AttemptStart

        return AttemptStart(self.config, run, self.ledger.known(run.number, run.base), self.access)

    def publish(self, run: Run) -> StepRecord:
        """The commit, and its roll-forward. Idempotent.

        Raises:
            InvariantBroken: a step is not registered.
            RunSuperseded: the run was abandoned.
        """
        started, made = time.monotonic(), self.ledger.steps(run.number)
        lacking = [s.id for s in steps(run.plan) if s.verb not in (Verb.PUBLISH, Verb.DELIVER) and s.id not in made]
        if lacking and run.kind == RunKind.RUN:
            raise InvariantBroken(
                f"run {run.number} cannot be published: {', '.join(lacking)} did not end", next_step="run these steps first"
            )
        step = Step(Verb.PUBLISH, "", ())
        counts = {"tables": sum(not w.transient for w in self.ledger.writes(run.number).values())}
        counts["changes"] = sum(
            made[step_id(Verb.VALIDATE, n.name)].counts["changes"] for n in run.plan.nodes if run.kind == RunKind.RUN and n.published
        )
        if step.id not in made:
            self.ledger.began(run.number, step.id)
            self._register(run, StepRecord(step.id, counts, 0.0, 0), "publish")
        crash.point("publish:before")
        kept = [n.name for n in run.plan.nodes if run.kind == RunKind.RUN and made[step_id(Verb.RESOLVE, n.name)].ending is Ending.KEPT]
        self.ledger.publish(run.number, kept)
        crash.point("publish:committed")
        self.forget_recent()
        self.roll_forward()
        return StepRecord(step.id, counts, time.monotonic() - started, 0)

    def deliver(self, sink: str, restart: "Restart | None" = None) -> "Delivery":
        """Brings a sink (``output.sink``) up to date with the newest committed run. No run has to be open. See ``rejoin.steps.deliver.step``."""
        from rejoin.steps.deliver.step import deliver

        return deliver(self, sink, restart)

    def roll_forward(self, opened: int | None = None) -> None:
        """Makes every table show what the ledger says, for all closed runs that are not finished. Idempotent, needs no Spark.

        ``opened``: the run that the caller has just opened. While another one is open, what an abandoned run has left stays until the next call.
        """
        for number in self.ledger.not_rolled_forward():
            if rolling.finished(self, self.ledger.run(number), opened):
                self.ledger.rolled_forward(number)

    def drop_garbage(self) -> None:
        """Drops branches that attempts of closed runs left behind (a zombie that wrote after its run was closed)."""
        newest, current = self.ledger.newest(), self.ledger.open_run()  # in this order: who opens a run in between has a higher number

        def closed(run: int) -> bool:
            return newest is not None and run <= newest.number and (current is None or run != current.number)

        for table in self.refs.tables():
            self.refs.drop_branches(table, closed)

    def _register(self, run: Run, record: StepRecord, attempt: str, writes: tuple[Write, ...] = ()) -> StepRecord:
        """What the first attempt has registered: this one, or another."""
        crash.point(f"{record.step}:registering")
        first = self.ledger.register(run.number, record, attempt, writes)
        crash.point(f"{record.step}:registered")
        return record if first else self.ledger.steps(run.number)[record.step]


def _asks_otherwise(pinned: Plan, plan: Plan) -> bool:
    """Whether the options of a run have made something else of a plan: steps that ended under the old ones may not fit."""
    before = {n.name: n.policy for n in pinned.nodes}
    asked = (pinned.replay, pinned.repair) != (plan.replay, plan.repair)
    return asked or any(before.get(n.name, n.policy) != n.policy for n in plan.nodes)

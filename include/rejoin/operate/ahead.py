"""What the next run of a topology will do to a lake, and how much of it: read from the ledger, from metadata and from sources. Writes nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rejoin.errors import RejoinError, SnapshotExpired
from rejoin.lake.config import LakeConfig
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.ledger.history import History, Recomputed, RunLine, heads
from rejoin.lake.ledger.runs import Loss
from rejoin.plan.change.outlook import Outlook, Stored, outlook, rows_at_most
from rejoin.plan.model.plan import Plan
from rejoin.steps.run import opening

if TYPE_CHECKING:
    from rejoin.lake.iceberg.refs import Refs
    from rejoin.sources import SourceAccess

COMPARABLE = 10
"""The time of an earlier run is scaled to at most so many times its rows: small runs say little about large ones."""


@dataclass(frozen=True)
class StoredSize:
    """What metadata says of a stored table. ``rows``: of a source table with old versions, so at least its rows; None: its snapshot is gone."""

    rows: int | None
    bytes: int


@dataclass(frozen=True)
class Recompute:
    """An output of which all rows are computed.

    ``rows``: of its left side before new input, at most (None: not known); ``bytes``: of the stored tables that are read for it; ``earlier``: an
    earlier run that did the same.
    """

    name: str
    rows: int | None
    bytes: int
    earlier: Recomputed | None

    @property
    def seconds(self) -> float | None:
        """By the pace of the earlier run; None without one that is comparable."""
        if self.earlier is None or self.rows is None or self.rows > COMPARABLE * self.earlier.rows:
            return None
        return self.earlier.seconds * max(1.0, self.rows / self.earlier.rows)


@dataclass(frozen=True)
class Waiting:
    """What a run that starts now would read of a source. ``skipped``: snapshots that a newer one replaces; ``records``: of topics, at most; ``bytes``: about;
    ``left``: records that later runs read; ``warnings``: sentences for people.
    """

    table: str
    files: int = 0
    bytes: int = 0
    skipped: int = 0
    error: RejoinError | None = None
    records: int | None = None
    left: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ahead:
    """The outlook with numbers. ``open_run``: a run that is open now; ``waiting`` is empty if nobody asked for it; ``generations``, ``losses``: of
    the newest run.
    """

    outlook: Outlook
    sizes: Mapping[str, StoredSize] = field(default_factory=dict)
    work: tuple[Recompute, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    open_run: RunLine | None = None
    generations: Mapping[str, Generations] = field(default_factory=dict)
    losses: Mapping[str, Loss] = field(default_factory=dict)

    @property
    def refused(self) -> tuple[RejoinError, ...]:
        """Why the next run would stop: by its definition, or by its input."""
        return (*self.outlook.refused, *(w.error for w in self.waiting if w.error is not None))


def compared(plan: Plan, config: LakeConfig | None) -> Outlook:
    """What the definition alone makes of the lake.

    Args:
        plan: to run.
        config: the lake; None: there is none yet.
    """
    past = None if config is None else opening.of_lake(config.ledger, plan.topology, opening.stored_columns(partial(_refs, config, plan)))
    return outlook(
        plan, None if past is None or config is None else _stored(past, plan, History(config.ledger, plan.topology).fingerprints)
    )


def measured(plan: Plan, config: LakeConfig | None, found: Outlook, access: "SourceAccess | None") -> Ahead:
    """The outlook of this plan with numbers.

    Args:
        plan: to run.
        config: the lake, as above.
        found: what ``compared`` has said.
        access: how sources are reached; None: they are not looked at. New files are read once, for their checksums.
    """
    history = None
    if config is not None and plan.topology in heads(config.ledger):
        history = History(config.ledger, plan.topology)
    sizes = {} if config is None or history is None or found.run is None else _sizes(config, history, found.run, plan)
    waiting = () if access is None else tuple(_waiting(plan, history, t.name, access) for t in plan.tables)
    work = _work(plan, found, sizes, history)
    if history is None:
        return Ahead(found, sizes, work, waiting)
    of, lost = history.generations(found.run), history.losses(found.run)
    known = {t.name: of[t.name] for t in plan.tables if t.name in of}
    return Ahead(found, sizes, work, waiting, history.open_run(), known, {t.name: lost[t.name] for t in plan.tables if t.name in lost})


def _of_waiting(waiting: Waiting) -> dict[str, Any]:
    found: dict[str, Any] = {"table": waiting.table, "files": waiting.files, "bytes": waiting.bytes, "skipped_snapshots": waiting.skipped}
    found |= {"warnings": list(waiting.warnings)} if waiting.warnings else {}
    return found if waiting.records is None else {**found, "records": waiting.records, "left": waiting.left}


def to_dict(ahead: Ahead) -> dict[str, Any]:
    """The same as data: what ``--json`` prints."""
    work, found = {w.name: w for w in ahead.work}, ahead.outlook
    entries = []
    for e in found.entries:
        one: dict[str, Any] = {"name": e.name, "kind": e.kind, "change": e.change, "why": list(e.why), "asks": e.asks}
        if e.name in ahead.sizes:
            one |= {"stored_rows": ahead.sizes[e.name].rows, "stored_bytes": ahead.sizes[e.name].bytes}
        if e.name in work and e.computed:
            w = work[e.name]
            earlier = None if w.earlier is None else {"run": w.earlier.run, "rows": w.earlier.rows, "seconds": round(w.earlier.seconds, 3)}
            seconds = None if w.seconds is None else round(w.seconds, 3)
            one |= {"computed_rows": w.rows, "read_bytes": w.bytes, "earlier": earlier, "seconds": seconds}
        entries.append(one)
    waiting = [_of_waiting(w) for w in ahead.waiting]
    refused = [{"code": e.code, "what": e.what, "expected": e.expected, "next_step": e.next_step} for e in ahead.refused]
    return {
        "topology": found.topology,
        "newest_run": found.run,
        "open_run": None if ahead.open_run is None else ahead.open_run.number,
        "entries": entries,
        "waiting": waiting,
        "losses": {name: vars(loss) for name, loss in ahead.losses.items()},
        "incomplete": {name: g.incomplete for name, g in ahead.generations.items() if g.incomplete},
        "refused": refused,
        "asks": found.asks,
    }


def _stored(past: opening.PastRuns, plan: Plan, prints: Callable[[int], Mapping[str, str]]) -> Stored:
    had = {name: (number, old) for name, number, old in past.meanings(plan)}
    newest = prints(past.head)
    made: dict[str, tuple[int, Plan]] = {}
    for name, (number, old) in had.items():
        if not old.is_table(name) and name not in newest:
            by = next((n for n in past.committed() if n <= number and name in prints(n)), None)
            made |= {} if by is None else {name: (by, past.plan(by))}
    return Stored(past.head, past.plan(past.head), newest, had, made, past.columns)


def _refs(config: LakeConfig, plan: Plan) -> "Refs":
    from rejoin.lake.iceberg.refs import Refs

    return Refs(config, plan.topology)


def _sizes(config: LakeConfig, history: History, run: int, plan: Plan) -> dict[str, StoredSize]:
    """Of the plan's tables and outputs that are stored."""
    from rejoin.lake.iceberg.snapshot_files import files_of

    refs, states = _refs(config, plan), history.states(run)
    found = {}
    for name in [n for n in plan.names if n in states]:
        try:
            files = files_of(refs.require(name, states[name]), states[name])
        except SnapshotExpired:
            found[name] = StoredSize(None, 0)
            continue
        stored = sum(f.file_size_in_bytes for f in (*files.data, *files.deletes))
        found[name] = StoredSize(files.rows if plan.is_table(name) else files.live, stored)
    return found


def _work(plan: Plan, found: Outlook, sizes: Mapping[str, StoredSize], history: History | None) -> tuple[Recompute, ...]:
    computed = [e.name for e in found.entries if e.computed]
    known = {name: size.rows for name, size in sizes.items() if name not in computed}
    made = []
    for name in computed:
        node = plan.node(name)
        read = {*node.reads, name}
        size = sum(sizes[t].bytes for t in read if t in sizes)
        earlier = None if history is None else history.recomputed(name)
        made.append(Recompute(name, rows_at_most(plan, node.left.table, known), size, earlier))
    return tuple(made)


def _waiting(plan: Plan, history: History | None, name: str, access: "SourceAccess") -> Waiting:
    from rejoin.sources import Pin, waiting

    last = None if history is None else history.last_pin(name)
    try:
        there = waiting(
            plan.table(name),
            access,
            None if last is None else Pin.from_dict(last),
            lambda: {} if history is None else history.consumed(name),
        )
    except RejoinError as error:
        return Waiting(name, error=error)
    pin = there.pin
    if pin is None:
        return Waiting(name, warnings=there.warnings)
    files = 0 if pin.records else len(pin.parts)
    return Waiting(name, files, pin.size, pin.superseded, records=pin.records, left=there.left, warnings=there.warnings)

"""What the pages show, as data: made by ``gather``, drawn by ``render``."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rejoin.lake.ledger.history import Input, RunLine, StepLine
from rejoin.lake.ledger.tries import StepTries, Verified
from rejoin.lake.query.bounded_looks import Added, Newest, Refused, Skew
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import Verb, step_id
from rejoin.report.samples import RowChange, Sample
from rejoin.why.answer import Answer

RELEASED = "R"
"""The ``_op`` of a row of a quarantine table that says: what was held back of this key no longer is."""


class Kind(StrEnum):
    """What a table is to a topology."""

    SOURCE = "source"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    SUBSCRIPTIONS = "subscriptions"
    CHANGES = "changes"
    QUARANTINE = "quarantine"
    OTHER = "other"


@dataclass(frozen=True)
class Rows:
    """How many rows a reader sees. ``exact`` False: at most so many. ``value`` None: not known."""

    value: int | None
    exact: bool = True
    why: str = ""


@dataclass(frozen=True)
class Change:
    """The newest committed run that changed a table's rows, and how: (name, count). None that lies too far back is known."""

    run: int
    at: float | None
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class TableLine:
    """A table as of the newest committed run. ``stored``: rows with old versions and hidden ones."""

    name: str
    kind: Kind
    rows: Rows
    stored: int | None = None
    bytes: int | None = None
    files: int | None = None
    delete_files: int | None = None
    written_by: int | None = None
    change: Change | None = None


@dataclass(frozen=True)
class Fresh:
    """A source's newest consumed input. ``taken_at``: when the cut of the run that read it ended."""

    source: str
    input: Input | None
    taken_at: float | None
    published_at: float | None


@dataclass(frozen=True)
class TopologyLine:
    """A topology in the overview. ``published``: its newest committed run that is no compaction."""

    name: str
    newest: RunLine | None
    published: RunLine | None
    sources: int | None
    outputs: int | None


@dataclass(frozen=True)
class Pace:
    """A committed run in the sparkline: how long it took, and how many rows of outputs it changed."""

    run: int
    seconds: float
    changes: int


@dataclass(frozen=True)
class Status:
    """How a topology is, in a few numbers.

    ``within``: seconds after which it is no longer fresh; ``aside``: rows and records that are kept aside by table, and whether the number
    is exact; ``paces``: oldest first; ``open``: the open run; ``incomplete``: source tables with a snapshot in their feed that was not read to its end, and
    the run that read its first row.
    """

    published_at: float | None
    within: float
    verified: Verified | None
    aside: tuple[tuple[str, Rows], ...]
    paces: tuple[Pace, ...]
    open: RunLine | None
    incomplete: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class TopologyPage:
    """A topology: its tables, its freshness, its newest runs."""

    name: str
    plan: Plan
    status: Status
    published: RunLine | None
    looked_at: float | None
    tables: tuple[TableLine, ...]
    fresh: tuple[Fresh, ...]
    runs: tuple[RunLine, ...]
    more: bool


@dataclass(frozen=True)
class StepRow:
    """A step of a run; ``line`` None: it has not ended; ``tried`` None: it was not begun, or an older rejoin did not count."""

    step: str
    line: StepLine | None
    tried: StepTries | None


@dataclass(frozen=True)
class Written:
    """A table that a run wrote, and what its snapshot added (None: beyond retention). ``kept`` False: for the run's own steps only."""

    table: str
    added: Added | None
    kept: bool


@dataclass(frozen=True)
class RunPage:
    """One run, step by step. ``plan`` None: it is a compaction or the like; ``visible``: the tables that have a page; ``docs``: Data
    Docs, the table or output and the file.
    """

    run: RunLine
    plan: Plan | None
    steps: tuple[StepRow, ...]
    inputs: tuple[Input, ...]
    writes: tuple[Written, ...]
    visible: frozenset[str]
    samples: tuple[Sample, ...]
    docs: tuple[tuple[str, str], ...]

    @property
    def net(self) -> dict[str, dict[str, int]]:
        """The net changes of each output, as far as they are known: those that are validated, else those that were computed."""
        made = {s.step: s.line.record.counts for s in self.steps if s.line is not None}
        names = [] if self.plan is None else [n.name for n in self.plan.nodes]
        return {n: made.get(step_id(Verb.VALIDATE, n)) or made.get(step_id(Verb.RESOLVE, n)) or {} for n in names}


@dataclass(frozen=True)
class KeyEvent:
    """One change of a key's row, and when it became visible."""

    run: int
    at: float | None
    change: RowChange


@dataclass(frozen=True)
class KeyView:
    """A key's row, its newest changes, and where it comes from (a text: why that is not told)."""

    key: tuple[str, ...]
    row: dict[str, Any] | None
    events: tuple[KeyEvent, ...]
    why: Answer | str


@dataclass(frozen=True)
class Hits:
    """The keys of a table or output that have a text in them; ``keys`` None: it has too many rows to be searched."""

    table: str
    keys: tuple[tuple[Any, ...], ...] | None


@dataclass(frozen=True)
class SearchPage:
    """What a search for a key has found; tables without a hit are left out."""

    topology: str
    text: str
    run: int
    hits: tuple[Hits, ...]


@dataclass(frozen=True)
class Refusals:
    """Quarantined records: the newest ones, and how many of these have which code."""

    table: str
    found: Newest | Refused
    by_code: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class TablePage:
    """One table, and what there is beside it: quarantined records of a source, skew of subscriptions, a key's row, an output's definition.
    ``visible``: the tables that have a page.
    """

    topology: str
    run: int
    table: TableLine
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    fresh: Fresh | None
    published: RunLine | None
    refusals: Refusals | None
    skew: Skew | Refused | None
    key_view: KeyView | None
    sql: str | None
    visible: frozenset[str]

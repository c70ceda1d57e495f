"""What the pages show, as data: made by ``gather``, drawn by ``render``."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rejoin.lake.history import Input, RunLine, StepLine
from rejoin.lake.look import Added, Newest, Refused, Skew
from rejoin.plan.model import Plan

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
class TopologyPage:
    """A topology: its tables, its freshness, its newest runs."""

    name: str
    plan: Plan
    published: RunLine | None
    looked_at: float | None
    tables: tuple[TableLine, ...]
    fresh: tuple[Fresh, ...]
    runs: tuple[RunLine, ...]
    more: bool


@dataclass(frozen=True)
class StepRow:
    """A step of a run; ``line`` None: it has not ended."""

    step: str
    line: StepLine | None


@dataclass(frozen=True)
class Written:
    """A table that a run wrote, and what its snapshot added (None: beyond retention). ``kept`` False: for the run's own steps only."""

    table: str
    added: Added | None
    kept: bool


@dataclass(frozen=True)
class RunPage:
    """One run, step by step. ``visible``: the tables that have a page."""

    run: RunLine
    steps: tuple[StepRow, ...]
    inputs: tuple[Input, ...]
    writes: tuple[Written, ...]
    visible: frozenset[str]


@dataclass(frozen=True)
class KeyEvent:
    """One change of a key's row. ``changed``: the columns that differ."""

    run: int
    at: float | None
    op: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changed: frozenset[str]


@dataclass(frozen=True)
class KeyView:
    """A key's row and its newest changes."""

    key: tuple[str, ...]
    row: dict[str, Any] | None
    events: tuple[KeyEvent, ...]


@dataclass(frozen=True)
class Refusals:
    """Quarantined records: the newest ones, and how many of these have which code."""

    table: str
    found: Newest | Refused
    by_code: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class TablePage:
    """One table, and what there is beside it: quarantined records of a source, skew of subscriptions, a key's row."""

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

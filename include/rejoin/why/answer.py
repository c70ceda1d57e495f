"""An answer: a row of an output, the row on its left, the row on the right of each edge, and so on down to records of files. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rejoin.lake.query.quarantine_entries import Entry
from rejoin.why.right_matches import How

Row = Mapping[str, Any]
APPLIED, NOOP = "applied", "no-op"
"""The fates of a stored version: whether it changed a column that some join uses."""


class State(StrEnum):
    """What became of the row with a key, as of the run that is asked about."""

    THERE = "there"
    HELD = "held back"  # its newest state is in quarantine; an older one may be published
    REMOVED = "removed"
    LET_GO = "let go"  # a compaction has dropped the record of a stream, whose results stay
    NEVER = "never was"
    UNTOLD = "not there"  # whether it ever was is not known: compaction drops deletes of snapshots, and the states before it are expired


class Match(StrEnum):
    """What the left row found on the right of an edge."""

    FOUND = "found"
    NULL = "null foreign key"
    ABSENT = "no right row"
    FILTERED = "right row filtered out"
    UNASKED = "not asked"  # there is no left row, or its own filter drops it
    UNKNOWN = "not known"  # only an evaluation of the user's SQL could tell


class Cause(StrEnum):
    """Why an output has no row of a key, or not the newest one."""

    LEFT_ROW = "there is no left row"
    NO_SIDE = "there is no row on either side"
    NO_MEMBER = "no row belongs to the group"
    LEFT_FILTER = "the filter of the left side drops the row"
    NULL = "an inner join whose foreign key is null"
    ABSENT = "an inner join that finds no right row"
    RIGHT_FILTER = "an inner join whose right row is filtered out"
    RIGHT_UNKNOWN = "an inner join of which it is not known what it finds"
    FILTER = "the filter of the output drops the row"
    HELD = "the row is held back"
    PARTNERS = "it has a row on the other side"
    MOVED = "the left row has another foreign key"
    ONLY_PAIRS = "a join that has only pairs"
    OUTSIDE = "records that are further apart than the window"
    DIFFERENT = "records that differ in what has to be equal"
    WAITS = "the watermark has not passed the end of its window"
    SKIPPED = "the run left the output as it was"
    UNTOLD = "the stored rows do not tell"


@dataclass(frozen=True)
class Reason:
    """A cause, the table or output that it is about, and the filter or foreign key (SQL as the user knows it)."""

    cause: Cause
    of: str
    sql: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"cause": self.cause.name.lower(), "of": self.of, "sql": self.sql}


@dataclass(frozen=True)
class Record:
    """The newest record that counts of a key: what made its row what it is, or deleted it.

    ``fate``: applied, or no-op where it changed no column that any join uses. ``file`` and ``line``: where it stands; ``files``: what its
    run read of the table, where ``file`` is not known or the row is in none of them (``absent``: a snapshot that lacks a row deletes it);
    ``snapshot``: the position of the whole snapshot in the feed that did not bring the row; ``unlocated``: why the place is not known. ``later``: a newer run whose record of the key changed no column that any join uses.
    """

    run: int
    op: str
    fate: str
    position: str | None
    file: str | None = None
    line: int | None = None
    files: tuple[str, ...] = ()
    absent: bool = False
    unlocated: str | None = None
    later: int | None = None
    snapshot: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "files": list(self.files)}


@dataclass(frozen=True)
class SourceRow:
    """A key of a source table. ``aside``: records of the key that are in quarantine."""

    name: str
    key: Row
    state: State
    record: Record | None
    aside: tuple[Entry, ...]

    def to_dict(self) -> dict[str, Any]:
        record = None if self.record is None else self.record.to_dict()
        aside = [e.to_dict() for e in self.aside]
        return {"table": self.name, "key": dict(self.key), "state": self.state.name.lower(), "record": record, "quarantined": aside}


@dataclass(frozen=True)
class Change:
    """The newest change of an output's row, as ``rejoin changes`` shows it. ``columns``: those that differ; ``redefined``: the run had
    another definition of the output than the run before.
    """

    run: int
    op: str
    columns: tuple[str, ...]
    before: Row | None
    after: Row | None
    redefined: bool

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "columns": list(self.columns)}


@dataclass(frozen=True)
class RightRow:
    """An edge: its foreign key (SQL and values; None: null or not known), what it found, and the row of that key, if there was a key. ``how``: by which
    time, or for which left rows, where a foreign key does not tell.
    """

    edge: str
    table: str
    kind: str
    sql: str
    foreign_key: tuple[Any, ...] | None
    match: Match
    filter: str | None
    row: "SourceRow | OutputRow | None"
    how: How | None = None

    def to_dict(self) -> dict[str, Any]:
        known = None if self.foreign_key is None else list(self.foreign_key)
        own = {"edge": self.edge, "table": self.table, "join": self.kind, "sql": self.sql, "foreign_key": known}
        found = {"match": self.match.name.lower(), "filter": self.filter, "how": None if self.how is None else self.how.to_dict()}
        return {**own, **found, "row": None if self.row is None else self.row.to_dict()}


@dataclass(frozen=True)
class Member:
    """A row that is or was in a group, and the newest run that has added, changed or taken it away; ``left``: it is in the group no more."""

    row: "SourceRow | OutputRow"
    run: int
    left: bool

    def to_dict(self) -> dict[str, Any]:
        return {"run": self.run, "left": self.left, "row": self.row.to_dict()}


@dataclass(frozen=True)
class Members:
    """How many members a group has (None: too many to look at), and the newest ones."""

    count: int | None
    newest: tuple[Member, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "newest": [m.to_dict() for m in self.newest]}


@dataclass(frozen=True)
class OutputRow:
    """A key of an output or an intermediate result. ``row``: what is published; ``reasons``: why there is no row, or not the newest: all of
    them hold where ``certain``, else one of them at least; ``left``: None of a right row alone, and of a group, which has ``members``.
    """

    name: str
    published: bool
    key: Row
    state: State
    row: Row | None
    change: Change | None
    held: Entry | None
    reasons: tuple[Reason, ...] = ()
    certain: bool = True
    left: "SourceRow | OutputRow | None" = None
    rights: tuple[RightRow, ...] = ()
    members: Members | None = None

    @property
    def below(self) -> "tuple[SourceRow | OutputRow, ...]":
        """The rows that it is made of, as far as they are followed."""
        others = () if self.members is None else tuple(m.row for m in self.members.newest)
        return tuple(row for row in (self.left, *(r.row for r in self.rights), *others) if row is not None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.name,
            "intermediate": not self.published,
            "key": dict(self.key),
            "state": self.state.name.lower(),
            "row": None if self.row is None else dict(self.row),
            "changed": None if self.change is None else self.change.to_dict(),
            "held_back": None if self.held is None else self.held.to_dict(),
            "reasons": [r.to_dict() for r in self.reasons],
            "certain": self.certain,
            "left": None if self.left is None else self.left.to_dict(),
            "rights": [r.to_dict() for r in self.rights],
            **({} if self.members is None else {"members": self.members.to_dict()}),
        }


@dataclass(frozen=True)
class Answer:
    """What is known of one row, as of a run."""

    topology: str
    run: int
    row: SourceRow | OutputRow

    def to_dict(self) -> dict[str, Any]:
        return {"topology": self.topology, "run": self.run, **self.row.to_dict()}


def is_there(row: SourceRow | OutputRow) -> bool:
    """Whether readers, and joins, find a row."""
    return row.state is State.THERE if isinstance(row, SourceRow) else row.row is not None


def differing(before: Row | None, after: Row | None) -> tuple[str, ...]:
    """The columns whose values differ; none where there was no row, or is none."""
    if before is None or after is None:
        return ()
    return tuple(c for c in dict.fromkeys([*after, *before]) if before.get(c) != after.get(c))

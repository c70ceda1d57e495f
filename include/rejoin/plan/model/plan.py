"""The plan: what a topology compiles to. Frozen, deterministic, JSON both ways (``json_form``); ``explain``, ``airflow`` and ``run`` read the same plan.

SQL texts in a plan are Spark SQL whose columns are all qualified and quoted with backticks:

* in a ``View``: ``t.`column` `` is a column of the table or node that the view reads;
* in an ``Edge`` and a ``Node``: ``l.`column` `` is a column of the left view, ``r1.`column` `` of the first edge's right view, ``r2`` of the second ...

A node's output is by definition the result of this query (``plan.sql.defining_query`` renders it; ``verify`` and the tests compare with it)::

    SELECT <columns> FROM <left view> l
    [INNER | LEFT | RIGHT | FULL] JOIN <right view of edge i> r<i> ON <foreign_key i> = r<i>.<key>   -- for every edge
    WHERE <where>

Joins by time have more conditions: ``plan.sql.defining_query_by_time``. Of a node with a ``grouping`` ``l`` is a row of its groups, except in the grouping
itself: there it is a member, a row of the left view.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from rejoin.errors import UnknownTable
from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.match import AsOf, JoinKind, Match, Other, Window
from rejoin.plan.model.policy import Horizon, Policy, Refresh, RunOptions
from rejoin.plan.model.sinks import Sink
from rejoin.plan.model.sources import RecordsSource, Source


@dataclass(frozen=True)
class Column:
    """A column and its Spark SQL type in capitals (``BIGINT``, ``DECIMAL(10,2)``); None where only Spark can tell."""

    name: str
    type: str | None


@dataclass(frozen=True)
class Table:
    """A source table. ``used``: the columns that any join, select, filter or foreign key reads, in declared order: a change of others causes no work downstream.
    ``optional``: those that the source may lack. Of a stream: ``event_time``, by which it is stored; ``computed_time``, what makes that of ``t``, a record as
    delivered; ``retention``: how many microseconds older than the newest a record may be. ``versions_of``: its rows are all versions of that table's, from when they were committed.
    """

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    source: Source
    used: tuple[str, ...]
    expectations: tuple[Expectation, ...] = ()
    optional: tuple[str, ...] = ()
    event_time: str | None = None
    versions_of: str | None = None
    retention: int | None = None
    computed_time: str | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by which its rows are stored: a stream by time, since its joins read spans of time."""
        return self.key if self.event_time is None else (self.event_time, *self.key)

    @property
    def by_place(self) -> bool:
        """Whether it is a stream whose records are told by their places."""
        return isinstance(self.source, RecordsSource) and self.source.places


@dataclass(frozen=True)
class Projection:
    """One output column: its name, its SQL text, its type if known."""

    name: str
    sql: str
    type: str | None


@dataclass(frozen=True)
class View:
    """Row-wise filter and select over one table or node; never materialised. ``key`` are the view's names of the key
    columns of ``table``, in the table's key order.
    """

    table: str
    columns: tuple[Projection, ...]
    where: str | None
    key: tuple[str, ...]

    def column(self, name: str) -> Projection:
        return next(p for p in self.columns if p.name == name)

    def stored(self, name: str) -> str:
        """The column of the table that a column of the view is, where it is nothing else."""
        return self.column(name).sql.removeprefix("t.").strip("`")


@dataclass(frozen=True)
class Edge:
    """One join of a node: ``foreign_key`` (SQL texts over ``l``) are equal to the columns of ``right`` that ``match`` says, or to its key."""

    name: str
    right: View
    foreign_key: tuple[str, ...]
    kind: JoinKind
    match: Match | None = None
    null_is_a_key: ClassVar[bool] = False

    @property
    def join(self) -> str:
        """The kind in words: ``join``, ``left join`` and so on."""
        return "join" if self.kind is JoinKind.INNER else f"{self.kind} join"

    @property
    def on(self) -> tuple[str, ...]:
        """The columns of the right view that the foreign key is equal to."""
        return self.match.on if isinstance(self.match, AsOf | Window | Other) else self.right.key


@dataclass(frozen=True)
class Node:
    """One output table: a left view, any number of edges (a star), the select and the filter after the joins. An edge that matches by
    anything but a left or inner foreign key is the only one of its node. With a ``grouping`` it has no edges: the rows of the left view are members
    of groups, and its rows are these.

    ``key``: names of the output columns that are the key, in the key order of the left table; then, if ``two_sided``, of the right table.
    ``null_keys``: parts of the key may be null, since a side is missing, or null is the key of a group.
    ``used``: the output columns that downstream nodes read (empty for a leaf).
    ``published``: named by the user, as against an intermediate result of a chain.
    ``sinks``: where its changes are delivered; no part of its definition.
    """

    name: str
    left: View
    edges: tuple[Edge, ...]
    columns: tuple[Projection, ...]
    where: str | None
    key: tuple[str, ...]
    used: tuple[str, ...]
    published: bool
    policy: Policy = field(default_factory=Policy)
    sinks: tuple[Sink, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    null_keys: bool = False
    grouping: Grouping | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """The left view, and those of the edges."""
        return (self.left, *(edge.right for edge in self.edges))

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables and nodes that it reads, as often as a view is of them."""
        return tuple(view.table for view in self.views)

    @property
    def match(self) -> "Match | None":
        """How its only edge finds right rows; None by foreign keys, and for a node without edges."""
        return self.edges[0].match if self.edges else None

    @property
    def subscribes_to(self) -> "tuple[Edge | Grouping, ...]":
        """What its left rows are subscribed to: right rows by foreign keys, or their groups."""
        if self.grouping is not None:
            return (self.grouping,)
        return self.edges if self.match is None else ()

    @property
    def star(self) -> bool:
        """Whether every row is one of a left row, with the right rows of its foreign keys."""
        return self.match is None and not self.two_sided and self.grouping is None

    @property
    def keeps_what_it_saw(self) -> bool:
        """Whether its rows are those of the run that read them, whatever becomes of the right table: no function of the tables as they are."""
        return isinstance(self.match, AsOf) and self.match.left_time is None

    @property
    def null_keys_aside(self) -> bool:
        """Whether parts of a key that is held back may be null: its row can be one whose partners cannot be known."""
        return self.null_keys or self.two_sided

    @property
    def two_sided(self) -> bool:
        """Whether a row of the output is one of a left row and a right row, so that its key is that of both."""
        return isinstance(self.match, Window) or (self.match is None and any(e.kind.keeps_right for e in self.edges))


@dataclass(frozen=True)
class Plan:
    """A whole topology; ``nodes`` stand in an order in which every node comes after the nodes that it reads.

    ``replay``: tables and nodes whose held-back rows a run judges again. ``repair``: nodes that a run recomputes from what is stored; it reads no
    input then. ``horizons``: what earlier compactions have let go of streams; kept by name, so also of those that are no longer declared.
    """

    topology: str
    tables: tuple[Table, ...]
    nodes: tuple[Node, ...]
    replay: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()
    horizons: tuple[Horizon, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of all tables, then of all nodes."""
        return (*(t.name for t in self.tables), *(n.name for n in self.nodes))

    def table(self, name: str) -> Table:
        return next(t for t in self.tables if t.name == name)

    def node(self, name: str) -> Node:
        return next(n for n in self.nodes if n.name == name)

    def is_table(self, name: str) -> bool:
        return any(t.name == name for t in self.tables)

    def key_of(self, name: str) -> tuple[str, ...]:
        """Key columns of a source table or of a node's output."""
        return self.table(name).key if self.is_table(name) else self.node(name).key

    def columns_of(self, name: str) -> tuple[Column, ...] | tuple[Projection, ...]:
        """Columns of a source table or of a node's output, each with a name and a type."""
        return self.table(name).columns if self.is_table(name) else self.node(name).columns

    def stored_from(self, name: str) -> int | None:
        """The time from which on all records of a stream are stored, in microseconds; None: all are."""
        return next((h.stored for h in self.horizons if h.stream == name), None)

    def taken_from(self, name: str) -> int | None:
        """The time before which records of a stream are refused, whatever its retention says; None: there is none."""
        return next((h.taken for h in self.horizons if h.stream == name), None)

    def null_keys(self, name: str) -> bool:
        """Whether parts of the key of a source table or of a node's output may be null."""
        return not self.is_table(name) and self.node(name).null_keys

    def left_key(self, node: Node) -> tuple[str, ...]:
        """The columns of a node's output that are the key of its left side."""
        return node.key[: len(self.key_of(node.left.table))]

    def with_options(self, options: RunOptions) -> "Plan":
        """The plan for one run.

        Raises:
            UnknownTable: ``only`` names something that is no output.
        """
        wanted = self._made_of(options.only) if options.only else {n.name for n in self.nodes}

        def changed(node: Node) -> Node:
            refresh = (options.refresh or node.policy.refresh) if node.name in wanted else Refresh.SKIP
            policy = dataclasses.replace(node.policy, refresh=refresh, fuse=options.fuse or node.policy.fuse)
            return dataclasses.replace(node, policy=policy)

        return dataclasses.replace(self, nodes=tuple(changed(n) for n in self.nodes)).with_replay(options.replay)

    def _made_of(self, outputs: tuple[str, ...]) -> set[str]:
        """The outputs and every node that they read."""
        known = self._outputs(outputs)
        found = set(outputs)
        for node in reversed(self.nodes):  # readers stand after what they read
            if node.name in found:
                found |= known.intersection(node.reads)
        return found

    def _outputs(self, asked: Iterable[str]) -> set[str]:
        """The names of all outputs, if those that are asked for are among them."""
        known = {n.name for n in self.nodes}
        if unknown := [name for name in asked if name not in known]:
            raise UnknownTable(
                f"topology {self.topology!r} has no output {', '.join(unknown)}",
                expected=", ".join(sorted(known)),
                next_step="correct --only (in Airflow: Only these outputs, in the form of a trigger)",
            )
        return known

    def expectations(self, name: str) -> tuple[Expectation, ...]:
        """Those of a table or node; none if the plan has no such name."""
        known = {t.name: t.expectations for t in self.tables} | {n.name: n.expectations for n in self.nodes}
        return known.get(name, ())

    def with_replay(self, names: Iterable[str]) -> "Plan":
        """The plan whose run judges the held-back rows of these tables and nodes again, too."""
        return dataclasses.replace(self, replay=tuple(sorted({*self.replay, *names})))

    def with_horizons(self, horizons: tuple[Horizon, ...]) -> "Plan":
        """The plan of a run from whose tables this has been let go."""
        return dataclasses.replace(self, horizons=horizons)

    def to_repair(self, outputs: tuple[str, ...]) -> "Plan":
        """The plan of a run that reads no input and recomputes these outputs; the others follow what that changes.

        Raises:
            UnknownTable: one of them is no output.
        """
        self._outputs(outputs)
        return dataclasses.replace(self, replay=(), repair=tuple(sorted(outputs)))

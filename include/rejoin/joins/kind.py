"""What a kind of join has to say: which of its results a run can change, and what they are made of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoin.engines.relation import KeySpread, LocalRelation, Relation
from rejoin.joins import sides
from rejoin.lake.read.lookups import LookupKeys
from rejoin.limits import limits
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.match import Other
from rejoin.plan.model.plan import Edge, Node

if TYPE_CHECKING:
    from rejoin.context.uncomputable_rows import UncomputableRows
    from rejoin.context.work import Work
    from rejoin.lake.ledger.records import Write
    from rejoin.lake.write.writer import Writer

HIDDEN = 4
"""So many hidden rows of an output take about as long to find as one row of a result. Each range of keys looks for all of them, as no delete file knows keys."""

Wanted = Sequence[tuple[tuple[str, ...], LookupKeys]]
"""Rows of an output: columns of its key, and what is looked for in them."""


@dataclass(frozen=True)
class JoinResults:
    """The results that a run can change.

    Attributes:
        state: ``pk_1``.. (the key of the output), ``l`` and ``r1``.. (rows of the views, null where a side is missing) of every such result that there is now.
        stored: which rows of the output are such results, or may be; None: all of them.
        held: those of what is held back.
        at_most: how many results there are.
        stale: how many responses were dropped, since their left row is another one now.
        before: gives ``state`` of the same results before the run; None where nothing at hand tells it, or they are many.
        values: how many values they are made of, where these are more than their columns; see ``limits().read_values``.
        spread: how the keys of many results lie, the first part of the output's key; None: they are better not cut.
        told: what `rejoin explain --run` says of how they were found.
    """

    state: Relation
    stored: Wanted | None
    held: Relation | None
    at_most: int
    stale: int = 0
    before: Callable[[], Relation] | None = None
    values: int = 0
    spread: KeySpread | None = None
    told: Mapping[str, str] = field(default_factory=dict)


class KindOfJoin(ABC):
    """One kind of join, of one node in one run. ``mine``, ``theirs``: the parts of the output's key that are the key of its left row, and of its right one;
    ``held_rows``: how many rows of the output are held back, at most.

    Args:
        work: what the attempt works with.
        node: the node, its texts as the plan has them.
        sieve: takes the rows aside for which an expression of either side has no value; None: there are none.
    """

    def __init__(self, work: "Work", node: Node, sieve: "UncomputableRows | None" = None) -> None:
        self.work, self.facts, self.engine, self.sql = work, work.facts, work.engine, work.engine.sql
        self.plan, self.node, self.spoken = work.facts.plan, node, work.engine.node(node)
        self.left, self.left_key = node.left.table, self.plan.key_of(node.left.table)
        self.mine, self.theirs = node.key[: len(self.left_key)], node.key[len(self.left_key) :]
        self.fingerprint = fingerprint(self.plan, node)
        self.held_rows, self.keeping, self._sieve = work.facts.held(node), ExitStack(), sieve

    @abstractmethod
    def follow(self) -> JoinResults:
        """The results that this run's changes can change."""

    @abstractmethod
    def everything(self) -> Relation:
        """``state`` of all results."""

    def beside(self, writer: "Writer") -> "tuple[Write, ...]":  # noqa: ARG002 -- most kinds keep nothing
        """Writes what later runs of the node need beside its output. After the results were computed."""
        return ()

    def spread(self) -> KeySpread | None:
        """How the keys of ``everything`` lie, as of ``JoinResults``."""
        return None

    def lying(self, table: str, beside: int) -> KeySpread | None:
        """How the keys of the output lie, where they are those of a table. ``beside``: other rows that each range reads."""
        rows, key = self.facts.now.rows(table), self.plan.key_of(table)
        if not self.engine.in_process or limits().small(rows):  # nothing is cut: the keys would be read for nothing
            return None
        return KeySpread(self.work.now.every(table, key), key, rows, beside + self.hidden(), nulls=self.node.null_keys)

    def hidden(self) -> int:
        """What it costs to find hidden rows of the output, in rows of a result."""
        before, name = self.work.before, self.node.name
        return (before.stored(name) - before.live(name)) // HIDDEN

    def in_scope(self, rows: Relation) -> Relation:
        """The rows of the output that ``follow`` can change, among those that it named."""
        return rows

    def unsettled(self, rows: Relation) -> Relation:
        """The rows of the output, or of what is held back, that ``everything`` would give again: all, but where records were let go."""
        return rows

    @property
    def edge(self) -> Edge:
        """The only edge."""
        (edge,) = self.spoken.edges
        return edge

    @property
    def right(self) -> str:
        """The table on its right."""
        return self.edge.right.table

    @property
    def right_key(self) -> tuple[str, ...]:
        """The key of that table."""
        return self.plan.key_of(self.right)

    def left_changes(self) -> Relation | None:
        """This run's changes of the left; None if there are none."""
        return self.work.now.changes(self.left, self.facts.run.number) if self.facts.changed(self.left) else None

    def right_changes(self) -> Relation | None:
        """This run's changes of the right; None if there are none."""
        return self.work.now.changes(self.right, self.facts.run.number) if self.facts.changed(self.right) else None

    def sifted_changes(self, changes: Relation | None, *, left: bool) -> Relation | None:
        """``left_changes`` or ``right_changes``, where a row that cannot be computed is none, before and after."""
        if changes is None:
            return None
        return self.sifted(self.sifted(changes, left=left, counts=False, column="_before"), left=left, column="_after")

    def sifted(self, rows: Relation, *, left: bool, counts: bool = True, column: str = "_row") -> Relation:
        """``Relation`` of a side, where one that cannot be computed is none. ``counts``: they are of results that this run looks at.

        Right rows of a join that a package brings (``by=``) stay as they are, and stop the run: no key of the output is theirs, by which they
        could be held back.
        """
        if self._sieve is None or (isinstance(self.node.match, Other) and not left):
            return rows
        sift, key = (self._sieve.lefts, self.left_key) if left else (self._sieve.rights, self.right_key)
        return sift(rows, key, column, counts=counts)

    def held(self) -> Relation | None:
        """Every key that is held back; None if there can be none."""
        return self.work.before.held(self.node.name, None) if self.held_rows else None

    def together(self, parts: list[Relation], columns: str) -> Relation:
        """The columns of several relations as one relation."""
        inputs = {f"part_{i}": part for i, part in enumerate(parts)}
        return self.engine.query(" UNION ALL ".join(f"SELECT {columns} FROM {name}" for name in inputs), **inputs)

    def named(self, rows: Relation, old: Sequence[str], new: Sequence[str]) -> Relation:
        """Columns of a relation under other names."""
        return self.engine.query(f"SELECT {self.sql.renamed(old, new)} FROM rows_", rows_=rows)

    def among(self, rows: Relation, keys: Relation) -> Relation:
        """The rows of the output, or of what is held back, that have one of the keys."""
        return self.engine.query(sides.among(self.sql, self.node.key), rows_=rows, keys=keys)

    def beyond(self, rows: Relation, key: Sequence[str], keys: Relation, of: Sequence[str], shown: str = "*") -> Relation:
        """What is ``shown`` of the rows whose ``key`` is not among the columns ``of`` of ``keys``."""
        return self.engine.query(sides.among(self.sql, key, of, shown=shown, absent=True), rows_=rows, keys=keys)

    def computed(self, rows: Relation, at_most: int) -> Relation:
        """The relation, computed at most once until the results are written."""
        return LocalRelation(rows.here()) if limits().small(at_most) else self.keeping.enter_context(self.engine.kept(rows))

    def shared(self, rows: Relation, at_most: int) -> Relation:
        """The relation; if it has many rows, computed once for all ranges that use it."""
        return self.computed(rows, at_most) if self.engine.in_process and not limits().small(at_most) else rows

    def fetched(self, rows: Relation) -> tuple[Relation, int]:
        """A relation that is used more than once, computed now, and how many rows it has."""
        here = rows.here()
        return self.engine.rows(here, many=not limits().small(here.num_rows)), here.num_rows

"""What outputs should be: the defining query over the source tables of a cut. For comparisons, never for a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rejoin.engines.relation import Engine, Relation
from rejoin.joins.sides import among
from rejoin.lake.read.version_rows import without
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.operate.verify.settled_results import shown, with_settled
from rejoin.plan.model.match import SameKey, Window
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.sql.defining_query import node_query

LEFT, RIGHT, HELD = "computable_left", "computable_right", "held_keys"
"""Inputs of a query beside the tables and outputs that it reads: the rows of a side that can be computed, the keys that are held back."""


@dataclass(frozen=True)
class Recomputation:
    """Outputs as their definition says.

    Attributes:
        engine: computes them.
        plan: the plan.
        reader: reads the cut.
        known: outputs that are computed already.
    """

    engine: Engine
    plan: Plan
    reader: PlainReader
    known: Mapping[str, Relation] = field(default_factory=dict)

    def rows(self, node: Node) -> Relation:
        """What a node's output should be: its defining query over the source tables of this cut, where in this node and in those below
        the keys that are held back have their published rows. Below, what is joined as of arrival has the rows that it has: no query gives them.

        Raises:
            NeedsSpark: the engine cannot compute it.
        """
        return self._made(node, dict(self.known))

    def below(self, name: str) -> Relation:
        """What a source table, or an output, has for those that are made of it."""
        return self._below(name, dict(self.known))

    def _made(self, of: Node, made: dict[str, Relation]) -> Relation:
        """``made``: what nodes below it should be, as far as they are computed."""
        inputs = dict[str, Relation]()
        node = self._without_pairs(self._computable(self.engine.node(of), made, inputs), inputs)
        named = {LEFT: LEFT, RIGHT: RIGHT}
        for at, name in enumerate(dict.fromkeys(of.reads)):
            named[name] = f"table_{at}"
            inputs[named[name]] = self._below(name, made)
        sides = {LEFT: of.left.table, **({RIGHT: of.edges[0].right.table} if of.edges else {})}
        query = node_query(self.plan, node, named.__getitem__, lambda name: named[sides.get(name, name)], self.engine.sql)
        rows = self.engine.query(query, **inputs)
        rows = with_settled(self.engine, self.plan, self.reader, of, rows)
        return self._with_published(of, rows, sifted=LEFT in inputs or RIGHT in inputs)

    def _below(self, name: str, made: dict[str, Relation]) -> Relation:
        """The rows of a source table, or of a node below, with their columns."""
        if self.plan.is_table(name):
            return shown(self.engine, self.plan.table(name), self.reader.current(name))
        if name not in made:
            below = self.plan.node(name)
            made[name] = self._stored(below) if below.keeps_what_it_saw else self._made(below, made)
        return made[name]

    def _stored(self, node: Node) -> Relation:
        return shown(self.engine, node, self.reader.current(node.name))

    def _computable(self, node: Node, made: dict[str, Relation], inputs: dict[str, Relation]) -> Node:
        """The node, over tables where the rows are null that an expression of the node has no value for."""
        found = node
        if (left := self._sifted(node, made, right=False)) is not None:
            inputs[LEFT], found = left, replace(found, left=replace(node.left, table=LEFT))
        if isinstance(node.match, Window | SameKey) and (right := self._sifted(node, made, right=True)) is not None:
            (edge,) = node.edges
            inputs[RIGHT], found = right, replace(found, edges=(replace(edge, right=replace(edge.right, table=RIGHT)),))
        return found

    def _sifted(self, node: Node, made: dict[str, Relation], *, right: bool) -> Relation | None:
        table = node.edges[0].right.table if right else node.left.table
        keys = self.reader.uncomputable(node, right=right)
        if keys is None:
            return None
        rows = self._below(table, made)
        statement = without(self.engine.sql, rows.columns, keys.columns, rows.columns, nulls=self.plan.null_keys(table))
        return self.engine.query(statement, lefts=rows, keys=keys)

    def _without_pairs(self, node: Node, inputs: dict[str, Relation]) -> Node:
        """A node whose rows have a key of both sides, with a filter that drops those that are held back before their columns are computed."""
        held = self.reader.held(node.name, None) if node.two_sided else None
        if held is None:
            return node
        inputs[HELD], sql = held, self.engine.sql
        key = {p.name: p.sql for p in node.columns if p.name in node.key}
        same = " AND ".join(sql.same(f"({key[k]})", f"k.{sql.name(k)}") for k in node.key)
        free = f"NOT EXISTS (SELECT 1 FROM {HELD} AS k WHERE {same})"
        return replace(node, where=free if node.where is None else f"{free} AND ({node.where})")

    def _with_published(self, node: Node, rows: Relation, *, sifted: bool) -> Relation:
        """``sifted``: rows that cannot be computed were made null, so that rows without any key came of them."""
        held, sql = self.reader.held(node.name, None), self.engine.sql
        if held is None:
            return rows
        columns = sql.names(p.name for p in node.columns)
        there = (" OR " if node.null_keys else " AND ").join(f"{sql.name(k)} IS NOT NULL" for k in node.key) if sifted else "true"
        free = self.engine.query(among(sql, node.key, absent=True), rows_=rows, keys=held)
        published = self.engine.query(among(sql, node.key), rows_=self._stored(node), keys=held)
        text = f"SELECT {columns} FROM free WHERE {there} UNION ALL SELECT {columns} FROM published"
        return self.engine.query(text, free=free, published=published)

"""One output and what it should be: by full recomputation, or by comparing hashes and recomputing only suspects."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from rejoin.engines.key_ranges import side_by_side
from rejoin.engines.relation import Engine, Relation
from rejoin.joins.foreign_key import resolve as star
from rejoin.joins.sides import among
from rejoin.lake import table_names
from rejoin.lake.iceberg.plan_columns import spark_name
from rejoin.operate.verify.key_cut import key_cut
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.operate.verify.recomputation import Recomputation
from rejoin.operate.verify.settled_results import shown
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Node, Plan
from rejoin.statements.dialect import aggregated, counted, equal
from rejoin.statements.own_columns import HASH, numbered
from rejoin.statements.relations import foreign_key, key_parts, seen
from rejoin.statements.value_hash import compared
from rejoin.steps.resolve import statements


@dataclass(frozen=True)
class Difference:
    """How an output differs from its definition, in rows. ``suspects``: rows whose hash did not match (fast mode only); ``held``: keys
    that are held back, which show the row that was published last: no differences. ``hidden``: rows that readers with a filter
    do not find, in the output or in what it is made of. ``kept``: the run left the output as it was, so
    it was not compared. ``by_arrival``: its rows keep what the runs saw that read them, which no query over the tables tells, so it was not compared.
    ``engine``: who compared it, and ``engine_why``: why Spark did.
    """

    node: str
    rows: int
    missing: int = 0
    extra: int = 0
    different: int = 0
    subscriptions: int = 0
    suspects: int = 0
    held: int = 0
    kept: bool = False
    hidden: int = 0
    by_arrival: bool = False
    engine: str = ""
    engine_why: str = ""

    @property
    def compared(self) -> bool:
        return not (self.kept or self.by_arrival)

    @property
    def total(self) -> int:
        return self.missing + self.extra + self.different + self.subscriptions + self.hidden


def together(parts: Sequence[Difference]) -> Difference:
    """What was counted of an output in parts of its rows."""
    return replace(
        parts[0],
        rows=sum(part.rows for part in parts),
        missing=sum(part.missing for part in parts),
        extra=sum(part.extra for part in parts),
        different=sum(part.different for part in parts),
        subscriptions=sum(part.subscriptions for part in parts),
        suspects=sum(part.suspects for part in parts),
    )


@dataclass(frozen=True)
class Comparison:
    """One output and what it should be.

    Attributes:
        engine: computes both.
        plan: the plan.
        reader: reads the cut.
        node: the output.
        known: what outputs below it should be, as far as they are computed.
    """

    engine: Engine
    plan: Plan
    reader: PlainReader
    node: Node
    known: Mapping[str, Relation] = field(default_factory=dict)

    def made(self, looked_at: set[str], *, fast: bool) -> Difference:
        """Everything that is counted of the output. ``looked_at``: the tables of which it is known what filters hide.

        Raises:
            NeedsSpark: the engine cannot compute it.
        """
        readers, cut = self.reader.parts(self.node), key_cut(self.plan, self.node)
        with ExitStack() as keeping:
            known = dict[str, Relation]()
            for name in cut.whole if cut is not None and len(readers) > 1 else ():
                if not self.plan.is_table(name):
                    known[name] = keeping.enter_context(self.engine.kept(self._recomputation.below(name)))
            found = together(side_by_side(lambda reader: replace(self, reader=reader, known=known).of_rows(fast=fast), readers))
        hidden = 0 if fast else self._hidden(looked_at)
        held = self.reader.held(self.node.name, None)
        return replace(found, held=0 if held is None else self._count(held), hidden=hidden)

    def _hidden(self, looked_at: set[str]) -> int:
        """What filters hide of an output and of what it is made of; each table once."""
        node = self.node
        tables = {name: self.plan.key_of(name) for name in node.reads} | {node.name: node.key}
        tables |= {table_names.subscriptions(node, to): tuple(numbered("fk", len(to.foreign_key))) for to in node.subscribes_to}
        if node.grouping is not None:
            tables[table_names.totals(node, node.grouping)] = tuple(numbered("fk", len(node.grouping.keys)))
        new = {name: key for name, key in tables.items() if name not in looked_at}
        found = sum(self.reader.hidden(name, key) for name, key in new.items())
        looked_at |= set(new)
        return found

    def of_rows(self, *, fast: bool) -> Difference:
        """What is counted of the rows that its reader reads."""
        node, stored = self.node, self.reader.current(self.node.name)
        if node.keeps_what_it_saw:
            return Difference(node.name, self._count(stored), by_arrival=True)
        expected = self._recomputation.rows
        rows = shown(self.engine, node, stored)
        if node.match is not None:
            return self._compared(expected(node), rows)
        with self.engine.kept(self._lefts()) as lefts:
            orphans = sum(self._orphans(lefts, number) for number in range(len(node.subscribes_to)))
            if fast and node.star:
                return replace(self._fast(expected, stored, lefts), subscriptions=orphans)
        return replace(self._compared(expected(node), rows), subscriptions=orphans)

    @property
    def _recomputation(self) -> Recomputation:
        return Recomputation(self.engine, self.plan, self.reader, self.known)

    def _fast(self, expected: Callable[[Node], Relation], stored: Relation, lefts: Relation) -> Difference:
        """Values only of the rows whose hash differs."""
        rows, node = shown(self.engine, self.node, stored), self.node
        with self.engine.kept(self._suspects(stored, lefts)) as suspects:
            if not (count := self._count(suspects)):
                return Difference(node.name, self._count(rows))
            made, have = (self._among(some, suspects) for some in (expected(node), rows))
            return replace(self._compared(made, have), rows=self._count(rows), suspects=count)

    def _compared(self, expected: Relation, stored: Relation) -> Difference:
        """Two relations with the node's columns, by key."""
        node, sql = self.node, self.engine.sql
        types = {f.name: spark_name(f.type) for f in stored.schema}
        pairs = ([compared(sql, f"{side}.{sql.name(p.name)}", types[p.name]) for side in "es"] for p in node.columns)
        same = equal((one, other) for one, other in pairs)
        cases = {
            "rows": "_stored",
            "missing": "_expected AND _stored IS NULL",
            "extra": "_stored AND _expected IS NULL",
            "different": "_expected AND _stored AND NOT _same",
        }
        both = f"""SELECT e._in AS _expected, s._in AS _stored, {same} AS _same
        FROM (SELECT *, true AS _in FROM expected) AS e FULL JOIN (SELECT *, true AS _in FROM stored) AS s
        ON {sql.on(node.key, "e", "s", nulls=node.null_keys)}"""
        found = self.engine.one(aggregated(sql, counted(cases), f"({both})"), expected=expected, stored=stored)
        return Difference(node.name, int(found["rows"]), int(found["missing"]), int(found["extra"]), int(found["different"]))

    def _among(self, rows: Relation, suspects: Relation) -> Relation:
        return self.engine.query(among(self.engine.sql, self.node.key), rows_=rows, keys=suspects)

    def _count(self, rows: Relation) -> int:
        return int(self.engine.one("SELECT count(*) AS n FROM counted", counted=rows)["n"])

    @property
    def _pks(self) -> list[str]:
        return numbered("pk", len(self.plan.key_of(self.node.left.table)))

    def _lefts(self) -> Relation:
        """``pk_1``.. and ``l`` of every left row that the left view shows."""
        sql, pks, spoken = self.engine.sql, self._pks, self.engine.node(self.node)
        keys = sql.renamed(self.plan.key_of(self.node.left.table), pks)
        views = f"SELECT {sql.names(pks)}, {seen(sql, spoken.left)} AS l FROM (SELECT {keys}, _row AS t FROM lefts)"
        return self.engine.query(f"SELECT * FROM ({views}) WHERE l IS NOT NULL", lefts=self.reader.lefts(self.node))

    def _suspects(self, stored: Relation, lefts: Relation) -> Relation:
        """Keys whose stored hash is not the hash of the rows that they should be made from."""
        node, sql, state, spoken = self.node, self.engine.sql, lefts, self.engine.node(self.node)
        for number, edge in enumerate(spoken.edges, start=1):
            lacking = self.engine.query(f"SELECT *, true AS lacks_{number} FROM state", state=state)
            fill = star.fill(sql, lacking.columns, number, edge, self.plan.key_of(edge.right.table))
            state = self.engine.query(fill, state=lacking, rights=self.reader.current(edge.right.table))
        made = self.engine.query(statements.join(sql, spoken, fingerprint(self.plan, node)), state=state)
        keys = sql.renamed(numbered("pk", len(node.key)), node.key)
        expected = f"SELECT {keys}, {sql.get('new', HASH)} AS _expected FROM made WHERE new IS NOT NULL"
        found = f"SELECT {sql.names(node.key)}, {sql.get('_row', HASH)} AS _found FROM stored"
        either = ", ".join(f"coalesce(e.{k}, f.{k}) AS {k}" for k in map(sql.name, node.key))
        wrong = f"""SELECT {either} FROM ({expected}) AS e FULL JOIN ({found}) AS f ON {sql.on(node.key, "e", "f", nulls=node.null_keys)}
        WHERE NOT {sql.same("e._expected", "f._found")}"""
        suspects, held = self.engine.query(wrong, made=made, stored=stored), self.reader.held(node.name, None)
        return suspects if held is None else self.engine.query(among(sql, node.key, absent=True), rows_=suspects, keys=held)

    def _orphans(self, lefts: Relation, index: int) -> int:
        """Live subscriptions to a right side or to groups, and live left rows with a key for it, that do not pair up one to one."""
        sql, to, pks = self.engine.sql, self.engine.node(self.node).subscribes_to[index], self._pks
        fks = numbered("fk", len(to.foreign_key))
        shows = f"SELECT *, {foreign_key(sql, to)} AS fk FROM lefts"
        want = (
            f"SELECT {sql.names(pks)}, {key_parts(sql, to)}, {sql.get('l', HASH)} AS _hash, true AS _in FROM ({shows}) WHERE fk IS NOT NULL"
        )
        pairs = f"""SELECT count(*) AS n FROM ({want}) AS w FULL JOIN (SELECT *, true AS _in FROM subscribers) AS h
        ON {sql.on([*pks, *fks], "w", "h", nulls=to.null_is_a_key or self.plan.null_keys(self.node.left.table))}
        WHERE w._in IS NULL OR h._in IS NULL OR NOT {sql.same("w._hash", "h._hash")}"""
        return int(self.engine.one(pairs, lefts=lefts, subscribers=self.reader.subscribers(self.node, to, None))["n"])

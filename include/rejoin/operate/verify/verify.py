"""verify: is every output what its defining SQL says? By full recomputation, or by comparing hashes and recomputing only suspects."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rejoin.context.progress import SILENT, Progress, telling
from rejoin.engines.relation import Relation
from rejoin.engines.spark_engine import SparkEngine, SparkRelation, by_key
from rejoin.failures.engine_errors import named_errors
from rejoin.joins.foreign_key import resolve as star
from rejoin.lake import table_names
from rejoin.lake.read.newest_run import of_newest
from rejoin.lake.spark.session import JobCounter
from rejoin.limits import limits
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.operate.verify.recomputation import Recomputation, without_pushdown
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.sql import suspects
from rejoin.statements.own_columns import numbered
from rejoin.statements.relations import foreign_key, seen
from rejoin.steps.resolve import statements
from rejoin.steps.run.topology import Topology


@dataclass(frozen=True)
class Difference:
    """How an output differs from its definition, in rows. ``suspects``: rows whose hash did not match (fast mode only); ``held``: keys
    that are held back, which show the row that was published last: no differences. ``hidden``: rows of a sample that readers with a filter
    do not find, in the output or in what it is made of. ``kept``: the run left the output as it was, so
    it was not compared. ``by_arrival``: its rows keep what the runs saw that read them, which no query over the tables tells, so it was not compared.
    """

    node: str
    rows: int
    missing: int
    extra: int
    different: int
    subscriptions: int
    suspects: int = 0
    held: int = 0
    kept: bool = False
    hidden: int = 0
    by_arrival: bool = False

    @property
    def compared(self) -> bool:
        return not (self.kept or self.by_arrival)

    @property
    def total(self) -> int:
        return self.missing + self.extra + self.different + self.subscriptions + self.hidden


def verify(topology: Topology, spark: SparkSession, *, fast: bool, progress: Progress = SILENT) -> list[Difference]:
    """Compares every output of the last committed run with a recomputation from its source tables.

    Also counts subscriptions that belong to no live left row, and live left rows without one (I8). Joins of streams as of arrival, or as of the run, are
    not compared. The ledger keeps what was found.

    Args:
        topology: the topology.
        spark: the session.
        fast: compare the stored hashes first, and values only where they differ; not of joins by anything but a foreign key of the left. So it finds
            changes that did not reach an output, and no values that were damaged (ADR 0003).
        progress: is told of every output.

    Raises:
        RunUnknown: nothing was committed yet.
        LedgerConflict: again and again newer runs were committed meanwhile, and what was being compared was expired.
    """
    return of_newest(topology.ledger, topology.refs, lambda head: _of_run(topology, spark, head, fast=fast, progress=progress))


def _of_run(topology: Topology, spark: SparkSession, head: int, *, fast: bool, progress: Progress) -> list[Difference]:
    plan = topology.ledger.run(head).plan
    engine = SparkEngine(spark)
    reader = PlainReader(engine, plan, topology.ledger.states(head), topology.refs, topology.ledger.generations(head))
    found, kept, looked_at = [], topology.ledger.kept(head), set[str]()
    recomputation = Recomputation(engine, plan, reader)
    progress.planned({f"verify.{n.name}": max(1, reader.live(n.name)) for n in plan.nodes if n.name not in kept}, "rows")
    for node in plan.nodes:
        if node.name in kept:
            rows = engine.frame(reader.current(node.name)).count() if reader.has(node.name) else 0
            found.append(Difference(node.name, rows, 0, 0, 0, 0, kept=True))
            continue
        comparing = named_errors(f"comparison of output {node.name!r}", suspects.of_node(plan, node.name))
        with comparing, telling(progress, f"verify.{node.name}") as counts, JobCounter(spark, f"verify-{node.name}") as counter:
            progress.tasks(f"verify.{node.name}", counter.tasks)
            with _spread(spark, max(reader.stored(node.name), reader.stored(node.left.table))):
                found.append(_Comparison(engine, plan, reader, node, recomputation).made(looked_at, fast=fast))
            counts |= {"rows": found[-1].rows, "differences": found[-1].total}
    topology.ledger.verified(head, sum(d.total for d in found), fast=fast)
    return found


def _hidden(plan: Plan, reader: PlainReader, node: Node, looked_at: set[str]) -> int:
    """What filters hide of an output and of what it is made of; each table once (``looked_at``)."""
    tables = {name: plan.key_of(name) for name in node.reads} | {node.name: node.key}
    if node.match is None:
        tables |= {table_names.subscriptions(node, e): tuple(numbered("fk", len(e.foreign_key))) for e in node.edges}
    new = {name: key for name, key in tables.items() if name not in looked_at}
    looked_at |= set(new)
    return sum(reader.hidden(name, key) for name, key in new.items())


@contextmanager
def _spread(spark: SparkSession, rows: int) -> Iterator[None]:
    """Shuffles into enough partitions for this many rows, meanwhile."""
    setting = "spark.sql.shuffle.partitions"
    before = str(spark.conf.get(setting))
    spark.conf.set(setting, str(max(int(before), rows // limits().compared_rows)))
    try:
        yield
    finally:
        spark.conf.set(setting, before)


@dataclass(frozen=True)
class _Comparison:
    """One output and what it should be."""

    engine: SparkEngine
    plan: Plan
    reader: PlainReader
    node: Node
    recomputation: Recomputation

    def made(self, looked_at: set[str], *, fast: bool) -> Difference:
        """Everything that is counted of the output."""
        held = self.reader.held(self.node.name, None)
        hidden = 0 if fast else _hidden(self.plan, self.reader, self.node, looked_at)
        count = 0 if held is None else self.engine.frame(held).count()
        return replace(self._verified(fast=fast), held=count, hidden=hidden)

    def _verified(self, *, fast: bool) -> Difference:
        node, columns = self.node, [p.name for p in self.node.columns]
        stored, recomputation = self.engine.frame(self.reader.current(node.name)), self.recomputation
        if node.keeps_what_it_saw:
            return Difference(node.name, stored.count(), 0, 0, 0, 0, by_arrival=True)
        orphans = sum(self._orphans(number) for number in range(len(node.edges))) if node.match is None else 0
        if not fast or node.match is not None or node.two_sided:
            expected = recomputation.rows(node)
            rows, missing, extra, different = _compare(node, expected, stored.select("_row.*"), columns)
            return Difference(node.name, rows, missing, extra, different, orphans)
        suspects = self._suspects(stored).persist()
        count = suspects.count()
        rows = stored.count()
        if not count:
            return Difference(node.name, rows, 0, 0, 0, orphans)
        expected, kept = (
            by_key(rows_, F.broadcast(suspects), node.key, "left_semi", nulls=node.null_keys)
            for rows_ in (recomputation.rows(node), stored.select("_row.*"))
        )
        _, missing, extra, different = _compare(node, expected, kept, columns)
        return Difference(node.name, rows, missing, extra, different, orphans, count)

    @property
    def _pks(self) -> list[str]:
        return numbered("pk", len(self.plan.left_key(self.node)))

    def _lefts(self) -> Relation:
        """``pk_1``.. and ``l`` of every left row that the left view shows."""
        sql, pks = self.engine.sql, self._pks
        lefts = SparkRelation(without_pushdown(self.engine.frame(self.reader.lefts(self.node))))
        keys = sql.renamed(self.plan.key_of(self.node.left.table), pks)
        views = f"SELECT {sql.names(pks)}, {seen(sql, self.node.left)} AS l FROM (SELECT {keys}, _row AS t FROM lefts)"
        return self.engine.query(f"SELECT * FROM ({views}) WHERE l IS NOT NULL", lefts=lefts)

    def _suspects(self, stored: DataFrame) -> DataFrame:
        """Keys whose stored hash is not the hash of the rows that they should be made from."""
        node, sql, state = self.node, self.engine.sql, self._lefts()
        for number, edge in enumerate(node.edges, start=1):
            lacking = self.engine.query(f"SELECT *, true AS lacks_{number} FROM state", state=state)
            fill = star.fill(sql, lacking.columns, number, edge, self.plan.key_of(edge.right.table))
            state = self.engine.query(fill, state=lacking, rights=self.reader.current(edge.right.table))
        made = self.engine.frame_of(statements.join(sql, node, fingerprint(self.plan, node)), state=state).where("new IS NOT NULL")
        keys = [F.col(c).alias(k) for c, k in zip(numbered("pk", len(node.key)), node.key, strict=True)]
        expected = made.select(*keys, F.col("new._hash").alias("_expected"))
        found = stored.select(*node.key, F.col("_row._hash").alias("_found"))
        both = by_key(expected, found, node.key, "full", nulls=node.null_keys)
        wrong, held = both.where("NOT _expected <=> _found").select(*node.key), self.reader.held(node.name, None)
        if held is None:
            return wrong
        return by_key(wrong, self.engine.frame(held).select(*node.key), node.key, "left_anti", nulls=node.null_keys)

    def _orphans(self, index: int) -> int:
        """Live subscriptions of an edge and live left rows with a foreign key that do not pair up one to one."""
        edge, pks = self.node.edges[index], self._pks
        fks = numbered("fk", len(edge.foreign_key))
        shown = f"SELECT *, {foreign_key(self.engine.sql, edge)} AS fk FROM lefts"
        wanted = self.engine.frame_of(f"SELECT * FROM ({shown}) WHERE fk IS NOT NULL", lefts=self._lefts())
        want = wanted.select(*pks, *(F.col(f"fk.{c}").alias(c) for c in fks), F.lit(1).alias("_want"), F.col("l._hash").alias("_lefthash"))
        subscribers = self.engine.frame(self.reader.subscribers(self.node, edge, None))
        have = subscribers.select(*pks, *fks, F.lit(1).alias("_have"), "_hash")
        both = by_key(want, have, [*pks, *fks], "full", nulls=self.plan.null_keys(self.node.left.table))
        return both.where("_want IS NULL OR _have IS NULL OR NOT _lefthash <=> _hash").count()


def _compare(node: Node, expected: DataFrame, stored: DataFrame, columns: list[str]) -> tuple[int, int, int, int]:
    """(rows stored, missing, extra, different) of two frames by key."""
    e = expected.select(*node.key, F.struct(*columns).alias("_e"))
    s = stored.select(*node.key, F.struct(*columns).alias("_s"))
    both = by_key(e, s, node.key, "full", nulls=node.null_keys)
    same = reduce(Column.__and__, [F.col(f"_e.`{c}`").eqNullSafe(F.col(f"_s.`{c}`")) for c in columns])
    cases = {
        "rows": F.col("_s").isNotNull(),
        "missing": F.col("_s").isNull(),
        "extra": F.col("_e").isNull(),
        "different": F.col("_e").isNotNull() & F.col("_s").isNotNull() & ~same,
    }
    row = both.agg(*(F.count(F.when(c, 1)).alias(n) for n, c in cases.items())).first()
    assert row is not None
    return row["rows"], row["missing"], row["extra"], row["different"]

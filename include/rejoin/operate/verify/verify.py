"""verify: is every output what its defining SQL says?"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rejoin.context.progress import SILENT, Progress, telling
from rejoin.engines.placement import chosen, placed
from rejoin.engines.relation import Engine
from rejoin.failures.engine_errors import named_errors
from rejoin.lake.read.newest_run import of_newest
from rejoin.lake.read.table_sizes import Sizes
from rejoin.limits import limits
from rejoin.operate.verify.arrow_reader import ArrowReader
from rejoin.operate.verify.comparison import Comparison, Difference
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.plan.model.plan import Node
from rejoin.plan.sql import suspects
from rejoin.steps.run.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def verify(topology: Topology, spark: "Callable[[], SparkSession]", *, fast: bool, progress: Progress = SILENT) -> list[Difference]:
    """Compares every output of the last committed run with a recomputation from its source tables.

    In this process, or by Spark, as ``engines.placement`` decides for each output. Also counts subscriptions that belong to no live left row, and live
    left rows without one (I8). Joins of streams as of arrival, or as of the run, are not compared. The ledger keeps what was found.

    Args:
        topology: the topology.
        spark: gives the session, if it is needed.
        fast: compare the stored hashes first, and values only where they differ; not of joins by anything but a foreign key of the left. So it finds
            changes that did not reach an output, and no values that were damaged (ADR 0003).
        progress: is told of every output.

    Raises:
        EngineRefused: an output can only be compared by Spark, which was not to be used.
        RunUnknown: nothing was committed yet.
        LedgerConflict: again and again newer runs were committed meanwhile, and what was being compared was expired.
    """

    def as_of(head: int) -> list[Difference]:
        with ExitStack() as keeping:
            return _Verification(topology, spark, head, keeping, progress).made(fast=fast)

    return of_newest(topology.ledger, topology.refs, as_of)


class _Verification:
    """One comparison of all outputs as of a run. ``keeping``: closed when it is over."""

    def __init__(self, topology: Topology, spark: "Callable[[], SparkSession]", head: int, keeping: ExitStack, progress: Progress) -> None:
        self._topology, self._spark, self._head, self._keeping, self._progress = topology, spark, head, keeping, progress
        self._plan, self._states = topology.ledger.run(head).plan, topology.ledger.states(head)
        self._readers: dict[bool, PlainReader] = {}
        self._looked_at = set[str]()

    def made(self, *, fast: bool) -> list[Difference]:
        ledger, found, kept = self._topology.ledger, list[Difference](), self._topology.ledger.kept(self._head)
        sizes = Sizes(lambda: self._topology.refs, self._states)
        rows = {n.name: sizes.live(n.name) for n in self._plan.nodes}
        self._progress.planned({f"verify.{n}": max(1, count) for n, count in rows.items() if n not in kept}, "rows")
        for node in self._plan.nodes:
            if node.name in kept:
                found.append(Difference(node.name, rows[node.name], kept=True))
                continue
            comparing = named_errors(f"comparison of output {node.name!r}", suspects.of_node(self._plan, node.name))
            with comparing, telling(self._progress, f"verify.{node.name}") as counts:
                found.append(self._of(node, fast=fast))
                counts |= {"rows": found[-1].rows, "differences": found[-1].total}
        ledger.verified(self._head, sum(d.total for d in found), fast=fast)
        return found

    def _of(self, node: Node, *, fast: bool) -> Difference:
        config = self._topology.config

        def compared(engine: Engine) -> Difference:
            reader = self._reader(engine)
            with self._by_spark(engine, node, max(reader.stored(node.name), reader.stored(node.left.table))):
                return Comparison(reader.engine, self._plan, reader, node).made(self._looked_at, fast=fast)

        found, where = placed(chosen(config.engine, cluster=config.cluster), self._plan, self._spark, compared)
        return replace(found, engine=where["engine"], engine_why=where.get("engine_why", ""))

    def _reader(self, engine: Engine) -> PlainReader:
        """One for all outputs that this kind of engine compares: tables that several are made of are read once."""
        if engine.in_process not in self._readers:
            kind = ArrowReader if engine.in_process else _spark_reader()
            generations = self._topology.ledger.generations(self._head)
            made = kind(engine, self._plan, self._states, self._topology.refs, generations)
            self._keeping.enter_context(made.keeping)
            self._readers[engine.in_process] = made
        return self._readers[engine.in_process]

    @contextmanager
    def _by_spark(self, engine: Engine, node: Node, rows: int) -> Iterator[None]:
        """Where Spark compares: its tasks are told, and it shuffles into enough partitions for this many rows, meanwhile."""
        if engine.in_process:
            yield
            return
        from rejoin.lake.spark.session import JobCounter

        spark, setting = engine.by_spark("a comparison").spark, "spark.sql.shuffle.partitions"
        before = str(spark.conf.get(setting))
        with JobCounter(spark, f"verify-{node.name}") as counter:
            self._progress.tasks(f"verify.{node.name}", counter.tasks)
            spark.conf.set(setting, str(max(int(before), rows // limits().compared_rows)))
            try:
                yield
            finally:
                spark.conf.set(setting, before)


def _spark_reader() -> type[PlainReader]:
    from rejoin.operate.verify.spark_reader import SparkReader

    return SparkReader

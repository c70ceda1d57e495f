"""repair: what ``verify`` finds wrong is recomputed by one run, and compared again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from rejoin.context.progress import SILENT, Progress
from rejoin.errors import SinksBehind
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.operate.verify.comparison import Difference
from rejoin.operate.verify.verify import verify
from rejoin.plan.model.policy import RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Repaired:
    """What was found and done.

    ``before``, ``after``: what the comparisons found; ``run``: the run that recomputed the wrong outputs, None if there were none, and ``steps``
    those of this run; ``behind``: why sinks did not get what it changed.
    """

    before: Sequence[Difference]
    after: Sequence[Difference]
    run: Run | None = None
    steps: Mapping[str, StepRecord] = field(default_factory=dict)
    behind: SinksBehind | None = None


def repair(topology: Topology, spark: "Callable[[], SparkSession]", who: str, *, fast: bool, progress: Progress = SILENT) -> Repaired:
    """Compares, recomputes the outputs that are wrong, and compares again. Opens no run if there are none.

    The run reads no input and has the definitions of the last committed run, whatever became of the topology file. Outputs that are made of a wrong
    one follow it. The fuse stops none of them: without input nothing changes but what was wrong, and that much was wrong is no reason to leave it so.

    Args:
        topology: the topology.
        spark: gives the session.
        who: the owner of the run.
        fast: of both comparisons.
        progress: is told of the comparisons and of the run.

    Raises:
        RunBusy: a run is open and alive.
        RunUnknown: nothing was committed yet.
    """
    spark, ledger = cache(spark), topology.ledger
    before = verify(topology, spark, fast=fast, progress=progress)
    wrong = tuple(d.node for d in before if d.total > d.hidden)  # rows that filters hide are there: compaction brings them back
    if not wrong:
        return Repaired(before, before)
    stored = Topology(ledger.run(ledger.head() or 0).plan, topology.config, topology.root)
    behind: SinksBehind | None = None
    try:
        run = run_topology(stored, spark, who, progress, RunOptions(repair=wrong, note=f"repair of {', '.join(wrong)}"))
    except SinksBehind as error:
        run, behind = ledger.run(ledger.head() or 0), error
    after = verify(topology, spark, fast=fast, progress=progress)
    return Repaired(before, after, run, ledger.steps(run.number), behind)

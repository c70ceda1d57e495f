"""What is measured: rejoin itself, and what every engine has in common."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from measure import Done, Stages, in_spark
from pyspark.sql import SparkSession
from work import COLUMNS, Change

from rejoin.engines.choice import EngineChoice
from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.operate.compact import compact
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

ICEBERG = {"format-version": "2", "write.parquet.compression-codec": "zstd"}
"""Iceberg properties of every table that a baseline writes."""


class Engine(Protocol):
    """Keeps the result up to date change set by change set."""

    name: str
    largest: float
    """The largest change set that it is asked to apply, as a share of all rows; what comes after is not measured."""

    def load(self) -> Done:
        """Makes the tables and the result from the source rows."""

    def apply(self, change: Change) -> Done:
        """Brings the result up to date."""

    def tidy(self) -> Done:
        """What has to be done now and then, such as a compaction."""

    def result(self) -> pa.Table:
        """The live rows of the result."""

    def close(self) -> None:
        """Frees what it holds."""


@dataclass(frozen=True)
class Lake:
    """A topology with its session."""

    topology: Topology
    spark: SparkSession

    def run(self) -> Done:
        """One run; its jobs and stages as the ledger has them, and as ``rest`` what no step accounts for (steps may overlap)."""
        started = time.monotonic()
        run = run_topology(self.topology, lambda: self.spark, f"bench {time.monotonic_ns()}")
        whole, steps = time.monotonic() - started, self.topology.ledger.steps(run.number).values()
        stages: Stages = {s.step: (s.seconds, s.jobs or 0) for s in steps}
        stages["rest"] = (max(0.0, whole - sum(s.seconds for s in steps)), 0)
        ways = sorted({str(s.detail["refresh"]) for s in steps if "refresh" in s.detail})
        return Done(sum(s.jobs or 0 for s in steps), stages, ", ".join(ways))

    def compact(self) -> Done:
        """One compaction."""
        return in_spark(self.spark, lambda: compact(self.topology, lambda: self.spark, f"bench {time.monotonic_ns()}"))

    def check(self) -> None:
        """Fails if an output is not what its SQL says: the speed of wrong results is worth nothing."""
        wrong = {d.node: d.total for d in verify(self.topology, lambda: self.spark, fast=False) if d.total}
        if wrong:
            raise SystemExit(f"rejoin's outputs differ from their definition: {wrong}")

    def state(self) -> dict[str, int]:
        """Table -> snapshot that the ledger says is current."""
        return self.topology.ledger.states(self.topology.ledger.head())


def lake_of(root: Path) -> Lake:
    """The topology file in a folder, on a lake beside it."""
    topology = Topology(load(str(root / "topology.py")), lake_config(str(root / "lake")), str(root))
    return Lake(topology, session(topology.config))


def by_spark(lake: Lake) -> Lake:
    """The same topology in the same lake under another name, with Spark doing every step."""
    made = lake.topology
    plan = replace(made.plan, topology=f"{made.plan.topology}_spark")
    return Lake(Topology(plan, replace(made.config, engine=EngineChoice.SPARK), made.root), lake.spark)


class Rejoin:
    """rejoin on the landed files.

    Args:
        lake: where it runs.
        name: what the results call it.
    """

    largest = 1.0

    def __init__(self, lake: Lake, name: str) -> None:
        self._lake, self.name = lake, name

    def load(self) -> Done:
        return self._lake.run()

    def apply(self, change: Change) -> Done:  # noqa: ARG002 -- it finds what is new by itself
        return self._lake.run()

    def tidy(self) -> Done:
        return self._lake.compact()

    def result(self) -> pa.Table:
        snapshot, table = self._lake.state()["enriched"], f"lake.{self._lake.topology.plan.topology}.enriched"
        return self._lake.spark.sql(f"SELECT {', '.join(COLUMNS['enriched'])} FROM {table} VERSION AS OF {snapshot}").toArrow()

    def close(self) -> None:
        """The lake goes with the work's folder."""


def iceberg_properties(extra: dict[str, str] | None = None) -> str:
    """The TBLPROPERTIES of a baseline's table."""
    return ", ".join(f"'{k}' = '{v}'" for k, v in (ICEBERG | (extra or {})).items())


def drop(spark: SparkSession, *tables: str) -> None:
    """Removes tables of the lake with their files."""
    for table in tables:
        spark.sql(f"DROP TABLE IF EXISTS lake.{table} PURGE")

"""Spark runs the statements: frames where rows are many, rows of this process as frames of one partition where they are few."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType

from rejoin.engines.relation import Counts, Engine, LocalRelation, RangeWork, Relation
from rejoin.engines.spark.types import arrow_schema, collected, spark_types
from rejoin.errors import EngineFailed
from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.plan import Node, Table
from rejoin.statements.dialect import SPARK, Dialect
from rejoin.statements.value_hash import MURMUR3, murmur3


@dataclass(frozen=True)
class SparkRelation(Relation):
    """Rows that Spark has yet to compute; ``observed``: what is counted of them is told when they are."""

    frame: DataFrame
    observed: bool = False

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.frame.schema)

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def here(self) -> pa.Table:
        return collected(self.frame)


def observed(*some: Relation) -> bool:
    """Whether something is counted of any of them, or of what they are made of."""
    return any(isinstance(rows, SparkRelation) and rows.observed for rows in some)


def by_key(rows: DataFrame, keys: DataFrame, key: Sequence[str], *, nulls: bool) -> DataFrame:
    """The rows whose columns ``key`` have the values of one of ``keys``; ``nulls``: null being equal to null."""
    if not nulls:
        return rows.join(keys, on=list(key), how="left_semi")
    a, b = rows.alias("_a"), keys.alias("_b")
    same = [F.col(f"_a.`{k}`").eqNullSafe(F.col(f"_b.`{k}`")) for k in key]
    return a.join(b, on=reduce(Column.__and__, same), how="left_semi")


class SparkEngine(Engine):
    """Statements become plans of Spark, executed where rows are asked for."""

    sql: Dialect = SPARK
    in_process = False

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        spark.udf.register(MURMUR3, F.arrow_udf(murmur3, BinaryType()))  # type: ignore[attr-defined]

    def query(self, statement: str, **inputs: Relation) -> Relation:
        return SparkRelation(self.frame_of(statement, **inputs), observed(*inputs.values()))

    def frame_of(self, statement: str, **inputs: Relation) -> DataFrame:
        """The same as a frame of Spark."""
        # Inputs are views with names of their own, so that steps that run side by side do not meet.
        views = {name: f"rejoin_{uuid4().hex}" for name in inputs}
        named = ", ".join(f"{name} AS (SELECT * FROM {view})" for name, view in views.items())
        frames = {views[name]: self.frame(rows) for name, rows in inputs.items()}
        text = f"WITH {named} SELECT * FROM ({statement})"
        if ".connect." in type(self.spark).__module__:
            from rejoin.engines.spark.connect import statement as connected

            return connected(text, frames)
        made = self._over(text, frames)
        # What is observed of an input is only told of plans that hold it: not of the text of a query over a view.
        return made.select("*") if observed(*inputs.values()) else made

    def _over(self, text: str, views: Mapping[str, DataFrame]) -> DataFrame:
        """The rows of a statement over views."""
        try:
            for name, frame in views.items():
                frame.createOrReplaceTempView(name)
            return self.spark.sql(text)
        finally:
            # Not the public call: it analyses the view's plan anew, to see whether its rows are cached.
            catalog = self.spark._jsparkSession.sessionState().catalog()  # noqa: SLF001
            for name in views:
                catalog.dropTempView(name)

    def of(self, frame: DataFrame, *over: Relation) -> Relation:
        """A frame as a relation; ``over``: the relations that it was made of, but for stored tables."""
        return SparkRelation(frame, observed(*over))

    def frame(self, rows: Relation) -> DataFrame:
        """A relation as a frame; rows of this process as one partition, which satisfies every distribution that a join or a window asks for."""
        if isinstance(rows, SparkRelation):
            return rows.frame
        return self._spread(rows.here()).coalesce(1)

    def rows(self, arrow: pa.Table, *, many: bool = False) -> Relation:
        return SparkRelation(self._spread(arrow)) if many else LocalRelation(arrow)

    def files(self, text: str) -> None:  # noqa: ARG002
        return None

    @property
    def at_once(self) -> int:
        raise NotImplementedError("Spark says how many tasks it runs")

    def landed(self, schema: pa.Schema, streams: Sequence[Iterable[pa.RecordBatch]], rare: Sequence[str], by: Sequence[str]) -> Relation:
        raise NotImplementedError("Spark reads what lands by itself")

    def each_range(self, rows: Relation, by: Sequence[str], work: RangeWork[Any]) -> None:  # noqa: ARG002
        return None

    def everywhere(self, rows: Relation) -> Relation:
        return SparkRelation(F.broadcast(self.frame(rows)), observed(rows))

    def together(self, rows: Relation) -> Relation:
        return SparkRelation(
            self.frame(rows).coalesce(1), observed(rows)
        )  # Spark forgets, after calling Python, that there is one partition only

    def counted(self, rows: Relation, counts: Mapping[str, str]) -> tuple[Relation, Counts]:
        seen = Observation()
        counted = self.frame(rows).observe(seen, *(F.expr(text).alias(name) for name, text in counts.items()))

        def told() -> dict[str, Any]:
            found = seen.get
            if found.keys() != counts.keys():  # a server that is busy gives up waiting for them (SPARK-54279)
                raise EngineFailed("Spark did not report what it has counted; nothing was committed", next_step="try again")
            return dict(found)

        return SparkRelation(counted, observed=True), told

    @contextmanager
    def kept(self, rows: Relation) -> Iterator[Relation]:
        frame = self.frame(rows).persist()
        try:
            yield SparkRelation(frame, observed(rows))
        finally:
            frame.unpersist()

    def type(self, kind: pa.DataType) -> str:
        return from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString()

    def node(self, node: Node) -> Node:
        return node

    def conditions(self, of: Table | Node, expectations: Sequence[Expectation]) -> Sequence[Expectation]:  # noqa: ARG002
        return expectations

    def by_spark(self, why: str) -> "SparkEngine":  # noqa: ARG002
        return self

    def _spread(self, arrow: pa.Table) -> DataFrame:
        return self.spark.createDataFrame(arrow if arrow.num_rows else [], schema=spark_types(arrow.schema))

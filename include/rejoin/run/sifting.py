"""Rows for which an expression of the user has no value: found by halving, then held back, or counted for the error that stops the run.

Only after an engine has said that some row cannot be computed, and only of rows that fit on the driver: the others pay nothing for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from rejoin.errors import NotComputable
from rejoin.failures import blamed, kind_of, of_a_row
from rejoin.lake import probe
from rejoin.lake.local import LocalRows, collected
from rejoin.plan import places
from rejoin.plan.model import Node
from rejoin.plan.rules import Severity
from rejoin.plan.steps import Verb
from rejoin.run.work import Work
from rejoin.stages.frames import viewed
from rejoin.stages.subscribe import foreign_key

MOST = 100
"""So many rows are looked for one by one; of more it is only said that they are more. Each costs some ten small Spark jobs."""
WHY = "_why"
"""A column: why the row cannot be computed."""

Compute = Callable[[DataFrame], DataFrame]


@dataclass
class Sieve:
    """What was set aside of one node in one attempt. ``why``: key -> the reason, which holds no value of the row."""

    work: Work
    node: Node
    verb: Verb
    why: dict[tuple[object, ...], str] = field(default_factory=dict)
    _types: list[pa.DataType] = field(default_factory=list)

    def sifted(self, rows: LocalRows, key: list[str], compute: Compute) -> LocalRows:
        """The rows that ``compute`` can take; the others are set aside.

        Raises:
            NotComputable: there are too many of these.
        """
        found = without_value(self.work.spark, rows, compute)
        self._set_aside(rows, key, found)
        keep = pa.array([i not in found for i in range(rows.arrow.num_rows)], pa.bool_())
        return LocalRows(rows.arrow.filter(keep), rows.schema)

    def lefts(self, frame: DataFrame, key: tuple[str, ...], column: str, *, counts: bool = True) -> DataFrame:
        """A frame of left rows where the struct ``column`` is null if the left view or a foreign key has no value for it.

        Args:
            frame: the frame.
            key: its key columns.
            column: the struct of all columns of the left table.
            counts: False: a row from before, which says nothing about what this run publishes.

        Raises:
            NotComputable: there are too many of these.
        """
        rows = collected(frame)

        def compute(some: DataFrame) -> DataFrame:
            seen = viewed(some, column, self.node.left, "l")
            return seen.select("l", *(F.expr(foreign_key(e)) for e in self.node.edges))

        found = without_value(self.work.spark, rows, compute)
        if counts:
            self._set_aside(rows, list(key), found)
        marks = pa.array([i in found for i in range(rows.arrow.num_rows)], pa.bool_())
        marked = LocalRows(rows.arrow.append_column("_bad", marks), StructType([*rows.schema.fields, _FLAG]))
        return marked.frame(self.work.spark).withColumn(column, F.when(~F.col("_bad"), F.col(column))).drop("_bad")

    def check(self) -> None:
        """Stops the run unless the rows that were set aside may be held back.

        Raises:
            NotComputable: they may not.
        """
        if self.why and not holds(self.node):
            raise self.refused(f"{len(self.why):,}")

    def aside(self, schema: StructType) -> DataFrame:
        """The keys of the node that were set aside, with ``_why``. ``schema`` lends the keys' types."""
        kind = StructType([*(schema[k] for k in self.node.key), StructField(WHY, StringType())])
        keys = zip(*self.why, strict=True) if self.why else [()] * len(self._types)
        columns = [pa.array(values, type_) for values, type_ in zip(keys, self._types, strict=True)]
        rows = pa.table([*columns, pa.array(self.why.values(), pa.string())], names=kind.names)
        return LocalRows(rows, kind).frame(self.work.spark)

    def refused(self, count: str) -> NotComputable:
        """The error that stops the run."""
        reasons = "; ".join(list(dict.fromkeys(self.why.values()))[:5])
        hold = "" if holds(self.node) else ', or let such rows be held back: .expect(computable(), severity="quarantine"), then'
        return NotComputable(
            f"output {self.node.name!r} cannot be computed for {count} rows in step {self.verb}.{self.node.name} of run {self.work.facts.run.number}; nothing was committed: {reasons}",
            expected="a value, or null, for every row",
            next_step=f"correct the input or the expression (try_cast, try_divide ... give null){hold}"
            + ("" if holds(self.node) else f" `rejoin quarantine list {self.node.name}` shows their keys"),
        )

    def _set_aside(self, rows: LocalRows, key: list[str], found: Mapping[int, BaseException]) -> None:
        about = places.of_node(self.work.facts.plan, self.node.name)
        self._types = [rows.arrow[k].type for k in key]
        for at, error in found.items():
            kind = kind_of(error)
            why = f"{blamed(error, about)}: {kind.name if kind else type(error).__name__}"
            self.why[tuple(rows.arrow[k][at].as_py() for k in key)] = why
        if len(self.why) > MOST:
            raise self.refused(f"more than {MOST:,}")


def without_value(spark: SparkSession, rows: LocalRows, compute: Compute) -> dict[int, BaseException]:
    """Row (from 0) -> what an engine said of it alone, for the rows that ``compute`` has no value for; some more than ``MOST`` suffice."""
    found: dict[int, BaseException] = {}
    parts = [(0, rows.arrow.num_rows)] if rows.arrow.num_rows else []
    while parts and len(found) <= MOST:
        start, stop = parts.pop()
        try:
            compute(LocalRows(rows.arrow.slice(start, stop - start), rows.schema).frame(spark)).toArrow()
        except Exception as error:
            if not of_a_row(error):
                raise
            if stop - start == 1:
                found[start] = error
            else:
                middle = (start + stop) // 2
                parts += [(middle, stop), (start, middle)]
    return found


def holds(node: Node) -> bool:
    """Whether rows of the node that cannot be computed are to be held back."""
    return any(e.type == "computable" and e.severity is Severity.QUARANTINE for e in node.expectations)


def can_sift(error: BaseException, rows: int) -> bool:
    """Whether an error is about single rows of few enough."""
    return of_a_row(error) and rows <= probe.LOCAL_ROWS


_FLAG = StructField("_bad", BooleanType())

"""Reads for a comparison by Spark's own Iceberg reader, on as many executors as there are."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from rejoin.engines.relation import Relation
from rejoin.lake.read.lookups import TableRead, scanned
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.statements.dialect import SPARK

FILTERED = ("string", "bigint", "int", "date", "timestamp", "decimal")
"""Columns of types that begin so are read through filters. Not floating point numbers: whether -0.0 equals 0.0 differs between a filter and the bounds, by Iceberg's rules."""


class SparkReader(PlainReader):
    """See ``PlainReader``."""

    def every(self, name: str, columns: Sequence[str]) -> Relation:
        """All rows, so that no filter on them moves into the scan: of the parts of a condition Spark hands some to the scan, and computes those
        before the others, whatever their order. A filter could no longer protect a cast that stands behind it.
        """
        self.reads.append(TableRead(name, "scan", "a comparison reads by another way than a run", None))
        rows = self.table(name).selectExpr(*scanned(columns))
        return self.engine.by_spark("a comparison").of(
            rows.where(F.rand(0) >= 0)
        )  # true, but nothing is moved past what is not deterministic

    def unfound(self, name: str) -> int:
        """Rows of a sample: each column's smallest, largest and longest value, which Spark looks for as all engines do, who skip files and row groups
        by their bounds.
        """
        rows = self.as_others(name)
        columns = [f.name for f in rows.schema.fields if f.dataType.simpleString().startswith(FILTERED)]
        texts = {f.name for f in rows.schema.fields if f.dataType == StringType()}
        picked = {n: _extremes(n, text=n in texts) for n in columns}
        found = rows.agg(*(c.alias(f"{i}_{j}") for i, some in enumerate(picked.values()) for j, c in enumerate(some))).first()
        assert found is not None
        asked = list[Column]()
        for i, (n, some) in enumerate(picked.items()):
            values = {repr(v): v for j in range(len(some)) if (v := found[f"{i}_{j}"]) is not None}
            asked += [F.col(SPARK.name(n)) == F.lit(v) for v in values.values()]
        return _unfound(rows, asked)


def _extremes(column: str, *, text: bool) -> list[Column]:
    """The smallest value, the largest, and the longest: longer texts than others have no bounds in Parquet.

    Not ``F.max(column)``: Iceberg would answer that from the bounds.
    """
    name = SPARK.name(column)
    return [F.min_by(name, name), F.max_by(name, name), *([F.max_by(name, F.length(name))] if text else [])]


def _unfound(rows: DataFrame, asked: Sequence[Column]) -> int:
    """Rows that a full read has and a filtered one has not."""
    if not asked:
        return 0
    filtered = reduce(DataFrame.unionAll, [rows.where(c).select(F.lit(i).alias("i")) for i, c in enumerate(asked)])
    counts = {int(r["i"]): int(r["count"]) for r in filtered.groupBy("i").count().collect()}
    found = rows.agg(*(F.count(F.when(c, 1)).alias(str(i)) for i, c in enumerate(asked))).first()
    assert found is not None
    return sum(max(0, int(found[str(i)]) - counts.get(i, 0)) for i in range(len(asked)))

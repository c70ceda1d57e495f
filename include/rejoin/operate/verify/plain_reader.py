"""Reads for a comparison, by another way than a run reads: Spark's own Iceberg reader over whole tables.

No list of files, no hidden rows and no bounds of rejoin's: what DuckDB got wrong, or a bound hides, is seen. Runs of few rows read and write
by DuckDB and PyIceberg.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from rejoin.engines.relation import Relation
from rejoin.engines.spark_engine import SparkEngine, SparkRelation
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.read.lookups import LookupKeys, TableRead, scanned
from rejoin.lake.read.reader import Reader
from rejoin.operate.verify.whole_snapshots import with_snapshots
from rejoin.plan.model.plan import Plan
from rejoin.statements.dialect import SPARK

KEY = ""
"""Stands for the key among the columns of a sample."""
FILTERED = ("string", "bigint", "int", "date", "timestamp", "decimal")
"""Columns of types that begin so are read through filters. Not floating point numbers: whether -0.0 equals 0.0 differs between a filter and the bounds, by Iceberg's rules."""


class PlainReader(Reader):
    """The tables of one topology as of one run, every read a whole one; source tables as the snapshots within their feeds say them (``generations``)."""

    def __init__(
        self, engine: SparkEngine, plan: Plan, states: Mapping[str, int], refs: Refs, generations: Mapping[str, Generations]
    ) -> None:
        super().__init__(engine, plan, states, refs)
        self._spark, self._generations = engine, generations

    def current(self, name: str, also: Sequence[str] = ()) -> Relation:
        """``Relation`` of a whole source table or output."""
        rows = super().current(name, also)
        if (found := self._generations.get(name)) is None:
            return rows
        return SparkRelation(with_snapshots(self._spark, self, self._plan.table(name), found, self._spark.frame(rows)))

    def every(self, name: str, columns: Sequence[str]) -> Relation:
        """All rows, as Iceberg itself says what these are."""
        self.reads.append(TableRead(name, "scan", "a comparison reads by another way than a run", None))
        return SparkRelation(self.table(name).selectExpr(*scanned(columns)))

    def having(
        self,
        name: str,
        key: Sequence[str],
        keys: LookupKeys | None,
        columns: Sequence[str],
        *,
        nulls: bool = False,
    ) -> Relation:
        """The stored rows of some keys (None: all rows)."""
        rows = self.every(name, columns)
        if keys is None:
            return rows
        sql = self.engine.sql
        wanted = f"EXISTS (SELECT 1 FROM keys AS k WHERE {sql.on(key, 'k', 'f', nulls=nulls)})"
        return self.engine.query(f"SELECT {sql.names(columns)} FROM found AS f WHERE {wanted}", found=rows, keys=keys.rows)

    def unique(self, name: str, column: str) -> bool:  # noqa: ARG002
        """Bounds tell that no two rows have one key; they are not asked."""
        return False

    def hidden(self, name: str, key: Sequence[str]) -> int:
        """How many rows of a sample a reader with a filter does not find: each column's smallest, largest and longest value by Spark, which
        skips files and row groups by their bounds as all engines do, and the keys with such values as a run looks keys up.
        """
        if not self.has(name):
            return 0
        rows = self.as_others(name)
        columns = [f.name for f in rows.schema.fields if f.dataType.simpleString().startswith(FILTERED)]
        texts = {f.name for f in rows.schema.fields if f.dataType == StringType()}
        picked = {n: _extremes([n], text=n in texts) for n in columns} | {KEY: _extremes(key, text=key[0] in texts)}
        found = rows.agg(*(c.alias(f"{i}_{j}") for i, some in enumerate(picked.values()) for j, c in enumerate(some))).first()
        assert found is not None
        values = {
            n: {repr(v): v for j in range(len(some)) if (v := found[f"{i}_{j}"]) is not None and v[0] is not None}.values()
            for i, (n, some) in enumerate(picked.items())
        }
        keys = [tuple(v) for v in values.pop(KEY)]
        asked = [F.col(SPARK.name(n)) == F.lit(v[0]) for n, some in values.items() for v in some]
        return self._unfound(rows, asked) + self._unseen(name, rows, key, keys)

    def _unfound(self, rows: DataFrame, asked: Sequence[Column]) -> int:
        """Rows that a full read has and a filtered one has not."""
        if not asked:
            return 0
        filtered = reduce(DataFrame.unionAll, [rows.where(c).select(F.lit(i).alias("i")) for i, c in enumerate(asked)])
        counts = {int(r["i"]): int(r["count"]) for r in filtered.groupBy("i").count().collect()}
        return sum(max(0, have - int(counts.get(i, 0))) for i, have in enumerate(_counted(rows, asked)))

    def _unseen(self, name: str, rows: DataFrame, key: Sequence[str], keys: Sequence[tuple[object, ...]]) -> int:
        """Rows of some keys that a full read has and a lookup of a run has not."""
        if not keys:
            return 0
        types = [rows.schema[k] for k in key]
        wanted = self.engine.by_spark("a comparison").spark.createDataFrame(list(keys), StructType(types)).toArrow()
        found = duckdb_lookup.having(self._table(name), self.states[name], key, wanted, key)
        if isinstance(found, duckdb_lookup.TooLarge):
            return 0
        same = [
            reduce(Column.__and__, [F.col(SPARK.name(k)).eqNullSafe(F.lit(v)) for k, v in zip(key, some, strict=True)]) for some in keys
        ]
        return max(0, sum(_counted(rows, same)) - int(found.num_rows))


def _extremes(columns: Sequence[str], *, text: bool) -> list[Column]:
    """The columns as a struct where the first is smallest, largest, and longest: longer texts than others have no bounds in Parquet.

    Not ``F.max(column)``: Iceberg would answer that from the bounds.
    """
    row, first = F.struct(*map(SPARK.name, columns)), SPARK.name(columns[0])
    return [F.min_by(row, first), F.max_by(row, first), *([F.max_by(row, F.length(first))] if text else [])]


def _counted(rows: DataFrame, asked: Sequence[Column]) -> list[int]:
    """How many rows meet each condition, of all rows."""
    found = rows.agg(*(F.count(F.when(c, 1)).alias(str(i)) for i, c in enumerate(asked))).first()
    assert found is not None
    return [int(found[str(i)]) for i in range(len(asked))]

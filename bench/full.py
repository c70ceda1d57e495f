"""Baselines that recompute everything from the source tables' Parquet files, whatever changed."""

import pyarrow as pa
from engines import ICEBERG, drop
from measure import Done, in_spark
from pyspark.sql import SparkSession
from work import COLUMNS, JOIN, Work

WORKAROUND = """
WITH grouped AS (SELECT customer_id AS fk, collect_list(struct(*)) AS rows FROM {orders} GROUP BY customer_id)
SELECT o.*, name, region
FROM (SELECT g.rows, c.name, c.region FROM grouped g LEFT JOIN {customers} c ON g.fk = c.id) LATERAL VIEW inline(rows) o AS {columns}
"""
"""What one did before Kafka Streams had foreign-key joins: group by the foreign key, join by primary key, flatten."""


class FullDuckdb:
    """DuckDB joins everything, Parquet to Parquet."""

    name = "duckdb full"

    def __init__(self, work: Work) -> None:
        self._work, self._file = work, work.root / "duckdb-full.parquet"

    def recompute(self) -> Done:
        """Joins and rewrites everything."""
        self._work.db.execute(f"COPY ({JOIN.format(hint='', **self._work.sources())}) TO '{self._file}' (FORMAT parquet)")
        return Done()

    def clear(self) -> None:
        """Makes room for the next recomputation."""
        self._file.unlink(missing_ok=True)

    def result(self) -> pa.Table:
        """The rows of the result."""
        return self._work.db.sql(f"SELECT {', '.join(COLUMNS['enriched'])} FROM '{self._file}'").to_arrow_table()


class FullSpark:
    """Spark joins everything, Parquet to an Iceberg table.

    Args:
        name: shown in the results.
        query: SQL over the views ``orders`` and ``customers``.
    """

    def __init__(self, work: Work, spark: SparkSession, name: str, query: str) -> None:
        self.name, self._work, self._spark, self._query = name, work, spark, query
        self._table = "baseline." + name.replace(" ", "_").replace(",", "")

    def recompute(self) -> Done:
        """Joins and writes everything."""
        return in_spark(self._spark, self._write)

    def clear(self) -> None:
        """Makes room for the next recomputation."""
        drop(self._spark, self._table)

    def result(self) -> pa.Table:
        """The rows of the result."""
        return self._spark.table(f"lake.{self._table}").select(*COLUMNS["enriched"]).toArrow()

    def _write(self) -> None:
        for table in self._work.sources():
            self._spark.read.parquet(str(self._work.source(table))).createOrReplaceTempView(table)
        writer = self._spark.sql(self._query).writeTo(f"lake.{self._table}").using("iceberg")
        for key, value in ICEBERG.items():
            writer = writer.tableProperty(key, value)
        writer.create()


Full = FullDuckdb | FullSpark


def full_engines(work: Work, spark: SparkSession, *, workaround: bool = True) -> list[Full]:
    """DuckDB, Spark with either join, and the old workaround."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.baseline")
    names = {"orders": "orders", "customers": "customers"}
    columns = ", ".join(COLUMNS["orders"])
    queries = {
        "spark full, shuffle": JOIN.format(hint="/*+ MERGE(c) */ ", **names),
        "spark full, broadcast": JOIN.format(hint="/*+ BROADCAST(c) */ ", **names),
    }
    if workaround:
        queries["spark full, grouped by key"] = WORKAROUND.format(columns=columns, **names)
    return [FullDuckdb(work), *(FullSpark(work, spark, name, query) for name, query in queries.items())]

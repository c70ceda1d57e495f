"""The first load without rejoin: a Spark job that reads the same JSON lines and writes the same tables, and nothing else.

Mirrors of the sources with a hash column, a subscriptions table (foreign key, primary key, hash), the output and its changes.
"""

from engines import drop, iceberg_properties, lake_of
from folders import Folders
from measure import Done, in_spark
from pyspark.sql import SparkSession
from work import COLUMNS, Work

_SOURCE = "source: STRUCT<connector: STRING, lsn: BIGINT, snapshot: STRING>"
_ROWS = {
    "orders": "id: BIGINT, customer_id: BIGINT, status: STRING, quantity: INT, price: STRING, note: STRING",
    "customers": "id: BIGINT, name: STRING, region: STRING",
}
_VALUES = {
    "orders": "after.id, after.customer_id, after.status, after.quantity, CAST(after.price AS DECIMAL(10,2)) AS price, after.note",
    "customers": "after.id, after.name, after.region",
}
_ENRICHED = """
SELECT o.id, o.customer_id, o.status, o.quantity, o.price, o.note, c.name, c.region, 1L AS _run,
       unhex(md5(concat(o._hash, coalesce(c._hash, X'00')))) AS _hash
FROM lake.plain.orders o LEFT JOIN lake.plain.customers c ON o.customer_id = c.id
"""
_TABLES = ("orders", "customers", "subscriptions", "enriched", "changes")


class PlainLoad:
    """The Spark job."""

    name = "spark load, plain"

    def __init__(self, work: Work, spark: SparkSession) -> None:
        self._work, self._spark = work, spark
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.plain")

    def load(self) -> Done:
        """Writes all tables."""
        return in_spark(self._spark, self._load)

    def close(self) -> None:
        """Removes its tables."""
        drop(self._spark, *(f"plain.{t}" for t in _TABLES))

    def _load(self) -> None:
        for table in _ROWS:
            self._mirror(table)
        self._write("subscriptions", "SELECT customer_id AS fk, id AS pk, _hash FROM lake.plain.orders WHERE customer_id IS NOT NULL")
        self._write("enriched", _ENRICHED)
        self._write("changes", "SELECT 1L AS _run, 'I' AS _op, id, struct(*) AS _after FROM lake.plain.enriched")

    def _mirror(self, table: str) -> None:
        schema = f"key STRUCT<id: BIGINT>, value STRUCT<op: STRING, {_SOURCE}, after: STRUCT<{_ROWS[table]}>>"
        self._spark.read.schema(schema).json(str(self._work.root / "landing" / table)).createOrReplaceTempView("lines")
        rows = f"SELECT {_VALUES[table]}, CAST(source.lsn AS STRING) AS _version FROM (SELECT value.* FROM lines)"
        hashed = f"unhex(md5(to_json(struct({', '.join(COLUMNS[table])}))))"
        self._write(table, f"SELECT *, 1L AS _run, 'I' AS _op, {hashed} AS _hash FROM ({rows})")

    def _write(self, table: str, query: str) -> None:
        self._spark.sql(f"CREATE TABLE lake.plain.{table} USING iceberg TBLPROPERTIES ({iceberg_properties()}) AS {query}")


def warm_up(folders: Folders) -> None:
    """Loads a table with and without rejoin, so that the first measured load does not pay for a cold JVM. Too large for the driver."""
    work = Work(200_000, folders.empty("warm-up"))
    lake = lake_of(work.root)
    work.first_rows()
    PlainLoad(work, lake.spark).load()
    lake.run()
    work.close()

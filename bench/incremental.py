"""Baselines that somebody would write by hand to update only what changed: Spark with MERGE as dbt does it, and DuckDB with indexes."""

import duckdb
import pyarrow as pa
from engines import drop, iceberg_properties
from measure import Done, in_spark
from pyspark.sql import SparkSession
from work import COLUMNS, JOIN, Change, Work

MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("merge", "update", "delete")}
LEFT_DELTA = "SELECT d.*, c.name, c.region FROM {delta} d LEFT JOIN {customers} c ON d.customer_id = c.id"
RIGHT_DELTA = "SELECT o.*, d.name, d.region FROM {orders} o JOIN {delta} d ON o.customer_id = d.id"


class SparkMerge:
    """Spark + Iceberg: the changes are merged into the stored source table, the joined changes into the result. Two commits.

    Args:
        upsert: WHEN NOT MATCHED as well as WHEN MATCHED; without it new rows would be lost, but the join is an inner one.
    """

    largest = 0.1

    def __init__(self, work: Work, spark: SparkSession, *, upsert: bool) -> None:
        self.name = "spark merge, upsert" if upsert else "spark merge, update only"
        self._work, self._spark, self._upsert = work, spark, upsert
        space = "upserted" if upsert else "updated"
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{space}")
        self._tables = {table: f"lake.{space}.{table}" for table in COLUMNS}

    def load(self) -> Done:
        return in_spark(self._spark, self._load)

    def apply(self, change: Change) -> Done:
        return in_spark(self._spark, lambda: self._apply(change))

    def tidy(self) -> Done:
        self._rewrite()
        return Done()  # Iceberg runs these jobs in threads of its own, where nobody can count them

    def result(self) -> pa.Table:
        return self._spark.table(self._tables["enriched"]).toArrow()

    def close(self) -> None:
        """Removes its tables."""
        drop(self._spark, *(t.removeprefix("lake.") for t in self._tables.values()))

    def _load(self) -> None:
        for table in ("orders", "customers"):
            self._create(table, f"SELECT * FROM parquet.`{self._work.source(table)}`")
        self._create("enriched", JOIN.format(hint="", **self._tables))

    def _create(self, table: str, query: str) -> None:
        self._spark.sql(f"CREATE TABLE {self._tables[table]} USING iceberg TBLPROPERTIES ({iceberg_properties(MERGE_ON_READ)}) AS {query}")

    def _apply(self, change: Change) -> None:
        self._spark.read.parquet(str(change.rows)).createOrReplaceTempView("delta")
        self._merge(change.table, "SELECT * FROM delta")
        joined = LEFT_DELTA if change.table == "orders" else RIGHT_DELTA
        self._merge("enriched", joined.format(delta="delta", **self._tables))

    def _merge(self, table: str, rows: str) -> None:
        otherwise = " WHEN NOT MATCHED THEN INSERT *" if self._upsert else ""
        target = self._tables[table]
        self._spark.sql(f"MERGE INTO {target} t USING ({rows}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *{otherwise}")

    def _rewrite(self) -> None:
        for table in self._tables.values():
            options = "map('delete-file-threshold', '1', 'min-input-files', '2')"
            self._spark.sql(f"CALL lake.system.rewrite_data_files(table => '{table}', options => {options})")


class IndexedDuckdb:
    """A DuckDB database with ART indexes: primary keys everywhere, and one of orders by customer. One transaction a change set.

    Rows are put by ``INSERT ... ON CONFLICT DO UPDATE``, which looks every key up in the index.
    """

    name, largest = "duckdb indexed", 0.1

    def __init__(self, work: Work) -> None:
        self._work = work
        self._db = duckdb.connect(str(work.root / "indexed.duckdb"))

    def load(self) -> Done:
        price = "status VARCHAR, quantity INT, price DECIMAL(10,2), note VARCHAR"
        self._db.execute(f"CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT, {price})")
        self._db.execute("CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR, region VARCHAR)")
        self._db.execute(f"CREATE TABLE enriched (id BIGINT PRIMARY KEY, customer_id BIGINT, {price}, name VARCHAR, region VARCHAR)")
        for table, source in self._work.sources().items():
            self._db.execute(f"INSERT INTO {table} FROM {source}")
        self._db.execute("CREATE INDEX by_customer ON orders (customer_id)")
        self._db.execute(f"INSERT INTO enriched {JOIN.format(hint='', orders='orders', customers='customers')}")
        self._db.execute("CHECKPOINT")
        return Done()

    def apply(self, change: Change) -> Done:
        joined = LEFT_DELTA if change.table == "orders" else RIGHT_DELTA
        self._db.execute("BEGIN")
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE delta AS FROM read_parquet('{change.rows}')")
        self._put(change.table, "FROM delta")
        self._put("enriched", joined.format(delta="delta", orders="orders", customers="customers"))
        self._db.execute("COMMIT")
        return Done()

    def tidy(self) -> Done:
        self._db.execute("CHECKPOINT")
        return Done()

    def result(self) -> pa.Table:
        return self._db.sql("FROM enriched").to_arrow_table()

    def close(self) -> None:
        """Closes its database."""
        self._db.close()

    def _put(self, table: str, rows: str) -> None:
        changed = ", ".join(f"{c} = excluded.{c}" for c in COLUMNS[table][1:])
        self._db.execute(f"INSERT INTO {table} {rows} ON CONFLICT (id) DO UPDATE SET {changed}")

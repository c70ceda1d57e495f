"""A writer of Iceberg tables that deletes by values, as Flink's does: Iceberg's own library, in the JVM of the tests' Spark."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

Row = Mapping[str, Any]


class Deleter:
    """Commits to one table."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark, self._name = spark, name
        self._iceberg = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
        self._commits = 0

    def commit(self, by: Sequence[str], deletes: Sequence[Row], rows: Sequence[Row] = (), *, everywhere: bool = False) -> None:
        """One commit that deletes what has these values in these columns, and adds rows, which its own deletes do not hide.

        With ``everywhere`` the deletes are of the table's first spec, which has to be without partitions.
        """
        table = self._iceberg.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, self._name)
        self._commits += 1
        made, schema, spec = table.newRowDelta(), table.schema(), table.spec()
        for partition, some in self._by_partition(table, spec, rows).items():
            made.addRows(self._written(table, schema, spec, partition, some, self._factory(table, by).newDataWriter).dataFiles().get(0))
        spec = table.specs().get(0) if everywhere else spec
        of = schema.select(list(by))
        for partition, some in self._by_partition(table, spec, deletes).items():
            written = self._written(table, of, spec, partition, some, self._factory(table, by).newEqualityDeleteWriter)
            made.addDeletes(written.deleteFiles().get(0))
        made.commit()

    def _factory(self, table: Any, by: Sequence[str]) -> Any:
        gateway = self._spark.sparkContext._gateway
        assert gateway is not None
        ids = gateway.new_array(gateway.jvm.int, len(by))
        for at, name in enumerate(by):
            ids[at] = table.schema().findField(name).fieldId()
        parquet = self._iceberg.FileFormat.PARQUET
        made = self._iceberg.data.GenericFileWriterFactory.Builder(table).dataFileFormat(parquet).deleteFileFormat(parquet)
        return made.equalityFieldIds(ids).equalityDeleteRowSchema(table.schema().select(list(by))).build()

    def _by_partition(self, table: Any, spec: Any, rows: Sequence[Row]) -> dict[Any, list[Row]]:
        found: dict[str, tuple[Any, list[Row]]] = {}
        for row in rows:
            key = self._iceberg.PartitionKey(spec, table.schema())
            key.partition(self._iceberg.data.InternalRecordWrapper(table.schema().asStruct()).wrap(self._record(table.schema(), row)))
            found.setdefault(key.toPath(), (key, []))[1].append(row)
        return dict(found.values())

    def _written(self, table: Any, schema: Any, spec: Any, partition: Any, rows: Sequence[Row], writer: Any) -> Any:
        parquet = self._iceberg.FileFormat.PARQUET
        files = self._iceberg.io.OutputFileFactory.builderFor(table, 1, self._commits).format(parquet).build()
        open_ = writer(files.newOutputFile(spec, partition), spec, partition)
        for row in rows:
            open_.write(self._record(schema, row))
        open_.close()
        return open_.result()

    def _record(self, schema: Any, row: Row) -> Any:
        """A row with values of Java's types: py4j alone would send a small number as an INT, whatever its column."""
        fields = {f.name(): f.fieldId() for f in schema.columns()}
        text = json.dumps({str(i): row[name] for name, i in fields.items() if row.get(name) is not None})
        return self._iceberg.SingleValueParser.fromJson(schema.asStruct(), text)

"""Rows on the driver. A stage over frames made of them is one task without a shuffle, however many joins and windows it has."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType


@dataclass(frozen=True)
class LocalRows:
    """Rows in this process and their Spark type."""

    arrow: pa.Table
    schema: StructType

    @classmethod
    def of(cls, rows: pa.Table) -> "LocalRows":
        """Rows of the types that Spark has for them."""
        return cls(rows, spark_types(rows.schema))

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows as a frame of one partition, which satisfies every distribution that a join or a window asks for."""
        return self.spread(spark).coalesce(1)

    def spread(self, spark: SparkSession) -> DataFrame:
        """The rows as a frame of several partitions, to be worked on by all cores."""
        rows = self.arrow if self.arrow.num_rows else []
        return spark.createDataFrame(rows, schema=self.schema)


def collected(frame: DataFrame) -> LocalRows:
    """The frame computed now. Only for frames that are known to be small."""
    loose = [(f.name, f.dataType, _loose(f.dataType)) for f in frame.schema.fields]
    # Spark takes ``x3 IS NOT NULL`` for NOT NULL also inside a struct that may be null; Arrow refuses that.
    casts = {name: F.col(f"`{name}`").cast(wanted) for name, kind, wanted in loose if kind != wanted}
    rows = frame.withColumns(casts) if casts else frame
    return LocalRows(rows.toArrow(), rows.schema)


def _loose(kind: DataType) -> DataType:
    """The type with every field of every struct nullable."""
    if not isinstance(kind, StructType):
        return kind
    return StructType([StructField(f.name, _loose(f.dataType)) for f in kind.fields])


def spark_schema(table: Table) -> StructType:
    """A table's columns as Spark sees them."""
    return spark_types(table.schema().as_arrow())


def spark_types(schema: pa.Schema) -> StructType:
    """Arrow's types as Spark's: a timestamp without a zone is a wall clock, which Spark would take for an instant unless told."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """A Spark type as the columns of a new table, none of them required."""
    loose = _loose(schema)
    assert isinstance(loose, StructType)
    return to_arrow_schema(loose)


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the columns of ``schema``: what they lack is null, inside structs too."""
    have = {name: rows[name].combine_chunks() for name in rows.column_names}
    return pa.table(
        [_fitted(have.get(f.name), f.type, rows.num_rows) for f in schema], schema=pa.schema([(f.name, f.type) for f in schema])
    )


def _fitted(values: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if values is None:
        return pa.nulls(count, kind)
    if not pa.types.is_struct(kind):
        return values.cast(kind)
    have = {f.name for f in values.type}
    fields = [kind.field(i) for i in range(kind.num_fields)]
    parts = [_fitted(pc.struct_field(values, f.name) if f.name in have else None, f.type, count) for f in fields]
    return pa.StructArray.from_arrays(parts, fields=[pa.field(f.name, f.type) for f in fields], mask=values.is_null())

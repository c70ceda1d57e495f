"""Arrow's types as Spark's and back, and frames that are computed now."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def collected(frame: DataFrame) -> pa.Table:
    """The frame computed now. Only for frames that are known to be small."""
    loose = [(f.name, f.dataType, _loose(f.dataType)) for f in frame.schema.fields]
    # Spark takes ``x3 IS NOT NULL`` for NOT NULL also inside a struct that may be null; Arrow refuses that.
    casts = {name: F.col(f"`{name}`").cast(wanted) for name, kind, wanted in loose if kind != wanted}
    return (frame.withColumns(casts) if casts else frame).toArrow()


def spark_types(schema: pa.Schema) -> StructType:
    """Arrow's types as Spark's: a timestamp without a zone is a wall clock, which Spark would take for an instant unless told."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """A Spark type as the columns of a new table, none of them required."""
    loose = _loose(schema)
    assert isinstance(loose, StructType)
    return to_arrow_schema(loose)


def _loose(kind: DataType) -> DataType:
    """The type with every part of every other nullable."""
    if isinstance(kind, ArrayType):
        return ArrayType(_loose(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _loose(kind.valueType))
    if not isinstance(kind, StructType):
        return kind
    return StructType([StructField(f.name, _loose(f.dataType)) for f in kind.fields])

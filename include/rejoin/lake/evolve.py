"""Schema changes of an edited topology: columns are added and widened before a run writes, dropped after it is published."""

from typing import TYPE_CHECKING

from rejoin.errors import SchemaRefused
from rejoin.lake.refs import Refs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


def evolve(spark: "SparkSession", table: str, wanted: "StructType", *, transient: bool = False) -> None:
    """Makes ``table`` able to hold rows of ``wanted``: adds columns (null in older rows), widens types.

    Readers of the last committed run see an added column as null until the run is published. ``transient``: no other run reads what is in
    the table, so a column may become one of any other type.

    Raises:
        SchemaRefused: a column would have to change its type in a way that Iceberg cannot promote.
    """
    for statement in _statements(table, spark.table(table).schema, wanted, "", transient=transient):
        spark.sql(statement)


def drop_columns(refs: Refs, table: str, wanted: set[str]) -> None:
    """Drops the columns of an output that its plan no longer has. Idempotent; a metadata commit."""
    existing = refs.table(table)
    if existing is None:
        return
    gone = [f.name for f in existing.schema().fields if f.name not in wanted]
    if gone:
        with existing.update_schema(allow_incompatible_changes=True) as update:
            for name in gone:
                update.delete_column(name)


def _statements(table: str, have: "StructType", wanted: "StructType", path: str, *, transient: bool) -> list[str]:
    from pyspark.sql.types import StructType

    made = []
    for field in wanted.fields:
        name = f"{path}`{field.name}`"
        if field.name not in have.names:
            made.append(f"ALTER TABLE {table} ADD COLUMN {name} {field.dataType.simpleString()}")
            continue
        old = have[field.name].dataType
        if isinstance(old, StructType) and isinstance(field.dataType, StructType):
            made += _statements(table, old, field.dataType, f"{name}.", transient=transient)
        elif transient and old != field.dataType:
            made += [f"ALTER TABLE {table} DROP COLUMN {name}", f"ALTER TABLE {table} ADD COLUMN {name} {field.dataType.simpleString()}"]
        elif old != field.dataType and not _fits(field.dataType, old):
            if not _fits(old, field.dataType):
                raise SchemaRefused(
                    f"column {name.replace('`', '')} of table {table} is {old.simpleString()} and cannot become {field.dataType.simpleString()}",
                    expected="the same type or a wider one",
                    next_step="give the column a new name in the topology, or cast it to the old type",
                )
            made.append(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {field.dataType.simpleString()}")
    return made


def _fits(small: "DataType", large: "DataType") -> bool:
    """Whether every value of ``small`` is a value of ``large`` by an Iceberg type promotion."""
    from pyspark.sql.types import DecimalType, DoubleType, FloatType, IntegerType, LongType

    if isinstance(small, DecimalType) and isinstance(large, DecimalType):
        return small.scale == large.scale and small.precision <= large.precision
    promotions = ((IntegerType, LongType), (FloatType, DoubleType))
    return small == large or any(isinstance(small, a) and isinstance(large, b) for a, b in promotions)

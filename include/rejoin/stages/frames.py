"""The frames that stages exchange. Every stage takes and returns only these, so each can be tested with three rows by hand.

Users' column names never start with ``_``; so frames with users' key columns name everything else with ``_``, and a stage renames the key
columns to ``pk_1``.. or ``fk_1``.. before it adds the columns ``t``, ``l``, ``r1``.. that a plan's SQL texts refer to.

``Changes`` (a run's net changes of a table or output, at most one row a key)
    key columns; ``_op`` STRING in I, U, D; ``_before`` STRUCT, ``_after`` STRUCT: all columns and ``_hash``, null where there was no row.
``Rows`` (the state of a table or output at some run, at most one row a key)
    key columns; ``_row`` STRUCT: all columns and ``_hash``.
``Versions`` (the newest version of each key of a source table, deletes included)
    key columns; ``_version`` STRING (source position); ``_row`` STRUCT as above, null for a remembered delete;
    ``_before`` STRUCT: the value columns of the version before.
``Subscriptions`` (rows of an edge's subscription table)
    ``fk_1``..; ``pk_1``..; ``_run`` BIGINT; ``_op`` S (subscribed) or D (unsubscribed); ``_hash`` BINARY of the left row;
    ``_instruction`` STRING of KIP-213.
``Responses`` (an edge's answers in one run, at most one a primary key)
    ``pk_1``..; ``left_hash`` BINARY; ``right`` STRUCT: the columns of the edge's right view and ``_hash``, null where there is no right row.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from rejoin.plan.model import View
from rejoin.stages.columns import HASH


def quoted(name: str) -> str:
    """A column name as Spark SQL text."""
    return f"`{name}`"


def packed(fields: Iterable[tuple[str, str]]) -> Column:
    """A struct of fields (name, SQL text of the value). One expression for all of them: each ``Column`` costs several calls into the JVM."""
    texts = [f"'{name}', {sql}" for name, sql in fields]
    return F.expr(f"named_struct({', '.join(texts)})")


def equal(pairs: Iterable[tuple[str, str]]) -> Column:
    """Whether the SQL texts of each pair have equal values, null being equal to null. True without pairs."""
    return F.expr(" AND ".join(["true", *(f"{one} <=> {other}" for one, other in pairs)]))


def renamed(frame: DataFrame, old: Sequence[str], new: Sequence[str], *keep: str | Column) -> DataFrame:
    """Only the columns ``old`` under the names ``new``, and the columns ``keep``."""
    columns: list[str | Column] = [F.col(quoted(o)).alias(n) for o, n in zip(old, new, strict=True)]
    return frame.select(*columns, *keep)


def viewed(frame: DataFrame, row: str, view: View, into: str) -> DataFrame:
    """Adds ``into``: the struct column ``row`` seen through ``view`` (its columns and ``_hash``), null where the row is null or
    the view filters it out.
    """
    seen = F.expr(f"t IS NOT NULL AND ({view.where})" if view.where else "t IS NOT NULL")
    struct = packed([*((p.name, p.sql) for p in view.columns), (HASH, f"t.`{HASH}`")])
    return frame.withColumn("t", F.col(row)).withColumn(into, F.when(seen, struct)).drop("t")


def null_struct(frame: DataFrame, column: str) -> Column:
    """A null of the type of a column of ``frame``."""
    return F.lit(None).cast(frame.schema[column].dataType)


def nullable(frame: DataFrame, column: str) -> StructType:
    """The type of a struct column with every field nullable, as tables hold it: Spark takes ``coalesce(x, '?')`` for NOT NULL and then
    refuses to cast a stored struct to it.
    """
    kind = frame.schema[column].dataType
    assert isinstance(kind, StructType)
    return StructType([StructField(f.name, f.dataType) for f in kind.fields])

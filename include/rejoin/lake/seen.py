"""Stored rows as the plan sees them. A table keeps the columns of earlier plans, in the order in which they came; whoever reads a struct gets the
fields that the plan names, in its order and as wide as it says, so that rows of different tables can meet.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rejoin.plan.compatible import fits
from rejoin.stages.columns import HASH
from rejoin.stages.frames import packed, quoted

Fields = Sequence[tuple[str, str | None]]
"""Names and Spark SQL types (None: as stored) of columns."""


def row(frame: DataFrame, fields: Fields) -> Column:
    """The fields, which are columns of the frame, and the hash as one struct; a field that is not stored yet is null."""
    return packed([*_texts(frame.schema, fields, ""), (HASH, HASH)])


def struct(frame: DataFrame, column: str, fields: Fields, own: Sequence[str] = ()) -> Column:
    """A struct column with exactly these fields and the hash, null where it is null.

    Args:
        frame: has the column.
        column: the struct.
        fields: of the result; one that the struct lacks is null.
        own: fields that are columns of the frame itself.
    """
    kind = frame.schema[column].dataType
    assert isinstance(kind, StructType)
    beside = dict(_texts(frame.schema, [f for f in fields if f[0] in own], ""))
    texts = [(n, beside.get(n, text)) for n, text in _texts(kind, fields, f"{column}.")]
    return F.when(F.col(column).isNotNull(), packed([*texts, (HASH, f"{column}.{HASH}")]))


def _texts(stored: StructType, fields: Fields, at: str) -> list[tuple[str, str]]:
    made = []
    for name, of_type in fields:
        if name not in stored.names:
            made.append((name, f"cast(NULL AS {of_type or 'STRING'})"))
            continue
        text, was = f"{at}{quoted(name)}", stored[name].dataType.simpleString().upper()
        made.append((name, f"cast({text} AS {of_type})" if of_type not in (None, was) and fits(was, of_type or "") else text))
    return made

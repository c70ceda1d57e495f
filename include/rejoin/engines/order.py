"""Whether rows that come in batches are in order already."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import InvariantBroken


def larger(last: pa.Scalar | None, column: pa.Array) -> bool:
    """Whether every value is larger than the one before it, and the first than ``last``; null is not."""
    if column.null_count:
        return False
    inside = pc.all(pc.less(column[:-1], column[1:]), min_count=0).as_py()
    return bool(inside and (last is None or not len(column) or pc.less(last, column[0]).as_py()))


def still_in_order(batches: Iterator[pa.RecordBatch], first: str) -> Iterator[pa.RecordBatch]:
    """The batches, whose column ``first`` was seen to be in order.

    Raises:
        InvariantBroken: DuckDB gives them otherwise now.
    """
    last = None
    for batch in batches:
        column = batch[first]
        if not larger(last, column):
            raise InvariantBroken("DuckDB gave rows in an order that it had not before; nothing was committed", next_step="run again")
        last = column[-1] if batch.num_rows else last
        yield batch

"""Which run an output was loaded by, if its changes table only refers to the rows that this run wrote (``statements.load_reference``)."""

import pyarrow as pa
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from rejoin.lake.iceberg.snapshot_files import bounds, files_of
from rejoin.statements.load_reference import LOADED, Images
from rejoin.statements.own_columns import RUN


def images(log: Schema, output: Schema) -> Images:
    """The columns of a feed as DuckDB reads its changes table and its output."""
    from rejoin.lake.read.duckdb_scan import field_types  # DuckDB, which those who only ask for the run do not need

    after, before = (dict(field_types(log, side)) for side in ("_after", "_before"))
    return Images(after, before.keys(), {f.name for f in output.fields})


def load_of(table: Table, snapshot_id: int, after: int = 0, upto: int | None = None) -> int | None:
    """The run that a changes table refers to, if it is above ``after`` and not above ``upto``. From metadata where there is none.

    The reference is the table's first row: of its run nothing else is there.
    """
    for file in files_of(table, snapshot_id).data:
        op, run = bounds(table, file, "_op"), bounds(table, file, RUN)
        if op is not None and run is not None and (op[0] > LOADED or run[0] <= after or (upto is not None and run[0] > upto)):
            continue
        # pydantic hides the positional form from mypy
        condition = EqualTo("_op", LOADED)  # type: ignore[call-arg, arg-type]
        found: pa.Table = table.scan(row_filter=condition, selected_fields=(RUN,), snapshot_id=snapshot_id).to_arrow()
        number = found[RUN][0].as_py() if found.num_rows else None
        return number if number is not None and after < number and (upto is None or number <= upto) else None
    return None

"""The columns of the tables whose shape the plan alone decides."""

import pyarrow as pa

from rejoin.plan.model import Table
from rejoin.sources.events import arrow_type
from rejoin.stages.columns import HASH


def source_schema(table: Table) -> pa.Schema:
    """Columns of a source table: what ``stages.ingest.table_rows`` gives."""
    types = {c.name: arrow_type(c.type or "") for c in table.columns}
    values = [(n, t) for n, t in types.items() if n not in table.key]
    own = [("_run", pa.int64()), ("_op", pa.string()), ("_version", pa.string()), (HASH, pa.binary())]
    before = pa.struct([*values, (HASH, pa.binary())])
    return pa.schema([*((k, types[k]) for k in table.key), *own, *values, ("_before", before)])

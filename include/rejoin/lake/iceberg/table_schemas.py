"""The columns of tables: those that the plan alone decides, and those that are stored."""

from uuid import UUID

import pyarrow as pa
from pyiceberg.table import Table as Stored

from rejoin.plan.model.plan import Table
from rejoin.statements.own_columns import HASH


def source_schema(table: Table) -> pa.Schema:
    """Columns of a source table: what ``steps.ingest.statements.table_rows`` gives."""
    from rejoin.sources.events import arrow_type  # here: it brings the decoders, which upkeep does without

    types = {c.name: arrow_type(c.type or "") for c in table.columns}
    values = [(n, t) for n, t in types.items() if n not in table.key]
    own = [("_run", pa.int64()), ("_op", pa.string()), ("_version", pa.string()), (HASH, pa.binary())]
    before = pa.struct([*values, (HASH, pa.binary())])
    return pa.schema([*((k, types[k]) for k in table.key), *own, *values, ("_before", before)])


def names_in(table: Stored) -> list[str]:
    """The names of the columns of a stored table, and of those in the rows that it holds in columns of its own."""
    schema = arrow_schema(table)
    inner = [
        row.field(i).name
        for row in (f.type for f in schema if f.name.startswith("_"))
        if pa.types.is_struct(row)
        for i in range(row.num_fields)
    ]
    return [*schema.names, *inner]


_SCHEMAS: dict[tuple[UUID, int], pa.Schema] = {}
"""By table and schema, which never changes. A run asks for those of some tables five times."""
_MOST = 2_000


def arrow_schema(table: Stored) -> pa.Schema:
    """The columns of a stored table, as Arrow has them."""
    which = table.metadata.table_uuid, table.metadata.current_schema_id
    if which not in _SCHEMAS:
        if len(_SCHEMAS) >= _MOST:
            _SCHEMAS.clear()
        _SCHEMAS[which] = table.schema().as_arrow()
    return _SCHEMAS[which]

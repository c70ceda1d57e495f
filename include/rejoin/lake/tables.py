"""The columns of the tables whose shape the plan alone decides."""

from rejoin.plan.model import Table
from rejoin.stages.columns import HASH
from rejoin.stages.frames import quoted


def source_ddl(table: Table) -> str:
    """Columns of a source table: what ``stages.ingest.table_rows`` returns."""
    types = {c.name: c.type for c in table.columns}
    keys = [f"{quoted(k)} {types[k]}" for k in table.key]
    values = [f"{quoted(n)} {t}" for n, t in types.items() if n not in table.key]
    before = ", ".join(v.replace(" ", ": ", 1) for v in [*values, f"{HASH} BINARY"])
    return ", ".join([*keys, "_run BIGINT, _op STRING, _version STRING", f"{HASH} BINARY", *values, f"_before STRUCT<{before}>"])

"""Hides rows as a run does: by a delete file that says where they lie."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyiceberg.table import Table

from rejoin.lake.iceberg import row_addresses
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.read import duckdb_lookup
from rejoin.statements.own_columns import PLACE


def located(table: Table, head: int, key: Sequence[str], keys: pa.Table) -> pa.Table:
    """What a delete file of the rows with these keys holds."""
    found = duckdb_lookup.having(table, head, key, keys, [PLACE])
    assert isinstance(found, pa.Table), found
    return row_addresses.split(np.sort(found[PLACE].to_numpy()), row_addresses.paths(files_of(table, head).data))

"""Hides rows as a run does: by a delete file that says where they lie."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyiceberg.table import Table

from rejoin.lake import places, probe
from rejoin.lake.files import files_of
from rejoin.stages.columns import PLACE


def located(table: Table, head: int, key: Sequence[str], keys: pa.Table) -> pa.Table:
    """What a delete file of the rows with these keys holds."""
    found = probe.having(table, head, key, keys, [PLACE])
    assert isinstance(found, pa.Table), found
    return places.split(np.sort(found[PLACE].to_numpy()), places.paths(files_of(table, head).data))

"""Where a stored row lies, as one number: that of its data file among those of the snapshot, by path, and its own in that file.

One number instead of a path and a number, since it goes through joins and sorts with every old row of an output that may change. In its order
the rows are as a file of position deletes has them.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import DataFile

_ROWS = 1 << 40
"""More rows than a file has."""


def paths(files: Sequence[DataFile]) -> list[str]:
    """The paths of the data files of a snapshot, in the order in which they are numbered."""
    return sorted(file.file_path for file in files)


def place(files: str, file: str, position: str) -> str:
    """DuckDB's SQL text of the place.

    A scan gives the rows of one file together, so that DuckDB looks for the name once for some thousand rows.

    Args:
        files: text for the list of what the files are called that ``paths`` lists.
        file: text for the name of a row's file.
        position: text for its number in that file.
    """
    return f"(list_position({files}, {file}) - 1)::BIGINT * {_ROWS} + {position}"


def split(places: np.ndarray, files: Sequence[str]) -> pa.Table:
    """``file_path``, each text once, and ``pos`` of places. ``files``: their ``paths``."""
    numbers, positions = np.divmod(places, _ROWS)
    paths = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(files, pa.string()))
    return pa.table({"file_path": paths, "pos": pa.array(positions)})

"""Rows that statements have found in lines (``proven_lines``) -> record batches of events.

| column of a row | meaning |
|---|---|
| ``AT`` | number of the line in its chunk, from 0; rows of one line follow each other |
| ``NTH`` | which row of its line it is, from 0; left out: lines have one each |
| ``_proven`` | it is what the careful decoder makes of it. A line is proven if all its rows are |
| columns of events | as in ``events``; ``_kind`` left out: upsert |
| ``MOVED``, ``WAS`` with the name of each key column | the row had another key, this one: the change before it is the delete of that. Left out: no row has |
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoin.sources.events import LINE_BITS, MOST_CHANGES, EventKind, Layout
from rejoin.sources.formats.line_chunks import Numbers

AT, NTH, MOVED, WAS = "_at", "_nth_row", "_moved", "_was_"


@dataclass(frozen=True)
class Proven:
    """What is proven of a chunk of lines.

    Attributes:
        rows: those of the proven lines, of each shape.
        others: numbers of the other lines, from 0.
    """

    rows: Sequence[pa.Table]
    others: Numbers


def places(rows: pa.Table) -> Numbers:
    """What rows are ordered by."""
    at: Numbers = rows[AT].to_numpy()
    return (at << LINE_BITS) + rows[NTH].to_numpy() if NTH in rows.column_names else at


def which_proven(rows: pa.Table, count: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of ``count`` lines are proven: those that have rows, all of them proven, and no more changes than a record may say."""
    at, holds, proven = rows[AT].to_numpy(), rows["_proven"].to_numpy(), np.zeros(count, np.bool_)
    proven[at] = True
    proven[at[~holds]] = False
    if MOVED in rows.column_names:
        proven &= np.bincount(at, _moved(rows) + 1, count) <= MOST_CHANGES
    return proven


def events(layout: Layout, rows: pa.Table, first: int, file: str, index: int) -> Iterator[pa.RecordBatch]:
    """The events of rows of proven lines: those that say how a row is now, and those that say which key it had.

    Args:
        layout: the table's columns.
        rows: the rows.
        first: the number of the chunk's first line.
        file: path as pinned.
        index: place of the file in the pin.
    """
    if not rows.num_rows:
        return
    at = rows[AT].to_numpy()
    said = rows.select([name for name in rows.column_names if name in layout.schema.names])
    if MOVED not in rows.column_names:
        yield arranged(layout, said, at + first, file, index)
        return
    moved = _moved(rows)
    begins = np.cumsum(moved + 1) - moved - 1
    nth = begins - begins[np.searchsorted(at, at)]
    yield arranged(layout, said.append_column("_nth", pa.array(nth + moved)), at + first, file, index)
    which = np.flatnonzero(moved)
    if len(which):
        gone = rows.take(pa.array(which))
        keys = pa.table({column.name: gone[f"{WAS}{column.name}"] for column in layout.key})
        keys = keys.append_column("_kind", pa.repeat(str(EventKind.DELETE), len(which))).append_column("_nth", pa.array(nth[which]))
        if "_position" in gone.column_names:
            keys = keys.append_column("_position", gone["_position"])
        yield arranged(layout, keys, at[which] + first, file, index)


def arranged(layout: Layout, rows: pa.Table, lines: Numbers, file: str, index: int) -> pa.RecordBatch:
    """Columns of events on ``lines`` -> a record batch; upserts if they do not say their kind."""
    types = {field.name: field.type for field in layout.schema} | {"_nth": pa.int64()}
    arrays = {name: rows[name].combine_chunks().cast(types[name]) for name in rows.column_names}
    arrays.setdefault("_kind", pa.repeat(str(EventKind.UPSERT), len(lines)))
    return layout.arranged(arrays, lines, file, index)  # type: ignore[arg-type]


def _moved(rows: pa.Table) -> Numbers:
    found: Numbers = rows[MOVED].to_numpy().astype(np.int64)
    return found

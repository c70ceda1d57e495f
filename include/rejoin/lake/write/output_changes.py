"""An output with a run's changes applied, as files: new ones of the rows that it gets, and deletes of those that it loses.

``Changes`` here are as ``resolve.difference`` gives them, with ``_run`` and without those that change nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from rejoin.engines.arrow_tables import shaped
from rejoin.errors import InvariantBroken
from rejoin.lake.iceberg import commits, row_addresses
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.iceberg.table_schemas import arrow_schema
from rejoin.statements.own_columns import HASH, PLACE, RUN

DELETES = 500_000
"""Rows in a file of position deletes: each holds the name of a data file in full, in memory."""


@dataclass(frozen=True)
class WrittenChanges:
    """What one pass over changes has written: files of the changes table and of the output, which no snapshot holds yet, and the places of old rows."""

    log: list[DataFile]
    added: list[DataFile]
    gone: list[pa.Array]


def rows(changes: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows of an output that changes make: its columns, ``_run`` and ``_hash``."""
    kept = _but(changes.select(["_op", RUN, "_after"]), "D")
    values = {name: pc.struct_field(kept["_after"], name) for name in (*columns, HASH)}
    return pa.table({**{c: values[c] for c in columns}, RUN: kept[RUN], HASH: values[HASH]})


def replaced(changes: pa.Table, shown: Sequence[str]) -> pa.Table:
    """The columns ``shown`` of those changes that had a row before."""
    return _but(changes.select(["_op", *shown]), "I")


def _but(changes: pa.Table, op: str) -> pa.Table:
    """All but those of one kind, which most changes have none of: then nothing is copied."""
    kept = pc.not_equal(changes["_op"], op)
    return changes if pc.all(kept).as_py() else changes.filter(kept)


def logged(changes: pa.Schema) -> pa.Schema:
    """The columns of a changes table."""
    return pa.schema([f for f in changes if f.name != PLACE])


def schema_of(changes: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The columns of ``rows``."""
    after = changes.field("_after").type
    kinds = {after.field(i).name: after.field(i).type for i in range(after.num_fields)}
    return pa.schema([*((c, kinds[c]) for c in columns), (RUN, pa.int64()), (HASH, kinds[HASH])])


@dataclass(frozen=True)
class ChangesOf:
    """Writes changes to files of their table, and the rows that they make to files of the output.

    Attributes:
        log: the changes table.
        output: the output.
        columns: those of the output.
    """

    log: Table
    output: Table
    columns: Sequence[str]

    def __call__(self, changes: Iterator[pa.RecordBatch], /, writers: int = 1) -> WrittenChanges:  # noqa: ARG002 -- two tables are written at once already
        kept, stored, gone = arrow_schema(self.log), arrow_schema(self.output), list[pa.Array]()
        with commits.DataFiles(self.log, at_once=1) as changed, commits.DataFiles(self.output, at_once=1) as added:
            for batch in changes:
                some = pa.Table.from_batches([batch])
                for part in shaped(some, kept):
                    changed.add(part)
                for part in shaped(rows(some, self.columns), stored):
                    added.add(part)
                # A copy: one column of a batch of DuckDB's keeps the others of it in memory.
                gone.append(pa.array(replaced(some, [PLACE])[PLACE].drop_null().to_numpy().copy()))
            changed.end()  # both write their last files at once
            added.end()
            return WrittenChanges(changed.done(), added.done(), gone)


def together(written: Sequence[WrittenChanges]) -> WrittenChanges:
    """What several have written."""
    log, added, gone = (list(chain.from_iterable(some)) for some in zip(*((one.log, one.added, one.gone) for one in written), strict=True))
    return WrittenChanges(log, added, gone)


def deletes(table: Table, base: int, gone: Sequence[pa.Array], keys: int, run: int) -> list[DataFile]:
    """Delete files of the rows of a snapshot at some places, which must be one for each of so many keys.

    Raises:
        InvariantBroken: a changed key has no row, or more than one.
    """
    known = [some.drop_null().to_numpy() for some in gone]
    found = np.concatenate(known) if known else np.array([], np.int64)
    found.sort()  # there may be many: no second copy of them
    count = len(found) - int(np.count_nonzero(found[1:] == found[:-1]))
    if count != keys or count != len(found):
        raise InvariantBroken(
            f"output {table.name()[-1]!r} has {count} rows for {keys} changed keys in run {run}; nothing was committed",
            expected="exactly one row a key",
            next_step="compare with `rejoin verify`; `rejoin repair` recomputes an output that was edited by hand, unless a key has two rows",
        )
    paths = row_addresses.paths(files_of(table, base).data)
    return [commits.delete_file(table, row_addresses.split(found[at : at + DELETES], paths)) for at in range(0, keys, DELETES)]

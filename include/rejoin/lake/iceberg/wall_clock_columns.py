"""Tables of earlier versions, which stored a wall clock (TIMESTAMP_NTZ) as an instant at UTC when the driver had written it first.

Iceberg promotes no instant to a wall clock, so the column gets a new field and its values are written once more, file by file: a data file of a
versioned table has at most one version of a key, which lookups rely on. Fields, rows and ``main`` change in one metadata commit.
"""

from collections.abc import Iterable

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.types import StructType, TimestampType, TimestamptzType

from rejoin.engines.arrow_tables import fitted
from rejoin.lake.iceberg import commits
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles
from rejoin.lake.wall_clocks import Path


def instants(schema: Schema, walls: Iterable[Path]) -> list[Path]:
    """Those of the columns and fields that a schema has as instants, in its order."""
    order = [path for field in schema.fields for path in _fields((field.name,), field.field_type)]
    wanted = set(walls)
    return [p for p in order if p in wanted and isinstance(schema.find_field(".".join(p)).field_type, TimestamptzType)]


def schema_of(table: Table, snapshot_id: int | None) -> Schema:
    """The columns of a snapshot; None: those of the table."""
    snapshot = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    return table.schema() if snapshot is None or snapshot.schema_id is None else table.schemas()[snapshot.schema_id]


def mend(refs: Refs, name: str, branch: str, base: int, walls: Iterable[Path]) -> int:
    """Starts ``branch`` at ``base`` with a snapshot of the same rows in which these columns are wall clocks. Returns its id."""
    table = refs.require(name, base)
    stored = schema_of(table, base)
    planned = Transaction(table)
    retype(planned, walls)
    shadow = Table(table.name(), planned.table_metadata, table.metadata_location, table.io, table.catalog)
    wanted = shadow.schema().as_arrow()
    added: list[DataFile] = []
    for task in table.scan(snapshot_id=base).plan_files():
        batches = ArrowScan(table.metadata, table.io, stored, AlwaysTrue()).to_record_batches([task])
        rows = commits.together(batches)
        added += [] if rows is None else commits.data_files(shadow, fitted(rows, wanted))

    def change(transaction: Transaction) -> None:
        retype(transaction, walls)
        if transaction.table_metadata.schema() != shadow.schema():
            raise CommitFailedException("the columns have changed meanwhile")

    return refs.commit_rewrite(name, branch, base, commits.SnapshotContents(SnapshotFiles((), ()), added), change)


def retype_empty(refs: Refs, name: str, walls: Iterable[Path]) -> None:
    """The same for a table of which no snapshot is kept: its columns alone."""
    found = refs.table(name)
    assert found is not None
    transaction = Transaction(found)
    retype(transaction, walls)
    transaction.commit_transaction()


def retype(transaction: Transaction, walls: Iterable[Path]) -> None:
    """Gives these columns new fields for wall clocks, at the places of the old ones. What is one already stays."""
    paths = instants(transaction.table_metadata.schema(), walls)
    before = _siblings(transaction.table_metadata.schema())
    with transaction.update_schema(allow_incompatible_changes=True) as update:
        for path in paths:
            update.delete_column(path)
    with transaction.update_schema() as update:
        for path in paths:
            update.add_column(path, TimestampType())
            after = before[path]
            update.move_first(path) if after is None else update.move_after(path, after)


def _siblings(schema: Schema) -> dict[Path, Path | None]:
    """Every column and field -> the one before it."""
    found: dict[Path, Path | None] = {}
    for parent, fields in [
        ((), schema.fields),
        *(((f.name,), f.field_type.fields) for f in schema.fields if isinstance(f.field_type, StructType)),
    ]:
        last: Path | None = None
        for field in fields:
            found[(*parent, field.name)] = last
            last = (*parent, field.name)
    return found


def _fields(path: Path, kind: object) -> list[Path]:
    return [path] if not isinstance(kind, StructType) else [(*path, f.name) for f in kind.fields]

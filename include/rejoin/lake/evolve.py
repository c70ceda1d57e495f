"""Schema changes of an edited topology: columns are added and widened before a run writes, dropped after it is published. Metadata commits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.table.update.schema import UpdateSchema

from rejoin.errors import SchemaRefused
from rejoin.lake import names
from rejoin.lake.refs import Refs
from rejoin.lake.seen import spark_name

Path = tuple[str, ...]


@dataclass(frozen=True)
class _Change:
    """What becomes of a column, or of a field of a struct: it is added, widened, or made anew with another type."""

    verb: str
    path: Path
    type: pa.DataType


def holds(have: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a table's columns are those wanted, or more."""
    return not list(_changes("", have, wanted, (), transient=True))


def evolve(refs: Refs, table: str, wanted: pa.Schema, *, transient: bool = False) -> None:
    """Makes ``table`` able to hold rows of ``wanted``: adds columns (null in older rows), widens types.

    Readers of the last committed run see an added column as null until the run is published. ``transient``: no other run reads what is in
    the table, so a column may become one of any other type.

    Raises:
        SchemaRefused: a column would have to change its type in a way that Iceberg cannot promote.
    """
    existing = refs.table(table)
    assert existing is not None
    changes = list(_changes(names.full(refs.topology, table), existing.schema().as_arrow(), wanted, (), transient=transient))
    if again := [c for c in changes if c.verb == "anew"]:
        refs.evolve(table, lambda update: _delete(update, (c.path for c in again)))
    if changes:
        refs.evolve(table, lambda update: _apply(update, changes))


def drop_columns(refs: Refs, table: str, wanted: set[str]) -> None:
    """Drops the columns of an output that its plan no longer has. Idempotent."""
    existing = refs.table(table)
    if existing is None:
        return
    gone = [f.name for f in existing.schema().fields if f.name not in wanted]
    if gone:
        refs.evolve(table, lambda update: _delete(update, ((name,) for name in gone)))


def _delete(update: UpdateSchema, paths: Iterable[Path]) -> None:
    for path in paths:
        update.delete_column(path)


def _apply(update: UpdateSchema, changes: Iterable[_Change]) -> None:
    for change in changes:
        kind = _pyarrow_to_schema_without_ids(pa.schema([("c", change.type)])).fields[0].field_type
        if change.verb == "widened":
            update.update_column(change.path, field_type=kind)
        else:
            update.add_column(change.path, kind)


def _changes(table: str, have: Iterable[pa.Field], wanted: Iterable[pa.Field], path: Path, *, transient: bool) -> Iterator[_Change]:
    types = {f.name: f.type for f in have}
    for field in wanted:
        here, old, new = (*path, field.name), types.get(field.name), field.type
        if old is None:
            yield _Change("added", here, new)
        elif pa.types.is_struct(old) and pa.types.is_struct(new):
            yield from _changes(table, list(old), list(new), here, transient=transient)
        elif not _fits(new, old):
            if transient:
                yield _Change("anew", here, new)
            elif _fits(old, new):
                yield _Change("widened", here, new)
            else:
                raise SchemaRefused(
                    f"column {'.'.join(here)} of table {table} is {_named(old)} and cannot become {_named(new)}",
                    expected="the same type or a wider one",
                    next_step="give the column a new name in the topology, or cast it to the old type",
                )
        elif transient and not _same(old, new):
            yield _Change("anew", here, new)


def _fits(small: pa.DataType, large: pa.DataType) -> bool:
    """Whether every value of ``small`` is a value of ``large`` by an Iceberg type promotion."""
    if pa.types.is_decimal(small) and pa.types.is_decimal(large):
        return bool(small.scale == large.scale and small.precision <= large.precision)
    promotions = ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))
    return _same(small, large) or (small, large) in promotions


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types are one to Iceberg: Arrow has two for texts and two for bytes, and several names of UTC."""
    return bool(_plain(one) == _plain(other))


def _named(kind: pa.DataType) -> str:
    return (spark_name(kind) or str(kind)).lower()


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)

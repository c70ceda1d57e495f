"""Schema changes of an edited topology: columns are added and widened before a run writes, dropped after it is published. Metadata commits.

What a run changes before it is published is visible as nulls and as wider types at most, and does not outlive it: what runs that were never published
have made of a table's columns is taken back before the next run writes (``take_back``), and a table that has no published rows gets its columns anew.

Nobody but the open run may change columns, and a process or a task on another machine may not know that its run was closed. So a table's property
``STAMP`` says from which run on its columns may be changed, and whoever changes them has read it before the commit, which fails if it has changed since.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.table import Table, Transaction
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from rejoin.errors import SchemaRefused
from rejoin.lake import table_names
from rejoin.lake.iceberg.plan_columns import spark_name
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.table_schemas import arrow_schema
from rejoin.lake.ledger.records import superseded
from rejoin.plan.change.compatibility import fits
from rejoin.plan.sql.nested import ELEMENT, KEY, VALUE

Path = tuple[str, ...]
Edit = Callable[[Transaction], None]
AS_IT_IS: Mapping[str, str] = {}
STAMP = "rejoin.run"
"""The property that holds the number of the newest run that has changed a table's columns, or has taken the place of one that was abandoned."""
BOUNDS = "write.metadata.metrics.column."
"""Properties that say which bounds of a column manifests hold begin so."""


@dataclass(frozen=True)
class _Change:
    """What becomes of a column, or of a field of a struct: it gets a type, or goes."""

    path: Path
    verb: str
    type: IcebergType | None = None


def holds(stored: Table, wanted: pa.Schema, *, anew: bool) -> bool:
    """Whether a table need not evolve to hold rows of ``wanted``. ``anew``: as ``evolve`` has it.

    Raises:
        SchemaRefused: it cannot.
    """
    return not list(_changes(table_names.full(stored.name()[0], stored.name()[-1]), arrow_schema(stored), wanted, (), anew=anew))


def settled(have: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a table has the properties ``wanted``, and bounds of no other columns in full; it may have more that a catalog has set."""
    return wanted.items() <= have.items() and not (wanted and _needless(have, wanted))


def _needless(have: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    return [name for name in have if name.startswith(BOUNDS) and name not in wanted]


def wider(columns: Iterable[pa.Field], stored: pa.Schema) -> dict[str, pa.DataType]:
    """The types of ``columns`` by their names; that of the column in ``stored`` where it holds more values."""
    kinds, old = {f.name: f.type for f in columns}, {f.name: f.type for f in stored}
    both = ((name, _named(kind), _named(old[name])) for name, kind in kinds.items() if name in old)
    return kinds | {name: old[name] for name, now, was in both if now != was and fits(now, was)}


def evolve(
    refs: Refs,
    table: str,
    wanted: pa.Schema,
    run: int,
    *,
    anew: bool = False,
    properties: Mapping[str, str] = AS_IT_IS,
) -> None:
    """Makes ``table`` able to hold rows of ``wanted``: adds columns (null in older rows), widens types.

    Readers of the last committed run see an added column as null until the run is published.

    Args:
        refs: the tables.
        table: which one.
        wanted: columns of the rows.
        run: the run that writes them.
        anew: no committed run has rows in the table: it gets these columns and no others, whatever an uncommitted run has made of them.
        properties: what the table gets, too.

    Raises:
        RunSuperseded: a newer run has taken the place of this one.
        SchemaRefused: a column would have to change its type in a way that Iceberg cannot promote.
    """

    def change(stored: Table) -> Edit | None:
        changes = list(_changes(table_names.full(refs.topology, table), arrow_schema(stored), wanted, (), anew=anew))
        if not changes and settled(stored.properties, properties):
            return None
        if _stamp(stored) > run:
            raise superseded(refs.topology, run)
        return lambda transaction: _apply(transaction, changes, {**properties, STAMP: str(run)})

    refs.evolve(table, change)


def take_back(refs: Refs, table: str, snapshot_id: int | None, run: int, may: Callable[[], bool]) -> None:
    """Takes back what was added to a table's columns since a snapshot was written, and the types that were widened. Idempotent.

    Args:
        refs: the tables.
        table: which one.
        snapshot_id: the newest one that was published: whatever came later was never published. None: none was, so the next run makes the columns anew.
        run: the first run that may change the columns from now on.
        may: whether nobody can be about to write what was added. It is asked after the table was read.
    """

    def change(stored: Table) -> Edit | None:
        changes = [] if snapshot_id is None else list(_unpublished(stored, snapshot_id))
        if (not changes and _stamp(stored) >= run) or not may():
            return None
        return lambda transaction: _apply(transaction, changes, {STAMP: str(run)})

    refs.evolve(table, change)


def drop_columns(refs: Refs, table: str, wanted: set[str], newest: Callable[[], bool]) -> None:
    """Drops the columns of an output that its plan no longer has. Idempotent.

    ``newest``: whether no run has been opened since the one whose plan it is; a newer one may have added columns of its own. It is asked for
    each try, after the columns were read.
    """

    def change(stored: Table) -> Edit | None:
        gone = [_Change((f.name,), "goes") for f in stored.schema().fields if f.name not in wanted]
        return (lambda transaction: _apply(transaction, gone, AS_IT_IS)) if gone and newest() else None

    if refs.table(table) is not None:
        refs.evolve(table, change)


def _apply(transaction: Transaction, changes: Iterable[_Change], properties: Mapping[str, str]) -> None:
    """In one commit. A column that becomes another one goes first."""
    if gone := [c.path for c in changes if c.verb == "goes"]:
        with transaction.update_schema(allow_incompatible_changes=True) as update:
            for path in gone:
                update.delete_column(path)
    if kept := [c for c in changes if c.verb != "goes"]:
        with transaction.update_schema(allow_incompatible_changes=True) as update:
            for change in kept:
                assert change.type is not None
                if change.verb == "typed":
                    update.update_column(change.path, field_type=change.type)
                else:
                    update.add_column(change.path, change.type)
    if properties:
        if properties.keys() > {STAMP} and (needless := _needless(transaction.table_metadata.properties, properties)):
            transaction.remove_properties(*needless)
        transaction.set_properties(dict(properties))


def _changes(table: str, have: Iterable[pa.Field], wanted: Iterable[pa.Field], path: Path, *, anew: bool) -> Iterator[_Change]:
    fields, types = list(wanted), {f.name: f.type for f in have}
    if anew:
        kept = {f.name for f in fields}
        yield from (_Change((*path, name), "goes") for name in types if name not in kept)
    for field in fields:
        here, old, new = (*path, field.name), types.get(field.name), field.type
        if old is None:
            yield _Change(here, "added", _iceberg(new))
        elif pa.types.is_struct(old) and pa.types.is_struct(new):
            yield from _changes(table, list(old), list(new), here, anew=anew)
        elif not anew and pa.types.is_nested(old) and fits(_named(old), _named(new)):
            yield from _changes(table, _parts(old), _parts(new), here, anew=False)
        elif anew and _named(old) != _named(new):
            yield _Change(here, "goes")
            yield _Change(here, "added", _iceberg(new))
        elif not fits(_named(new), _named(old)):
            yield _Change(here, "typed", _widened(table, here, old, new))


def _parts(kind: pa.DataType) -> list[pa.Field]:
    """What an array or a map is made of, as Iceberg names it."""
    return (
        [pa.field(KEY, kind.key_type), pa.field(VALUE, kind.item_type)] if pa.types.is_map(kind) else [pa.field(ELEMENT, kind.value_type)]
    )


def _widened(table: str, path: Path, old: pa.DataType, new: pa.DataType) -> IcebergType:
    was, now = _named(old), _named(new)
    if fits(was, now):
        return _iceberg(new)
    raise SchemaRefused(
        f"column {'.'.join(path)} of table {table} is {was.lower()} and cannot become {now.lower()}",
        expected="the same type or a wider one",
        next_step="give the column a new name in the topology, or cast it to the old type",
    )


def _stamp(stored: Table) -> int:
    return int(stored.properties.get(STAMP, 0))


def _unpublished(stored: Table, snapshot_id: int) -> Iterator[_Change]:
    snapshot = stored.snapshot_by_id(snapshot_id)
    schema = None if snapshot is None or snapshot.schema_id is None else stored.schemas().get(snapshot.schema_id)
    if schema is None or schema.schema_id == stored.metadata.current_schema_id:
        return
    published = {field.field_id: field.field_type for _, field in _nested((), schema.fields)}
    added = list[Path]()
    for path, field in _nested((), stored.schema().fields):
        was = published.get(field.field_id)
        if path[:-1] in added:
            added.append(path)
        elif was is None:
            added.append(path)
            yield _Change(path, "goes")
        elif was.is_primitive and was != field.field_type:
            yield _Change(path, "typed", was)


def _nested(path: Path, fields: Iterable[NestedField]) -> Iterator[tuple[Path, NestedField]]:
    for field in fields:
        here = (*path, field.name)
        yield here, field
        yield from _nested(here, _fields(field.field_type))


def _fields(kind: IcebergType) -> Sequence[NestedField]:
    """What a type is made of; nothing of most."""
    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, ListType):
        return (kind.element_field,)
    return (kind.key_field, kind.value_field) if isinstance(kind, MapType) else ()


def _iceberg(kind: pa.DataType) -> IcebergType:
    return _pyarrow_to_schema_without_ids(pa.schema([("c", kind)])).fields[0].field_type


def _named(kind: pa.DataType) -> str:
    """What Spark SQL calls a type: Arrow has two for texts and two for bytes, and several names of UTC."""
    return spark_name(kind) or str(kind)

"""Schema changes of an edited topology: columns are added and widened before a run writes, dropped after it is published. Metadata commits."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.table.update.schema import UpdateSchema

from rejoin.errors import SchemaRefused
from rejoin.lake import names
from rejoin.lake.refs import Refs
from rejoin.lake.seen import spark_name
from rejoin.plan.compatible import fits

Path = tuple[str, ...]
Change = Callable[[UpdateSchema], None]


@dataclass(frozen=True)
class _Change:
    """What becomes of a column, or of a field of a struct: it is added, widened, or made anew with another type."""

    verb: str
    path: Path
    type: pa.DataType


def holds(have: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a table's columns are those wanted, or more."""
    return not list(_changes("", have, wanted, (), transient=True))


def wider(columns: Iterable[pa.Field], stored: pa.Schema) -> dict[str, pa.DataType]:
    """The types of ``columns`` by their names; that of the column in ``stored`` where it holds more values."""
    kinds, old = {f.name: f.type for f in columns}, {f.name: f.type for f in stored}
    both = ((name, _named(kind), _named(old[name])) for name, kind in kinds.items() if name in old)
    return kinds | {name: old[name] for name, now, was in both if now != was and fits(now, was)}


def evolve(refs: Refs, table: str, wanted: pa.Schema, *, transient: bool = False) -> None:
    """Makes ``table`` able to hold rows of ``wanted``: adds columns (null in older rows), widens types.

    Readers of the last committed run see an added column as null until the run is published. ``transient``: no other run reads what is in
    the table, so a column may become one of any other type.

    Raises:
        SchemaRefused: a column would have to change its type in a way that Iceberg cannot promote.
    """

    def lacking(have: pa.Schema) -> list[_Change]:
        return list(_changes(names.full(refs.topology, table), have, wanted, (), transient=transient))

    def deleted(have: pa.Schema) -> Change | None:
        return _deleted([c.path for c in lacking(have) if c.verb == "anew"])

    def applied(have: pa.Schema) -> Change | None:
        changes = lacking(have)
        return (lambda update: _apply(update, changes)) if changes else None

    if transient:
        refs.evolve(table, deleted)
    refs.evolve(table, applied)


def drop_columns(refs: Refs, table: str, wanted: set[str], newest: Callable[[], bool]) -> None:
    """Drops the columns of an output that its plan no longer has. Idempotent.

    ``newest``: whether no run has been opened since the one whose plan it is; a newer one may have added columns of its own. It is asked for
    each try, after the columns were read.
    """
    if refs.table(table) is not None:
        refs.evolve(table, lambda have: _deleted([(f.name,) for f in have if f.name not in wanted]) if newest() else None)


def _deleted(paths: list[Path]) -> Change | None:
    def delete(update: UpdateSchema) -> None:
        for path in paths:
            update.delete_column(path)

    return delete if paths else None


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
            continue
        was, now = _named(old), _named(new)
        if pa.types.is_struct(old) and pa.types.is_struct(new):
            yield from _changes(table, list(old), list(new), here, transient=transient)
        elif not fits(now, was):
            if transient:
                yield _Change("anew", here, new)
            elif fits(was, now):
                yield _Change("widened", here, new)
            else:
                raise SchemaRefused(
                    f"column {'.'.join(here)} of table {table} is {was.lower()} and cannot become {now.lower()}",
                    expected="the same type or a wider one",
                    next_step="give the column a new name in the topology, or cast it to the old type",
                )
        elif transient and was != now:
            yield _Change("anew", here, new)


def _named(kind: pa.DataType) -> str:
    """What Spark SQL calls a type: Arrow has two for texts and two for bytes, and several names of UTC."""
    return spark_name(kind) or str(kind)

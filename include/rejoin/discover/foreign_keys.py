"""Which column of a table seems to hold keys of another one, from samples. Pure."""

from collections.abc import Callable, Iterator, Sequence

from rejoin.discover.columns import Column
from rejoin.discover.table import ForeignKey, FoundTable

_SURE, _FEW = 0.9, 3


Held = Callable[[FoundTable, set[str]], int]
"""How many of some values are keys of a table."""


def sampled(table: FoundTable, values: set[str]) -> int:
    """The same for tables of which nothing but a sample is known."""
    return len(values & _values(table, table.key[0]))


def foreign_keys(tables: Sequence[FoundTable], declared: Sequence[ForeignKey] = (), held: Held = sampled) -> Iterator[ForeignKey]:
    """What is declared; and every other column that is called as another table, or its key, and some of whose values are keys there; or nearly all of whose
    values are.

    Of several tables a column gets the one that is called so, or else the one that has most of its values.
    """
    yield from declared
    known = {(key.left, column) for key in declared for column in key.columns}
    for left in tables:
        for column in left.columns:
            if (column.name,) != left.key and column.type is not None and (left.name, column.name) not in known:
                fits = [fit for right in tables if right.name != left.name and (fit := _fit(left, column, right, held)) is not None]
                if fits:
                    found, right, looked = max(fits, key=lambda fit: (_is_called(column.name, fit[1]), fit[0]))
                    yield ForeignKey(left.name, (column.name,), right, f"{found} of {looked} sampled values are keys of {right}")


def _fit(left: FoundTable, column: Column, right: FoundTable, held: Held) -> tuple[int, str, int] | None:
    """How many of a column's values are keys of a table, which one, and how many there are; None: too few."""
    if len(right.key) != 1 or right.type_of(right.key[0]) != column.type:
        return None
    values, name = _values(left, column.name), column.name.lower()
    called = _is_called(name, right.name)
    if not values or not (called or (len(values) >= _FEW and (column.type == "STRING" or name.endswith(("id", "key", "code"))))):
        return None
    found = held(right, values)
    return (found, right.name, len(values)) if found >= (1 if called else _SURE * len(values)) else None


def _values(table: FoundTable, column: str) -> set[str]:
    return {str(value) for row in table.rows if (value := row.get(column)) not in (None, "")}  # of CSV they are texts


def _is_called(column: str, table: str) -> bool:
    name, many = column.lower(), table.lower()
    one = many.removesuffix("s")
    return name in {one, many} | {f"{word}{end}" for word in (one, many) for end in ("_id", "id", "_key", "_code")}

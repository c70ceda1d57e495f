"""Which column of a table seems to hold keys of another one, from samples. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rejoin.discover.table import FoundTable

_SURE, _FEW = 0.9, 3


@dataclass(frozen=True)
class ForeignKey:
    """``found`` of ``looked`` different values of a column are among the sampled keys of another table."""

    left: str
    column: str
    right: str
    found: int
    looked: int


def foreign_keys(tables: Sequence[FoundTable]) -> Iterator[ForeignKey]:
    """Every column that is called as another table, or its key, and some of whose values are keys there; or nearly all of whose values are.

    Of several tables a column gets the one that is called so, or else the one that has most of its values.
    """
    for left in tables:
        for column in left.columns:
            if (column.name,) != left.key and column.type is not None:
                fits = [
                    one for right in tables if right.name != left.name and (one := _fit(left, column.name, column.type, right)) is not None
                ]
                if fits:
                    yield max(fits, key=lambda fit: (_is_called(column.name, fit.right), fit.found))


def _fit(left: FoundTable, column: str, type_: str, right: FoundTable) -> ForeignKey | None:
    if len(right.key) != 1 or right.type_of(right.key[0]) != type_:
        return None
    values, keys = _values(left, column), _values(right, right.key[0])
    found = len(values & keys)
    by_name = found > 0 and _is_called(column, right.name)
    by_values = (
        len(values) >= _FEW and found >= _SURE * len(values) and (type_ == "STRING" or column.lower().endswith(("id", "key", "code")))
    )
    return ForeignKey(left.name, column, right.name, found, len(values)) if by_name or by_values else None


def _values(table: FoundTable, column: str) -> set[str]:
    return {str(value) for row in table.rows if (value := row.get(column)) not in (None, "")}  # of CSV they are texts


def _is_called(column: str, table: str) -> bool:
    name, many = column.lower(), table.lower()
    one = many.removesuffix("s")
    return name in {one, many} | {f"{word}{end}" for word in (one, many) for end in ("_id", "id", "_key", "_code")}

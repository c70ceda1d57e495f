"""Which values of lines of a shape become which columns of events: of the rows of snapshots, and what dialects of change events share."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rejoin.plan.model.plan import Column
from rejoin.plan.sql.portable import quoted
from rejoin.sources.decode.line_shape import NULL, TEXT, Path, Shape, at, kind_at, part_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.sql_values import Typed, typed
from rejoin.sources.events import Layout


def of_rows(layout: Layout, position: str, shape: Shape) -> Judge | None:
    """Of a snapshot: every line is a row. ``position``: that of every row."""
    return judged(layout, {c.name: (c.name,) for c in (*layout.key, *layout.values)}, shape, f"'{position}'", [], Values(numbers=True))


@dataclass(frozen=True)
class Values:
    """How values are written. ``numbers``: texts of decimals are numbers; ``units``: of integer timestamps; ``unchanged``: texts that stand for no value."""

    numbers: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    unchanged: Collection[str] = ()


def judged(layout: Layout, paths: Mapping[str, Path], shape: Shape, position: str, holds: list[str], of: Values) -> Judge | None:
    """How lines become events that carry a row; None if some column is not told.

    Args:
        layout: the table's columns.
        paths: column -> where its value stands in a line.
        shape: of the lines.
        position: SQL text of the position of an event.
        holds: conditions, to which those of the columns are added.
        of: how values are written.
    """
    columns, keys = {"_position": position}, {c.name for c in layout.key}
    for column in (*layout.key, *layout.values):
        found = _column(column, paths[column.name], shape, of.units.get(column.name, "us"), numbers=of.numbers)
        if found is None:
            return None
        written = at("j", paths[column.name])
        columns[column.name] = found.value
        if column.name in keys:
            holds.append(f"{written} IS NOT NULL AND {found.holds}" if kind_at(shape.root, paths[column.name]) else "false")
        elif found.holds != "true":
            holds.append(f"({written} IS NULL OR {found.holds})")
        if of.unchanged and kind_at(shape.root, paths[column.name]) == TEXT:
            # Not IN: of five texts or more DuckDB makes a join, and the rows come in another order than the lines.
            holds.append(f"coalesce({' AND '.join(f'{written} <> {quoted(text)}' for text in sorted(of.unchanged))}, true)")
    return Judge(columns, tuple(holds))


def _column(column: Column, path: Path, shape: Shape, unit: str, *, numbers: bool) -> Typed | None:
    kind = kind_at(shape.root, path)
    if kind is None:  # the rows do not have it, or hold objects there
        return typed(NULL, "", str(column.type)) if part_at(shape.root, path) is None else None
    return typed(kind, at("j", path), str(column.type), unit=unit, numbers=numbers)

"""Which values of lines of a shape become which columns of events: of the rows of snapshots, and what dialects of change events share."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rejoin.plan.model.plan import Column
from rejoin.plan.sql.portable import duckdb_type, quoted
from rejoin.sources.decode.line_shape import DECIMAL, NULL, OCTETS, TEXT, WHOLE, Path, Shape, at, kind_at, part_at
from rejoin.sources.decode.proven_lines import Judge
from rejoin.sources.decode.sql_values import Typed, typed, unscaled
from rejoin.sources.decode.values import CONNECT_DECIMAL, UNITS, Field, decimal_of
from rejoin.sources.events import Layout


def of_rows(layout: Layout, position: str, shape: Shape) -> Judge | None:
    """Of a snapshot: every line is a row. ``position``: that of every row."""
    return judged(layout, {c.name: (c.name,) for c in (*layout.key, *layout.values)}, shape, f"'{position}'", [], Values(numbers=True))


_DECIMAL_TEXT = 24
"""Characters of base64 for the octets of the longest decimals."""


@dataclass(frozen=True)
class Values:
    """How values are written. ``numbers``: texts of decimals are numbers; ``units``: of integer timestamps; ``unchanged``: texts that stand for no value;
    ``fields``: of the columns that have a schema, what it says of them.
    """

    numbers: bool = False
    fields: Mapping[str, Field] = field(default_factory=dict)
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
        found = _column(column, paths[column.name], shape, of)
        if found is None:
            return None
        kind, written = kind_at(shape.root, paths[column.name]), at("j", paths[column.name])
        columns[column.name] = found.value
        if column.name in keys:
            holds.append(f"{written} IS NOT NULL AND {found.holds}" if kind else "false")
        elif found.holds != "true":
            holds.append(f"({written} IS NULL OR {found.holds})")
        if kind == DECIMAL and any(map(_is_number, of.unchanged)):
            return None
        if of.unchanged and (text := _as_text(kind, written)):
            # Not IN: of five texts or more DuckDB makes a join, and the rows come in another order than the lines.
            holds.append(f"coalesce({' AND '.join(f'{text} <> {quoted(one)}' for one in sorted(of.unchanged))}, true)")
    return Judge(columns, tuple(holds))


def _is_number(text: str) -> bool:
    """Whether a text that stands for an unchanged value may be the octets of a decimal as well."""
    return len(text) <= _DECIMAL_TEXT


def _as_text(kind: str | None, written: str) -> str | None:
    """What may stand for an unchanged value: a text, and octets as their base64."""
    return written if kind == TEXT else f"base64({written})" if kind == OCTETS else None


def _column(column: Column, path: Path, shape: Shape, of: Values) -> Typed | None:
    kind, type_ = kind_at(shape.root, path), str(column.type)
    if kind is None:  # the rows do not have it, or hold objects there
        return typed(NULL, "", type_) if part_at(shape.root, path) is None else None
    known = of.fields.get(column.name)
    if kind == DECIMAL and known is not None and (decimal := decimal_of(type_)) and known.scale == decimal[1]:
        value = f"TRY_CAST({at('j', path)} AS {duckdb_type(type_)})"
        return Typed(value, f"{value} IS NOT NULL")
    if known is not None and kind == TEXT and (decimal := decimal_of(type_)):
        if known.name == CONNECT_DECIMAL and known.type == "bytes":
            return unscaled(at("j", path), type_) if known.scale in (None, decimal[1]) else None
        return typed(kind, at("j", path), type_, numbers=True) if known.type == "string" else None
    unit = UNITS.get((known and known.name) or "", "days" if type_ == "DATE" else of.units.get(column.name, "us"))
    if type_ == "DATE" and unit != "days" and kind == WHOLE:
        return None
    return typed(kind, at("j", path), type_, unit=unit, numbers=of.numbers)

"""The statements that make columns of events of the fields of records. ``records`` is the definition: what is not proven here, it judges.

Both are made of the same relation of computed values, so that an expression means the same for one record and for many:

| column | meaning |
|---|---|
| ``x0``, ``x1`` ... | what column 0, 1 ... is: a text to be read as the column's type, or a value that was computed |
| ``n0``, ``n1`` ... | it cannot be computed |
| ``r0``, ``r1`` ... | it is a date or time outside the years 0001 to 9999, in place of which there is null |
| ``d``, ``bad`` | whether the row is gone; that cannot be computed |
| ``l`` | whether it is of a full load; null if that cannot be computed |
| ``o0``, ``no0`` ... | the text of a part of the position; it cannot be computed |
"""

from collections.abc import Mapping as Typed

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.plan.model.plan import Column
from rejoin.plan.sql.nested import is_nested
from rejoin.plan.sql.portable import duckdb_type
from rejoin.sources.decode.proven_rows import AT
from rejoin.sources.decode.row_sql import database
from rejoin.sources.decode.sql_values import of_text
from rejoin.sources.events import ReadMark
from rejoin.sources.shapes.mapped import positions
from rejoin.sources.shapes.mapped.mapping import RAW, Made, Mapping
from rejoin.statements.dialect import DUCKDB

_SPAN = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMPTZ", "TIMESTAMP_NTZ": "TIMESTAMP"}


def run(query: str, records: pa.Table) -> pa.Table:
    """What a statement over ``records`` gives, in their order."""
    with database().cursor() as cursor:
        cursor.register("records", records)
        found = cursor.sql(query).to_arrow_table()
    # As in ``proven_lines.computed``: rows come in the order in which they went, unless DuckDB makes a join of something.
    if AT in found.column_names and not np.array_equal(found[AT].to_numpy(), np.arange(found.num_rows)):
        return found.take(pc.sort_indices(found[AT]))
    return found


class Statement:
    """The statements for records of one kind of file.

    Args:
        mapping: what is computed.
        texts: field -> SQL of its text over ``records``, where it is not a text there; those that ``records`` does not have are missing in ``known``.
        known: the fields that ``records`` has.
        whole: columns that are nothing but a field, whose values are theirs as they are.

    Attributes:
        texts: ``records`` -> the fields that are read, as texts.
    """

    def __init__(self, mapping: Mapping, known: frozenset[str], texts: Typed[str, str], whole: frozenset[str]) -> None:
        self._mapping = mapping
        self.whole = whole
        shown = [f"{texts.get(f, DUCKDB.name(f)) if f in known else 'CAST(NULL AS VARCHAR)'} AS {DUCKDB.name(f)}" for f in mapping.reads]
        kept = [
            f"{DUCKDB.name(f)} AS {DUCKDB.name(f'={f}')}"
            for f in dict.fromkeys(made.field for c, made in mapping.columns if c.name in whole and made.field)
        ]
        self._records = f"SELECT {', '.join([AT, *shown, *kept])} FROM records"
        self.texts = f"SELECT {', '.join(shown)} FROM records"

    def computed(self) -> str:
        """``records`` -> the relation of computed values."""
        inner, outer = [AT], [AT]
        for i, (column, made) in enumerate(self._mapping.columns):
            if column.name in self.whole:
                inner.append(f"{RAW}.{DUCKDB.name(f'={made.field}')} AS x{i}")
                value, failed = f"x{i}", "false"
            else:
                value, failed = _added(inner, f"x{i}", made, made.sql)
            if (span := self._span(column, made)) is not None:
                inside = f"{value} BETWEEN {span} '0001-01-01' AND {_last(span)}"
                value = f"CASE WHEN {inside} THEN {value} END"
                outer.append(f"coalesce(NOT ({inside}), false) AS r{i}")
            outer += [f"{value} AS x{i}", f"{failed} AS n{i}"]
        if (deleted := self._mapping.deleted) is not None:
            value, failed = _added(inner, "d", deleted, deleted.sql)
            outer += [f"{value} AS d", f"{failed} AS bad"]
        if (loaded := self._mapping.loaded) is not None:
            outer.append(f"{_added(inner, 'l', loaded, loaded.sql)[0]} AS l")
        for i, made in enumerate(self._mapping.order):
            value, failed = _added(inner, f"o{i}", made, _order_text(made))
            outer += [f"{value} AS o{i}", f"{failed} AS no{i}"]
        return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM ({self._records}) AS {RAW})"

    def events(self) -> str:
        """``records`` -> ``_proven``, the columns of events, of nested ones the texts that ``records.Records`` reads, ``_position`` if order is computed, ``_gone``
        if records can say that a row is, and ``_snapshot`` if they can be of a full load.
        """
        shown, holds, is_key = {}, ["true"], len(self._mapping.layout.key)
        gone = self._mapping.deleted is not None
        for i, (column, made) in enumerate(self._mapping.columns):
            value, held = self._value(i, column, made)
            if i < is_key:
                holds.append(f"x{i} IS NOT NULL AND {held}")
            else:
                holds.append(f"(d OR {held})" if gone else held)
            shown[column.name] = f"CASE WHEN NOT d THEN {value} END" if gone and i >= is_key else value
        if gone:
            shown["_gone"] = "d"
            holds.append("d IS NOT NULL")
        if self._mapping.loaded is not None:
            shown["_snapshot"] = f"CASE WHEN l THEN '{ReadMark.ROW}' END"
        if parts := [positions.sql(f"o{i}") if not _sorts(made) else f"nullif(o{i}, '')" for i, made in enumerate(self._mapping.order)]:
            shown["_position"] = f" || '{positions.SEPARATOR}' || ".join(f"({part})" for part in parts)
        listed = ", ".join(f"{text} AS {DUCKDB.name(name)}" for name, text in shown.items())
        position = "_position, " if parts else ""
        names = ", ".join(DUCKDB.name(name) for name in shown if name != "_position")
        proven = f"coalesce({' AND '.join(f'({h})' for h in holds)}, false) AS _holds"
        proof = "_holds AND _position IS NOT NULL" if parts else "_holds"
        return f"SELECT {AT}, {proof} AS _proven, {position}{names} FROM (SELECT {AT}, {proven}, {listed} FROM ({self.computed()}))"

    def _span(self, column: Column, made: Made) -> str | None:
        """DuckDB's name of the type of a date or time that is no text any more."""
        return _SPAN.get(str(column.type)) if column.name in self.whole or not made.is_text else None

    def _value(self, i: int, column: Column, made: Made) -> tuple[str, str]:
        """A column's value, and the condition under which it is the right one."""
        type_ = str(column.type)
        if column.name in self.whole or not made.is_text:
            return f"CAST(x{i} AS {duckdb_type(type_)})", f"NOT n{i}" + (f" AND NOT r{i}" if self._span(column, made) else "")
        if is_nested(type_):
            return f"x{i}", f"NOT n{i}"
        found = of_text(f"x{i}", type_)
        if found is None:
            return f"CAST(NULL AS {duckdb_type(type_)})", f"NOT n{i} AND x{i} IS NULL"
        return found.value, f"NOT n{i} AND (x{i} IS NULL OR {found.holds})"


def _added(inner: list[str], name: str, made: Made, sql: str) -> tuple[str, str]:
    """A value that is added to the inner statement, that of an expression in a struct, which is null if it cannot be computed. SQL of it, and of that, over these."""
    if made.field is not None:
        inner.append(f"{sql} AS {name}")
        return name, "false"
    inner.append(f"TRY({{'v': {sql}}}) AS {name}")
    return f"{name}.v", f"{name} IS NULL"


def _sorts(made: Made) -> bool:
    """Whether texts of an order are compared as they are."""
    return made.is_text and made.field is None


def _last(span: str) -> str:
    return "DATE '9999-12-31'" if span == "DATE" else f"{span} '9999-12-31 23:59:59.999999'"


def _order_text(made: Made) -> str:
    """SQL of the text that says a part of the order: of times their microseconds."""
    if made.is_text:
        return made.sql
    if made.type in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return f"CAST(epoch_us(CAST({made.sql} AS TIMESTAMP)) AS VARCHAR)"
    text = f"CAST({made.sql} AS VARCHAR)"
    return f"regexp_replace({text}, '\\.0+$', '')" if made.type.startswith("DECIMAL") else text

"""Rows that come in batches, kept by DuckDB until nobody refers to them any more."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from rejoin.engines.deferred_relation import DeferredRelation, KeptRelation, database
from rejoin.engines.key_ranges import side_by_side
from rejoin.engines.relation import LocalRelation
from rejoin.statements.dialect import DUCKDB

ROWS = 245_760
"""Rows that land together: full row groups of DuckDB's, which takes smaller pieces at four times the cost."""


def landed(schema: pa.Schema, streams: Sequence[Iterable[pa.RecordBatch]], rare: Sequence[str]) -> DeferredRelation:
    """The rows of some streams, which are taken side by side.

    Args:
        schema: their columns.
        streams: the rows.
        rare: columns that hold nothing (null, or an empty list) in nearly all rows; they are kept for the batches in which they do.
    """
    common = pa.schema([field for field in schema if field.name not in rare])
    found = side_by_side(lambda batches: _Landing(schema, common).of(batches, rare), streams)
    whole, short = ([kept for one in found if (kept := one.get(of)) is not None] for of in (True, False))
    tables = {f"whole_{i}": rows for i, rows in enumerate(whole or [_made(schema)])} | {f"short_{i}": rows for i, rows in enumerate(short)}
    with database().cursor() as connection:
        connection.register("every", schema.empty_table())
        types = dict(zip(schema.names, connection.sql("SELECT * FROM every").types, strict=True))
    empty = {name: "[]" if pa.types.is_list(schema.field(name).type) else "NULL" for name in rare}
    line = ", ".join(f"CAST({empty[c]} AS {types[c]}) AS {DUCKDB.name(c)}" if c in empty else DUCKDB.name(c) for c in schema.names)
    parts = (f"SELECT {line if name.startswith('short') else '*'} FROM {name}" for name in tables)
    return DeferredRelation(" UNION ALL ".join(parts), tables)


class _Landing:
    """One stream on its way into tables of DuckDB: one of batches as they are, one of those without what is rare."""

    def __init__(self, whole: pa.Schema, short: pa.Schema) -> None:
        self._schemas = {True: whole, False: short}
        self._waiting: dict[bool, list[pa.RecordBatch]] = {True: [], False: []}
        self._tables: dict[bool, KeptRelation] = {}

    def of(self, batches: Iterable[pa.RecordBatch], rare: Sequence[str]) -> dict[bool, KeptRelation]:
        """The tables that got rows: ``True`` is the one with all columns."""
        for batch in batches:
            whole = any(_holds(batch[name]) for name in rare)
            self._waiting[whole].append(batch)
            if sum(b.num_rows for b in self._waiting[whole]) >= ROWS:
                self._land(whole=whole)
        for whole, rest in self._waiting.items():
            if rest:
                self._land(whole=whole)
        return self._tables

    def _land(self, *, whole: bool) -> None:
        schema = self._schemas[whole]
        if whole not in self._tables:
            self._tables[whole] = _made(schema)
        with database().cursor() as connection:
            connection.register("landing", pa.Table.from_batches([batch.select(schema.names) for batch in self._waiting[whole]], schema))
            connection.execute(f"INSERT INTO {self._tables[whole].name} FROM landing")
        self._waiting[whole] = []


def _made(schema: pa.Schema) -> KeptRelation:
    """An empty table of DuckDB."""
    return DeferredRelation("SELECT * FROM nothing", {"nothing": LocalRelation(schema.empty_table())}).kept()


def _holds(column: pa.Array) -> bool:
    return bool(len(column.flatten())) if pa.types.is_list(column.type) else column.null_count < len(column)

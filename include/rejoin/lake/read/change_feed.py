"""What a sink is given: the changes of an output after a run, or its rows at a run, batch by batch, in the order of the key.

The order depends on the rows alone, not on files, so a reader that was interrupted after n rows goes on with ``offset=n``, whether or not
the table was compacted in between. Memory: one data file at a time, and what DuckDB keeps to sort (``engines.duckdb_connection.MEMORY``; more goes to disk).

Batches have the columns ``_run``, ``_op`` (I, U, D; R for a row of a snapshot), the key, ``_before`` and ``_after``.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThan, LessThanOrEqual, NotEqualTo
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from rejoin.engines.duckdb_connection import cursor
from rejoin.lake.read.first_load import images, load_of
from rejoin.statements import load_reference
from rejoin.statements.dialect import DUCKDB

BATCH_ROWS = 8_192


@dataclass(frozen=True)
class RunRange:
    """The runs above ``after``, up to and with ``upto``.

    Attributes:
        after: a run.
        upto: a later run.
        net: one change a key for all these runs, from the row before the first to the row after the last; needed if more than one run
            changed anything. A key that is back at the row it had is not left out: a sink may hold one from in between (``sinks.position``).
    """

    after: int
    upto: int
    net: bool


@dataclass(frozen=True)
class TableAt:
    """A table at a snapshot."""

    table: Table
    snapshot_id: int

    @property
    def schema(self) -> Schema:
        """The columns that a scan of it gives."""
        return self.table.scan(snapshot_id=self.snapshot_id).projection()


def changes(
    log: TableAt, output: TableAt, between: RunRange, key: Sequence[str], columns: Sequence[str], *, offset: int = 0
) -> Iterator[pa.RecordBatch]:
    """The changes of some runs.

    Args:
        log: a changes table.
        output: its output, after the same run: what it was loaded with is read from there.
        between: of which runs.
        key: its key columns.
        columns: the columns of the images.
        offset: leaves out so many rows: the same ones for the same ``between``, whatever ``columns`` are.
    """
    later, upto = _condition(GreaterThan, between.after), _condition(LessThanOrEqual, between.upto)
    load = load_of(log.table, log.snapshot_id, between.after, between.upto)
    source = _reader(log, And(later, upto) if load is None else later)
    if source is None:
        return
    have = set(source.schema.field("_after").type.names)
    before, image = (_image(side, columns, have) for side in ("_before", "_after"))
    keys = DUCKDB.names(key)
    found, frames = "source", {"source": source}
    if load is not None:
        stored = _reader(output, _condition(EqualTo, load))
        frames["stored"] = _none_of(output) if stored is None else stored
        every = load_reference.changes(DUCKDB, key, images(log.schema, output.schema))
        found = f"(WITH log AS MATERIALIZED (SELECT * FROM source) SELECT * FROM ({every}) WHERE _run <= {between.upto})"
    plain = f"SELECT _run, _op, {keys}, {before} AS _before, {image} AS _after FROM {found}"
    if between.net:
        # Windows keep every value as it is; an aggregate of structs, such as arg_max, makes 0.0 of -0.0.
        first = f"first_value(_before) OVER (PARTITION BY {keys} ORDER BY _run) AS _before"
        last = f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY _run DESC) = 1"
        op = "CASE WHEN _after IS NULL THEN 'D' WHEN _before IS NULL THEN 'I' ELSE 'U' END AS _op"
        plain = f"SELECT _run, {op}, {keys}, _before, _after FROM (SELECT _run, {keys}, {first}, _after FROM ({plain}) {last})"
    yield from _sorted(f"{plain} ORDER BY {keys} OFFSET {offset}", **frames)


def rows(
    output: TableAt, key: Sequence[str], columns: Sequence[str], *, gone: tuple[TableAt, int] | None = None, offset: int = 0
) -> Iterator[pa.RecordBatch]:
    """The rows of an output, as changes from nothing; with ``gone`` also a delete for every key that was deleted and did not come back.

    Args:
        output: the output.
        key: its key columns.
        columns: its columns.
        gone: its changes table, and the run of the output's state.
        offset: leaves out so many rows.
    """
    source = _reader(output, None)
    if source is None:
        source = _none_of(output)
    keys, have = DUCKDB.names(key), set(source.schema.names)
    image = _struct({c: DUCKDB.name(c) if c in have else "NULL" for c in columns})
    sql, frames = f"SELECT _run, 'R' AS _op, {keys}, NULL AS _before, {image} AS _after FROM source", {"source": source}
    changed = None if gone is None else And(_condition(LessThanOrEqual, gone[1]), _condition(NotEqualTo, load_reference.LOADED, "_op"))
    deleted = None if gone is None else _reader(gone[0], changed, ("_run", "_op", *key))
    if deleted is not None:
        frames["deleted"] = deleted
        same = DUCKDB.on(key, "ever", "live", nulls=True)
        ever = f"SELECT {keys}, max(_run) AS _run FROM deleted GROUP BY {keys}"
        sql = f"WITH live AS MATERIALIZED ({sql}), ever AS ({ever}) SELECT * FROM live UNION ALL BY NAME SELECT _run, 'D' AS _op, {keys} FROM ever ANTI JOIN live ON {same}"
    yield from _sorted(f"SELECT * FROM ({sql}) ORDER BY {keys} OFFSET {offset}", **frames)


def _condition(kind: type, value: int | str, column: str = "_run") -> BooleanExpression:
    made: BooleanExpression = kind(column, value)
    return made


def _none_of(state: TableAt) -> pa.RecordBatchReader:
    return schema_to_pyarrow(state.table.schema(), include_field_ids=False).empty_table().to_reader()


def _image(side: str, columns: Sequence[str], have: set[str]) -> str:
    """A struct of the wanted columns; a column that the output did not have then is null."""
    fields = {c: f"{side}.{DUCKDB.name(c)}" if c in have else "NULL" for c in columns}
    return f"CASE WHEN {side} IS NOT NULL THEN {_struct(fields)} END"


def _struct(fields: dict[str, str]) -> str:
    return f"struct_pack({', '.join(f'{DUCKDB.name(name)} := {value}' for name, value in fields.items())})"


def _reader(state: TableAt, condition: BooleanExpression | None, columns: Sequence[str] = ("*",)) -> pa.RecordBatchReader | None:
    """The rows that fulfil a condition, file after file; None if no file can have any."""
    table, selected = state.table, {"selected_fields": tuple(columns), "snapshot_id": state.snapshot_id}
    scan = table.scan(**selected) if condition is None else table.scan(row_filter=condition, **selected)  # type: ignore[arg-type]
    tasks = list(scan.plan_files())
    if not tasks:
        return None
    projection = scan.projection()
    schema = schema_to_pyarrow(projection, include_field_ids=False)
    reading = ArrowScan(table.metadata, table.io, projection, scan.row_filter)

    def batches() -> Iterator[pa.RecordBatch]:
        for task in tasks:  # PyIceberg would read all files at once and keep what it has read
            for batch in reading.to_record_batches([task]):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _sorted(sql: str, **frames: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with closing(cursor()) as database:
        for name, frame in frames.items():
            database.register(name, frame)
        found: pa.RecordBatchReader = database.sql(sql).to_arrow_reader(BATCH_ROWS)
        yield from found

"""Expressions by Spark and, as printed, by DuckDB over the same rows: value by value, error by error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column

from rejoin.engines.duckdb_connection import fresh
from rejoin.plan.sql import types
from rejoin.plan.sql.portable import SETTINGS, NotPortable, Printed, duckdb_type, printed

Columns = Mapping[str, Mapping[str, str]]
ERROR = "an error"
_AT_ONCE = 150


@dataclass
class Compared:
    """``portable``: expressions that were printed; ``wrong``: what differs, in words; ``stricter``: rows that only DuckDB refuses."""

    portable: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    stricter: dict[str, int] = field(default_factory=dict)


class Beside:
    """Both engines over one table.

    Args:
        spark: a session.
        columns: alias ``l`` -> column -> its Spark type.
        table: the rows; the column ``row`` numbers them.
        directory: where the table is kept.
        errors: so many of the rows that Spark refuses are asked of DuckDB, for each expression; None: all. Rows that only DuckDB refuses
            are set apart exactly where it is None, else twice as many are looked at one by one.
    """

    def __init__(self, spark: SparkSession, table: pa.Table, columns: Columns, directory: Path, errors: int | None) -> None:
        self._errors, self._count, self._directory = errors, table.num_rows, directory
        self._columns = columns
        self._kept: set[int] = set()
        jvm: Any = spark._jvm
        self._utils = jvm.org.apache.spark.sql.classic.ExpressionUtils
        self._try = jvm.org.apache.spark.sql.catalyst.expressions.TryEval
        # What several expressions have in common is else looked at before each of them, and its errors with it.
        spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
        path = directory / "rows.parquet"
        pq.write_table(table, path)
        self._frame = spark.read.parquet(str(path)).repartition(1).sortWithinPartitions("row").alias("l").cache()
        self._duck = fresh()
        for setting in SETTINGS:
            self._duck.execute(setting)
        self._duck.execute(f"CREATE TABLE everything AS FROM read_parquet('{path}') ORDER BY row")
        self._values = {name: table.column(name) for name in table.column_names}

    def compare(self, texts: Iterable[str]) -> Compared:
        found, wanted = Compared(), {}
        for text in dict.fromkeys(texts):
            try:
                wanted[text] = printed(text, self._columns)
            except NotPortable as reason:
                found.refused[text] = str(reason)
        found.portable = list(wanted)
        for start in range(0, len(wanted), _AT_ONCE):
            part = dict(list(wanted.items())[start : start + _AT_ONCE])
            for text, (of, values) in self._by_spark(list(part)).items():
                self._one(text, part[text], of, values, found)
        return found

    # --- Spark -----------------------------------------------------------------------------------------------------------

    def _or_null(self, text: str) -> Column:
        """A struct of the value; null where Spark raises an error."""
        struct = self._utils.expression(F.expr(f"named_struct('v', {text})")._jc)
        return Column(self._utils.column(self._try(struct)))

    def _by_spark(self, texts: Sequence[str]) -> dict[str, tuple[str, list[Any]]]:
        """Expression -> type and values; ``ERROR`` for a row that Spark refuses, and as the type of an expression that it refuses."""
        try:
            frame = self._frame.select(*(self._or_null(text).alias(f"e{i}") for i, text in enumerate(texts)))
            kinds = [_spark_type(frame, i) for i in range(len(texts))]
            batches: Any = frame._collect_as_arrow()  # type: ignore[operator]
            made = pa.Table.from_batches(batches)
        except (PySparkException, Py4JJavaError):
            if len(texts) == 1:
                return {texts[0]: (ERROR, [])}
            half = len(texts) // 2
            return self._by_spark(texts[:half]) | self._by_spark(texts[half:])
        return {text: (kinds[i], _unpacked(made.column(i))) for i, text in enumerate(texts)}

    # --- DuckDB ----------------------------------------------------------------------------------------------------------

    def _one(self, text: str, to: Printed, of: str, expected: list[Any], found: Compared) -> None:
        if of == ERROR:  # found in constants, before any row
            expected = [ERROR] * self._count
        elif of != to.type:
            found.wrong.append(f"{text}: type {to.type}, Spark: {of}")
            return
        own = self._duck.execute(f"DESCRIBE SELECT {to.text} AS v FROM everything AS l").fetchall()[0][1]
        if _plain_type(own) != _plain_type(duckdb_type(to.type)):
            found.wrong.append(f"{text}: DuckDB's type {own}, expected {duckdb_type(to.type)}")
        fine = [row for row, value in enumerate(expected) if value is not ERROR]
        self._values_of(text, to, fine, expected, found)
        refused = [row for row, value in enumerate(expected) if value is ERROR]
        step = max(1, len(refused) // self._errors) if self._errors else 1
        for row in refused[::step]:
            for query in self._queries(to, f"row_{row}"):
                self._must_fail(text, row, query, found)

    def _values_of(self, text: str, to: Printed, rows: list[int], expected: list[Any], found: Compared) -> None:
        """Compares the rows for which Spark has a value; halves them where DuckDB has none for one of them."""
        if not rows:
            return
        try:
            name = self._table(rows)
            values = self._duck.sql(f"SELECT {to.text} AS v FROM {name} AS l ORDER BY row").to_arrow_table().column(0)
        except duckdb.Error:
            if len(rows) == 1:
                found.stricter[text] = found.stricter.get(text, 0) + 1
                return
            for part in self._smaller(rows):
                self._values_of(text, to, part, expected, found)
            return
        got = _listed(values)
        different = [(row, value) for row, value in zip(rows, got, strict=True) if repr(value) != repr(expected[row])]
        for row, value in different[:3]:
            found.wrong.append(f"{text}: {value!r:.80}, Spark: {expected[row]!r:.80}, of {self._shown(text, row)} ({len(different)} rows)")
        if to.type == "BOOLEAN":
            kept = [row for (row,) in self._duck.execute(f"SELECT row FROM {name} AS l WHERE {to.text} ORDER BY row").fetchall()]
            if kept != [row for row in rows if expected[row] is True]:
                found.wrong.append(f"{text}: another result as a filter")

    def _smaller(self, rows: list[int]) -> list[list[int]]:
        if self._errors is not None:
            return [[row] for row in rows[:: max(1, len(rows) // (2 * self._errors))]]
        return [rows[: len(rows) // 2], rows[len(rows) // 2 :]]

    def _must_fail(self, text: str, row: int, query: str, found: Compared) -> None:
        self._table([row])
        try:
            got = self._duck.execute(query).fetchall()
        except duckdb.Error:
            return
        found.wrong.append(f"{text}: {got!r:.80}, Spark: an error, of {self._shown(text, row)}: {query[:20]}")

    def _queries(self, to: Printed, name: str) -> list[str]:
        """As a column, and as a filter."""
        asked = [f"SELECT {to.text} FROM {name} AS l"]
        return [*asked, f"SELECT row FROM {name} AS l WHERE {to.text}"] if to.type == "BOOLEAN" else asked

    def _table(self, rows: list[int]) -> str:
        """A table of some rows. What DuckDB knows of the values of a table depends on its rows."""
        if len(rows) == self._count:
            return "everything"
        if len(rows) == 1:
            self._one_row(rows[0])
            return f"row_{rows[0]}"
        self._duck.execute(f"CREATE OR REPLACE TABLE some AS FROM everything WHERE row IN ({', '.join(map(str, rows))}) ORDER BY row")
        return "some"

    def _one_row(self, row: int) -> None:
        """A file, as rejoin's tables are files, whose smallest and largest values DuckDB knows."""
        if row not in self._kept:
            path = self._directory / f"{row}.parquet"
            self._duck.execute(
                f"COPY (FROM everything WHERE row = {row}) TO '{path}'; CREATE VIEW row_{row} AS FROM read_parquet('{path}')"
            )
            self._kept.add(row)

    def _shown(self, text: str, row: int) -> Mapping[str, Any]:
        return {name: str(column[row])[:40] for name, column in self._values.items() if f"l.{name}" in text.replace("`", "")}


def _spark_type(frame: DataFrame, place: int) -> str:
    of: Any = frame.schema[place].dataType
    written = str(of["v"].dataType.simpleString())
    return types.canonical(written) or written.upper()


def _unpacked(column: pa.ChunkedArray) -> list[Any]:
    structs = column.combine_chunks()
    structs = structs if isinstance(structs, pa.StructArray) else pa.concat_arrays(structs.chunks)
    values = _listed(pa.chunked_array([structs.field(0)]))
    return [value if there else ERROR for value, there in zip(values, structs.is_valid().to_pylist(), strict=True)]


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """The values; of times their numbers, as Python does not know all years."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return list(column.to_pylist())


def _plain_type(name: str) -> str:
    return name.replace(" ", "").replace('"', "").replace("TIMESTAMPWITHTIMEZONE", "TIMESTAMPTZ")

"""Answers of queries as JSON lines, CSV and Parquet, some rows at a time.

JSON as in topics: a decimal is a text with all its digits, a binary value base64, a timestamp ISO 8601 in UTC with ``Z`` (without time zone: without
``Z``), not-a-number and infinities are texts. CSV: texts in quotes, so that an empty one differs from null; a nested value is a text of JSON.
"""

from typing import IO, Any

import msgspec
import pyarrow as pa

from rejoin.lake.query.arrow_values import values
from rejoin.lake.query.json_values import plain
from rejoin.lake.query.user_queries import Rows
from rejoin.statements.dialect import DUCKDB

_IN_CSV = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIMESTAMP")
"""How the types begin that Arrow writes as CSV."""


def write_json(rows: Rows, to: IO[bytes]) -> None:
    """Each row as a JSON object in a line. Raises as ``Rows.to_arrow``."""
    encode = msgspec.json.Encoder().encode
    batches = rows.batches([_text(c, t) if t == "INTERVAL" else c for c, t in _columns(rows)])
    for batch in batches:
        columns = [_in_json(column, kind) for column, kind in zip(batch.columns, rows.types, strict=True)]
        to.writelines(encode(dict(zip(rows.columns, row, strict=True))) + b"\n" for row in zip(*columns, strict=True))


def write_csv(rows: Rows, to: IO[bytes]) -> None:
    """With a header. Raises as ``Rows.to_arrow``."""
    from pyarrow import csv

    texts = [c if t.startswith(_IN_CSV) or _nested(t) else _text(c, t) for c, t in _columns(rows)]
    to.write((",".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in rows.columns) + "\n").encode())
    for batch in rows.batches(texts):
        buffer = pa.BufferOutputStream()  # Arrow closes what it writes to
        columns = [_json_texts(column, kind) if _nested(kind) else column for column, kind in zip(batch.columns, rows.types, strict=True)]
        csv.write_csv(pa.record_batch(columns, rows.columns), buffer, csv.WriteOptions(include_header=False))
        to.write(buffer.getvalue())


def write_parquet(rows: Rows, to: IO[bytes]) -> None:
    """Raises as ``Rows.to_arrow``."""
    import pyarrow.parquet as pq

    texts = [_text(c, t) if t in ("INTERVAL", '"NULL"') else c for c, t in _columns(rows)]
    found = rows.batches(texts)
    with pq.ParquetWriter(to, found.schema, compression="zstd") as writer:
        for batch in found:
            writer.write_batch(batch)


def _in_json(column: pa.Array, kind: str) -> list[Any]:
    """The values of a column as msgspec encodes them."""
    if kind.endswith("HUGEINT"):  # a decimal in Arrow
        return [None if v is None else int(v) for v in values(column)]
    return [plain(v, str) for v in values(column)] if "FLOAT" in kind or "DOUBLE" in kind else values(column)


def _nested(kind: str) -> bool:
    return kind.endswith("]") or kind.startswith(("STRUCT(", "MAP("))


def _json_texts(column: pa.Array, kind: str) -> pa.Array:
    """The nested values of a column, each as JSON."""
    encode = msgspec.json.Encoder().encode
    return pa.array([None if value is None else encode(value).decode() for value in _in_json(column, kind)], pa.string())


def _columns(rows: Rows) -> list[tuple[str, str]]:
    """The columns as SQL text, and their types."""
    return [(DUCKDB.name(name), kind) for name, kind in zip(rows.columns, rows.types, strict=True)]


def _text(column: str, kind: str) -> str:
    return f"{f'to_base64({column})' if kind == 'BLOB' else f'CAST({column} AS VARCHAR)'} AS {column}"

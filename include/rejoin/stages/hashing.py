"""The value hash: 128-bit murmur3 over a canonical encoding of columns (ADR 0003).

The encoding is built in Spark SQL, so that Python only hashes one binary column. One column after the other:
``-`` for null, else a type letter, the length in bytes as decimal digits, ``:``, the bytes. So no two different rows share an encoding:
(1, null) is not (null, 1), ("ab", "c") is not ("a", "bc"). Equal values have equal bytes: decimals lose trailing zeros, -0.0 is 0.0,
there is one NaN, timestamps are microseconds since the epoch.
Any change of the encoding needs a new ``plan.fingerprint.HASH_VERSION``.
"""

from collections.abc import Callable, Iterable
from functools import cache

import mmh3
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from rejoin.stages.provenance import SEED


def canonical(columns: Iterable[tuple[str, str]]) -> Column:
    """The canonical encoding as a BINARY column.

    Args:
        columns: (SQL text of the value, its Spark SQL type in capitals) in a fixed order.
    """
    parts = [_encoded(text, type_) for text, type_ in columns]
    return F.expr(f"concat({', '.join(parts)})" if parts else "cast('' AS BINARY)")


def _encoded(text: str, type_: str) -> str:
    letter, payload = _payload(text, type_)
    head = f"cast(concat('{letter}', octet_length({payload}), ':') AS BINARY)"
    return f"CASE WHEN {text} IS NULL THEN cast('-' AS BINARY) ELSE concat({head}, {payload}) END"


def _payload(text: str, type_: str) -> tuple[str, str]:
    if type_ == "BINARY":
        return "x", text
    if type_ == "STRING":
        return "s", f"cast({text} AS BINARY)"
    if type_ in ("INT", "BIGINT", "BOOLEAN"):
        return type_[0].lower(), f"cast(cast({text} AS STRING) AS BINARY)"
    if type_.startswith("DECIMAL"):
        plain = f"cast({text} AS STRING)"
        trimmed = f"CASE WHEN {plain} LIKE '%.%' THEN trim(TRAILING '.' FROM trim(TRAILING '0' FROM {plain})) ELSE {plain} END"
        return "n", f"cast({trimmed} AS BINARY)"
    if type_ in ("FLOAT", "DOUBLE"):
        return "f", f"cast(CASE WHEN {text} = 0 THEN '0' ELSE cast(cast({text} AS DOUBLE) AS STRING) END AS BINARY)"
    if type_ == "DATE":
        return "d", f"cast(cast(unix_date({text}) AS STRING) AS BINARY)"
    if type_ == "TIMESTAMP":
        return "t", f"cast(cast(unix_micros({text}) AS STRING) AS BINARY)"
    if type_ == "TIMESTAMP_NTZ":
        return "l", f"cast(date_format({text}, 'yyyy-MM-dd HH:mm:ss.SSSSSS') AS BINARY)"
    raise ValueError(f"no canonical encoding for type {type_}")


@cache
def _murmur3() -> Callable[[Column], Column]:
    """Made at first use: what a UDF is depends on whether the session is a Spark Connect one."""

    def hashed(encoded: pa.Array) -> pa.Array:
        return pa.array([None if v is None else mmh3.hash_bytes(v, SEED) for v in encoded.to_pylist()], pa.binary())

    return F.arrow_udf(hashed, BinaryType())  # type: ignore[no-any-return, attr-defined]


def murmur3(encoded: Column) -> Column:
    """The 16 bytes of murmur3 x64 128 of each value; null stays null."""
    return _murmur3()(encoded)


def provenance(fingerprint: str, hashes: Iterable[str]) -> Column:
    """The hash of an output row: of the node's definition and of the rows it was made from, so that a row can be checked without
    making it again.

    Args:
        fingerprint: of the node's definition.
        hashes: SQL texts of the left row's hash and of each edge's right row's hash (null = no right row).
    """
    parts = [("'" + fingerprint + "'", "STRING"), *((text, "BINARY") for text in hashes)]
    return murmur3(canonical(parts))

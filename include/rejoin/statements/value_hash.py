"""The value hash: 128-bit murmur3 over a canonical encoding of columns (ADR 0003).

The encoding is built in SQL, so that Python only hashes one binary column. One column after the other:
``-`` for null, else a type letter, the length in bytes as decimal digits, ``:``, the bytes. So no two different rows share an encoding:
(1, null) is not (null, 1), ("ab", "c") is not ("a", "bc"). Equal values have equal bytes: decimals lose trailing zeros, -0.0 is 0.0,
there is one NaN, timestamps are microseconds since the epoch. Values stand in it by place, so the names of the columns have to be part of what is
hashed (``plan.change.fingerprint.columns_print`` for rows of a source, the fingerprint of the definition for rows of an output). Engines print floating point numbers each in its own way; a hash is made once
and from then on compared with itself only.
A nested value is one text: how many parts it has and their encodings, bytes in them as hexadecimal digits. The entries of a map come in the order of their encodings.
A nested column that is null is ``-`` and what follows from its type alone.
Any change of the encoding needs a new ``plan.change.fingerprint.HASH_VERSION``.
"""

from collections.abc import Iterable

import pyarrow as pa

from rejoin.plan.sql.nested import ARRAY, MAP, STRUCT, Nested, holds_map, parts_of
from rejoin.statements.dialect import Dialect, text
from rejoin.statements.provenance import hashed_bytes

MURMUR3 = "rejoin_murmur3"
"""The name by which both engines know ``murmur3``."""


_LETTERS = {ARRAY: "a", STRUCT: "r", MAP: "m"}


def murmur3(encoded: pa.Array) -> pa.Array:
    """The 16 bytes of murmur3 x64 128 of each value; null stays null. Engines call it by the name ``MURMUR3``."""
    return pa.array([None if v is None else hashed_bytes(v) for v in encoded.to_pylist()], pa.binary())


def hashed(encoded: str) -> str:
    """SQL text of the hash of an encoding."""
    return f"{MURMUR3}({encoded})"


def canonical(sql: Dialect, columns: Iterable[tuple[str, str]]) -> str:
    """SQL text of the canonical encoding, a BINARY.

    Args:
        sql: the dialect.
        columns: (SQL text of the value, its Spark SQL type in capitals) in a fixed order.
    """
    parts, texts = list[str](), list[str]()
    for value, type_ in columns:
        letter, payload = _payload(sql, value, type_)
        size = sql.bytes_in(payload, binary=type_ == "BINARY")
        texts += [f"CASE WHEN {value} IS NULL THEN '-' ELSE {text(letter)} END", size, f"CASE WHEN {value} IS NOT NULL THEN ':' END"]
        if type_ == "BINARY":
            parts += [sql.bytes_of(sql.texts(texts)), f"coalesce({payload}, {sql.bytes_of(text(''))})"]
            texts = []
        else:
            texts.append(payload)
    if texts or not parts:  # one call for many columns takes half the time of one for each
        parts.append(sql.bytes_of(sql.texts([*texts, text("")])))
    return " || ".join(parts)


def _payload(sql: Dialect, value: str, type_: str) -> tuple[str, str]:
    """The letter of a type, and the value as a text, or as it is if it is binary; null for null."""
    if type_ == "BINARY":
        return "x", value
    if type_ == "STRING":
        return "s", value
    if type_ in ("INT", "BIGINT", "BOOLEAN"):
        return type_[0].lower(), sql.cast(value, "STRING")
    if type_.startswith("DECIMAL"):
        plain = sql.cast(value, "STRING")
        short = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {plain}))"  # of rtrim the engines take the arguments in another order
        return "n", f"CASE WHEN {plain} LIKE '%.%' THEN {short} ELSE {plain} END"
    if type_ in ("FLOAT", "DOUBLE"):
        return "f", f"CASE WHEN {value} = 0 THEN '0' ELSE {sql.cast(sql.cast(value, 'DOUBLE'), 'STRING')} END"
    if type_ == "DATE":
        return "d", sql.cast(sql.days(value), "STRING")
    if type_ == "TIMESTAMP":
        return "t", sql.cast(sql.micros(value), "STRING")
    if type_ == "TIMESTAMP_NTZ":
        return "l", sql.cast(sql.wall_micros(value), "STRING")
    if made := parts_of(type_):
        return _LETTERS[made.kind], _parts(sql, value, made, 0)
    raise ValueError(f"no canonical encoding for type {type_}")


def _parts(sql: Dialect, value: str, made: Nested, depth: int) -> str:
    """The encodings of what a nested value is made of, as one text. ``depth``: how deep in others it stands."""
    if made.kind == STRUCT:
        return sql.texts([_encoded(sql, sql.get(value, name), of, depth) for name, of in made.parts])
    one, counted = f"x{depth}", value if made.kind == ARRAY else f"map_entries({value})"
    if made.kind == ARRAY:
        each = sql.transformed(value, one, _encoded(sql, one, made.element, depth + 1))
    else:
        entry = (_encoded(sql, sql.get(one, name), of, depth + 1) for name, of in made.parts)
        each = f"array_sort({sql.transformed(counted, one, sql.texts(list(entry)))})"
    return sql.texts([sql.cast(sql.size(counted), "STRING"), text(":"), sql.joined(each)])


def _encoded(sql: Dialect, value: str, type_: str, depth: int) -> str:
    """The encoding of a part of a nested value as a text."""
    if made := parts_of(type_):
        payload = sql.texts([text(_LETTERS[made.kind]), _parts(sql, value, made, depth)])
    else:
        letter, plain = _payload(sql, value, type_)
        plain = f"hex({plain})" if type_ == "BINARY" else plain
        payload = sql.texts([text(letter), sql.bytes_in(plain, binary=False), text(":"), plain])
    return f"CASE WHEN {value} IS NULL THEN '-' ELSE {payload} END"


def compared(sql: Dialect, value: str, type_: str | None) -> str:
    """SQL text of what a value of this Spark SQL type is compared by: itself, or its encoding where it holds a map, which Spark does not compare."""
    if type_ is None or not holds_map(type_):
        return value
    return f"CASE WHEN {value} IS NOT NULL THEN {_encoded(sql, value, type_, 0)} END"


def provenance(sql: Dialect, fingerprint: str, hashes: Iterable[str]) -> str:
    """SQL text of the hash of an output row: of the node's definition and of the rows it was made from, so that a row can be checked without
    making it again.

    Args:
        sql: the dialect.
        fingerprint: of the node's definition.
        hashes: SQL texts of the left row's hash and of each edge's right row's hash (null = no right row).
    """
    parts = [(text(fingerprint), "STRING"), *((value, "BINARY") for value in hashes)]
    return hashed(canonical(sql, parts))

"""SQL expressions that Spark and DuckDB (through sqlglot) understand alike, by the type of the column that they read."""

import random
from typing import Final

BIGINT, STRING, DECIMAL, DATE, BOOLEAN, TIMESTAMP, DOUBLE = "BIGINT", "STRING", "DECIMAL(10,2)", "DATE", "BOOLEAN", "TIMESTAMP", "DOUBLE"
TYPES: Final = (BIGINT, STRING, DECIMAL, DATE, BOOLEAN, TIMESTAMP, DOUBLE)

# ``{c}`` is the column; beside it the type of the result.
_SELECTS: Final = {
    BIGINT: [
        ("{c}", BIGINT),
        ("{c} * 2 - 3", BIGINT),
        ("coalesce({c}, 0) + 1", BIGINT),
        ("CASE WHEN {c} > 2 THEN 'high' WHEN {c} IS NULL THEN 'none' ELSE 'low' END", STRING),
    ],
    STRING: [
        ("{c}", STRING),
        ("upper({c})", STRING),
        ("coalesce({c}, '?')", STRING),
        ("concat({c}, '-', {c})", STRING),
        ("concat(coalesce({c}, ''), '!')", STRING),
        ("CASE WHEN {c} = 'x' THEN NULL ELSE {c} END", STRING),
    ],
    DECIMAL: [("{c}", DECIMAL), ("CAST({c} + {c} AS DECIMAL(10,2))", DECIMAL), ("{c} >= 1", BOOLEAN)],
    DATE: [("{c}", DATE), ("CAST(year({c}) AS BIGINT)", BIGINT), ("coalesce({c}, DATE '2024-02-29')", DATE)],
    BOOLEAN: [("{c}", BOOLEAN), ("NOT {c}", BOOLEAN), ("coalesce({c}, false)", BOOLEAN), ("CASE WHEN {c} THEN 1.5 ELSE -1.5 END", None)],
    TIMESTAMP: [("{c}", TIMESTAMP), ("{c} IS NULL", BOOLEAN)],
    DOUBLE: [("{c}", DOUBLE), ("{c} * 2", DOUBLE), ("{c} > 0.5", BOOLEAN)],
}
_FILTERS: Final = {
    BIGINT: ["{c} > 1", "{c} IS NULL OR {c} <> 3", "{c} BETWEEN 1 AND 4"],
    STRING: ["{c} <> 'x'", "{c} IS NOT NULL", "coalesce({c}, 'y') IN ('x', 'y', '')"],
    DECIMAL: ["{c} >= 1", "{c} IS NULL OR {c} < 10"],
    DATE: ["{c} > DATE '2024-01-15'", "{c} IS NULL OR year({c}) = 2024"],
    BOOLEAN: ["{c}", "NOT {c}", "{c} IS NULL OR {c}"],
    TIMESTAMP: ["{c} IS NOT NULL"],
    DOUBLE: ["{c} > 0.5", "{c} IS NULL OR {c} <= 2"],
}
# Every foreign key of these gives an existing key as it is, and null or a key that never exists for null.
_KEYS: Final = {
    BIGINT: ["{c}", "{c}", "{c}", "{c} * 2 - {c}", "coalesce({c}, -1)"],
    STRING: ["{c}", "{c}", "{c}", "CAST(trim({c}) AS STRING)", "CAST(concat('', {c}) AS STRING)"],
}


def selected(rng: random.Random, column: str, of_type: str) -> tuple[str, str | None]:
    """An expression over a column, and its type (None: not to be used in further expressions)."""
    text, made = rng.choice(_SELECTS[of_type])
    return text.format(c=column), made


def condition(rng: random.Random, column: str, of_type: str) -> str:
    """A condition over a column that is true for some of the values of ``values.random_value``."""
    return rng.choice(_FILTERS[of_type]).format(c=column)


def key_part(rng: random.Random, column: str, of_type: str) -> str:
    """An expression that gives a foreign key column as it is."""
    return rng.choice(_KEYS[of_type]).format(c=column)

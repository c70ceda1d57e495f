"""Values of few different ones a type, how files write them, and when two of them are the same."""

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from expressions import BIGINT, BOOLEAN, DATE, DECIMAL, DOUBLE, STRING, TIMESTAMP

_START: Final = datetime(2024, 1, 1, 12)  # noqa: DTZ001 -- instants are naive UTC everywhere in these tests
_VALUES: Final[dict[str, list[Any]]] = {
    BIGINT: [0, 1, 2, 3, 4, -7, 2**40],
    STRING: ["x", "y", "", "Zoë", "日本", 'a,"b"\'c\\', "x "],
    DECIMAL: [Decimal("0.00"), Decimal("1.00"), Decimal("-2.50"), Decimal("12.34"), Decimal("12345678.90")],
    DATE: [date(2024, 1, 1), date(2024, 2, 29), date(1999, 12, 31)],
    BOOLEAN: [True, False],
    TIMESTAMP: [_START, _START + timedelta(microseconds=1), _START - timedelta(days=20_000)],
    DOUBLE: [0.0, -0.0, 0.1, 1.5, -3.25, math.nan, 1e300],
}
ARROW: Final = {
    BIGINT: pa.int64(),
    STRING: pa.string(),
    DECIMAL: pa.decimal128(10, 2),
    DATE: pa.date32(),
    BOOLEAN: pa.bool_(),
    TIMESTAMP: pa.timestamp("us"),
    DOUBLE: pa.float64(),
}
NULL_SHARE: Final = 0.12
LONG: Final = ("l" * 100, "m" * 4_097, "n" * 70_000)
"""Texts beyond what bounds hold (16 characters) and beyond what Parquet says of a row group (4,096 bytes)."""
LONG_SHARE: Final = 0.01


def random_value(rng: random.Random, of_type: str) -> Any:
    """One of the few values of a type, or null; seldom a long text."""
    if of_type == STRING and rng.random() < LONG_SHARE:
        return rng.choice(LONG)
    return None if rng.random() < NULL_SHARE else rng.choice(_VALUES[of_type])


def same(value: Any) -> Any:
    """The value such that ``==`` says what rejoin calls equal: one NaN, one zero, instants in UTC."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def as_json(rng: random.Random, value: Any) -> Any:
    """What a JSON file holds for the value; several forms where a reader takes several."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return rng.choice([round((value - datetime(1970, 1, 1)) / timedelta(microseconds=1)), value.isoformat() + "Z"])  # noqa: DTZ001
    if isinstance(value, date):
        return rng.choice([(value - date(1970, 1, 1)).days, value.isoformat()])
    return value


def as_csv(value: Any, null: str) -> str:
    """What a CSV field holds for the value."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    return "NaN" if value != value else str(value)  # noqa: PLR0124 -- NaN

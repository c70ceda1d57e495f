"""Random nested values: as a source writes them, and as readers get them."""

import base64
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from rejoin.plan.sql.nested import ARRAY, MAP, parts_of

SCHEMA = {
    "tags": "ARRAY<STRING>",
    "deep": "ARRAY<STRUCT<a: INT, b: ARRAY<DECIMAL(10,2)>, t: TIMESTAMP>>",
    "place": "STRUCT<city: STRING, at: STRUCT<day: DATE, wall: TIMESTAMP_NTZ>>",
    "props": "MAP<STRING, STRUCT<n: BIGINT, f: DOUBLE>>",
    "raw": "ARRAY<BINARY>",
    "flags": "ARRAY<MAP<STRING, BOOLEAN>>",
}
Pair = tuple[Any, Any]
"""What is written, and what is read."""
_TEXTS = ("", "a", "é", "\U0001f600", "a,b", '"', "\\", "null", "[1]", "-", "'", "\n", "x" * 40)


def value(of: str, rng: random.Random) -> Pair:
    """A value of a type; often null, empty or odd."""
    if rng.random() < 0.15:
        return None, None
    made = parts_of(of)
    if made is None:
        return _PLAIN[of](rng)
    some = [value(made.element, rng) for _ in range(rng.choice((0, 0, 1, 2, 3)))]
    if made.kind == ARRAY:
        return [written for written, _ in some], [read for _, read in some]
    if made.kind == MAP:
        names = rng.sample(_TEXTS, len(some))
        entries = dict(zip(names, some, strict=True))
        return {n: entries[n][0] for n in names}, [(n, entries[n][1]) for n in sorted(names)]
    fields = {name: value(inner, rng) for name, inner in made.parts}
    written = {name: pair[0] for name, pair in fields.items() if pair[0] is not None or rng.random() < 0.5}
    return written, {name: pair[1] for name, pair in fields.items()}


def _decimal(rng: random.Random) -> Pair:
    cents = rng.randrange(-1000, 1000)
    return f"{Decimal(cents) / 100}", Decimal(cents).scaleb(-2)


def _time(rng: random.Random, zone: Any) -> Pair:
    micros = rng.randrange(-(10**15), 10**15)
    return micros, datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=micros)


def _float(rng: random.Random) -> Pair:
    found = rng.choice((0.0, -0.0, 1.5, float("inf"), float("-inf")))
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(found, found), found


def _same(*choices: Any) -> Callable[[random.Random], Pair]:
    return lambda rng: (found := rng.choice(choices), found)


def _bytes(rng: random.Random) -> Pair:
    found = rng.choice((b"", b"\0", b"\xff\xfe", b"abc"))
    return base64.b64encode(found).decode(), found


def _day(rng: random.Random) -> Pair:
    days = rng.randrange(-10_000, 30_000)
    return days, date(1970, 1, 1) + timedelta(days=days)


_PLAIN: dict[str, Callable[[random.Random], Pair]] = {
    "STRING": _same(*_TEXTS),
    "INT": _same(0, -1, 2**31 - 1),
    "BIGINT": _same(0, -(2**63), 2**63 - 1),
    "BOOLEAN": _same(True, False),
    "DOUBLE": _float,
    "DECIMAL(10,2)": _decimal,
    "BINARY": _bytes,
    "DATE": _day,
    "TIMESTAMP": lambda rng: _time(rng, UTC),
    "TIMESTAMP_NTZ": lambda rng: _time(rng, None),
}

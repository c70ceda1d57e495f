"""Values at the edges of every type, as a table of pairs: columns ``a_<type>`` and ``b_<type>``."""

import datetime as dt
import itertools
import random
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa

from rejoin.sources.events import arrow_type

UTC = dt.UTC

TYPES = {
    "bool": "BOOLEAN",
    "int": "INT",
    "big": "BIGINT",
    "d5": "DECIMAL(5,5)",
    "d10": "DECIMAL(10,2)",
    "d18": "DECIMAL(18,4)",
    "d20": "DECIMAL(20,0)",
    "d38": "DECIMAL(38,18)",
    "d38w": "DECIMAL(38,0)",
    "flo": "FLOAT",
    "dbl": "DOUBLE",
    "str": "STRING",
    "num": "STRING",
    "tim": "STRING",
    "bin": "BINARY",
    "date": "DATE",
    "ts": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
}
"""Part of a column's name -> its type. ``num`` and ``tim`` are texts that look like numbers and times."""

COLUMNS = {"l": {f"{side}_{name}": of for side in "ab" for name, of in TYPES.items()}}


def _split(values: str) -> list[str]:
    return values.split("|")


_INT, _BIG = 2**31, 2**63
_WHOLE = [int(n) for n in _split("0|1|-1|2|-2|3|7|10|-10|31|100|127|255|365|1000|32767|12345678|-12345678")]
_FRACTIONS = _split("0|1|-1|0.01|-0.01|0.1|0.5|-0.5|0.49|1.5|2.5|-1.5|-2.5|3|7|9.99|0.00001|12.34")
_TEXTS = [
    *_split(
        "| |  |a|A|b|ab|abc|ABC|aBc| abc|abc |  abc  |\tabc\n|abcabc|aaa|aa|a b c|a,b|%|_|a%c|a_c|a\\b|a\\%b|\\|'|''|\"|a\nb|\n|\r\n|a'b"
    ),
    *_split("null|NULL|ß|straße|STRASSE|\u0130|\u0131|i\u0307|é|e\u0301|É|ñ|ŉ|ǆ|ǅ|ﬁ|\u03a3|\u0391\u03a3|\u03b1ς|日本語|😀|a😀b"),
    *_split("👩\u200d👩\u200d👧|\u00a0|\u2003x|\u3000|\ufeff|\u0001|a\0b|\x7f|\x80|\u07ff|\u0800|\uffff|\U00010000|\U0010ffff"),
    *_split(f"{'x' * 5000}|0|1|true|2020-01-01|\u212a|\u017f"),
]
_NUMERIC = [
    *_split("|0|1|-1|+1|007|-0|2147483647|2147483648|-2147483648|-2147483649|9223372036854775807|9223372036854775808|-9223372036854775808"),
    *_split(
        f"-9223372036854775809|{'9' * 38}|1{'0' * 38}| 5|5 | 5 |\t5|5\n| |+|-|+-1|1.5|1.|.5|-1.5|1e3|1E3|1e-3|0x10|1_000|1,000|1d|1L|abc|NaN"
    ),
    *_split(f"Infinity|1.005|0.005|-0.005|0.004{'9' * 40}|12345678.99|12345678.995|99999999.99|99999999.994|99999999.995|100000000|\u0661"),
    *_split(f"1 2|--1|5\u00a0|{'0' * 50}7|true|TRUE|True|t|T|y|Y|yes|YES|no|n|f|F|false|FALSE|on|off|tr| true|true |2|true\u212a"),
]
_TEMPORAL = [
    *_split("2020-01-02|2020-1-2|2020-01-2|2020|2020-01|0001-01-01|9999-12-31|0000-01-01|10000-01-01|-0001-01-01|2020-02-29|2021-02-29"),
    *_split(
        "2020-02-30|2020-13-01|2020-00-01|2020-01-00|2020-12-32|1582-10-10|1970-01-01|2020-01-02 | 2020-01-02|2020-01-02T|2020-01-02 10"
    ),
    *_split("2020-01-02 10:11:12|2020-01-02T10:11:12|2020-01-02 10:11:12.1|2020-01-02 10:11:12.123456|2020-01-02 10:11:12.1234567"),
    *_split("2020-01-02 10:11|2020-01-02 1:2:3|2020-01-02 23:59:59.999999|2020-01-02 24:00:00|2020-01-02 23:60:00|2020-01-02 23:59:60"),
    *_split("2020-01-02 10:11:12Z|2020-01-02 10:11:12+01:00|2020-01-02 10:11:12 UTC|2020-1-2 10:11:12|0001-01-01 00:00:00|20200102"),
    *_split("9999-12-31 23:59:59.999999|1969-12-31 23:59:59.999999|2020/01/02|01-02-2020|2020-01-02x|today|now|epoch|infinity|-infinity"),
    *_split("|abc|12:13:14|2020-01-02\n|0000-02-29 00:00:00|2020-01-02 10:11:12."),
]
_DAYS = """
    0001-01-01 0001-12-31 0004-02-29 1000-06-15 1500-02-28 1500-03-01 1582-10-04 1582-10-15 1600-02-29 1899-12-31 1900-01-01 1900-02-28
    1969-12-31 1970-01-01 1970-01-02 1999-12-31 2000-01-01 2000-02-29 2004-02-29 2008-12-29 2009-01-01 2016-01-03 2019-12-30 2020-01-01
    2020-01-05 2020-01-06 2020-01-31 2020-02-29 2020-03-31 2020-12-31 2021-01-01 2021-01-03 2021-03-28 2023-10-29 2026-11-23 2038-01-19
    9999-01-31 9999-12-31
"""
_CLOCKS = "00:00:00 00:00:00.000001 00:00:01 12:34:56.5 12:34:56.123456 12:59:59.120000 23:59:59.999999 23:00:00 02:30:00"


def _decimals(precision: int, scale: int) -> list[Decimal]:
    with localcontext(prec=80):
        top, one = Decimal((0, (9,) * precision, -scale)), Decimal((0, (1,), -scale))
        near = [top, -top, top - one, one, -one, (top / 2).quantize(one), (top / 3).quantize(one), Decimal((0, (4,) * precision, -scale))]
        small = [Decimal(n) for n in (*_FRACTIONS, _INT - 1, -_INT - 1, _BIG - 1, _BIG, -_BIG)]
        half = [Decimal((0, (5,), -place)) + whole for place in range(1, scale + 1, max(1, scale // 3)) for whole in (0, 1, -2)]
        fitting = [value for value in (*near, *small, *half) if abs(value) <= top and value == value.quantize(one)]
        return list(dict.fromkeys(value.quantize(one) for value in fitting))


def _values() -> dict[str, list[Any]]:
    days, clocks = [dt.date.fromisoformat(day) for day in _DAYS.split()], [dt.time.fromisoformat(clock) for clock in _CLOCKS.split()]
    moments = [dt.datetime.combine(day, clocks[i % len(clocks)]) for i, day in enumerate((*days, *days[:5], *days))]
    floats = [float(n) for n in _split("0|-0.0|1|-1|0.5|1.5|nan|inf|-inf|3|16777216")]
    doubles = [*floats, *(float(n) for n in _split("0.1|5e-324|1.7976931348623157e308|9007199254740992|9007199254740994|1e-300"))]
    return {
        "bool": [True, False],
        "int": [*_WHOLE, _INT - 1, -_INT, _INT - 2, -_INT + 1, 46341, 65536],
        "big": [*_WHOLE, _BIG - 1, -_BIG, _BIG - 2, _INT - 1, _INT, -_INT, -_INT - 1, 2**53, 2**53 + 1, 10**18, 3037000500],
        **{name: _decimals(*map(int, TYPES[name][8:-1].split(","))) for name in ("d5", "d10", "d18", "d20", "d38", "d38w")},
        "flo": floats,
        "dbl": doubles,
        "str": _TEXTS,
        "num": _NUMERIC,
        "tim": _TEMPORAL,
        "bin": [b"", b"\0", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xc3\xa9", b"a" * 5000],
        "date": days,
        "ts": [moment.replace(tzinfo=UTC) for moment in moments],
        "ntz": moments,
    }


def pairs(every_pair: bool) -> pa.Table:
    """The table: each value of a type in ``a``, beside others in ``b``; with ``every_pair`` beside all of them, else beside a few.

    Pairs of different types meet at random, but the same way each time.
    """
    values = {name: [None, *found] for name, found in _values().items()}
    count = max(map(len, values.values()))
    chance = random.Random(1)
    if every_pair:
        places = list(itertools.product(range(count), range(count)))
    else:
        places = [(i, i) for i in range(count)] + [(i, chance.randrange(count)) for i in range(count) for _ in range(2)]
    shuffled = {name: chance.sample(range(count), count) for name in values}
    made: dict[str, pa.Array] = {"row": pa.array(range(len(places)), pa.int64())}
    for side, column in (("a", 0), ("b", 1)):
        for name, found in values.items():
            picked = [found[shuffled[name][place[column]] % len(found)] for place in places]
            made[f"{side}_{name}"] = pa.array(picked, arrow_type(TYPES[name]))
    return pa.table(made)

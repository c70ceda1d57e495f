"""Expressions of every type: comparison, arithmetic, choices, casts, constants. Not all are portable."""

import itertools
from collections.abc import Iterator

from integration.portable_values import TYPES

NUMBERS = ("int", "big", "d5", "d10", "d18", "d20", "d38", "d38w")
TEXTS = ("str", "num", "tim")
TIMES = ("date", "ts", "ntz")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "!<")
LITERALS = {
    **dict.fromkeys(
        NUMBERS, ("1", "0", "-1", "1.5", "3000000000", "0.01", "12345678901234567890", "5L", "-9223372036854775808", "2147483647")
    ),
    **dict.fromkeys(("flo", "dbl"), ("1", "0", "1.5e0", "1e300", "-0e0")),
    **dict.fromkeys(TEXTS, ("'a'", "''", "'ß'", "'\\u00e9'", "'it''s'", '"x"')),
    **dict.fromkeys(
        TIMES,
        (
            "DATE'2020-01-31'",
            "TIMESTAMP'2020-01-31 00:00:00'",
            "'2020-01-31'",
            "DATE'0001-01-01'",
            "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
        ),
    ),
    "bool": ("TRUE", "FALSE"),
    "bin": ("CAST(NULL AS BINARY)",),
}


def a(name: str) -> str:
    return f"l.`a_{name}`"


def b(name: str) -> str:
    return f"l.`b_{name}`"


def comparisons() -> Iterator[str]:
    for one, other in itertools.product(TYPES, TYPES):
        for sign in COMPARISONS if one == other else ("=", "<", "<=>"):
            yield f"{a(one)} {sign} {b(other)}"
    for name in TYPES:
        for sign, value in itertools.product(("=", "<", ">=", "<=>"), (*LITERALS[name], "NULL")):
            yield f"{a(name)} {sign} {value}"
        yield f"{a(name)} BETWEEN {b(name)} AND {LITERALS[name][0]}"
        yield f"{a(name)} NOT BETWEEN {LITERALS[name][0]} AND {b(name)}"
        for values in (", ".join(LITERALS[name][:3]), f"{b(name)}, {LITERALS[name][0]}, NULL", f"{b(name)}"):
            yield f"{a(name)} IN ({values})"
            yield f"{a(name)} NOT IN ({values})"
        yield from (f"{a(name)} IS {test}" for test in ("NULL", "NOT NULL", f"DISTINCT FROM {b(name)}", f"NOT DISTINCT FROM {b(name)}"))


def arithmetic() -> Iterator[str]:
    for one, other in itertools.product(NUMBERS, NUMBERS):
        yield from (f"{a(one)} {sign} {b(other)}" for sign in ("+", "-", "*", "/", "%", "div"))
    for name in NUMBERS:
        yield from (f"{a(name)} {sign} {value}" for sign in ("+", "-", "*", "/", "%", "div") for value in LITERALS[name])
        yield from (f"{value} {sign} {a(name)}" for sign in ("+", "-", "*", "/", "%", "div") for value in LITERALS[name][:5])
        yield from (f"-{a(name)}", f"+{a(name)}", f"abs({a(name)})", f"round({a(name)})", f"floor({a(name)})", f"ceil({a(name)})")
        yield from (f"round({a(name)}, {places})" for places in (0, 1, 2, 3, 10, -1))
        yield from (f"{a(name)} + {b(name)} * 2 - 1", f"({a(name)} + 1) * ({b(name)} - 1)", f"({a(name)} + {b(name)}) / 2")


def errors_that_could_be_missed() -> Iterator[str]:
    """What an optimizer may move, fold or leave out, and with it an error."""
    for name in ("int", "big", "d10", "d38w"):
        for made in (f"{a(name)} + 1", f"{a(name)} - 1", f"2 * {a(name)}", f"-{a(name)}", f"{a(name)} / {b(name)}", f"abs({a(name)})"):
            yield from (f"{made} {sign} {value}" for sign in ("=", "<>", "<", ">=", "<=>") for value in ("5", "0", "NULL", b(name)))
            yield from (
                f"{made} IS NULL",
                f"{made} IS NOT NULL",
                f"{made} IN (1, 2, NULL)",
                f"{made} BETWEEN 1 AND 5",
                f"coalesce({made}, 1)",
            )
            yield from (
                f"{made} = 1 AND {b('bool')}",
                f"{b('bool')} AND {made} = 1",
                f"{made} = 1 OR {b('bool')}",
                f"{b('bool')} OR {made} = 1",
            )
            yield from (f"NOT ({b('bool')} AND {made} > 1)", f"{b('bool')} AND {a('str')} = 'a' AND {made} > 1", f"{made} = 1 AND FALSE")
            yield from (f"if({b('bool')}, {made}, 0)", f"CASE WHEN {made} = 1 THEN 1 WHEN {b('bool')} THEN 2 END", f"nullif({made}, 0)")
            yield from (f"{made} > 3 OR {made} < 1", f"nvl2({made}, 1, 2)", f"greatest({made}, 1)", f"CAST({made} AS INT) = 5")
    for text in (f"CAST({a('num')} AS INT)", f"CAST({a('big')} AS INT)", f"CAST({a('d20')} AS INT)", f"CAST({a('d18')} AS DECIMAL(10,2))"):
        yield from (f"{text} {sign} {value}" for sign in ("=", "<>", "<", "<=>") for value in ("5", "-1", "0", b("int")))
        yield from (f"{text} IS NULL", f"{text} IN (1, 2)", f"{text} = 1 OR {b('bool')}", f"{b('bool')} AND {text} = 1")
    yield from (f"{a('num')} {sign} {value}" for sign in ("=", "<", "<=>") for value in ("5", b("int"), b("big"), "TRUE", b("bool")))
    yield from (f"{a('tim')} {sign} {value}" for sign in ("=", "<", "<=>") for value in (b("date"), b("ts"), b("ntz"), "DATE'2020-01-02'"))
    yield from (f"date_add({a('date')}, {b('int')}) = DATE'2020-01-31'", f"date_add({a('date')}, 1) = DATE'2020-01-31'")


def choices() -> Iterator[str]:
    for one, other in itertools.product(TYPES, TYPES):
        yield from (f"coalesce({a(one)}, {b(other)})", f"if({a('bool')}, {a(one)}, {b(other)})", f"nullif({a(one)}, {b(other)})")
        yield f"CASE WHEN {a('bool')} THEN {a(one)} WHEN {b('bool')} THEN {b(other)} END"
    for name in TYPES:
        value = LITERALS[name][0]
        yield from (
            f"CASE {a(name)} WHEN {b(name)} THEN 1 WHEN {value} THEN 2 ELSE 3 END",
            f"CASE WHEN {a(name)} = {value} THEN 1.5 ELSE 2 END",
        )
        yield from (
            f"nvl({a(name)}, {value})",
            f"ifnull({a(name)}, {b(name)})",
            f"nvl2({a(name)}, {b(name)}, {value})",
            f"coalesce({a(name)})",
        )
        yield from (
            f"isnull({a(name)})",
            f"isnotnull({a(name)})",
            f"equal_null({a(name)}, {b(name)})",
            f"coalesce(NULL, {a(name)}, {value})",
        )
        yield from (f"greatest({a(name)}, {b(name)})", f"least({a(name)}, {b(name)}, {value})", f"if({a('bool')}, NULL, {a(name)})")
        yield from (f"CASE WHEN {a('bool')} THEN NULL ELSE {a(name)} END", a(name))
    truths = (a("bool"), b("bool"), f"({a('int')} > 0)", "NULL", "TRUE", "FALSE")
    yield from (f"{one} {word} {other}" for one, word, other in itertools.product(truths, ("AND", "OR"), truths))
    yield from (f"{a('bool')} IS {test}" for test in ("TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"))
    yield from (f"NOT {a('bool')}", f"! {a('bool')}", f"NOT ({a('bool')} AND {b('bool')}) OR {a('int')} = 1")
    yield f"{b('bool')} AND {a('int')} <> 0 AND {b('int')} / {a('int')} > 1 AND {a('str')} > 'a' AND CAST({a('num')} AS INT) > 0"
    yield f"{b('bool')} OR {a('int')} = 0 OR {b('int')} / {a('int')} > 1 OR ({a('str')} > 'a' OR CAST({a('num')} AS INT) > 0)"
    yield from (f"greatest({a('int')}, {b('big')}, {b('d10')})", f"least({a('date')}, {b('date')})")


def casts() -> Iterator[str]:
    targets = (
        "BOOLEAN",
        "INT",
        "BIGINT",
        "DECIMAL(10,2)",
        "DECIMAL(5,0)",
        "DECIMAL(3,3)",
        "DECIMAL(38,18)",
        "DECIMAL(38,0)",
        "DECIMAL",
        "DECIMAL(20,5)",
    )
    targets = (*targets, "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
    for name, to in itertools.product(TYPES, targets):
        yield f"CAST({a(name)} AS {to})"
    yield from (f"{name}({a(of)})" for name in ("int", "bigint", "boolean", "string", "date", "timestamp") for of in TYPES)
    yield from (f"{a(name)}::STRING::{to}" for name in TYPES for to in ("INT", "DATE", "TIMESTAMP", "DECIMAL(10,2)", "BOOLEAN"))
    yield from (f"CAST({value} AS {to})" for values in LITERALS.values() for value in values for to in ("INT", "STRING", "DECIMAL(10,2)"))
    yield from (value for values in LITERALS.values() for value in values)


def constants() -> Iterator[str]:
    yield from (
        "0",
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1.",
        ".5",
        "-.5",
    )
    yield from (
        "0.0",
        "00.10",
        "123456789012345678901234567890.12345678",
        "1e0",
        "1.5E-3",
        "-2e10",
        "1e308",
        "4.9e-324",
        "1.5D",
        "1.5BD",
        "1BD",
        "5L",
        "-5L",
        "1.5F",
    )
    yield from (
        r"'a\nb'",
        r"'a\'b'",
        r"'\\'",
        r"'\%\_'",
        r"'\u00e9'",
        r"'\U0001F600'",
        r"'\101'",
        r"'\377'",
        r"'\200'",
        r"'\q'",
        r"'\t\r\Z\b'",
        "'a''b'",
        r"'a''\n''b'",
    )
    yield from (
        '"a""b"',
        "\"a''b\"",
        "'a\"\"b'",
        "r'a\\nb'",
        'R"a\\b"',
        "'a' 'b'",
        "'😀'",
        "'a\nb'",
        "''",
        "''''",
        "'\\''",
        r"'\'''",
        r"'\%'",
        r"'a\_b\%'",
        r"'\18'",
        r"'\8'",
    )
    yield from (
        "DATE'2020-02-29'",
        "DATE'2020-1-1'",
        "DATE'0001-01-01'",
        "DATE'9999-12-31'",
        "TIMESTAMP'2020-01-01'",
        "TIMESTAMP'2020-01-01 10:11:12.5'",
        "TIMESTAMP'1969-12-31 23:59:59.999999'",
    )
    yield from (
        "TIMESTAMP_NTZ'2020-01-01 10:11:12.123456'",
        "TIMESTAMP_LTZ'0001-01-01 00:00:00'",
        "TIMESTAMP'2020-01-01 10:11:12Z'",
        "TRUE",
        "false",
        "CAST(NULL AS INT)",
        "X'41'",
    )

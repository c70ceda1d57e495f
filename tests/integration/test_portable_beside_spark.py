"""What rejoin prints for DuckDB has the results of Spark: every construct on the list, over types and values at their edges."""

import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from integration.portable_beside import Beside
from integration.portable_values import COLUMNS, TYPES, pairs
from pyspark.sql import SparkSession

from rejoin.lake.config import lake_config
from rejoin.lake.session import session
from rejoin.plan.portable import NotPortable, printed
from rejoin.plan.portable import texts as texts_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

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


FEW, ALL = "few", "all"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session(lake_config(str(tmp_path_factory.mktemp("lake"))))


@pytest.fixture(scope="module", params=[FEW, pytest.param(ALL, marks=[pytest.mark.nightly, pytest.mark.timeout(6000)])])
def beside(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Beside:
    """Few pairs of values by day, all at night."""
    few = request.param == FEW
    return Beside(spark, pairs(every_pair=not few), COLUMNS, tmp_path_factory.mktemp("portable"), errors=3 if few else 40)


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


def texts() -> Iterator[str]:
    for name in TEXTS:
        text, other = a(name), b(name)
        yield from (
            f"{function}({text})"
            for function in ("upper", "lower", "ucase", "lcase", "trim", "ltrim", "rtrim", "length", "char_length", "len", "octet_length")
        )
        yield from (
            f"{text} || {other}",
            f"concat({text}, '-', {other})",
            f"concat({text})",
            f"concat_ws(',', {text}, {other})",
            f"concat_ws({text}, {other}, 'x', NULL)",
            f"concat_ws({other}, {text})",
        )
        yield from (
            f"{function}({text}, {position})"
            for function in ("substring", "substr")
            for position in (-6000, -3, -1, 0, 1, 2, 5, 6000, 2147483647)
        )
        yield from (
            f"substring({text}, {position}, {count})" for position in (-3, -1, 0, 1, 2, 4, 4999) for count in (-1, 0, 1, 2, 5, 2147483647)
        )
        yield from (f"{function}({text}, {count})" for function in ("left", "right") for count in (-1, 0, 1, 2, 5, 6000, 2147483647))
        yield from (
            f"substring({text} FROM 2 FOR 3)",
            f"TRIM(BOTH FROM {text})",
            f"TRIM(LEADING FROM {text})",
            f"TRIM('a' FROM {text})",
            f"trim({text}, {other})",
            f"ltrim('a', {text})",
        )
        yield from (
            f"replace({text}, {what})"
            for what in ("'a', 'b'", "'a'", "'aa', 'a'", "'', 'x'", f"{other}, 'x'", f"'a', {other}", "'ß', 'ss'", "'\\u0301', ''")
        )
        yield from (
            f"{function}({text}, {what})"
            for function in ("startswith", "endswith", "contains")
            for what in (other, "'a'", "''", "'😀'", "'c '")
        )
        patterns = (
            "a%",
            "%a",
            "%a%",
            "a_c",
            "_",
            "__",
            "%",
            "",
            "a",
            r"a\\%c",
            r"a\\_c",
            r"%\\%%",
            r"\\\\",
            "%\\n%",
            "_%_",
            "%ß%",
            "😀",
            "_😀_",
            "a%b%c",
            "%%",
            "_____%",
            "A%",
        )
        yield from (f"{text} {word}LIKE '{pattern}'" for pattern in patterns for word in ("", "NOT "))
        yield from (
            f"{text} LIKE 'a#%c' ESCAPE '#'",
            f"{text} LIKE 'a\\\\%' ESCAPE '#'",
            f"{text} LIKE '##' ESCAPE '#'",
            f"{text} LIKE {other}",
        )
        yield from (
            f"upper({text}) = upper({other})",
            f"length(trim({text})) > 2 AND {text} <> {other}",
            f"coalesce(nullif(trim({text}), ''), 'none')",
        )
    for name in (*NUMBERS, *TIMES, "bool", "dbl"):
        yield from (
            f"{a('str')} || {a(name)}",
            f"concat({a(name)}, {b(name)})",
            f"length({a(name)})",
            f"upper({a(name)})",
            f"concat_ws(',', {a(name)})",
        )


def times() -> Iterator[str]:
    parts = (
        "year",
        "quarter",
        "month",
        "day",
        "dayofmonth",
        "dayofweek",
        "weekday",
        "dayofyear",
        "weekofyear",
        "hour",
        "minute",
        "second",
        "last_day",
        "to_date",
    )
    fields = ("YEAR", "QUARTER", "MONTH", "DAY", "DOY", "WEEK", "HOUR", "MINUTE", "SECOND", "DOW", "YEAROFWEEK")
    units = (
        "YEAR",
        "yyyy",
        "yy",
        "QUARTER",
        "MONTH",
        "mm",
        "mon",
        "WEEK",
        "DAY",
        "dd",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "nonsense",
    )
    days = (0, 1, -1, 31, 365, 10000, -10000, 2147483647, -2147483648)
    for name in (*TIMES, "tim"):
        value = a(name)
        yield from (f"{part}({value})" for part in parts)
        yield from (f"extract({field} FROM {value})" for field in fields)
        yield from (f"date_trunc('{unit}', {value})" for unit in units)
        yield from (f"trunc({value}, '{unit}')" for unit in units)
        yield from (
            f"{function}({value}, {count})" for function in ("date_add", "date_sub", "add_months") for count in (*days, b("int"), b("big"))
        )
        yield from (f"{function}({value}, {b(other)})" for function in ("datediff", "date_diff") for other in (*TIMES, "tim"))
        yield from (
            f"datediff({value}, '2020-01-01')",
            f"year({value}) = 2020 AND month({value}) < 3",
            f"{value} >= date_trunc('month', TIMESTAMP'2020-01-15 00:00:00')",
        )
        yield from (
            f"{value} + 1",
            f"{value} - 1",
            f"{value} + INTERVAL 1 DAY",
            f"CAST({value} AS DATE) = DATE'2020-01-31'",
            f"date_trunc('month', {value}) = TIMESTAMP'2020-01-01 00:00:00'",
        )
        yield from (f"year({value}) {sign} 2020" for sign in ("=", "<", ">="))


def nested() -> Iterator[str]:
    """Expressions of the other families, whose columns are replaced by expressions of the same type."""
    chance, made = random.Random(7), dict[str, list[str]]()
    texts = list(dict.fromkeys(text for family in FAMILIES if family is not nested for text in family()))
    for text in filter(is_portable, texts):
        made.setdefault(printed(text, COLUMNS).type, []).append(text)

    def deeper(match: re.Match[str]) -> str:
        chosen = chance.choice(made[COLUMNS["l"][match[1]]])
        return match[0] if chance.random() < 0.3 else f"({chosen})"

    for _ in range(4000):
        yield _COLUMN.sub(deeper, _COLUMN.sub(deeper, chance.choice(texts)) if chance.random() < 0.3 else chance.choice(texts))


_COLUMN = re.compile("l\\.`(\\w+)`")

FAMILIES = {
    comparisons: 900,
    arithmetic: 500,
    errors_that_could_be_missed: 350,
    choices: 600,
    casts: 200,
    constants: 60,
    texts: 350,
    times: 200,
    nested: 500,
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_what_is_printed_has_the_results_of_spark(
    beside: Beside, family: Callable[[], Iterator[str]], request: pytest.FixtureRequest
) -> None:
    """By day for some of the expressions."""
    texts = [text for text in dict.fromkeys(family()) if is_portable(text)]
    assert len(texts) >= FAMILIES[family]
    chosen = texts if request.node.callspec.params["beside"] == ALL else texts[:: max(2, len(texts) // 250)]
    wrong = beside.compare(chosen).wrong
    assert not wrong, "\n".join(wrong[:50])


def is_portable(text: str) -> bool:
    try:
        printed(text, COLUMNS)
    except NotPortable:
        return False
    return True


def test_every_letter_has_the_capital_that_spark_gives_it(spark: SparkSession, tmp_path: Path) -> None:
    """Of the scripts that are let through: alone, in words, and before marks that may change it."""
    inside, beside_it = (
        re.compile(f"[{_as_python(texts_of._SCRIPTS)}{_as_python(texts_of._SIGNS)}]"),
        ("{}", "a{}b", "{}\u0307", "\u0399{}", "{}\u0301 ", "{}{}"),
    )
    for function, left_out in (("upper", texts_of._NOT_UPPER), ("lower", texts_of._NOT_LOWER)):
        outside = re.compile(f"[{_as_python(left_out)}]")
        letters = [chr(code) for code in range(0x20000) if inside.match(chr(code)) and not outside.match(chr(code))]
        kept = [letter for letter in letters if letter.upper() != letter.lower()] + letters[::7]
        words = [form.replace("{}", letter) for letter in kept for form in beside_it if not outside.search(form)]
        table = pa.table({"row": pa.array(range(len(words)), pa.int64()), "a_str": words})
        directory = tmp_path / function
        directory.mkdir()
        found = Beside(spark, table, COLUMNS, directory, errors=None).compare([f"{function}(l.a_str)"])
        assert (found.wrong, found.stricter) == ([], {})
        assert len(kept) > 3000


def _as_python(letters: str) -> str:
    return re.sub(r"\\x\{(\w+)\}", lambda code: re.escape(chr(int(code[1], 16))), letters)

"""What rejoin says about types, operators, functions, constants and patterns, beside what Spark itself says.

One session, analysis only: every combination of column types for every operator and function that is known, thousands of
expressions in statements of some hundreds. An expression that Spark refuses stays unresolved in the analyzed plan.
"""

import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from rejoin.plan.sql import types
from rejoin.plan.sql.typing import constants, patterns
from rejoin.plan.sql.typing.check import check
from rejoin.plan.sql.typing.table import FUNCTIONS

# pyspark leaves its sockets to the garbage collector.
LEAKS = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.slow, *map(pytest.mark.filterwarnings, LEAKS)]

COLUMNS = {
    "bo": "BOOLEAN",
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "c": "DECIMAL(10,2)",
    "e": "DECIMAL(38,18)",
    "s": "STRING",
    "b": "BINARY",
    "da": "DATE",
    "ts": "TIMESTAMP",
    "nt": "TIMESTAMP_NTZ",
}
NAMES = (*COLUMNS, "NULL")
NESTED = {
    "st": "STRUCT<x: INT, Deep: STRUCT<d: DATE>, tags: ARRAY<STRING>>",
    "ar": "ARRAY<STRUCT<x: INT, m: MAP<STRING, INT>, p: ARRAY<STRUCT<c: STRING>>>>",
    "tg": "ARRAY<STRING>",
    "ns": "ARRAY<BIGINT>",
    "ma": "MAP<STRING, STRUCT<x: INT>>",
    "fl": "ARRAY<MAP<STRING, BOOLEAN>>",
}
OPERATORS = ("+", "-", "*", "/", "%", "DIV", "=", "<=>", "<>", "<", ">=", "&", "|", "^", "||", "LIKE", "RLIKE", "AND", "OR")
WRONG = "refused"


@pytest.fixture(scope="module")
def spark() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
    session = builder.config("spark.sql.ansi.enabled", "true").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    nulls = ", ".join(f"CAST(NULL AS {of}) AS {name}" for name, of in (COLUMNS | NESTED).items())
    session.sql(f"SELECT {nulls}").createOrReplaceTempView("typed")
    return session  # never stopped: it may be the session of a lake of the same process


def by_spark(spark: Any, expressions: Iterable[str]) -> dict[str, str]:
    """Expression -> its type in Spark, or WRONG."""
    state, found, wanted = spark._jsparkSession.sessionState(), {}, list(expressions)
    for part in _parts(wanted, 300):
        try:
            plan = state.analyzer().execute(state.sqlParser().parsePlan(f"SELECT {', '.join(part)} FROM typed"))
        except (PySparkException, Py4JJavaError):
            found |= {part[0]: WRONG} if len(part) == 1 else {e: t for half in _halves(part) for e, t in by_spark(spark, half).items()}
            continue
        columns = plan.expressions().iterator()
        for text in part:
            column = columns.next()
            found[text] = column.dataType().sql() if column.resolved() else WRONG
    return found


def _parts(of: list[str], size: int) -> list[list[str]]:
    return [of[start : start + size] for start in range(0, len(of), size)]


def _halves(of: list[str]) -> list[list[str]]:
    return [of[: len(of) // 2], of[len(of) // 2 :]]


def by_rejoin(text: str) -> str | None:
    """The type of an expression, WRONG, or None where rejoin leaves it to Spark."""
    typed = check(text, lambda _, name: (COLUMNS | NESTED).get(name))
    if typed.mistakes:
        return WRONG
    return typed.type if typed.certain else None


def compared(spark: Any, expressions: Iterable[str]) -> tuple[int, list[str]]:
    """How many expressions rejoin was certain of, and where Spark says something else."""
    known = {text: said for text in dict.fromkeys(expressions) if (said := by_rejoin(text)) is not None}
    spark_says = by_spark(spark, known)
    return len(known), [f"{text}: {said}, Spark: {spark_says[text]}" for text, said in known.items() if spark_says[text] != said]


def calls() -> Iterator[str]:
    """Every known function over every column type in every argument; from the third argument on, one type beside the first ones."""
    for name, signature in FUNCTIONS.items():
        for count in range(signature.least, len(signature.kinds) + 1):
            plain = [_plain(signature.kind(i)) for i in range(count)]
            for places in [(0, 1), (1, 2)][: max(1, count - 1)]:
                for first, second in itertools.product(NAMES, NAMES):
                    args = list(plain)
                    for place, arg in zip(places, (first, second), strict=True):
                        if place < count:
                            args[place] = arg
                    yield f"{name}({', '.join(args)})"


def _plain(kind: str) -> str:
    return {"int": "i", "double": "d", "day": "i", "date": "da", "time": "ts", "truth": "bo", "bytes": "b"}.get(kind, "s")


def test_fault_b_operators_of_all_types_give_what_spark_gives(spark: Any) -> None:
    two = [f"{a} {operator} {b}" for operator in OPERATORS for a in NAMES for b in NAMES]
    one = [f"{sign}{a}" for sign in ("- ", "+ ", "~ ", "NOT ") for a in NAMES]
    literals = [
        f"{a} {operator} {b}" for operator in "+-*/%" for a in ("c", "e", "i", "f") for b in ("1", "100", "1.5", "-7", "3000000000")
    ]
    intervals = [f"{a} {sign} INTERVAL {i}" for a in NAMES for sign in "+-" for i in ("1 DAY", "2 HOURS", "3 MONTHS", "1 WEEK 2 MINUTES")]
    tests = [f"{a} {test}" for a in NAMES for test in ("IS NULL", "IS NOT TRUE", "IS DISTINCT FROM i")]
    certain, different = compared(spark, [*two, *one, *literals, *intervals, *tests])
    assert different == []
    assert certain > 2000


def test_fault_b_casts_and_choices_of_all_types_give_what_spark_gives(spark: Any) -> None:
    casts = [f"{cast}({a} AS {to})" for cast in ("CAST", "TRY_CAST") for a in NAMES for to in COLUMNS.values()]
    pairs = list(itertools.product(NAMES, NAMES))
    choices = [f"CASE WHEN bo THEN {a} ELSE {b} END" for a, b in pairs] + [f"CASE {a} WHEN {b} THEN 1 END" for a, b in pairs]
    conditions = [f"CASE WHEN {a} THEN 1 END" for a in NAMES]
    members = [f"{a} IN ({b})" for a, b in pairs] + [f"{a} IN ({b}, i)" for a, b in pairs] + [f"{a} BETWEEN {b} AND i" for a, b in pairs]
    three = [f"coalesce({a}, {b}, {c})" for a, b, c in itertools.product(NAMES, NAMES, NAMES)]
    certain, different = compared(spark, [*casts, *choices, *conditions, *members, *three])
    assert different == []
    assert certain > 2500


def test_fault_b_functions_of_all_types_give_what_spark_gives(spark: Any) -> None:
    rounded = [
        f"{n}({a}{s})" for n in ("round", "bround", "ceil", "floor", "abs", "negative") for a in NAMES for s in ("", ", 0", ", 1", ", 30")
    ]
    certain, different = compared(spark, [*calls(), *rounded])
    assert different == []
    assert certain > 5000


def test_what_is_read_of_nested_values_has_the_type_that_spark_gives_it(spark: Any) -> None:
    values = [f"typed.{name}" for name in (*COLUMNS, *NESTED)]
    deeper = [*values, *(f"{value}.{field}" for value in values[-len(NESTED) :] for field in ("x", "X", "deep", "tags", "p", "m", "none"))]
    fields = [f"{value}.{field}" for value in deeper for field in ("x", "d", "c")]
    items = [f"{value}[{by}]" for value in deeper for by in ("i", "l", "s", "0", "'k'", "d", "NULL")]
    two = [
        f"{name}({value}, {by})"
        for name in ("element_at", "try_element_at", "get", "array_contains", "array_join")
        for value in values
        for by in NAMES
    ]
    one = [f"{name}({value})" for name in ("size", "cardinality", "array_min", "array_max", "map_keys", "map_values") for value in deeper]
    counts = [
        "size()",
        "size(tg, 1)",
        "element_at(tg)",
        "array_join(tg, ',', '-')",
        "array_join(tg, ',', '-', 1)",
        "map_keys(ma, 1)",
        "array()[0]",
    ]
    certain, different = compared(
        spark, [*deeper, *fields, *items, *two, *one, *counts, "ar[0].p[1].c", "ar.p.c", "ma['k'].x + 1", "ar.x[0] IS NULL"]
    )
    assert different == []
    assert certain > 600


def test_what_a_plan_states_of_a_type_is_what_spark_gives(spark: Any) -> None:
    """The types of a plan are part of a definition's fingerprint, so they have rules of their own, older and fewer."""
    import sqlglot

    def stated(text: str) -> str | None:
        return types.infer(sqlglot.parse_one(text, dialect="spark"), lambda node: COLUMNS.get(node.name))

    texts = [f"{a} {operator} {b}" for operator in "+-*/" for a in NAMES for b in NAMES]
    texts += [f"{name}({a}, {b})" for name in ("coalesce", "nullif", "nvl") for a in NAMES for b in NAMES]
    texts += [f"{name}({a})" for name in ("upper", "trim", "length", "year", "to_date") for a in COLUMNS]
    known = {text: said for text in texts if (said := stated(text)) is not None}
    spark_says = by_spark(spark, known)
    assert {text: spark_says[text] for text in known if spark_says[text] not in (known[text], WRONG)} == {}


LITERALS = [
    *(
        "1",
        " 7 ",
        "-3",
        "+5",
        "1.5",
        "1.",
        ".5",
        "abc",
        "",
        "1e3",
        "0x10",
        "2147483648",
        "99999999999999999999",
        "1d",
        "NaN",
        "Infinity",
        "-inf",
    ),
    *("true", "T", "yes", "0", "off", "2020-01-02", "2020-1-2", "2020", "2020-13", "2020-02-30", "2021-02-29", "20-01-01", "2020-01-02T10"),
    *("2020-01-02 10:11:12", "2020-01-02 10:11:12.123456", "2020-01-02 25:00:00", "2020-01-02 10:11:12Z", "2020-01-02 10:11:12+01:00"),
    *("10:11", "2020-01-02x", "2020-01-02 x", "01/02/2020", "--1", "1 2", "1_000", "12,5"),
]


def test_fault_b_a_constant_text_is_refused_only_where_spark_cannot_cast_it(spark: Any) -> None:
    pairs = [
        (text, of)
        for text in LITERALS
        for of in ("INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
    ]
    asked = ", ".join(f"try_cast('{text}' AS {of}) IS NOT NULL" for text, of in pairs)
    said = spark.sql(f"SELECT array({asked})").first()[0]
    refused_but_fine = [pair for pair, fine in zip(pairs, said, strict=True) if fine and not constants.casts(*pair)]
    numbers = [p for p in zip(pairs, said, strict=True) if not p[0][1].startswith(("DATE", "TIME"))]
    accepted_but_broken = [pair for pair, fine in numbers if not fine and constants.casts(*pair)]
    assert refused_but_fine == []
    assert accepted_but_broken == []


PATTERNS = [
    *(
        "a",
        "",
        "^$",
        "a*",
        "*a",
        "a**",
        "a*+",
        "a*?",
        "a+++",
        "(a",
        "a)",
        "(a)",
        "()",
        "(|a)",
        "|*",
        "a|b",
        "a{2}",
        "a{2,}",
        "a{2,1}",
        "a{",
        "{2}",
        "}",
        "]",
    ),
    *(
        "[a-z]",
        "[z-a]",
        "[a",
        "[]",
        "[]a]",
        "[^]a]",
        "[a-z&&[^b]]",
        "[[a]",
        "[a-]",
        "[-a]",
        r"[\d-z]",
        r"[\b]",
        r"\d",
        r"\y",
        r"\q",
        "\\",
        r"a\\",
        r"\.",
        r"\_",
    ),
    *(
        "(?:a)",
        "(?i)a",
        "(?i:a)",
        "(?P<x>a)",
        "(?<x>a)",
        r"(?<x>a)\k<x>",
        "(?<=a)b",
        "(?#x)",
        "(?>a)",
        r"\p{L}",
        r"\pL",
        r"\p",
        r"\Qa(\E(b)",
        r"\Q(",
        r"\x41",
        r"\x4",
    ),
    *(
        "(?=a)*",
        "^*",
        "$+",
        r"\bx",
        r"\R",
        r"\u0041",
        r"\u004",
        "(?",
        "(?a)",
        "(*)",
        "(a|*)",
        "a{,3}",
        "a{1,2}{3}",
        "a{1}*",
        "[a&&b]",
        r"(a)\1",
    ),
]


def test_fault_b_a_broken_regular_expression_is_one_that_java_refuses(spark: Any) -> None:
    java, different = spark._jvm.java.util.regex.Pattern, []
    for pattern in PATTERNS:
        try:
            java.compile(pattern)
            fine = True
        except (PySparkException, Py4JJavaError):
            fine = False
        if fine != (patterns.mistake(pattern) is None):
            different.append((pattern, "fine for Java" if fine else "broken for Java", patterns.mistake(pattern)))
    assert different == []

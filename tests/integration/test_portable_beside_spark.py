"""What rejoin prints for DuckDB has the results of Spark: every construct on the list, over types and values at their edges."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from integration import portable_nested
from integration.portable_beside import Beside, Columns
from integration.portable_calls import texts, times
from integration.portable_expressions import arithmetic, casts, choices, comparisons, constants, errors_that_could_be_missed
from integration.portable_values import COLUMNS, pairs
from pyspark.sql import SparkSession

from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.plan.sql.portable import NotPortable, printed
from rejoin.plan.sql.portable import texts as texts_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FEW, ALL = "few", "all"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session(lake_config(str(tmp_path_factory.mktemp("lake"))))


@pytest.fixture(scope="module", params=[FEW, pytest.param(ALL, marks=[pytest.mark.nightly, pytest.mark.timeout(6000)])])
def beside(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Beside:
    """Few pairs of values by day, all at night."""
    few = request.param == FEW
    return Beside(spark, pairs(every_pair=not few), COLUMNS, tmp_path_factory.mktemp("portable"), errors=3 if few else 15)


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
    chosen = texts if request.node.callspec.params["beside"] == ALL else texts[:: max(3, len(texts) // 180)]
    wrong = beside.compare(chosen).wrong
    assert not wrong, "\n".join(wrong[:50])


NESTED = {portable_nested.fields: 25, portable_nested.elements: 750, portable_nested.functions: 100, portable_nested.conditions: 25}


@pytest.mark.parametrize("when", [FEW, pytest.param(ALL, marks=pytest.mark.nightly)])
def test_what_is_read_of_nested_values_has_the_results_of_spark(spark: SparkSession, tmp_path: Path, when: str) -> None:
    """By day of few rows, and for some of the expressions."""
    beside = Beside(spark, portable_nested.rows(40 if when == FEW else 400), portable_nested.COLUMNS, tmp_path, errors=2)
    for family, least in NESTED.items():
        texts = [text for text in dict.fromkeys(family()) if is_portable(text, portable_nested.COLUMNS)]
        assert len(texts) >= least, family.__name__
        found = beside.compare(texts if when == ALL else texts[:: max(1, len(texts) // 30)])
        assert not found.wrong, "\n".join(found.wrong[:50])
        assert not found.stricter, found.stricter


def is_portable(text: str, columns: Columns = COLUMNS) -> bool:
    try:
        printed(text, columns)
    except NotPortable:
        return False
    return True


def test_spark_looks_at_what_stands_behind_and_only_in_its_turn(tmp_path: Path) -> None:
    """With compiled code too, and where two columns have it in common."""
    spark = session(lake_config(str(tmp_path / "lake")))
    spark.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.range(4).selectExpr("id AS a", "id % 2 AS b").write.parquet(str(tmp_path / "rows"))
    found = spark.read.parquet(str(tmp_path / "rows")).selectExpr("b <> 0 AND a div b > 1", "b <> 0 AND a div b < 5")
    assert sorted(map(tuple, found.collect())) == [(False, False), (False, False), (False, True), (True, True)]


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

"""Keys on the command line: a number below zero is a key and no option (issue 35, A4)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rejoin import Topology, debezium
from rejoin.cli import main
from rejoin.testing import Driver


@pytest.fixture(scope="module")
def lake() -> Iterator[Path]:
    """Rows whose keys are a whole number, a decimal, and a whole number with a text."""
    t = Topology("t")
    keys = {"e": "id BIGINT", "d": "id DECIMAL(10,2)", "k": "n INT, word STRING"}
    for name, columns in keys.items():
        key = [c.split()[0] for c in columns.split(", ")]
        made = t.table(name, key=key, schema=f"{columns}, v STRING", source=debezium(f"landing/{name}"))
        made.select([*key, "v"]).named(f"of_{name}")
    with Driver(t) as driver:
        driver.run(e="-5 | below\n 5 | above", d="-0.50 | half", k="-7 | -5 | ides\n -7 | -x | text")
        yield driver.root / "lake"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["get", "of_e", "-5"], "below"),
        (["get", "-5", "--lake", "LAKE", "of_e"], None),
        (["get", "of_e", "--as-of", "1", "-5"], "below"),
        (["get", "of_d", "-0.5"], "half"),
        (["get", "of_d", "-.5"], "half"),
        (["get", "of_d", "-0.500"], "half"),
        (["get", "of_k", "-7", "-5"], "ides"),
        (["get", "of_k", "-7", "--", "-x"], "text"),
        (["get", "of_k", "--", "-7", "-x"], "text"),
    ],
)
def test_a_value_below_zero_is_a_key(lake: Path, words: list[str], expected: str | None) -> None:
    done = CliRunner().invoke(main, words if "LAKE" in words else [words[0], "--lake", str(lake), *words[1:]])
    assert (json.loads(done.output)["v"] if done.exit_code == 0 else None) == expected, done.output


@pytest.mark.parametrize("words", [["of_e", "-0044-03-15"], ["of_d", "-0.505"], ["of_d", "-123456789.00"], ["of_d", "-1e"]])
def test_a_value_that_the_key_cannot_have_is_told_as_such(lake: Path, words: list[str]) -> None:
    done = CliRunner().invoke(main, ["get", "--lake", str(lake), *words])
    assert (done.exit_code, "a key value does not fit the key" in done.output) == (2, True), done.output


def test_other_commands_with_keys_take_them_too(lake: Path) -> None:
    for words in (["why", "of_e"], ["quarantine", "show", "e"], ["quarantine", "drop", "e"]):
        done = CliRunner().invoke(main, [*words, "--lake", str(lake), "-5"])
        assert done.exit_code == 0, done.output


def test_an_option_that_there_is_not_is_still_told(lake: Path) -> None:
    done = CliRunner().invoke(main, ["get", "of_e", "--as-off", "1", "-5", "--lake", str(lake)])
    assert (done.exit_code, "No such option '--as-off'" in done.output) == (2, True), done.output
    done = CliRunner().invoke(main, ["get", "of_e", "--as-of", "-1", "--lake", str(lake), "-5"])
    assert (done.exit_code, "has no run -1" in done.output) == (4, True), done.output

"""Dialects that other packages bring: found by an entry point, named in a topology, read like rejoin's own."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from followed import files
from pinning import there

from rejoin import Topology, feed
from rejoin.errors import SchemaRefused, SetupError, TopologyError
from rejoin.plan.change.compatibility import refuse_other_meaning
from rejoin.plan.check.compile import compile
from rejoin.plan.extensions import dialects
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.sources import SourceAccess, read_again_here, read_here
from rejoin.sources.shapes.lines import LineDialect

PIPES = '''
from rejoin.errors import BadRecord
from rejoin.sources.shapes.lines import Event, LineDialect, positioned

class Pipes(LineDialect):
    """``number|table|op|id|name``"""

    def read(self, line: int, raw: bytes) -> Event:
        number, table, op, key, name = raw.decode().split("|")
        if self.only not in (None, table):
            return self.skipped(line)
        if op == "-":
            return self.delete(line, {"id": key}, positioned(int(number)))
        if op != "+":
            raise BadRecord("PIPES_OP", "the operation is neither + nor -")
        return self.upsert(line, {"id": key or None, "name": name}, positioned(int(number)))
'''


@pytest.fixture(autouse=True)
def pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that adds the dialect ``pipes``, as ``pip install`` leaves it."""
    package = tmp_path / "site"
    (package / "pipes-1.dist-info").mkdir(parents=True)
    (package / "pipes.py").write_text(PIPES)
    (package / "pipes-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: pipes\nVersion: 1\n")
    (package / "pipes-1.dist-info" / "entry_points.txt").write_text("[rejoin.dialects]\npipes = pipes:Pipes\n")
    monkeypatch.syspath_prepend(str(package))
    return iter(())


def plan(dialect: str = "pipes", only: str | None = "people") -> Plan:
    made = Topology("dialects")
    people = made.table("people", key="id", schema="id STRING, name STRING", source=feed("landing", dialect, only=only))
    people.select(["id", "name"]).named("listed")
    return compile(made)


def events(root: Path, *lines: str) -> list[dict[str, object]]:
    (root / "landing").mkdir()
    (root / "landing" / "1.jsonl").write_text("".join(f"{line}\n" for line in lines))
    table = plan().table("people")
    pin = there(table, str(root)).pin
    assert pin is not None
    found = read_here(table, pin, SourceAccess(str(root)))
    assert found is not None
    return found.to_pylist()


def test_lines_become_events_and_what_cannot_be_read_is_quarantined(tmp_path: Path) -> None:
    found = events(tmp_path, "1|people|+|a|Ann", "2|orders|+|x|y", "", "3|people|-|a|", "4|people|?|b|Bob", "5|people|+||Cleo")
    assert [(e["_line"], e["_kind"], e["id"], e["name"], e["_code"]) for e in found] == [
        (1, "upsert", "a", "Ann", None),
        (2, "skipped", None, None, None),
        (4, "delete", "a", None, None),
        (5, "quarantined", None, None, "PIPES_OP"),
        (6, "quarantined", None, None, "MISSING_KEY"),
    ]
    assert found[0]["_position"] < found[2]["_position"] and found[3]["_raw"] == "4|people|?|b|Bob"  # type: ignore[operator]


def test_refused_records_are_read_again() -> None:
    bob = {"_file": "f", "_line": 4, "_reason": "the operation is neither + nor -", "_raw": "4|people|+|b|Bob", "_arrival": -2}
    other = bob | {"_line": 5, "_raw": "5|people|+|c|Z\ufffde", "_arrival": -3}  # the dialect may have read bytes that were no UTF-8
    assert read_again_here(plan().table("people"), [bob, other]).select(["id", "name", "_arrival"]).to_pylist() == [
        {"id": "b", "name": "Bob", "_arrival": -2}
    ]


def test_the_plan_is_the_same_after_json() -> None:
    assert json_form.from_json(json_form.to_json(plan())) == plan()


@pytest.mark.parametrize(("dialect", "message"), [("pipe", "did you mean 'pipes'"), ("debezium", "debezium(...)")])
def test_a_dialect_that_is_not_there_is_refused(dialect: str, message: str) -> None:
    with pytest.raises(TopologyError, match="BAD_OPTION") as refused:
        plan(dialect)
    assert message in str(refused.value)


def test_the_same_table_from_another_place_is_another_one() -> None:
    refuse_other_meaning(1, plan(), plan(), "people")
    with pytest.raises(SchemaRefused, match="feed of pipes 'landing', topic 'people'"):
        refuse_other_meaning(1, plan(), plan(only="persons"), "people")


def test_fault_a_plan_that_is_used_without_the_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan()
    monkeypatch.setattr("sys.path", [p for p in sys.path if p != str(tmp_path / "site")])
    with pytest.raises(SetupError, match=r"the dialect 'pipes' is not installed.* in the group 'rejoin.dialects'"):
        dialects.dialect(made.table("people").source.dialect)  # type: ignore[union-attr]


def test_an_update_of_a_key_is_two_events_in_the_dialect_of_the_page() -> None:
    page, scope = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(), dict[str, Any]()
    exec(files(page)["journal.py"], scope)
    decoder: LineDialect = scope["Journal"](plan(only=None).table("people"))
    entry = {"n": 3, "of": "people", "did": "put", "row": {"id": "b", "name": "Bob"}}
    lines = ((n, json.dumps({**entry, **more}).encode()) for n, more in enumerate(({}, {"was": {"name": "Rob"}}, {"was": {"id": "a"}}), 1))
    [batch] = decoder.batches("f", 0, lines)
    assert list(zip(batch["_line"].to_pylist(), batch["_kind"].to_pylist(), batch["id"].to_pylist(), strict=True)) == [
        (1, "upsert", "b"),
        (2, "upsert", "b"),
        (3, "delete", "a"),
        (3, "upsert", "b"),
    ]

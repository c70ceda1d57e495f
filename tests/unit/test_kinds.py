"""Kinds of joins that packages bring: the one of docs/extending.md, beside a join by hand over a random history; and what is refused."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from followed import files

from rejoin import Topology, snapshot
from rejoin.context.uncomputable_rows import UncomputableRows
from rejoin.engines.relation import LocalRelation
from rejoin.errors import SetupError, TopologyError
from rejoin.joins.registry import kind_of
from rejoin.plan import explain
from rejoin.plan.check.compile import compile
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import Refresh, RunOptions
from rejoin.plan.model.steps import Verb
from rejoin.plan.sql.defining_query import topology_query
from rejoin.report.statements import statements
from rejoin.statements.dialect import DUCKDB
from rejoin.testing import Driver
from rejoin.why.answer import Match, RightRow
from rejoin.why.right_sides import side
from rejoin.why.tree import _right

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
STEPS = 8


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's package, as ``pip install`` leaves it."""
    place = tmp_path / "site"
    (place / "ours-1.dist-info").mkdir(parents=True)
    (place / "ignoring_case.py").write_text(files(PAGE)["ignoring_case.py"])
    (place / "ours-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (place / "ours-1.dist-info" / "entry_points.txt").write_text("[rejoin.joins]\nignoring_case = ignoring_case:FACES\n")
    monkeypatch.syspath_prepend(str(place))
    return iter(())


def shop(by: str = "ignoring_case", how: str = "left_join", **more: object) -> Topology:
    made = Topology("shop")
    orders = made.table("orders", key="id", schema="id BIGINT, country STRING", source=snapshot("landing/orders"))
    countries = made.table("countries", key="code", schema="code STRING, name STRING", source=snapshot("landing/countries"))
    getattr(orders, how)(countries, foreign_key="country", by=by, select=["left.*", "right.name"], **more).named("placed")
    return made


def plan() -> Plan:
    return compile(shop())


@pytest.mark.slow
@pytest.mark.invariant("I1", "I5")
def test_a_random_history_gives_what_a_join_by_hand_gives(request: pytest.FixtureRequest) -> None:
    rng = random.Random(str(request.config.getoption("hypothesis_seed")))
    orders: dict[int, str | None] = {}
    countries: dict[str, str] = {}
    with Driver(shop()) as driver:
        for step in range(STEPS):
            changed: dict[str, list[str]] = {"orders": [], "countries": []}
            for _ in range(rng.randrange(1, 4) if step else 5):
                if rng.random() < 0.6 or not step:
                    key, code = rng.randrange(8), rng.choice([None, "de", "De", "AT", "fr", "x"])
                    orders[key] = code
                    changed["orders"].append(f"{key} | {'NULL' if code is None else code}")
                code, name = rng.choice(["DE", "de", "at", "Fr"]), f"n{rng.randrange(100)}"
                if code in countries and len(countries) > 1 and rng.random() < 0.3:
                    del countries[code]
                    changed["countries"].append(f"- {code}")
                else:
                    countries[code] = name
                    changed["countries"].append(f"{code} | {name}")
            driver.run(**{table: "\n".join(lines) for table, lines in changed.items() if lines})
            names = {code.lower(): countries[code] for code in sorted(countries, reverse=True)}
            rows = [f"{key} | {code or 'NULL'} | {names.get((code or '').lower(), 'NULL')}" for key, code in sorted(orders.items())]
            assert driver.table("placed") == "\n".join(["id | country | name", *rows])


def test_its_rule_is_in_the_query_and_its_statement_is_told() -> None:
    made = plan()
    query = topology_query(made, made.nodes[0])
    assert "ON lower((l.`country`)) = lower(r1.`code`)" in query
    assert "row_number() OVER (PARTITION BY l.`id` ORDER BY r1.`code`)" in query
    assert "by ignoring_case" in explain.text(made)
    assert any("lower(a.fk_1) = lower(b.on_1)" in s.sql and s.step == "resolve.placed" for s in statements(made))


def test_the_plan_is_the_same_after_json() -> None:
    assert json_form.from_json(json_form.to_json(plan())) == plan()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "ignoring_cases"}, "no such kind of join is installed; there are: ignoring_case"),
        ({"how": "right_join"}, "only left rows make results"),
        ({"within": "1 hour"}, "within: not with by="),
    ],
    ids=["another name", "a right join", "another option"],
)
def test_what_it_cannot_do_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(TopologyError) as refused:
        compile(shop(**given))  # type: ignore[arg-type]
    assert message in str(refused.value)


def test_of_several_right_rows_the_smallest_key_counts_and_a_recomputation_changes_nothing() -> None:
    with Driver(shop()) as driver:
        driver.run(orders="1 | de\n2 | De", countries="de | Deutschland\nDE | Germany")
        driver.run(orders="3 | DE", countries="dE | Allemagne")
        assert driver.table("placed") == "id | country | name\n1 | de | Germany\n2 | De | Germany\n3 | DE | Germany"
        assert driver.run(RunOptions(refresh=Refresh.FULL))["placed"] == ""
        driver.run(countries="- DE")
        assert [row["name"] for row in driver.table("placed")] == ["Allemagne"] * 3


def test_fault_a_plan_that_is_used_without_the_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan()
    monkeypatch.setattr("sys.path", [p for p in sys.path if p != str(tmp_path / "site")])
    with pytest.raises(SetupError, match=r"the kind of join 'ignoring_case' is not installed.* in the group 'rejoin.joins'"):
        topology_query(made, made.nodes[0])


def test_fault_right_rows_are_not_looked_at_one_by_one_for_no_key_of_the_output_is_theirs() -> None:
    made = plan()
    work: Any = SimpleNamespace(
        facts=SimpleNamespace(plan=made, held=lambda _: 0), engine=SimpleNamespace(sql=DUCKDB, node=lambda node: node)
    )
    kind, rows = (
        kind_of(work, made.nodes[0], UncomputableRows(work, made.nodes[0], Verb.RESOLVE)),
        LocalRelation(pa.table({"code": ["DE"]})),
    )
    assert kind is not None
    assert kind.sifted(rows, left=False) is rows and kind.sifted_changes(rows, left=False) is rows


def test_why_names_the_rule_and_does_not_blame_a_foreign_key() -> None:
    made = plan()
    [node], [edge] = made.nodes, made.nodes[0].edges
    trace: Any = SimpleNamespace(plan=made)
    found = side(trace, node, edge, (1,), ({"id": 1}, {"id": 1, "country": "de"}))
    assert found.how is not None and found.how.to_dict() == {"as_of": None, "rule": "ignoring_case"}
    right = RightRow("countries", "countries", str(edge.kind), "country", None, Match.UNKNOWN, None, found.row, found.how)
    assert str(_right(right, None).label) == "left join countries: by ignoring_case, a rule of a package, which `why` does not follow"

"""Expressions that rejoin has no rules for: Spark says whether they can be, before a run opens, and once for a plan."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from integration.conftest import Sessions
from integration.shop import event, output
from pyspark.sql import SparkSession

from rejoin.cli import main
from rejoin.errors import ExpressionRefused
from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

DATE = "CAST(note AS DATE)"
FILE = """
from rejoin import Topology, condition, debezium

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, size INT, note STRING", source=debezium("orders"))
orders.select(["id", "{column} AS made"]).named("coded").expect(condition("{must_hold}"))
"""


def landed(root: Path, column: str, must_hold: str) -> Topology:
    """A topology with one order of size 3, under ``root``."""
    (root / "orders").mkdir(exist_ok=True)
    (root / "orders" / "1.jsonl").write_text(event(1, 1, {"id": 1, "size": 3, "note": "1999-12-31"}))
    (root / "t.py").write_text(FILE.replace("{column}", column).replace("{must_hold}", must_hold))
    return Topology(load(str(root / "t.py")), lake_config(str(root / "lake")), str(root))


@pytest.mark.parametrize(
    ("column", "must_hold", "said"),
    [
        pytest.param(f"factorial({DATE})", "id > 0", ["1 expression(s)", "column 'made'", "DATATYPE_MISMATCH"], id="a column"),
        pytest.param(
            "id", "factorial(made)", ["an expectation of output 'coded'", "it must be BOOLEAN, this is BIGINT"], id="no condition"
        ),
        pytest.param("note", "factorial(CAST(made AS DATE)) > 0", ["1 expression(s)", "an expectation of output"], id="an expectation"),
        pytest.param(f"factorial({DATE})", "factorial(id)", ["2 expression(s)", "column 'made'", "an expectation"], id="all at once"),
    ],
)
def test_fault_b_what_spark_refuses_stops_before_a_run_opens(
    column: str, must_hold: str, said: list[str], tmp_path: Path, sessions: Sessions
) -> None:
    topology = landed(tmp_path, column, must_hold)
    with pytest.raises(ExpressionRefused) as caught:
        run_topology(topology, lambda: sessions(topology), "test")
    told = str(caught.value)
    assert [part for part in said if part not in told] == [], told
    assert "\tat " not in told and "org.apache" not in told
    assert topology.ledger.runs() == []


def test_fault_b_the_command_says_the_same_and_ends_with_the_code_of_a_wrong_file(tmp_path: Path) -> None:
    landed(tmp_path, f"factorial({DATE})", "id > 0")
    lake = str(tmp_path / "lake")
    ran = CliRunner().invoke(main, ["run", str(tmp_path / "t.py"), "--root", str(tmp_path), "--lake", lake])
    assert ran.exit_code == 2
    assert "EXPRESSION_REFUSED" in ran.output
    assert "nothing was read" in ran.output
    assert len(ran.output.splitlines()) < 10


def test_fault_b_spark_is_asked_once_for_a_plan(tmp_path: Path, sessions: Sessions) -> None:
    def nobody() -> SparkSession:
        raise AssertionError("this run has nothing that Spark must be asked")

    topology = landed(tmp_path, "factorial(size)", "factorial(CAST(made AS INT)) > 0")
    run_topology(topology, lambda: sessions(topology), "first")
    assert output(topology, "coded") == {1: {"id": 1, "made": 6}}
    assert run_topology(topology, nobody, "second").number == 2
    edited = landed(tmp_path, "factorial(size)", "factorial(id)")
    with pytest.raises(ExpressionRefused):
        run_topology(edited, lambda: sessions(edited), "third")
    assert len(topology.ledger.runs()) == 2

"""dags/shop.py on what a real Debezium wrote of a real PostgreSQL: the same rows, however the capture is cut into runs."""

from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests" / "data" / "captures" / "debezium_capture.jsonl"
LINES = 61
OUTPUTS = {"orders_enriched": ("id",), "items_enriched": ("order_id", "line")}
State = dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]

ANN, BOB = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
ORDER_1 = (ANN, Decimal("12345.60"), 7, "paid", "x" * 9000)
ORDER_2 = (None, Decimal("-0.01"), None, None, None, None)
LARGEST = Decimal("9999999999.99")

# Orders: customer_id, total, qty, status, remarks, customer. Items: sku, note, customer, order_total.
FINAL: State = {
    "orders_enriched": {(1,): (*ORDER_1, "Ann B"), (2,): ORDER_2, (50,): (ANN, Decimal("1.00"), None, None, None, "Ann B")},
    "items_enriched": {(70, 1): ("after ddl", "n", None, None)},
}
ITEMS_OF_1: dict[tuple[Any, ...], tuple[Any, ...]] = {
    (1, 1): ("a", None, "Ann", Decimal("12345.60")),
    (1, 2): ("b", None, "Ann", Decimal("12345.60")),
}


def play(directory: Path, plays: dict[str, list[int]]) -> dict[str, list[State]]:
    """Delivers the capture in pieces that end at the given lines, one run a piece; the outputs after every run, by name of the play."""
    lines = CAPTURE.read_bytes().splitlines(keepends=True)
    config = lake_config(str(directory / "lake"))
    played = {}
    for name, ends in plays.items():
        landing = directory / name / "landing" / "shop"
        landing.mkdir(parents=True)
        topology = Topology(replace(load(str(ROOT / "dags" / "shop.py")), topology=name), config, str(directory / name))
        played[name] = []
        for start, end in zip([0, *ends], ends, strict=False):
            (landing / f"{end:04d}.jsonl").write_bytes(b"".join(lines[start:end]))
            run = run_topology(topology, partial(session, config), f"test {name}")
            played[name].append(outputs(topology, run.number))
    return played


def outputs(topology: Topology, run: int) -> State:
    states = topology.ledger.states(run)
    found: State = {}
    for name, key in OUTPUTS.items():
        table = topology.refs.require(name, states[name])
        rows = table.scan(snapshot_id=states[name]).to_arrow().drop_columns(["_run", "_hash"]).to_pylist()
        keyed = {tuple(row.pop(k) for k in key): tuple(row.values()) for row in rows}
        assert len(keyed) == len(rows), f"{name} has a key twice after run {run}"
        found[name] = keyed
    return found


PLAYS = {"at_once": [LINES], "by_event": [8, 11, 14, 22, 48, 53, LINES]}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[State]]:
    return play(tmp_path_factory.mktemp("shop"), PLAYS)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    *(pytest.mark.filterwarnings(f"ignore::{what}") for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")),
]


@pytest.mark.parametrize("name", PLAYS)
@pytest.mark.invariant("I3")
def test_the_final_state_is_that_of_the_database_however_the_capture_is_cut(played: dict[str, list[State]], name: str) -> None:
    assert played[name][-1] == FINAL


def test_first_rows_of_snapshot_and_stream_are_joined(played: dict[str, list[State]]) -> None:
    assert played["by_event"][0] == {
        "orders_enriched": {(1,): (*ORDER_1, "Ann"), (2,): ORDER_2, (3,): (BOB, LARGEST, 7, "paid", "x" * 9000, "Bob")},
        "items_enriched": ITEMS_OF_1,
    }


def test_an_unchanged_toast_value_is_kept_and_a_changed_one_replaced(played: dict[str, list[State]]) -> None:
    assert played["by_event"][1]["orders_enriched"][3,] == (BOB, LARGEST, 8, "paid", "x" * 9000, "Bob")
    assert played["by_event"][2]["orders_enriched"][3,] == (BOB, LARGEST, 8, "paid", "y" * 9000, "Bob")


def test_a_changed_primary_key_moves_the_row_with_its_unchanged_toast_value(played: dict[str, list[State]]) -> None:
    assert played["by_event"][3]["orders_enriched"] == {
        (1,): (*ORDER_1, "Ann"),
        (2,): ORDER_2,
        (30,): (None, LARGEST, 8, "paid", "y" * 9000, None),
    }


def test_a_renamed_customer_reaches_the_items_through_the_orders(played: dict[str, list[State]]) -> None:
    assert played["by_event"][4]["items_enriched"] == {
        (1, 1): ("a", None, "Ann B", Decimal("12345.60")),
        (1, 2): ("b", None, "Ann B", Decimal("12345.60")),
        (50, 1): ("s1", None, "Ann B", Decimal("1.00")),
        (50, 2): ("s2", None, "Ann B", Decimal("1.00")),
    }


def test_a_truncate_empties_the_items_and_nothing_else(played: dict[str, list[State]]) -> None:
    assert played["by_event"][5] == {"orders_enriched": FINAL["orders_enriched"], "items_enriched": {}}

"""``rejoin why`` on a lake of real runs: chains, filters, composite keys, what was refused, held back and deleted."""

import json
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from integration.shop import event
from rich.console import Console

from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology
from rejoin.why.trace import why
from rejoin.why.tree import tree

pytestmark = pytest.mark.slow

FILE = """
from rejoin import *

t = Topology("t")
orders = t.table(
    "orders", key="id", schema="id BIGINT, customer INT, sku STRING, since DATE, Size BIGINT, note STRING", source=debezium("landing/orders")
)
customers = t.table("customers", key="id", schema="id BIGINT, name STRING, active BOOLEAN, region BIGINT",
                    source=snapshot("landing/customers", max_delete_share=0.9))
regions = t.table("regions", key="id", schema="id BIGINT, title STRING", source=snapshot("landing/regions"))
prices = t.table("prices", key=["sku", "since"], schema="sku STRING, since DATE, price DECIMAL(10,2)", source=snapshot("landing/prices"))
big = orders.filter("Size > 0").left_join(customers.filter("active"), "customer", ["left.id", "right.name AS name", "right.region AS region"])
enriched = big.left_join(regions, "region", ["left.id", "name", "right.title AS title"]).named("enriched")
enriched.expect(condition("name <> 'bad'"), severity="quarantine")
orders.join(prices, ["sku", "since"], ["left.id", "price"]).filter("price < 100").named("sold")
"""
DAY = 19_723  # 2024-01-01
# customer, sku, since, Size
ORDERS: dict[int, tuple[int | None, str | None, int | None, int]] = {
    1: (1, "a b", DAY, 5),
    2: (1, "a b", DAY, 5),
    3: (2, "c", DAY, 5),  # an inactive customer, and a price that is filtered out
    4: (None, None, DAY, 5),
    5: (99, "a b", DAY + 1, 5),
    6: (1, "a b", DAY, 0),
    7: (3, "a b", DAY, 5),
    8: (4, "a b", DAY, 5),
}


def land(root: Path, name: str, text: str) -> None:
    path = root / "landing" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def order(lsn: int, key: int, note: str = "n") -> str:
    customer, sku, since, size = ORDERS[key]
    return event(lsn, key, {"id": key, "customer": customer, "sku": sku, "since": since, "Size": size, "note": note})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Topology:
    root = tmp_path_factory.mktemp("why")
    (root / "t.py").write_text(FILE)
    config = lake_config(str(root / "lake"))
    topology = Topology(load(str(root / "t.py")), config, str(root))
    land(root, "orders/1.jsonl", "".join(order(key, key) for key in ORDERS))
    land(root, "customers/1.csv", "id,name,active,region\n1,Ann,true,1\n2,Bob,false,1\n3,bad,true,\n4,Dora,true,9\n")
    land(root, "regions/1.csv", "id,title\n1,North\n")
    land(root, "prices/1.csv", "sku,since,price\na b,2024-01-01,5.00\nc,2024-01-01,500.00\n")
    run_topology(topology, partial(session, config), "test 1")
    land(root, "orders/2.jsonl", order(20, 1, "only another note") + event(21, 2, None) + event(22, 3, {"id": 3, "customer": "x"}))
    land(root, "customers/2.csv", "id,name,active,region\n1,Anne,true,1\n2,Bob,false,1\n3,bad,true,\n")
    run_topology(topology, partial(session, config), "test 2")
    return topology


def ask(shop: Topology, name: str, *key: str, run: int | None = None) -> dict[str, Any]:
    answer = why(shop.ledger, shop.refs, shop.access, name, key, run)
    console = Console(file=StringIO(), width=160)
    console.print(tree(answer))
    assert console.file.getvalue().startswith(name)  # type: ignore[attr-defined]
    return dict(json.loads(json.dumps(answer.to_dict(), default=str)))


def place(row: dict[str, Any]) -> tuple[object, ...]:
    record = row["record"]
    return (row["state"], record["run"], record["op"], record["file"], record["line"])


def test_a_row_is_followed_through_a_chain_to_the_lines_of_its_records(shop: Topology) -> None:
    found = ask(shop, "enriched", "1")
    assert (found["state"], found["run"], found["reasons"]) == ("there", 2, [])
    assert (found["changed"]["run"], found["changed"]["op"], found["changed"]["columns"]) == (2, "U", ["name"])
    assert (found["changed"]["before"]["name"], found["changed"]["after"]["name"]) == ("Ann", "Anne")
    big, (region,) = found["left"], found["rights"]
    assert (big["intermediate"], big["state"]) == (True, "there")
    assert place(big["left"]) == ("there", 1, "I", "landing/orders/1.jsonl", 1)
    assert big["left"]["record"]["later"] == 2, "no join uses the note that run 2 brought"
    (customer,) = big["rights"]
    assert (customer["match"], customer["foreign_key"]) == ("found", [1])
    assert place(customer["row"]) == ("there", 2, "U", "landing/customers/2.csv", 2)
    assert (region["match"], place(region["row"])) == ("found", ("there", 1, "I", "landing/regions/1.csv", 2))


def test_as_of_an_earlier_run_it_is_what_it_was_then(shop: Topology) -> None:
    found = ask(shop, "enriched", "1", run=1)
    assert (found["run"], found["row"]["name"], found["changed"]["op"]) == (1, "Ann", "I")
    assert place(found["left"]["rights"][0]["row"]) == ("there", 1, "I", "landing/customers/1.csv", 2)


def test_a_removed_row_names_the_record_that_deleted_its_left_row(shop: Topology) -> None:
    found = ask(shop, "enriched", "2")
    assert (found["state"], found["changed"]["op"], found["reasons"][0]["cause"]) == ("removed", "D", "left_row")
    assert place(found["left"]["left"]) == ("removed", 2, "D", "landing/orders/2.jsonl", 2)
    assert found["rights"][0]["match"] == "unasked"


def test_a_right_row_that_its_filter_drops_is_told_by_the_hash_of_the_output_row(shop: Topology) -> None:
    found = ask(shop, "enriched", "3")
    (customer,) = found["left"]["rights"]
    assert (found["row"]["name"], customer["match"], customer["filter"]) == (None, "filtered", "active")
    refused = found["left"]["left"]["quarantined"]
    assert [(e["code"], e["file"], e["line"]) for e in refused] == [("VALUE_TYPE", "landing/orders/2.jsonl", 3)]


def test_no_right_row_is_a_null_foreign_key_or_no_such_key_or_a_deleted_one(shop: Topology) -> None:
    null, absent, deleted = (ask(shop, "enriched", key)["left"]["rights"][0] for key in "458")
    assert (null["match"], null["foreign_key"], null["row"]) == ("null", None, None)
    assert (absent["match"], absent["foreign_key"], absent["row"]["state"]) == ("absent", [99], "never")
    assert (deleted["match"], place(deleted["row"])) == ("absent", ("removed", 2, "D", None, None))
    assert (deleted["row"]["record"]["absent"], deleted["row"]["record"]["files"]) == (True, ["landing/customers/2.csv"])


def test_a_filter_that_drops_a_row_is_named(shop: Topology) -> None:
    found = ask(shop, "enriched", "6")["left"]
    assert (found["state"], found["certain"]) == ("never", True)
    assert found["reasons"] == [{"cause": "left_filter", "of": "orders", "sql": "Size > 0"}]
    dropped = ask(shop, "sold", "3")
    assert (dropped["certain"], dropped["reasons"]) == (True, [{"cause": "filter", "of": "sold", "sql": "prices.price < 100"}])
    assert dropped["rights"][0]["foreign_key"] == ["c", "2024-01-01"]


def test_an_inner_join_that_finds_nothing_is_named(shop: Topology) -> None:
    null, absent = ask(shop, "sold", "4"), ask(shop, "sold", "5")
    assert null["reasons"] == [{"cause": "null", "of": "prices", "sql": "sku, since"}]
    assert absent["reasons"] == [{"cause": "absent", "of": "prices", "sql": None}]
    assert ask(shop, "sold", "1")["rights"][0]["row"]["key"] == {"sku": "a b", "since": "2024-01-01"}


def test_a_row_that_is_held_back_tells_the_expectation(shop: Topology) -> None:
    found = ask(shop, "enriched", "7")
    assert (found["state"], found["row"], [r["cause"] for r in found["reasons"]]) == ("held", None, ["held"])
    assert (found["held_back"]["code"], found["held_back"]["run"]) == ("EXPECTATION", 1)
    assert "name <> 'bad'" in found["held_back"]["reason"]


def test_a_source_row_tells_its_record(shop: Topology) -> None:
    assert place(ask(shop, "prices", "c", "2024-01-01")) == ("there", 1, "I", "landing/prices/1.csv", 3)
    assert ask(shop, "prices", "c", "2024-01-02")["state"] == "never"


def test_a_file_that_is_gone_is_still_named(shop: Topology) -> None:
    Path(shop.root, "landing", "regions", "1.csv").unlink()
    record = ask(shop, "regions", "1")["record"]
    assert (record["file"], record["line"]) == ("landing/regions/1.csv", None)
    assert "is gone" in record["unlocated"]

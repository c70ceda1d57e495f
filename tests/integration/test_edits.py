"""An edited topology rebuilds only what it changed, and gives net changes against the old output."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.conftest import Go
from integration.shop import Shop, folded, output, rows

from rejoin.errors import SchemaRefused
from rejoin.testing import Driver, Grid

pytestmark = pytest.mark.slow

BOTH = """
from rejoin import Topology, debezium, snapshot

shop = Topology("shop")
orders = shop.table("orders", key="id", schema="{orders}", source=debezium("landing/orders"))
customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers", max_delete_share=0.9))
orders.{how}(customers, foreign_key="{fk}", select=[{select}], name="enriched")
orders.filter("note IS NOT NULL").named("noted")
"""
DEFAULT = {
    "orders": "id BIGINT, customer_id BIGINT, note STRING",
    "how": "left_join",
    "fk": "customer_id",
    "select": '"left.id", "left.note", "right.name AS customer"',
}


def edit(shop: Shop, **parts: str) -> None:
    shop.file.write_text(BOTH.format(**{**DEFAULT, **parts}))


@pytest.fixture
def shop(tmp_path: Path, go: Go) -> Shop:
    made = Shop(tmp_path)
    edit(made)
    made.next_batch(12)
    go(made.topology())
    return made


def test_another_expression_rebuilds_only_its_node_and_changes_only_rows_that_differ(shop: Shop, go: Go) -> None:
    edit(shop, select='"left.id", "left.note", "upper(right.name) AS customer"')
    run = go(shop.topology())
    assert run.rebuild == ("enriched",)
    expected = {k: {**r, "customer": r["customer"] and str(r["customer"]).upper()} for k, r in shop.expected().items()}
    assert output(shop.topology()) == expected == folded(shop.topology())
    counts = shop.topology().ledger.steps(run.number)
    matched = sum(r["customer"] is not None for r in expected.values())
    assert counts["resolve.enriched"].counts["updated"] == matched
    assert counts["resolve.enriched"].counts["inserted"] == counts["resolve.enriched"].counts["deleted"] == 0
    assert counts["resolve.noted"].counts["changes"] == 0
    shop.next_batch()
    assert go(shop.topology()).rebuild == ()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    (tmp_path / "shop.py").write_text(BOTH.format(**DEFAULT))
    with Driver(tmp_path / "shop.py") as made:
        made.run(orders="1 | 7 | a\n 2 | 9 | b\n 3 | NULL | c", customers="7 | Ann\n 8 | Bob")
        yield made


def edited(driver: Driver, root: Path, **parts: str) -> Grid:
    """What an edit of the file changes in the output."""
    (root / "shop.py").write_text(BOTH.format(**{**DEFAULT, **parts}))
    driver.restart()
    return driver.run()["enriched"]


def test_left_to_inner_deletes_the_rows_without_a_match_and_back_inserts_them(driver: Driver, tmp_path: Path) -> None:
    assert edited(driver, tmp_path, how="join") == "op | id\n D | 2\n D | 3"
    assert edited(driver, tmp_path) == "op | id | note | customer\n I | 2 | b | NULL\n I | 3 | c | NULL"


def test_an_edit_that_drops_a_column_may_change_nothing_but_to_delete_rows(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(BOTH.format(**DEFAULT))
    with Driver(tmp_path / "shop.py") as driver:
        driver.run(orders="1 | 9 | a\n 2 | NULL | b", customers="7 | Ann")
        changes = edited(driver, tmp_path, how="join", select='"left.id", "left.note"')
        assert changes == "op | id\n D | 1\n D | 2"
        assert driver.table("enriched") == ""


def test_another_foreign_key_subscribes_anew(driver: Driver, tmp_path: Path) -> None:
    assert edited(driver, tmp_path, fk="customer_id + 1") == "op | id | customer | was\n U | 1 | Bob | Ann"
    changes = driver.run(customers="7 | Anne\n 8 | Bobby\n 10 | Cleo")["enriched"]
    assert changes == "op | id | customer | was\n U | 1 | Bobby | Bob\n U | 2 | Cleo | NULL"


def test_a_source_column_that_is_declared_later_is_null_until_its_row_changes(driver: Driver, tmp_path: Path) -> None:
    columns = {"orders": DEFAULT["orders"] + ", extra STRING", "select": '"left.id", "left.extra", "right.name AS customer"'}
    edited(driver, tmp_path, **columns)
    assert driver.table("enriched") == "id | extra\n 1 | NULL\n 2 | NULL\n 3 | NULL"
    assert driver.run(orders="id | extra\n 2 | x")["enriched"] == "op | id | extra | was\n U | 2 | x | NULL"


def test_a_new_column_is_filled_and_a_dropped_one_is_gone_after_the_run(shop: Shop, go: Go) -> None:
    edit(shop, select='"left.id", "left.customer_id", "right.name AS customer"')
    go(shop.topology())
    expected = {k: {"id": k, "customer_id": shop.orders[k]["customer_id"], "customer": r["customer"]} for k, r in shop.expected().items()}
    assert output(shop.topology()) == expected
    assert set(rows(shop.topology(), "enriched")[0]) == {"id", "customer_id", "customer", "_run", "_hash"}


@pytest.mark.by_spark
def test_fault_a14_a_column_that_is_dropped_and_comes_back_has_no_old_values_in_the_changes(shop: Shop, go: Go) -> None:
    had = {key for key, row in shop.expected().items() if row["note"] is not None}
    edit(shop, select='"left.id", "right.name AS customer"')
    dropped = go(shop.topology())
    expected = {key: {"id": key, "customer": row["customer"]} for key, row in shop.expected().items()}
    assert output(shop.topology()) == expected
    assert folded(shop.topology()) == {key: {**row, "note": None} for key, row in expected.items()}
    changes = [c for c in rows(shop.topology(), "enriched__changes") if c["_run"] == dropped.number]
    assert {c["id"] for c in changes} == had and {c["_op"] for c in changes} == {"U"}, "every row that had a value, and no other"
    assert all(c["_before"]["note"] is not None and c["_after"]["note"] is None for c in changes)  # type: ignore[index]
    shop.next_batch()
    go(shop.topology())
    edit(shop, select='"left.id", "CASE WHEN left.id % 2 = 0 THEN left.note END AS note", "right.name AS customer"')
    go(shop.topology())
    expected = {key: {**row, "note": row["note"] if key % 2 == 0 else None} for key, row in shop.expected().items()}
    assert output(shop.topology()) == expected == folded(shop.topology())
    shop.next_batch()
    go(shop.topology())
    expected = {key: {**row, "note": row["note"] if key % 2 == 0 else None} for key, row in shop.expected().items()}
    assert output(shop.topology()) == expected == folded(shop.topology())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"orders": "id INT, customer_id BIGINT, note STRING"}, "column 'id' of table 'orders' was declared BIGINT and is now INT"),
        ({"select": '"left.id AS order_id", "left.note"'}, r"the key of 'enriched' was \(id\) and is now \(order_id\)"),
        (
            {"select": '"left.id", "length(left.note) AS note"'},
            r"column [\w.]*note of table lake.shop.enriched\w* is string and cannot become int",
        ),
    ],
    ids=["a narrower source column", "another key", "another type of an output column"],
)
def test_what_a_table_cannot_become_is_refused_and_nothing_changes(shop: Shop, go: Go, parts: dict[str, str], message: str) -> None:
    before = output(shop.topology())
    edit(shop, **parts)
    with pytest.raises(SchemaRefused, match=message):
        go(shop.topology())
    assert output(shop.topology()) == before
    edit(shop)
    shop.next_batch()
    go(shop.topology())
    assert output(shop.topology()) == shop.expected()

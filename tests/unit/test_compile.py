"""Declarations become views, stars and chains; names, used columns and fingerprints follow."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from plans import Shop, chain, everything, star

import rejoin
from rejoin.errors import TopologyError
from rejoin.plan.change.fingerprint import HASH_VERSION, fingerprint
from rejoin.plan.model import json_form
from rejoin.plan.model.match import JoinKind
from rejoin.plan.model.plan import Projection, View
from rejoin.plan.model.sources import DebeziumSource, OnBadRecord, SnapshotSource


def sql(columns: tuple[Projection, ...]) -> dict[str, str]:
    return {column.name: column.sql for column in columns}


# --- views -----------------------------------------------------------------------------------------------------------


def test_filters_and_selects_on_a_table_compose_into_one_view() -> None:
    shop = Shop()
    chosen = shop.orders.filter("note = 'a' OR note = 'b'").select(["order_id AS id", "product_id + 1 AS p"]).filter("p * 2 > 4")
    chosen.select(["p AS q", "id"]).named("out")
    [node] = shop.compile().nodes
    assert node.left == View(
        "orders",
        (Projection("q", "t.`product_id` + 1", "INT"), Projection("id", "t.`order_id`", "BIGINT")),
        "(t.`note` = 'a' OR t.`note` = 'b') AND ((t.`product_id` + 1) * 2 > 4)",
        ("id",),
    )
    assert (node.edges, node.where, node.key) == ((), None, ("id",))
    assert sql(node.columns) == {"q": "l.`q`", "id": "l.`id`"}


def test_a_view_has_only_the_columns_that_its_node_reads_and_its_key() -> None:
    shop = Shop()
    shop.orders.join(shop.customers, "customer_id", ["left.order_id", "right.name"]).named("out")
    [node] = shop.compile().nodes
    assert [c.name for c in node.left.columns] == ["order_id", "customer_id"]
    assert [c.name for c in node.edges[0].right.columns] == ["customer_id", "name"]


def test_an_expression_of_a_right_view_stays_in_the_view() -> None:
    shop = Shop()
    named = shop.customers.filter("active").select(["customer_id AS id", "coalesce(name, '?') AS name"])
    shop.orders.left_join(named, "customer_id", ["order_id", "upper(right.name) AS name"]).filter("name = '?'").named("out")
    [node] = shop.compile().nodes
    assert sql(node.edges[0].right.columns) == {"id": "t.`customer_id`", "name": "coalesce(t.`name`, '?')"}
    assert node.edges[0].right.where == "t.`active`"
    assert node.edges[0].right.key == ("id",)
    assert sql(node.columns)["name"] == "upper(r1.`name`)"
    assert node.where == "(upper(r1.`name`)) = '?'"


def test_without_select_a_join_has_both_sides_without_the_right_key() -> None:
    shop = Shop()
    shop.orders.select(["order_id", "customer_id"]).join(shop.customers, "customer_id").named("out")
    [node] = shop.compile().nodes
    assert [c.name for c in node.columns] == ["order_id", "customer_id", "name", "region", "active"]
    assert [c.type for c in node.columns] == ["BIGINT", "BIGINT", "STRING", "STRING", "BOOLEAN"]


INTERMEDIATE = re.compile(r"([a-z_]+)__[0-9a-f]{8}")


# --- stars and chains ------------------------------------------------------------------------------------------------


def test_joins_on_columns_of_the_left_table_fuse_into_one_star() -> None:
    shop = Shop()
    star(shop)
    [node] = shop.compile().nodes
    assert [(edge.name, edge.foreign_key, edge.kind) for edge in node.edges] == [
        ("customers", ("l.`customer_id`",), JoinKind.INNER),
        ("products", ("CAST(l.`product_id` AS BIGINT)",), JoinKind.LEFT),
    ]
    assert node.left.where == "t.`total` > 0"
    assert node.where == "r1.`region` <> 'x' OR l.`note` = 'keep'"
    assert node.published


def test_a_renamed_or_computed_left_column_still_fuses() -> None:
    shop = Shop()
    first = shop.orders.join(shop.customers, "customer_id", ["left.order_id AS id", "left.product_id + 1 AS p", "right.name"])
    first.join(shop.products, "p * 2", ["id", "title"]).named("out")
    [node] = shop.compile().nodes
    assert node.edges[1].foreign_key == ("CAST((l.`product_id` + 1) * 2 AS BIGINT)",)
    assert node.key == ("id",)


def test_a_foreign_key_from_the_right_side_starts_a_chain_with_a_safe_name() -> None:
    shop = Shop()
    chain(shop)
    first, last = shop.compile().nodes
    assert (bool(INTERMEDIATE.fullmatch(first.name)), first.published, last.name, last.published) == (True, False, "chain", True)
    assert (last.left.table, last.edges[0].foreign_key) == (first.name, ("l.`m`",))
    assert first.used == ("m",)
    assert last.used == ()


def test_a_foreign_key_that_is_cast_has_the_type_of_the_cast_whatever_is_cast() -> None:
    shop = Shop()
    shop.orders.join(shop.customers, "CAST(factorial(order_id) AS BIGINT)", ["left.*", "right.name AS customer"]).named("out")
    ((edge,),) = [node.edges for node in shop.compile().nodes]
    assert edge.foreign_key == ("CAST(factorial(l.`order_id`) AS BIGINT)",)


def test_a_foreign_key_that_mixes_both_sides_starts_a_chain() -> None:
    shop = Shop()
    joined = shop.orders.join(shop.customers, "customer_id", ["left.*", "region"])
    joined.join(shop.rates, ["region", "product_id"], ["order_id", "rate"]).named("out")
    assert [INTERMEDIATE.sub("of \\1", node.name) for node in shop.compile().nodes] == ["of out", "out"]


def test_a_join_on_a_join_makes_the_right_side_a_node() -> None:
    shop = Shop()
    made = shop.products.join(shop.makers, "maker_id", ["product_id", "maker"])
    shop.orders.join(made.filter("maker <> 'x'"), "product_id", ["order_id", "maker"]).named("out")
    first, last = shop.compile().nodes
    assert (bool(INTERMEDIATE.fullmatch(first.name)), first.where) == (True, "r1.`maker` <> 'x'")
    assert (last.edges[0].name, last.edges[0].right.table) == (first.name, first.name)


def test_an_intermediate_that_two_outputs_read_is_one_node_with_the_name_of_the_first() -> None:
    shop = Shop()
    made = shop.products.join(shop.makers, "maker_id", ["product_id", "maker"])
    shop.orders.join(made, "product_id", ["order_id", "maker"]).named("first")
    shop.orders.left_join(made, "product_id", ["order_id", "maker"]).named("second")
    assert [INTERMEDIATE.sub("of \\1", node.name) for node in shop.compile().nodes] == ["of first", "first", "second"]


def intermediates(shop: Shop) -> dict[str, str]:
    """Left table of every intermediate node -> its name."""
    return {node.left.table: node.name for node in shop.compile().nodes if not node.published}


def test_fault_a8_an_intermediate_join_that_is_put_before_another_takes_over_none_of_its_tables() -> None:
    shop = Shop()
    made = shop.products.join(shop.makers, "maker_id", ["product_id", "maker"])
    shop.orders.left_join(made, "product_id", ["order_id", "maker"]).named("out")
    before = intermediates(shop)
    shop = Shop()
    parents = shop.makers.left_join(shop.makers, "parent_id", ["left.maker_id", "right.maker AS parent"])
    made = shop.products.join(shop.makers, "maker_id", ["product_id", "maker"])
    first = shop.orders.left_join(parents, "product_id", ["left.*", "parent"])
    first.left_join(made, "product_id", ["order_id", "parent", "maker"]).named("out")
    after = intermediates(shop)
    assert after["products"] == before["products"]
    assert after["makers"] not in before.values()


def test_fault_a8_an_intermediate_join_of_other_columns_gets_tables_of_its_own_and_one_with_another_filter_keeps_them() -> None:
    def named(items: list[str], condition: str) -> str:
        shop = Shop()
        made = shop.products.left_join(shop.makers, "maker_id", items).filter(condition)
        shop.orders.join(made, "product_id", ["order_id", "m"]).named("out")
        return intermediates(shop)["products"]

    first = named(["product_id", "maker AS m"], "m <> 'x'")
    assert named(["product_id", "maker AS m"], "m <> 'y'") == first
    assert named(["product_id", "length(maker) AS m"], "m > 3") != first
    assert named(["product_id", "maker AS m", "title"], "m <> 'x'") != first


def test_fault_a8_two_intermediate_joins_of_the_same_columns_are_two_nodes() -> None:
    shop = Shop()
    made = [shop.products.join(shop.makers, "maker_id", ["product_id", "maker"]).filter(f"maker {op} 'x'") for op in ("<", ">")]
    first = shop.orders.left_join(made[0], "product_id", ["left.*", "maker AS one"])
    first.left_join(made[1], "product_id", ["order_id", "one", "maker AS two"]).named("out")
    names = [node.name for node in shop.compile().nodes]
    assert len(set(names)) == 3


def test_fault_look_a_selected_constant_text_becomes_no_date_further_down() -> None:
    shop = Shop()
    made = shop.orders.select(["order_id", "concat('to', 'day') AS word"]).filter("CAST(word AS DATE) > DATE '2024-01-01'")
    made.named("out")
    with pytest.raises(TopologyError, match=r"FORBIDDEN_FUNCTION .*the present time"):
        shop.compile()


# --- filters protect what comes after them ---------------------------------------------------------------------------


def test_fault_a10_a_foreign_key_after_a_filter_is_null_where_the_filter_leaves_the_row_out() -> None:
    shop = Shop()
    first = shop.orders.join(shop.customers, "customer_id", ["left.*", "name"]).filter("note RLIKE '^[0-9]+$'")
    first.left_join(shop.products, "CAST(note AS BIGINT)", ["order_id", "title"]).named("out")
    [node] = shop.compile().nodes
    assert node.edges[1].foreign_key == ("CASE WHEN l.`note` RLIKE '^[0-9]+$' THEN CAST(l.`note` AS BIGINT) END",)


def test_fault_a10_a_filter_of_right_columns_that_protects_a_foreign_key_starts_a_chain_and_a_column_needs_no_protection() -> None:
    def nodes(foreign_key: str) -> int:
        shop = Shop()
        first = shop.orders.join(shop.customers, "customer_id", ["left.*", "region"]).filter("region = 'numbers'")
        first.left_join(shop.products, foreign_key, ["order_id", "title"]).named("out")
        return len(shop.compile().nodes)

    assert (nodes("CAST(note AS BIGINT)"), nodes("product_id")) == (2, 1)


def test_fault_a10_a_filter_that_another_relation_protects_stays_with_it() -> None:
    shop = Shop()
    first = shop.orders.join(shop.customers, "customer_id", ["left.*", "region"]).filter("region = 'numbers'")
    first.filter("CAST(note AS BIGINT) > 5").filter("region <> 'x'").select(["order_id"]).named("out")
    [node] = shop.compile().nodes
    protected = "coalesce(CASE WHEN r1.`region` = 'numbers' THEN CAST(l.`note` AS BIGINT) > 5 END, false)"
    assert node.where == f"coalesce(CASE WHEN {protected} THEN r1.`region` <> 'x' END, false)"


def test_nothing_fuses_across_a_name() -> None:
    shop = Shop()
    named = shop.orders.join(shop.customers, "customer_id", ["left.*", "name"], name="with_customer")
    named.join(shop.products, "product_id", ["order_id", "name", "title"]).named("with_product")
    first, last = shop.compile().nodes
    assert (first.name, first.published, len(last.edges), last.left.table) == ("with_customer", True, 1, "with_customer")
    assert first.used == ("product_id", "name")


def test_a_filter_on_a_named_relation_is_a_view_of_its_node() -> None:
    shop = Shop()
    shop.customers.filter("active").named("active").filter("region = 'x'").named("active_x")
    first, last = shop.compile().nodes
    assert (first.left.table, first.left.where) == ("customers", "t.`active`")
    assert (last.left.table, last.left.where, last.edges) == ("active", "t.`region` = 'x'", ())


def test_a_reference_may_come_before_what_it_names() -> None:
    shop = Shop()
    shop.orders.join(shop.topology.relation("vip"), "customer_id", ["order_id", "name"]).named("vip_orders")
    shop.topology.relation("customers").filter("active").named("vip")
    assert [node.name for node in shop.compile().nodes] == ["vip", "vip_orders"]


def test_the_same_right_table_twice_gives_two_edges_with_their_own_names() -> None:
    node = everything().node("diamond")
    assert [(edge.name, edge.right.table, edge.foreign_key) for edge in node.edges] == [
        ("customers", "customers", ("l.`customer_id`",)),
        ("customers_2", "customers", ("l.`gift_for`",)),
    ]


def test_a_table_may_join_itself() -> None:
    node = everything().node("self")
    assert (node.left.table, node.left.where) == ("makers", None)
    assert (node.edges[0].right.table, node.edges[0].right.where) == ("makers", "t.`maker` <> 'Acme'")


def test_a_composite_key_takes_one_foreign_key_a_column() -> None:
    edge = everything().node("rated").edges[0]
    assert (edge.foreign_key, edge.right.key) == (("l.`region`", "2024"), ("region", "year"))


# --- tables ----------------------------------------------------------------------------------------------------------


def test_used_are_the_columns_that_any_node_reads_without_the_key_in_declared_order() -> None:
    plan = everything()
    assert {table.name: table.used for table in plan.tables} == {
        "orders": ("customer_id", "gift_for", "product_id", "total", "note"),
        "customers": ("name", "region", "active"),
        "products": ("title", "maker_id"),
        "makers": ("maker", "parent_id"),
        "rates": ("rate",),
    }
    shop = Shop()
    shop.orders.filter("note = 'x'").join(shop.customers.filter("active"), "customer_id", ["order_id", "name"]).named("out")
    used = {table.name: table.used for table in shop.compile().tables}
    assert used == {"orders": ("customer_id", "note"), "customers": ("name", "active"), "products": (), "makers": (), "rates": ()}


def test_sources_keep_their_options() -> None:
    plan = everything()
    assert plan.table("orders").source == DebeziumSource(
        "landing/orders/", topic="shop.public.orders", on_bad_record=OnBadRecord.QUARANTINE
    )
    assert plan.table("makers").source == SnapshotSource("landing/makers/")


# --- the plan as data ------------------------------------------------------------------------------------------------


def test_a_plan_survives_json() -> None:
    plan = everything()
    assert json_form.from_json(json_form.to_json(plan)) == plan


def test_every_node_comes_after_the_nodes_that_it_reads() -> None:
    plan = everything()
    for index, node in enumerate(plan.nodes):
        before = {table.name for table in plan.tables} | {n.name for n in plan.nodes[:index]}
        assert {node.left.table, *(edge.right.table for edge in node.edges)} <= before


def test_the_plan_does_not_depend_on_the_hash_seed() -> None:
    here = Path(__file__).parent
    code = "from plans import everything; from rejoin.plan.model import json_form as saved; print(saved.to_json(everything()))"
    path = os.pathsep.join((str(Path(rejoin.__file__).parents[1]), str(here)))
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert made == {json_form.to_json(everything())}


# --- fingerprints ----------------------------------------------------------------------------------------------------


def test_a_fingerprint_does_not_depend_on_sources_other_nodes_or_unread_columns() -> None:
    plan = everything()
    shop = Shop()
    star(shop)
    alone = shop.compile()
    assert fingerprint(plan, plan.node("star")) == fingerprint(alone, alone.node("star"))
    moved = replace(plan, tables=tuple(replace(table, source=SnapshotSource("elsewhere/")) for table in plan.tables))
    assert fingerprint(moved, moved.node("star")) == fingerprint(plan, plan.node("star"))
    wider = replace(plan, tables=tuple(replace(table, columns=table.columns[:-1]) for table in plan.tables if table.name == "customers"))
    assert fingerprint(replace(wider, tables=(*wider.tables, *plan.tables)), plan.node("star")) == fingerprint(plan, plan.node("star"))


def test_a_fingerprint_changes_with_the_definition_a_read_type_and_the_hash_version() -> None:
    plan = everything()
    node = plan.node("star")
    customers = plan.table("customers")
    retyped = replace(customers, columns=tuple(replace(c, type="BINARY") if c.name == "region" else c for c in customers.columns))
    others = tuple(table for table in plan.tables if table.name != "customers")
    variants = [
        fingerprint(plan, node),
        fingerprint(plan, replace(node, where=None)),
        fingerprint(plan, replace(node, edges=node.edges[:1])),
        fingerprint(replace(plan, tables=(retyped, *others)), node),
        fingerprint(plan, node, hash_version=HASH_VERSION + 1),
    ]
    assert len(set(variants)) == len(variants)


def test_no_two_nodes_have_the_same_fingerprint() -> None:
    plan = everything()
    assert len({fingerprint(plan, node) for node in plan.nodes}) == len(plan.nodes)

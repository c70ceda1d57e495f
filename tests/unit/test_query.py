"""A node's defining query, run by DuckDB over small tables, gives the rows that the declaration means."""

import re

import duckdb
import pytest
import sqlglot
from plans import Shop, chain, everything, star

from rejoin.plan.model.plan import Plan
from rejoin.plan.sql.defining_query import node_query, topology_query

DATA = """
CREATE TABLE orders (order_id BIGINT, customer_id BIGINT, gift_for BIGINT, product_id INT, total DECIMAL(10,2), note VARCHAR);
INSERT INTO orders VALUES
  (1, 10, 11,   100,  5.00, 'keep'),
  (2, 11, NULL, 101,  7.00, NULL),
  (3, 12, 10,   999,  1.00, 'keep'),  -- product 999 does not exist
  (4, 99, 10,   100,  2.00, 'keep'),  -- customer 99 does not exist
  (5, 10, 99,   NULL, 3.00, 'drop'),
  (6, 10, 10,   102,  0.00, 'keep');
CREATE TABLE customers (customer_id BIGINT, name VARCHAR, region VARCHAR, active BOOLEAN);
INSERT INTO customers VALUES (10, 'Ann', 'x', true), (11, 'Bob', 'y', false), (12, NULL, NULL, NULL);
CREATE TABLE products (product_id BIGINT, title VARCHAR, maker_id INT);
INSERT INTO products VALUES (100, 'Pen', 1), (101, 'Ink', 9), (102, NULL, NULL);
CREATE TABLE makers (maker_id INT, maker VARCHAR, parent_id INT);
INSERT INTO makers VALUES (1, 'Acme', NULL), (2, 'Bolt', 1), (3, 'Core', 2), (4, NULL, 4);
CREATE TABLE rates (region VARCHAR, year INT, rate DOUBLE);
INSERT INTO rates VALUES ('x', 2023, 0.5), ('x', 2024, 1.5), ('y', 2023, 2.5);
"""


def rows(plan: Plan, name: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute(DATA)
    [query] = sqlglot.transpile(topology_query(plan, plan.node(name)), read="spark", write="duckdb")
    return sorted(connection.execute(query).fetchall(), key=repr)


def out(shop: Shop) -> list[tuple[object, ...]]:
    return rows(shop.compile(), "out")


EXPECTED: dict[str, list[tuple[object, ...]]] = {
    "chain": [(1, "Acme"), (2, "none"), (4, "Acme"), (6, "none")],
    "right_chain": [(1, "Pen", "Acme"), (2, "Ink", None), (3, None, None), (4, "Pen", "Acme"), (5, None, None), (6, None, None)],
    "self": [(1, None), (2, None), (3, "Bolt"), (4, None)],
    "diamond": [(1, "Ann", "Bob"), (2, "Bob", None), (3, None, "Ann"), (5, "Ann", None), (6, "Ann", "Ann")],
    "rated": [(10, 1.5), (11, None), (12, None)],
    "active_customers": [(10, "ANN")],
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_query_of_an_output_gives_the_rows_that_the_declaration_means(name: str) -> None:
    assert rows(everything(), name) == EXPECTED[name]


def test_a_filter_between_two_joins_of_a_star_applies_to_the_joined_rows() -> None:
    shop = Shop()
    star(shop)
    found = [(row[0], row[-3], row[-2], row[-1]) for row in rows(shop.compile(), "star")]
    assert found == [(1, "Ann", "x", "Pen"), (2, "Bob", "y", "Ink"), (3, None, None, None)]


def test_a_filter_between_a_left_and_an_inner_join_gives_what_two_separate_nodes_give() -> None:
    results = []
    for apart in (False, True):
        shop = Shop()
        first = shop.orders.left_join(shop.customers, "customer_id", ["left.*", "name"]).filter("name IS NULL OR name = 'Ann'")
        first = first.named("between") if apart else first
        first.join(shop.products, "product_id", ["order_id", "name", "title"]).filter("title IS NOT NULL").named("out")
        plan = shop.compile()
        assert len(plan.nodes) == (2 if apart else 1)
        results.append(rows(plan, "out"))
    assert results[0] == results[1] == [(1, "Ann", "Pen"), (4, None, "Pen")]


def test_a_right_filter_in_a_left_join_keeps_the_left_row_and_a_right_default_is_not_given_to_it() -> None:
    shop = Shop()
    known = shop.customers.filter("active OR active IS NULL").select(["customer_id", "coalesce(name, '?') AS name"])
    shop.orders.left_join(known, "customer_id", ["order_id", "name"]).named("out")
    assert out(shop) == [(1, "Ann"), (2, None), (3, "?"), (4, None), (5, "Ann"), (6, "Ann")]


def test_a_filter_after_a_left_join_is_not_a_filter_of_the_right_side() -> None:
    shop = Shop()
    shop.orders.left_join(shop.customers, "customer_id", ["order_id", "active"]).filter("active IS NULL").named("out")
    assert out(shop) == [(3, None), (4, None)]


def test_a_computed_foreign_key_keeps_its_precedence() -> None:
    shop = Shop()
    first = shop.makers.join(shop.makers, "parent_id", ["left.maker_id", "left.parent_id + 1 AS next"])
    first.join(shop.makers, "next * 2 - 3", ["left.maker_id", "right.maker"]).named("out")
    assert out(shop) == [(2, "Acme"), (3, "Core")]


def test_a_node_query_reads_what_the_caller_names() -> None:
    shop = Shop()
    chain(shop)
    plan = shop.compile()
    query = node_query(plan, plan.node("chain"), lambda name: f"lake.shop.{name}")
    assert query == (
        "SELECT l.`order_id` AS `order_id`, coalesce(r1.`maker`, 'none') AS `maker`\n"
        f"FROM (SELECT t.`order_id` AS `order_id`, t.`m` AS `m` FROM lake.shop.{plan.nodes[0].name} AS t) AS l\n"
        "LEFT JOIN (SELECT t.`maker_id` AS `maker_id`, t.`maker` AS `maker` FROM lake.shop.makers AS t) AS r1"
        " ON (l.`m`) = r1.`maker_id`"
    )


def test_the_query_of_a_whole_topology_holds_only_the_nodes_that_it_needs() -> None:
    query = topology_query(everything(), everything().node("chain"), lambda name: f"VALUES_OF_{name}")
    assert re.match(r"WITH `chain__[0-9a-f]{8}` AS \(\n  SELECT", query)
    assert "right_chain" not in query
    assert "FROM VALUES_OF_makers AS t" in query

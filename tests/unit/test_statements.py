"""Every stage is a statement that can be looked at, and says where it runs."""

import duckdb
import pytest

from rejoin import Topology, debezium, snapshot
from rejoin.plan.compile import compile
from rejoin.plan.model import Plan
from rejoin.report.statements import HERE, statements


def plan(name: str) -> Plan:
    t = Topology("town")
    orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, total DECIMAL(10,2)", source=debezium("landing/orders"))
    customers = t.table("customers", key="id", schema="id STRING, name STRING", source=snapshot("landing/customers"))
    orders.left_join(customers, foreign_key="customer", select=["left.*", f"{name} AS name"]).named("enriched")
    return compile(t)


def test_every_step_has_its_statements_in_the_order_of_a_run() -> None:
    found = list(statements(plan("upper(right.name)")))
    assert list(dict.fromkeys(s.step for s in found)) == [
        "ingest.orders",
        "ingest.customers",
        "subscribe.enriched",
        "respond.enriched.customers",
        "resolve.enriched",
    ]
    assert {s.where for s in found} == {HERE}


def test_duckdb_parses_every_statement_that_it_is_said_to_run() -> None:
    for one in statements(plan("upper(right.name)")):
        with pytest.raises(duckdb.CatalogException, match=r"Table with name .* does not exist"):  # all but the inputs is known to it
            duckdb.sql(one.sql)


def test_what_is_not_portable_is_sparks_and_why_is_said() -> None:
    found = list(statements(plan("soundex(right.name)")))
    by_spark = [s for s in found if s.where != HERE]
    assert {s.step for s in by_spark} == {"subscribe.enriched", "respond.enriched.customers", "resolve.enriched"}
    assert all(s.where == "Spark: column name: soundex is not proven equal in DuckDB" for s in by_spark)
    assert any("named_struct" in s.sql for s in by_spark)
    assert not any("named_struct" in s.sql for s in found if s.where == HERE)

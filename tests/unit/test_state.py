"""The list of state tables: what a run writes, and nothing else, each once."""

from pathlib import Path

from rejoin import Topology, debezium, snapshot
from rejoin.lake.table_roles import Role, Versions, state_tables
from rejoin.plan.check.compile import compile


def test_every_table_of_a_plan_is_listed_once_with_its_role_its_key_and_how_it_folds(tmp_path: Path) -> None:
    shop = Topology("shop")
    orders = shop.table("orders", key=["shop", "no"], schema="shop INT, no BIGINT, customer STRING", source=debezium(str(tmp_path)))
    customers = shop.table("customers", key="id", schema="id STRING, name STRING", source=snapshot(str(tmp_path)))
    orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name"]).named("enriched")
    found = state_tables(compile(shop))
    assert list(found) == [
        *("orders", "orders__quarantine", "customers", "customers__quarantine"),
        *("enriched__subscriptions__customers", "enriched__responses__customers"),
        *("enriched__candidates", "enriched", "enriched__changes", "enriched__quarantine"),
    ]
    assert [t.role for t in found.values()] == [Role.SOURCE, Role.REFUSED] * 2 + [
        *(Role.SUBSCRIPTIONS, Role.RESPONSES, Role.CANDIDATES, Role.OUTPUT, Role.CHANGES, Role.HELD)
    ]
    assert {name: t.key for name, t in found.items() if t.key} == {
        "orders": ("shop", "no"),
        "customers": ("id",),
        "enriched__subscriptions__customers": ("fk_1", "pk_1", "pk_2"),
        "enriched": ("shop", "no"),
        "enriched__changes": ("_run", "shop", "no"),
        "enriched__quarantine": ("shop", "no"),
    }
    assert {name: t.versions for name, t in found.items() if t.versions} == {
        "orders": Versions(alive="true", kept_for_deletes="_before"),
        "customers": Versions(alive="_op <> 'D'", kept_for_deletes="_before"),
        "enriched__subscriptions__customers": Versions(alive="_op = 'S'", forgotten="_instruction"),
        "enriched__quarantine": Versions(alive="_op = 'Q'"),
    }

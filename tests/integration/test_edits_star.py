"""A star of two dimensions whose right columns are edited: later runs that change both dimensions at once stay right."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.conftest import Go, Sessions
from integration.shop import Row, output

from rejoin import crash
from rejoin.errors import Unexpected
from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Refresh, RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

FILE = """
from rejoin import Topology, debezium

t = Topology("star")
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, product BIGINT", source=debezium("orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING, city STRING, age BIGINT", source=debezium("customers"))
products = t.table("products", key="id", schema="id BIGINT, title STRING, price BIGINT", source=debezium("products"))
people = customers.select(["id", "name", "city", "age", "{age} AS years"])
first = orders.{kind}(people, "customer", select=["left.*"{customer}])
first.{kind}(products, "product", select=["left.*"{product}]).named("enriched")
"""
Columns = dict[str, str]


class Star:
    """Feeds below a folder, the state that they describe, and a topology whose right columns change."""

    def __init__(self, root: Path) -> None:
        self.root, self.lsn, self.batch = root, 0, 0
        self.tables: dict[str, dict[int, Row]] = {"orders": {}, "customers": {}, "products": {}}
        for table in self.tables:
            (root / table).mkdir()

    def edit(self, customer: Columns, product: Columns, *, age: str = "age", kind: str = "left_join") -> None:
        self.customer, self.product, self.text_age = customer, product, "CAST" in age
        texts = {n: "".join(f', "right.{c} AS {a}"' for a, c in cs.items()) for n, cs in (("customer", customer), ("product", product))}
        (self.root / "star.py").write_text(FILE.format(**texts, age=age, kind=kind))

    def land(self, **changes: dict[int, Row]) -> None:
        self.batch += 1
        for table, rows in changes.items():
            self.tables[table] |= rows
            (self.root / table / f"{self.batch}.jsonl").write_text("".join(self._event(k, r) for k, r in rows.items()))

    def both(self) -> None:
        """A customer and a product of other orders change in every column: each order gets one response, and its other right row is looked up."""
        n = self.batch + 100
        first, second = (1, 2) if self.batch % 2 else (2, 1)
        customer = {"id": first, "name": f"c{n}", "city": f"city {n}", "age": n}
        self.land(customers={first: customer}, products={second: {"id": second, "title": f"p{n}", "price": n * 10}})

    def expected(self) -> dict[object, Row]:
        made: dict[object, Row] = {}
        for key, order in self.tables["orders"].items():
            customer, product = (self.tables[f"{n}s"].get(order[n], {}) for n in ("customer", "product"))  # type: ignore[call-overload]
            years = customer.get("age")
            people = customer | {"years": str(years) if self.text_age and years is not None else years}
            rights = {a: people.get(c) for a, c in self.customer.items()} | {a: product.get(c) for a, c in self.product.items()}
            made[key] = order | rights
        return made

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "star.py")), lake_config(str(self.root / "lake")), str(self.root))

    def check(self) -> None:
        assert output(self.topology) == self.expected()

    def _event(self, key: int, row: Row) -> str:
        self.lsn += 1
        value = {"before": None, "after": row, "source": {"connector": "postgresql", "lsn": self.lsn}, "op": "u"}
        return json.dumps({"key": {"id": key}, "value": value, "headers": {}}) + "\n"


@pytest.fixture
def star(tmp_path: Path, go: Go) -> Star:
    made = Star(tmp_path)
    made.edit({"name": "name"}, {"title": "title"})
    made.land(orders={i: {"id": i, "customer": i % 3, "product": i % 3} for i in range(1, 7)})
    made.both()
    made.both()
    go(made.topology)
    return made


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(os.environ["REJOIN_ENGINE"], id="as set"),
        pytest.param("spark", id="by Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly]),
    ],
)
def test_fault_a2_right_columns_of_a_star_are_added_removed_and_replaced_and_later_runs_change_both_dimensions(
    engine: str, star: Star, go: Go
) -> None:
    assert os.environ["REJOIN_ENGINE"] == engine
    edits: list[Callable[[], None]] = [
        lambda: star.edit({"city": "city", "name": "name"}, {"title": "title"}),  # added before one that is there
        lambda: star.edit({"name": "name"}, {"price": "price", "title": "title"}),  # removed here, added there
        lambda: star.edit({"city": "city"}, {"price": "price"}),  # replaced
        lambda: star.edit({"name": "name", "years": "years"}, {"title": "title"}),
        lambda: star.edit({"name": "name", "aged": "years"}, {"title": "title"}, age="CAST(age AS STRING)"),  # another type, the same name
    ]
    for edit in edits:
        edit()
        star.both()
        go(star.topology)
        star.check()
        star.both()
        assert go(star.topology).rebuild == ()
        star.check()


def test_fault_a2_a_retry_by_the_same_owner_does_what_it_is_asked_for(
    star: Star, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(point: str) -> None:
        if point == "resolve.enriched:written":
            raise RuntimeError(point)

    star.both()
    with monkeypatch.context() as patched:
        patched.setattr(crash, "point", fails)
        with pytest.raises(Unexpected, match=r"RuntimeError in step resolve\.enriched"):
            run_topology(star.topology, lambda: sessions(star.topology), "me")
    failed = star.topology.ledger.open_run()
    assert failed is not None
    again = run_topology(star.topology, lambda: sessions(star.topology), "me", options=RunOptions(refresh=Refresh.FULL))
    assert star.topology.ledger.run(failed.number).state == "abandoned"
    assert star.topology.ledger.steps(again.number)["resolve.enriched"].detail["refresh"] == "full"
    star.check()

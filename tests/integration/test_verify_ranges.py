"""A comparison that is cut by ranges of keys finds what one of all rows finds: the same counts, with faults in every range."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from integration.by_hand import edit
from integration.conftest import Sessions
from limited import limited

from rejoin import Topology as Declared
from rejoin import debezium
from rejoin.lake import table_names
from rejoin.lake.config import lake_config
from rejoin.operate.verify.arrow_reader import ArrowReader
from rejoin.operate.verify.comparison import Difference
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Node
from rejoin.steps.run.topology import Topology
from rejoin.testing import Driver

pytestmark = pytest.mark.slow
ORDERS, PARTS, EACH = 200, 20, 10
"""Orders; groups of them; every such row has a fault, so that each of four ranges has several."""
CUT = {"joined", "noted", "late", "same", "parts", "sized"}
"""Outputs that are compared by ranges; the others are one range."""


def town() -> Declared:
    on = Declared("town")
    orders = on.table("orders", key="id", schema="id BIGINT, customer STRING, part BIGINT, note STRING", source=debezium("orders"))
    others = on.table("others", key="id", schema="id BIGINT, note STRING", source=debezium("others"))
    customers = on.table("customers", key="id", schema="id STRING, name STRING", source=debezium("customers"))
    joined = orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS name"]).named("joined")
    joined.join(customers, foreign_key="name", select=["left.id", "left.note", "right.name AS again"]).named("noted")
    orders.filter("note > 'n1'").named("late")
    orders.full_join(others, select=["left.id", "left.note", "right.note AS other"]).named("same")
    parts = orders.group_by("part").aggregate(n="count(*)", notes="collect(note ORDER BY id)").named("parts")
    orders.left_join(parts, foreign_key="part", select=["left.id", "right.n AS n"]).named("sized")
    orders.full_join(customers, foreign_key="customer", select=["left.id AS id", "right.id AS customer", "note"]).named("everybody")
    return on


def order(number: int) -> str:
    part = "NULL" if number % 9 == 0 else number % PARTS
    return f"{number} | {'NULL' if number % 10 == 3 else f'c{number % 13}'} | {part} | n{number}"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    with Driver(town()) as driver:
        driver.run(
            orders="id | customer | part | note\n" + "\n".join(map(order, range(ORDERS))),
            others="id | note\n" + "\n".join(f"{i} | o{i}" for i in range(0, 2 * ORDERS, 2)),
            customers="id | name\n" + "\n".join(f"c{i} | {f'c{i + 1}' if i % 2 else 'Ann'}" for i in range(12)),
        )
        driver.run(orders="\n".join(order(i).replace("n", "m") if i % 3 else f"- {i}" for i in range(0, ORDERS, 4)))
        yield driver


class Compared:
    """What comparisons find, and how many parts each output had."""

    def __init__(self, driver: Driver, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topology = Topology(compile(town()), lake_config(str(driver.root / "lake")), str(driver.root))
        self._sessions, self._patch, self.parts = sessions, monkeypatch, dict[str, int]()
        original = ArrowReader.parts

        def parts(reader: ArrowReader, node: Node) -> Sequence[PlainReader]:
            found = original(reader, node)
            self.parts[node.name] = len(found)
            return found

        monkeypatch.setattr(ArrowReader, "parts", parts)

    def whole(self, *, fast: bool = False) -> dict[str, Difference]:
        """Without ranges."""
        return self._found(fast=fast)

    def by_ranges(self, side_by_side: int, *, fast: bool = False) -> dict[str, Difference]:
        with self._patch.context() as many:
            limited(many, small_rows=30, range_rows=50, fewest_range_rows=10)
            many.setattr("pyarrow.cpu_count", lambda: 2 * side_by_side)
            return self._found(fast=fast)

    def _found(self, *, fast: bool) -> dict[str, Difference]:
        self.parts.clear()
        return {d.node: d for d in verify(self.topology, lambda: self._sessions(self.topology), fast=fast)}


@pytest.fixture
def compared(driver: Driver, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Compared:
    return Compared(driver, sessions, monkeypatch)


@pytest.mark.parametrize(("side_by_side", "fast"), [(1, False), (3, True)])
def test_without_faults_no_range_has_a_difference(compared: Compared, side_by_side: int, fast: bool) -> None:
    found = compared.by_ranges(side_by_side, fast=fast)
    assert {name for name, parts in compared.parts.items() if parts >= 4} == CUT
    assert {name: d.total for name, d in found.items() if d.total} == {}
    assert found == compared.whole(fast=fast)
    assert set(compared.parts.values()) == {1}


def test_faults_in_every_range_are_counted_as_without_ranges(compared: Compared) -> None:
    """Rows that only the output has, rows that only the source has, and rows with another value; the group whose key is null among them."""

    def damaged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [row for at, row in enumerate(rows) if at % EACH != 1]
        value = next(name for name in ("note", "again", "n") if name in rows[0])
        return [{**row, value: None} if at % EACH == 2 or ("part" in row and row["part"] is None) else row for at, row in enumerate(kept)]

    for name in CUT:
        edit(compared.topology, name, damaged)
    subscriptions = table_names.subscriptions(compared.topology.plan.node("joined"), compared.topology.plan.node("joined").edges[0])
    edit(compared.topology, subscriptions, lambda rows: [row for at, row in enumerate(rows) if at % EACH])
    edit(compared.topology, "orders", lambda rows: [row for row in rows if row["id"] % EACH != 5])
    whole = compared.whole()
    assert all(whole[name].missing and whole[name].different for name in CUT)
    assert all(whole[name].extra for name in CUT - {"parts", "same"})
    assert whole["joined"].subscriptions > ORDERS // EACH
    assert compared.by_ranges(3) == whole
    assert {name for name, parts in compared.parts.items() if parts >= 4} == CUT
    assert compared.by_ranges(2, fast=True) == compared.whole(fast=True)

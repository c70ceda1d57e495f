"""Nothing bad gets out: expectations stop a run, warn, or hold rows back; held-back rows come again when they are fixed (P8, I1, I7)."""

from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Sessions
from integration.shop import Row, event, folded, output, rows

from rejoin.conduct import Topology, run_topology
from rejoin.lake import names
from rejoin.lake.config import lake_config
from rejoin.lake.ledger import Run
from rejoin.load import load
from rejoin.plan.model import Fuse, Refresh
from rejoin.verify import verify

pytestmark = pytest.mark.slow

FILE = """
from rejoin import *

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, qty BIGINT, note STRING", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("landing/customers"))
enriched = orders.left_join(customers, foreign_key="customer", select=["left.id", "qty", "note", "right.name AS name"]).named("enriched")
report = enriched.filter("qty < 1000").select(["id", "upper(name) AS shouted"]).named("report")
{expect}
"""


class Shop:
    """Orders of customers, both as change events; a test lands rows, runs, and looks."""

    def __init__(self, root: Path, sessions: Sessions, expect: str) -> None:
        self.root, self.sessions, self.lsn = root, sessions, 0
        for table in ("orders", "customers"):
            (root / "landing" / table).mkdir(parents=True)
        self.expect(expect)

    def expect(self, text: str) -> None:
        (self.root / "t.py").write_text(FILE.replace("{expect}", text))

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake")), str(self.root))

    def land(self, table: str, *found: Row) -> None:
        """Rows of one run; a row of only ``id`` is a delete."""
        lines = []
        for row in found:
            self.lsn += 1
            lines.append(event(self.lsn, row["id"], row if len(row) > 1 else None))  # type: ignore[arg-type]
        (self.root / "landing" / table / f"{self.lsn:08}.jsonl").write_text("".join(lines))

    def order(self, key: int, customer: int | None = 1, qty: int | None = 1, note: str | None = "n") -> Row:
        return {"id": key, "customer": customer, "qty": qty, "note": note}

    def run(self, **how: Any) -> Run:
        topology = self.topology
        return run_topology(topology, lambda: self.sessions(topology), f"test {len(topology.ledger.runs())}", **how)

    def names(self) -> dict[object, object]:
        return {k: r["name"] for k, r in output(self.topology).items()}

    def held(self, name: str = "enriched") -> set[object]:
        """Keys that the quarantine table says are held back."""
        if self.topology.refs.table(names.quarantine(name)) is None:
            return set()
        newest = {r["id"]: r for r in sorted(rows(self.topology, names.quarantine(name)), key=lambda r: int(str(r["_run"])))}
        return {k for k, r in newest.items() if r["_op"] == "Q"}

    def check(self, held: set[int]) -> None:
        """Exactly these keys are held back, all else is what the SQL says, and the changes folded give the output."""
        assert self.held() == held
        for fast in (False, True):
            assert [(d.node, d.total) for d in verify(self.topology, self.sessions(self.topology), fast=fast) if d.total] == []
        assert folded(self.topology) == output(self.topology)


HELD = 'enriched.expect(condition("name <> \'bad\'"), severity="quarantine")'


@pytest.fixture
def shop(tmp_path: Path, sessions: Sessions) -> Shop:
    """Three orders of customer 1 (Ann) and 2 (Bob), and what holds the name "bad" back."""
    made = Shop(tmp_path / "shop", sessions, HELD)
    made.land("customers", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"})
    made.land("orders", made.order(1, 1), made.order(2, 1), made.order(3, 2))
    made.run()
    return made


def test_a_held_back_row_stays_as_it_was_published_until_its_right_row_is_fixed(shop: Shop) -> None:
    shop.land("customers", {"id": 1, "name": "bad"})
    shop.run()
    assert shop.names() == {1: "Ann", 2: "Ann", 3: "Bob"}
    shop.check({1, 2})
    shop.run()  # nothing new: nothing moves
    shop.check({1, 2})
    shop.land("customers", {"id": 1, "name": "Eve"})
    shop.run()
    assert shop.names() == {1: "Eve", 2: "Eve", 3: "Bob"}
    shop.check(set())


def test_a_left_change_of_a_held_back_key_leads_to_the_right_row(shop: Shop) -> None:
    shop.land("customers", {"id": 1, "name": "bad"})
    shop.run()
    shop.land("orders", shop.order(1, 2), shop.order(2, 1, note="still bad"))
    shop.run()
    assert shop.names() == {1: "Bob", 2: "Ann", 3: "Bob"}
    shop.check({2})
    shop.land("orders", {"id": 2})
    shop.run()
    assert shop.names() == {1: "Bob", 3: "Bob"}
    shop.check(set())


def test_a_row_that_becomes_again_what_is_published_is_released_without_a_change(shop: Shop) -> None:
    shop.land("customers", {"id": 1, "name": "bad"})
    shop.run()
    shop.land("customers", {"id": 1, "name": "Ann"})
    done = shop.run()
    assert shop.topology.ledger.steps(done.number)["validate.enriched"].counts["changes"] == 0
    shop.check(set())


def test_a_new_key_that_fails_is_not_published_at_all(shop: Shop) -> None:
    shop.land("customers", {"id": 3, "name": "bad"})
    shop.land("orders", shop.order(9, 3))
    shop.run()
    assert 9 not in shop.names()
    shop.check({9})
    shop.land("orders", {"id": 9})
    shop.run()
    shop.check(set())


def test_relaxing_brings_rows_back_as_they_are_now_and_tightening_holds_only_what_changes(shop: Shop) -> None:
    shop.land("customers", {"id": 1, "name": "bad"})
    shop.run()
    shop.expect("")
    shop.run()
    assert shop.names() == {1: "bad", 2: "bad", 3: "Bob"}
    shop.check(set())
    shop.expect(HELD)
    shop.run()
    shop.check(set())
    shop.land("orders", shop.order(1, 1, note="changed"))
    shop.run()
    assert output(shop.topology)[1]["note"] == "n"
    shop.check({1})


@pytest.mark.parametrize("how", [{"refresh": Refresh.FULL}, {"fuse": Fuse.RECOMPUTE}], ids=["full", "recompute"])
def test_recomputing_holds_the_same_rows_back(shop: Shop, how: dict[str, Any]) -> None:
    shop.land("customers", {"id": 1, "name": "bad"})
    shop.run()
    shop.land("orders", {"id": 2}, shop.order(4, 1))
    shop.run(**how)
    assert shop.names() == {1: "Ann", 3: "Bob"}
    shop.check({1, 4})
    shop.land("customers", {"id": 1, "name": "Eve"})
    shop.run(**how)
    assert shop.names() == {1: "Eve", 3: "Bob", 4: "Eve"}
    shop.check(set())

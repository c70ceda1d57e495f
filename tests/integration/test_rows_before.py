"""The rows that an output had before a run are made once more, not read, and come to the same: whatever changes, and whatever was stored."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from feeds import changes_of
from integration.conftest import Sessions
from limited import limited
from sparkless import no_spark

from rejoin.lake.config import lake_config
from rejoin.lake.read.reader import Reader
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow
FILE = """
from rejoin import Topology, computable, debezium

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, region STRING, paid INT, note STRING", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id STRING, name STRING, secret STRING", source=debezium("landing/customers"))
regions = t.table("regions", key="id", schema="id STRING, name STRING", source=debezium("landing/regions"))
known = customers.filter("{known}")
first = orders.left_join(known, foreign_key="customer", select=["left.*", "right.name AS customer_name"])
second = first.{join}(regions, foreign_key="region", select=["left.*", "right.name AS region_name", "100 / left.paid AS share"])
second.named("enriched"){options}
orders.left_join(customers, foreign_key="customer", select=["left.id", "right.secret AS secret"]).named("others")
"""
ORDERS, CUSTOMERS, REGIONS = 300, 20, 5
MANY = 10**9
Row = dict[str, Any]


@dataclass
class Shop:
    """Orders of customers in regions. ``looked_up``: how many keys the output was asked for, whole rows and only hashes."""

    root: Path
    join: str = "left_join"
    options: str = ""
    looked_up: dict[str, int] = field(default_factory=dict)
    first_notes: list[str] = field(default_factory=list)
    lsn: int = 0

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        self.define("name <> 'hidden'")

    def define(self, known: str) -> None:
        (self.root / "t.py").write_text(FILE.format(join=self.join, options=self.options, known=known))

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake")), str(self.root))

    def land(self, table: str, rows: dict[Any, Row | None]) -> None:
        lines = []
        for key, after in rows.items():
            self.lsn += 1
            source = {"connector": "postgresql", "lsn": self.lsn, "snapshot": "false"}
            value = {"op": "d" if after is None else "u", "source": source, "after": None if after is None else {"id": key, **after}}
            lines.append(json.dumps({"key": {"id": key}, "value": value}))
        folder = self.root / "landing" / table
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.lsn:08}.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def run(self, read_values: int, sessions: Sessions | None = None) -> None:
        """A run that reads so many values of the output, and makes the rows of more."""
        self.looked_up = {"rows": 0, "hashes": 0}
        with pytest.MonkeyPatch.context() as patch:
            limited(patch, read_values=read_values)
            for name, what in (("lookup", "rows"), ("hashes", "hashes")):
                patch.setattr(Reader, name, self._counting(getattr(Reader, name), what))
            topology = self.topology
            run_topology(topology, no_spark if sessions is None else lambda: sessions(topology), f"test {self.lsn}")

    def _counting(self, asked: Any, what: str) -> Any:
        def counted(reader: Reader, name: str, keys: Any, **others: Any) -> Any:
            if name == "enriched":
                self.looked_up[what] += len(keys.rows.here())
            return asked(reader, name, keys, **others)

        return counted

    def changes(self) -> list[tuple[Any, ...]]:
        """All changes so far, with hashes."""
        found = changes_of(self.topology, "enriched")
        return sorted((r["_run"], r["id"], r["_op"], str(r["_before"]), str(r["_after"])) for r in found)

    def rows(self) -> list[str]:
        topology = self.topology
        snapshot = topology.ledger.states(topology.ledger.head())["enriched"]
        return sorted(map(str, topology.refs.require("enriched", snapshot).scan(snapshot_id=snapshot).to_arrow().to_pylist()))


def order(rng: random.Random, note: str) -> Row:
    """One of ten has no customer, some a customer or a region that there is none of."""
    customer = None if rng.random() < 0.1 else f"c{rng.randrange(CUSTOMERS + 3)}"
    return {
        "customer": customer,
        "region": f"r{rng.randrange(REGIONS + 1)}",
        "paid": rng.randrange(1, 100),
        "note": rng.choice(["", note, "ä" * 300]),
    }


def first_rows(shop: Shop, rng: random.Random) -> None:
    orders = {i: order(rng, "first") for i in range(ORDERS)}
    shop.first_notes = [row["note"] for row in orders.values()]
    shop.land("orders", orders)
    shop.land("customers", {f"c{i}": {"name": f"name {i}", "secret": "s"} for i in range(CUSTOMERS)})
    shop.land("regions", {f"r{i}": {"name": f"region {i}"} for i in range(REGIONS)})


def random_change(shop: Shop, rng: random.Random, number: int) -> None:
    """Rows of one table or several are changed, added, deleted, and come back."""
    tables = rng.sample(["orders", "customers", "regions"], rng.randrange(1, 4))
    if "orders" in tables:
        keys = rng.sample(range(ORDERS + 40), 40)
        shop.land("orders", {k: None if rng.random() < 0.2 else order(rng, f"note {number}") for k in keys})
    if "customers" in tables:
        names = [f"name {number}", "hidden", None]
        made = {f"c{k}": {"name": rng.choice(names), "secret": f"s {number}"} for k in rng.sample(range(CUSTOMERS + 3), 4)}
        shop.land("customers", {k: None if rng.random() < 0.3 else row for k, row in made.items()})
    if "regions" in tables:
        shop.land("regions", {f"r{rng.randrange(REGIONS + 1)}": None if rng.random() < 0.4 else {"name": f"region {number}"}})


@pytest.mark.parametrize("join", ["left_join", pytest.param("join", marks=pytest.mark.nightly)])
def test_runs_that_make_the_rows_before_and_runs_that_read_them_write_the_same(
    join: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    seed = pytestconfig.option.hypothesis_seed
    made, read = (Shop(tmp_path / name, join) for name in ("made", "read"))
    hashes = 0
    for shop, read_values in ((made, 0), (read, MANY)):
        rng = random.Random(f"{seed} {join}")
        first_rows(shop, rng)
        shop.run(read_values)
        for number in range(8):
            random_change(shop, rng, number)
            shop.run(read_values)
            hashes += shop.looked_up["hashes"]
            assert not (read_values and shop.looked_up["hashes"]), f"seed {seed}"
    assert hashes > 0, f"seed {seed}"
    assert made.changes() == read.changes(), f"seed {seed}"
    assert made.rows() == read.rows(), f"seed {seed}"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "shop")
    first_rows(made, random.Random(1))
    made.run(MANY)
    return made


def before(shop: Shop, key: int) -> Row:
    """What the last change of an order says that there was."""
    found = max((c for c in changes_of(shop.topology, "enriched") if c["id"] == key), key=lambda c: c["_run"])
    return dict(found["_before"])


def test_rows_that_were_made_of_what_the_run_knows_are_not_read(shop: Shop) -> None:
    shop.land("orders", {k: order(random.Random(k), "second") for k in range(50)})
    shop.land("customers", {"c1": {"name": "another", "secret": "s"}})
    shop.run(0)
    assert shop.looked_up["hashes"] >= 50
    assert shop.looked_up["rows"] == 0


def test_a_row_that_was_left_as_it_was_when_its_right_row_changed_is_read(shop: Shop) -> None:
    """Only the other output has the column that changed, so it still has the hash of the earlier right row."""
    shop.land(
        "orders",
        {7: {"customer": "c1", "region": "r1", "paid": 1, "note": "a"}, 8: {"customer": "c2", "region": "r1", "paid": 1, "note": "b"}},
    )
    shop.run(MANY)
    shop.land("customers", {"c1": {"name": "name 1", "secret": "another"}})
    shop.run(MANY)
    shop.land(
        "orders",
        {7: {"customer": "c3", "region": "r1", "paid": 2, "note": "c"}, 8: {"customer": "c3", "region": "r1", "paid": 2, "note": "d"}},
    )
    shop.run(0)
    assert shop.looked_up == {"rows": 1, "hashes": 2}
    assert before(shop, 7)["customer_name"] == "name 1"
    assert before(shop, 7)["note"] == "a"
    assert before(shop, 8)["note"] == "b"


def test_rows_that_another_definition_has_made_are_read(shop: Shop) -> None:
    """A definition that makes the same of most rows leaves them as they are, with the hash of the one before."""
    shop.define("name <> 'veiled'")
    shop.run(0)
    shop.land("orders", {k: {"customer": None, "region": "r1", "paid": 1, "note": "third"} for k in range(20)})
    shop.run(0)
    assert shop.looked_up == {"rows": 20, "hashes": 20}
    assert [before(shop, k)["note"] for k in range(20)] == shop.first_notes[:20]


def test_a_row_before_that_has_no_value_does_not_stop_the_run(tmp_path: Path, sessions: Sessions) -> None:
    """It was held back, so the output has an earlier one."""
    shop = Shop(tmp_path / "shop", options=".expect(computable(), severity='quarantine')")
    first_rows(shop, random.Random(1))
    shop.run(0)
    shop.land(
        "orders",
        {5: {"customer": "c1", "region": "r1", "paid": 0, "note": "a"}, 6: {"customer": "c1", "region": "r1", "paid": 1, "note": "b"}},
    )
    shop.run(0, sessions)
    shop.land(
        "orders",
        {5: {"customer": "c1", "region": "r1", "paid": 4, "note": "c"}, 6: {"customer": "c2", "region": "r1", "paid": 1, "note": "d"}},
    )
    shop.run(0, sessions)
    assert before(shop, 6)["note"] == "b"
    ends = max((c for c in changes_of(shop.topology, "enriched") if c["id"] == 5), key=lambda c: c["_run"])
    assert (ends["_op"], ends["_before"]["note"], ends["_after"]["share"]) == ("U", shop.first_notes[5], 25.0)

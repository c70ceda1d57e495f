"""Rows with equal hashes are equal in what was hashed, whatever edits have changed which columns that is.

Issue 35, A1: an edit of another output changes what is hashed of a source. A row from before it and another one from after it must not have one hash,
and a row of an output that is held back must not be taken for one that was made of today's rows.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from feeds import changes_of
from limited import limited
from sparkless import no_spark

from rejoin.lake.config import lake_config
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow
TABLES = """
from rejoin import Topology, condition, debezium, records

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, prio INT, state INT, kind INT", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id STRING, name STRING", source=debezium("landing/customers"))
"""
CHECKED = """
enriched = orders.left_join(customers, foreign_key="customer", select=["left.id", "left.state", "right.name AS name"])
enriched.named("enriched").expect(condition("state = 0"), severity="quarantine")
"""
Row = dict[str, Any]
READS, MAKES = 10**9, 0
"""``read_values``: rows before a run are read from the output, or made once more."""


class Shop:
    """Orders of customers; which columns of an order are hashed depends on what the topology's outputs read."""

    def __init__(self, root: Path) -> None:
        self.root, self.lsn = root, 0

    def define(self, *outputs: str) -> None:
        (self.root / "t.py").write_text(TABLES + "".join(outputs))

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake")), str(self.root))

    def land(self, table: str, key: Any, **after: Any) -> None:
        self.lsn += 1
        value = {"op": "u", "source": {"connector": "postgresql", "lsn": self.lsn, "snapshot": "false"}, "after": {"id": key, **after}}
        folder = self.root / "landing" / table
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.lsn:08}.jsonl").write_text(json.dumps({"key": {"id": key}, "value": value}) + "\n")

    def run(self, read_values: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            limited(patch, read_values=read_values)
            run_topology(self.topology, no_spark, f"test {self.lsn}")

    def rows(self, name: str = "enriched") -> list[Row]:
        return self.stored(name).select(["id", "state", "name"]).to_pylist()

    def held(self) -> list[int]:
        """The keys that are held back."""
        found = sorted(self.stored("enriched__quarantine").to_pylist(), key=lambda row: row["_run"])
        newest = {row["id"]: row["_op"] for row in found}
        return [key for key, op in newest.items() if op == "Q"]

    def stored(self, name: str) -> Any:
        topology = self.topology
        snapshot = topology.ledger.states(topology.ledger.head())[name]
        return topology.refs.require(name, snapshot).scan(snapshot_id=snapshot).to_arrow()

    def changes(self) -> list[tuple[int, str, int | None]]:
        """Run, operation, and the state after, of all changes of the output."""
        found = changes_of(self.topology, "enriched")
        return sorted((c["_run"], c["_op"], c["_after"] and c["_after"]["state"]) for c in found)


def other(column: str) -> str:
    """Another output, which reads one more column of orders."""
    return f'orders.select(["id", "{column}"]).named("others")\n'


@pytest.fixture(params=[READS, MAKES], ids=["rows before are read", "rows before are made once more"])
def read_values(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_an_edit_of_another_output_does_not_let_a_row_go_that_still_fails(tmp_path: Path, read_values: int) -> None:
    shop = Shop(tmp_path)
    shop.define(CHECKED, other("kind"))
    shop.land("customers", "c", name="Ann")
    shop.land("orders", 1, customer="c", prio=9, state=0, kind=1)
    shop.run(read_values)
    shop.define(CHECKED, other("prio"))
    shop.land("orders", 1, customer="c", prio=0, state=1, kind=5)  # its hashed values, in their order, are what they were
    shop.run(read_values)
    assert shop.rows() == [{"id": 1, "state": 0, "name": "Ann"}]
    shop.land("orders", 1, customer="c", prio=2, state=1, kind=5)  # of this the output has nothing
    shop.run(read_values)
    assert shop.held() == [1]
    assert shop.rows() == [{"id": 1, "state": 0, "name": "Ann"}]
    assert shop.changes() == [(1, "I", 0)]
    shop.land("orders", 1, customer="c", prio=2, state=0, kind=5)
    shop.land("customers", "c", name="Anne")
    shop.run(read_values)
    assert shop.held() == []
    assert shop.rows() == [{"id": 1, "state": 0, "name": "Anne"}]
    assert shop.changes() == [(1, "I", 0), (4, "U", 0)]


def test_a_row_that_changed_while_its_output_was_away_does_not_go_when_it_fails(tmp_path: Path, read_values: int) -> None:
    """While the output is away nothing hashes the state, so the row that comes to its end there has the hash that it had before."""
    shop = Shop(tmp_path)
    shop.define(other("prio"))
    shop.land("customers", "c", name="Ann")
    shop.land("orders", 1, customer="c", prio=9, state=0, kind=1)
    shop.run(read_values)
    shop.define(CHECKED, other("prio"))
    shop.run(read_values)
    shop.define(other("prio"))
    shop.land("orders", 1, customer="c", prio=9, state=1, kind=1)
    shop.run(read_values)
    shop.define(CHECKED, other("prio"))
    shop.run(read_values)
    assert shop.held() == [1]
    shop.land("orders", 1, customer="c", prio=2, state=1, kind=1)
    shop.run(read_values)
    assert shop.held() == [1]
    assert shop.rows() == [{"id": 1, "state": 0, "name": "Ann"}]


def test_a_lake_whose_rows_were_hashed_without_names_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run after the upgrade makes every output anew, but for one that keeps what it saw."""
    shop = Shop(tmp_path)
    streams = """
seen = t.stream("seen", schema="customer STRING, at TIMESTAMP", event_time="at", source=records("landing/seen"))
seen.left_join(customers, foreign_key="customer", as_of="arrival", select=["left.*", "right.name AS name"]).named("arrived")
"""
    (tmp_path / "landing" / "seen").mkdir(parents=True)
    (tmp_path / "landing" / "seen" / "1.csv").write_text("customer,at\nc,2026-01-01T00:00:00Z\n")
    with monkeypatch.context() as before:
        before.setattr("rejoin.steps.ingest.statements.columns_print", lambda columns: "")
        before.setattr(fingerprint, "__defaults__", (1,))
        shop.define(CHECKED, other("kind"), streams)
        shop.land("customers", "c", name="Ann")
        shop.land("orders", 1, customer="c", prio=9, state=0, kind=1)
        shop.run(MAKES)
        shop.define(CHECKED, other("prio"), streams)
        shop.land("orders", 1, customer="c", prio=0, state=1, kind=5)
        shop.land("customers", "c", name="Anne")
        shop.run(MAKES)
        assert len({row["_hash"] for row in shop.stored("orders").to_pylist()}) == 1, "two rows have one hash"
    shop.run(MAKES)
    assert shop.topology.ledger.run(shop.topology.ledger.head()).rebuild == ("enriched", "others")
    assert shop.stored("arrived").to_pydict()["name"] == ["Ann"]
    shop.land("orders", 1, customer="c", prio=2, state=1, kind=5)
    shop.run(MAKES)
    assert shop.held() == [1]
    assert shop.rows() == [{"id": 1, "state": 0, "name": "Ann"}]


def test_an_event_that_changes_nothing_gives_a_row_of_other_columns_its_new_hash_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.define(CHECKED, other("kind"))
    shop.land("customers", "c", name="Ann")
    shop.land("orders", 1, customer="c", prio=9, state=0, kind=1)
    shop.run(MAKES)
    shop.define(CHECKED, other("prio"))
    for _ in range(2):
        shop.land("orders", 1, customer="c", prio=9, state=0, kind=1)
        shop.run(MAKES)
    versions = sorted(shop.stored("orders").to_pylist(), key=lambda row: row["_run"])
    assert [row["_op"] for row in versions] == ["I", "U", "N"]
    assert versions[0]["_hash"] != versions[1]["_hash"] == versions[2]["_hash"]
    assert shop.changes() == [(1, "I", 0)]

"""Values that are too long for Parquet's statistics, in keys, foreign keys and texts: whole runs, in a new lake and in one of an older rejoin."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from file_bounds import READERS, counted_above, wrong_bounds
from integration.conftest import Go, Sessions
from integration.shop import Row, event, folded, output
from limited import limited

from rejoin.lake.config import lake_config
from rejoin.lake.iceberg import column_bounds
from rejoin.lake.query.point_query import PointQuery
from rejoin.operate.compact import compact
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

SOURCE = """
from rejoin import Topology, debezium, snapshot

shop = Topology("shop")
orders = shop.table("orders", key="id", schema="id STRING, code STRING, note STRING", source=debezium("landing/orders"))
codes = shop.table("codes", key="code", schema="code STRING, name STRING", source=debezium("landing/codes"))
orders.left_join(codes, foreign_key="code", select=["left.id", "left.note", "right.name AS name"], name="enriched")
orders.filter("note > 'y'").named("late")
"""
KEY, CODE, NOTE = "z" * 5_000, "z" * 4_209, "z" * 4_200
ROWS = 9_000


@dataclass
class Land:
    """The files of the shop, and what they say."""

    root: Path

    def __post_init__(self) -> None:
        self.orders: dict[str, Row] = {}
        self.codes: dict[str, str] = {}
        self._lsn = 0
        (self.root / "shop.py").write_text(SOURCE)

    def topology(self) -> Topology:
        return Topology(load(str(self.root / "shop.py")), lake_config(str(self.root / "lake")), str(self.root))

    def arrives(self, orders: dict[str, Row | None], codes: dict[str, str]) -> None:
        """A new file a source. An order that is None is deleted."""
        for table, changed in (("orders", orders), ("codes", {c: {"code": c, "name": n} for c, n in codes.items()})):
            lines = []
            for key, row in changed.items():
                self._lsn += 1
                line = json.loads(event(self._lsn, 0, row))
                lines.append(json.dumps({**line, "key": {"id" if table == "orders" else "code": key}}))
            folder = self.root / "landing" / table
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self._lsn:08}.jsonl").write_text("\n".join(lines) + "\n")
        self.codes |= codes
        self.orders = {k: v for k, v in {**self.orders, **orders}.items() if v is not None}

    def first(self) -> None:
        """Short values and, at the end, some that are too long."""
        short = {f"k{i:06d}": order(f"k{i:06d}", f"c{i:06d}", "a") for i in range(ROWS)}
        long = {f"n{i}": order(f"n{i}", "c000001", NOTE) for i in range(100)}
        self.arrives({**short, **long, KEY: order(KEY, CODE, "b")}, {"c000001": "one", CODE: "long"})

    def expected(self) -> dict[object, Row]:
        return {k: {"id": k, "note": o["note"], "name": self.codes.get(str(o["code"]))} for k, o in self.orders.items()}


def order(key: str, code: str, note: str) -> Row:
    return {"id": key, "code": code, "note": note}


@pytest.fixture
def land(tmp_path: Path) -> Land:
    made = Land(tmp_path)
    made.first()
    return made


def above_y(topology: Topology, spark: Any, column: str) -> dict[str, int]:
    """Rows of the published output with a text above y."""
    found = topology.refs.table("enriched")
    assert found is not None
    return counted_above(topology.refs, spark, "enriched", found.metadata.current_snapshot_id or 0, column, "y")


def right(land: Land, topology: Topology) -> None:
    """The output, its feed and the filtered output are what plain Python says. Asserts one row a key."""
    assert output(topology) == land.expected() == folded(topology)
    assert output(topology, "late").keys() == {k for k, o in land.orders.items() if str(o["note"]) > "y"}


def changes_of_long_values(land: Land, run: Callable[[], Any]) -> None:
    """An update and a delete of the row with the long key, and a change of the right row with the long key."""
    land.arrives({KEY: order(KEY, CODE, "c")}, {CODE: "another name"})
    counts = run()
    assert (counts["inserted"], counts["updated"], counts["deleted"]) == (0, 1, 0)
    right(land, land.topology())
    land.arrives({KEY: None, "n0": order("n0", CODE, NOTE + "z")}, {})
    counts = run()
    assert (counts["inserted"], counts["updated"], counts["deleted"]) == (0, 1, 1)
    right(land, land.topology())


@pytest.mark.by_spark
def test_fault_a1_rows_with_values_too_long_for_parquets_statistics_are_updated_joined_deleted_and_found(
    land: Land, go: Go, sessions: Sessions
) -> None:
    def run() -> dict[str, int]:
        number = go(topology := land.topology()).number
        assert wrong_bounds(topology.refs, topology.ledger.states(number)) == []
        return topology.ledger.steps(number)["resolve.enriched"].counts

    run()
    topology = land.topology()
    spark = sessions(topology)
    assert above_y(topology, spark, "note") == dict.fromkeys(READERS, 100)
    assert above_y(topology, spark, "id") == dict.fromkeys(READERS, 1)
    changes_of_long_values(land, run)
    done = compact(topology, lambda: spark, "upkeep")
    assert done is not None and wrong_bounds(topology.refs, topology.ledger.states(done.number)) == []
    right(land, topology)
    assert above_y(topology, spark, "note") == dict.fromkeys(READERS, 100)


def test_fault_a1_a_lake_of_an_older_rejoin_is_right_before_its_bounds_are_repaired_and_for_others_after_its_first_compaction(
    land: Land, go: Go, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(column_bounds, "settle", lambda *_: None)
        older.setattr(column_bounds, "exact", lambda *_: False)
        go(land.topology())
    topology = land.topology()
    spark = sessions(topology)
    assert above_y(topology, spark, "note")["spark"] == 0  # nothing that rejoin does helps others yet
    assert any("column note" in line for line in wrong_bounds(topology.refs, topology.ledger.states(1)))
    assert PointQuery(topology.ledger, topology.refs).get("enriched", (KEY,)) == land.expected()[KEY]
    found = verify(topology, lambda: spark, fast=False)
    assert sum(d.total - d.hidden for d in found) == 0 < sum(d.hidden for d in found)
    changes_of_long_values(land, lambda: topology.ledger.steps(go(land.topology()).number)["resolve.enriched"].counts)
    done = compact(topology, lambda: spark, "upkeep")
    assert done is not None
    states = topology.ledger.states(done.number)
    assert {t: s.counts["repaired"] for t, s in ((n.removeprefix("compact."), r) for n, r in topology.ledger.steps(done.number).items()) if t in states} == dict.fromkeys(states, 1)  # fmt: skip
    assert wrong_bounds(topology.refs, states) == []
    assert above_y(topology, spark, "note") == dict.fromkeys(READERS, 100)
    right(land, topology)
    assert sum(d.total for d in verify(topology, lambda: spark, fast=False)) == 0
    assert compact(topology, lambda: spark, "upkeep") is None


NAN = """
from rejoin import Topology, snapshot

shares = Topology("shares")
persons = shares.table("persons", key="id", schema="id BIGINT, share DOUBLE", source=snapshot("landing/persons"))
persons.filter("share > 5").named("rich")
"""


def test_fault_a1_a_filter_that_nan_passes_keeps_it_when_spark_reads_the_table(
    tmp_path: Path, go: Go, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shares.py").write_text(NAN)
    (tmp_path / "landing" / "persons").mkdir(parents=True)
    (tmp_path / "landing" / "persons" / "1.csv").write_text("id,share\n1,1.5\n2,NaN\n3,-2\n")
    topology = Topology(load(str(tmp_path / "shares.py")), lake_config(str(tmp_path / "lake")), str(tmp_path))
    limited(monkeypatch, small_rows=0)
    go(topology)
    assert list(output(topology, "rich")) == [2]
    assert sum(d.total for d in verify(topology, lambda: sessions(topology), fast=False)) == 0

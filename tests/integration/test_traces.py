"""What a run that is never committed has changed of tables leaves no trace: the next run, of whatever file, finds what it would have found without it.

Issue 35, A3. Compared are columns with their types, properties, branches and tags, and the rows of all tables.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.forked import Forked, batched
from limited import limited
from pyiceberg.types import StructType
from sparkless import no_spark
from sqlalchemy import text

from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation
from rejoin.errors import RunSuperseded, ValidationFailed
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.schema_evolution import STAMP, evolve
from rejoin.lake.write.writer import Writer
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow
FIRST = """
from rejoin import Topology, condition, debezium, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer INT, note STRING", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id INT, name STRING", source=snapshot("landing/customers"))
orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS name"]).named("enriched")
"""
FAILS = """
from rejoin import Topology, condition, debezium, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, note STRING, extra INT", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING, level INT", source=snapshot("landing/customers"))
joined = orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS name", "1 AS made", "right.level AS level"])
joined.named("enriched").expect(condition("customer IS NULL"), severity="{severity}")
orders.select(["id", "extra AS first"]).named("others")
customers.select(["id", "name"]).named("names").expect(condition("name <> 'Bob'"), severity="{severity}")
"""
OTHER = """
from rejoin import Topology, condition, debezium, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer INT, note STRING, extra STRING", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id INT, name STRING, level DATE", source=snapshot("landing/customers"))
joined = orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS name", "'1' AS made", "right.level AS level"])
joined.named("enriched").expect(condition("id < 3"), severity="quarantine")
orders.select(["note", "id AS first", "extra"]).filter("note = 'a'").named("others")
"""


class Town:
    """A lake and what lands for it. ``state`` is all that anybody could find in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.batches = root, 0
        root.mkdir(parents=True)

    @property
    def file(self) -> Path:
        return self.root / "t.py"

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.file)), lake_config(str(self.root / "lake")), str(self.root))

    def land(self) -> None:
        self.batches += 1
        lines = []
        for key in range(self.batches, self.batches + 3):
            source = {"connector": "postgresql", "lsn": 100 * self.batches + key, "snapshot": "false"}
            after = {"id": key, "customer": 7 + key % 3, "note": "ab"[key % 2], "extra": None}
            lines.append(json.dumps({"key": {"id": key}, "value": {"op": "u", "source": source, "after": after}}) + "\n")
        for name, content in (("orders", "".join(lines)), ("customers", f"id,name,level\n7,Ann,\n8,Bob,\n9,Cleo {self.batches},\n")):
            folder = self.root / "landing" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self.batches}.{'jsonl' if name == 'orders' else 'csv'}").write_text(content)

    def run(self, file: str) -> None:
        self.file.write_text(file)
        with pytest.MonkeyPatch.context() as patch:
            limited(patch)
            run_topology(self.topology, no_spark, f"test of {self.root.name} {self.batches} {file}")

    def killed(self, file: str, **environment: str) -> int:
        """The exit code of a run of the command line."""
        self.file.write_text(file)
        words = ["run", str(self.file), "--lake", str(self.root / "lake"), "--root", str(self.root), "--yes"]
        done = Forked("rejoin.cli", words, {**os.environ, **environment}).wait(120)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode

    def state(self) -> dict[str, dict[str, Any]]:
        """Table -> columns, properties, branches and tags, and the rows that the ledger shows; runs are counted among those that were committed."""
        topology = self.topology
        numbers = sorted(topology.ledger.committed())
        shown, found = topology.ledger.states(topology.ledger.head()), {}
        for name in topology.refs.tables():
            table = topology.refs.table(name)
            assert table is not None
            rows = table.scan(snapshot_id=shown[name]).to_arrow().to_pylist() if name in shown else table.scan().to_arrow().to_pylist()
            for row in rows:
                row["_run"] = numbers.index(row["_run"])
            found[name] = {
                "columns": columns(table.schema().as_struct()),
                "properties": {key: value for key, value in table.properties.items() if key != STAMP},
                "refs": sorted(f"run_{numbers.index(int(ref[4:]))}" if ref.startswith("run_") else ref for ref in table.refs()),
                "rows": sorted(json.dumps(row, default=str, sort_keys=True) for row in rows),
            }
        return found


def columns(struct: StructType) -> dict[str, Any]:
    return {f.name: columns(f.field_type) if isinstance(f.field_type, StructType) else str(f.field_type) for f in struct.fields}


def check(town: Town, untouched: Town) -> None:
    """A lake is as one that never saw the run: but for tables that nothing but that run would have, which are empty."""
    found, expected = town.state(), untouched.state()
    for name, parts in expected.items():
        for part, content in parts.items():
            assert found[name][part] == content, f"{part} of {name}"
    for name in found.keys() - expected.keys():
        assert not found[name]["rows"], name
        assert set(found[name]["refs"]) <= {"empty", "main"}, name


def untouched(root: Path, *, loaded: bool, then: str) -> Town:
    town = Town(root)
    if loaded:
        town.land()
        town.run(FIRST)
    town.land()
    town.run(then)
    return town


FILES = {"the old file": FIRST, "another file": OTHER}


@pytest.mark.parametrize("then", FILES)
@pytest.mark.parametrize("loaded", [True, False], ids=["of a lake with rows", "of an empty lake"])
def test_a_run_that_failed_leaves_nothing_behind(tmp_path: Path, *, loaded: bool, then: str) -> None:
    town = Town(tmp_path / "town")
    if loaded:
        town.land()
        town.run(FIRST)
    town.land()
    with pytest.raises(ValidationFailed):
        town.run(FAILS.format(severity="fail"))
    town.run(FILES[then])
    check(town, untouched(tmp_path / "untouched", loaded=loaded, then=FILES[then]))


def test_after_a_run_of_the_old_file_the_corrected_one_goes_on(tmp_path: Path) -> None:
    town = Town(tmp_path / "town")
    town.land()
    town.run(FIRST)
    town.land()
    with pytest.raises(ValidationFailed):
        town.run(FAILS.format(severity="fail"))
    town.run(FIRST)
    town.land()
    town.run(OTHER)
    assert town.state()["orders"]["columns"]["extra"] == "string"


@pytest.mark.invariant("I2", "I9")
@pytest.mark.parametrize(("then", "every"), [*(pytest.param(then, 1, marks=pytest.mark.nightly) for then in FILES), ("another file", 6)])
def test_a_run_that_was_killed_anywhere_leaves_nothing_behind(tmp_path: Path, then: str, every: int, pytestconfig: pytest.Config) -> None:
    file, trace = FAILS.format(severity="quarantine"), tmp_path / "trace"
    first = Town(tmp_path / "first")
    first.land()
    first.run(FIRST)
    first.land()
    assert first.killed(file, REJOIN_CRASH_TRACE=str(trace)) == 0
    points = list(dict.fromkeys(trace.read_text().split()))
    points = points[: points.index("publish:committed")]
    assert len(points) >= 20
    expected = untouched(tmp_path / "untouched", loaded=True, then=FILES[then])
    for number, crashes in enumerate(batched(points[int(pytestconfig.option.hypothesis_seed) % every :: every], 2)):
        town = Town(tmp_path / f"town_{number}")
        town.land()
        town.run(FIRST)
        town.land()
        for point in crashes:
            assert town.killed(file, REJOIN_CRASH=point) == -signal.SIGKILL, f"the fault at {point} did not fire"
        town.run(FILES[then])
        check(town, expected)


def test_what_a_killed_run_left_goes_even_if_the_next_run_is_killed_while_it_takes_it_back(tmp_path: Path) -> None:
    expected = untouched(tmp_path / "untouched", loaded=True, then=OTHER)
    town, trace = Town(tmp_path / "town"), tmp_path / "trace"
    town.land()
    town.run(FIRST)
    town.land()
    assert town.killed(FAILS.format(severity="warn"), REJOIN_CRASH="publish:before") == -signal.SIGKILL
    for table in ("customers", "enriched", "orders"):
        assert town.killed(OTHER, REJOIN_CRASH=f"take_back:{table}") == -signal.SIGKILL
    assert town.killed(OTHER, REJOIN_CRASH_TRACE=str(trace)) == 0
    assert "take_back:orders" in trace.read_text()
    check(town, expected)


@pytest.fixture
def half(tmp_path: Path) -> Town:
    """The run of a file that adds and widens columns was killed right before its commit."""
    town = Town(tmp_path / "half")
    town.land()
    town.run(FIRST)
    town.land()
    assert town.killed(FAILS.format(severity="warn"), REJOIN_CRASH="publish:before") == -signal.SIGKILL
    return town


def test_a_process_that_comes_late_changes_no_columns_of_a_run_that_was_closed(half: Town) -> None:
    topology = half.topology
    run = topology.ledger.open_run()
    assert run is not None
    late = Writer(DuckdbEngine(run.plan), topology.refs, topology.ledger.states(1), run.number, "late")
    half.run(FIRST)
    before = half.state()
    for name, key in (("orders", "id"), ("others", "id")):
        rows = pa.table({key: pa.array([1], pa.int64()), "late": ["x"]})
        with pytest.raises(RunSuperseded):
            late.append(name, LocalRelation(rows), [key])
    assert half.state() == before


def test_what_a_closed_run_left_waits_while_another_run_is_open(half: Town) -> None:
    """Whoever takes it back late must not take from the open run what that has just added."""
    half.file.write_text(OTHER)
    topology = half.topology
    opened = topology.open("another")
    topology.cut(opened)
    with topology.ledger.transaction() as db:
        db.execute(text("UPDATE rejoin_runs SET rolled_forward = false WHERE run = 2"))
    evolve(topology.refs, "orders", pa.schema([("extra", pa.string())]), opened.number)
    topology.roll_forward()
    assert topology.ledger.not_rolled_forward() == [2]
    stored = topology.refs.table("orders")
    assert stored is not None
    assert "extra" in stored.schema().column_names
    topology.ledger.abandon(opened.number, "enough")
    topology.roll_forward()
    assert topology.ledger.not_rolled_forward() == []
    stored = topology.refs.table("orders")
    assert stored is not None
    assert "extra" not in stored.schema().column_names

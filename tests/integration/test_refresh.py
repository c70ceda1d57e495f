"""Ways to bring an output up to date: the same rows and the same changes, whichever way is taken; and the fuse."""

import json
import random
from pathlib import Path
from typing import Any

import psycopg
import pytest
from feeds import changes_of
from integration.conftest import Sessions
from integration.shop import Row, folded, output
from limited import limited
from psycopg.rows import dict_row

from rejoin.errors import ChangeTooLarge, RefreshRefused
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import Run, StepRecord
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Fuse, Refresh, RunOptions
from rejoin.plan.model.step_results import Ending, Resolved
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

FILE = """
from rejoin import Topology, debezium, postgres

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, note STRING", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id STRING, name STRING", source=debezium("landing/customers"))
orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS name"]).named("enriched"{options})
"""
ORDERS, CUSTOMERS = 2_000, 40


class Shop:
    """A topology of 2,000 orders and 40 customers, one of which has half of the orders."""

    def __init__(self, root: Path, sessions: Sessions, options: str = "") -> None:
        self.root, self.sessions, self.lsn, self.rng = root, sessions, 0, random.Random(7)
        for table in ("orders", "customers"):
            (root / "landing" / table).mkdir(parents=True)
        self.define(options)
        self.customers([f"c{i}" for i in range(CUSTOMERS)], "first")
        self.orders(range(ORDERS), "first")

    def define(self, options: str) -> None:
        (self.root / "t.py").write_text(FILE.replace("{options}", options))

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake")), str(self.root))

    def run(self, how: Refresh | None = None, fuse: Fuse | None = None) -> Run:
        topology = self.topology
        who = f"test {len(topology.ledger.runs())}"
        return run_topology(topology, lambda: self.sessions(topology), who, options=RunOptions(how, fuse))

    def step(self, run: Run, name: str) -> StepRecord:
        return self.topology.ledger.steps(run.number)[name]

    def how(self, run: Run) -> str:
        return str(self.step(run, "resolve.enriched").detail["refresh"])

    def orders(self, keys: Any, note: str) -> None:
        """These orders get this note and, half of them, another customer; one in ten has none."""
        self._land("orders", [(k, {"id": k, "customer": self._customer(), "note": f"{note} {k}"}) for k in keys])

    def customers(self, keys: list[str], name: str) -> None:
        self._land("customers", [(k, {"id": k, "name": f"{name} {k}"}) for k in keys])

    def changes(self) -> list[tuple[object, ...]]:
        """All changes so far, without the runs' numbers and hashes."""
        found = changes_of(self.topology, "enriched")
        return sorted((r["_run"], r["id"], r["_op"], plain(r["_before"]), plain(r["_after"])) for r in found)

    def differences(self) -> int:
        return sum(d.total for d in verify(self.topology, lambda: self.sessions(self.topology), fast=False))

    def _customer(self) -> str | None:
        choice = self.rng.random()
        return None if choice < 0.1 else "c0" if choice < 0.6 else f"c{self.rng.randrange(CUSTOMERS + 5)}"

    def _land(self, table: str, found: list[tuple[object, Row]]) -> None:
        lines = []
        for key, after in found:
            self.lsn += 1
            source = {"connector": "postgresql", "lsn": self.lsn, "snapshot": "false"}
            lines.append(json.dumps({"key": {"id": key}, "value": {"op": "u", "source": source, "after": after}}))
        (self.root / "landing" / table / f"{self.lsn:08}.jsonl").write_text("\n".join(lines) + "\n")


def plain(row: Row | None) -> str:
    return "" if row is None else str({k: v for k, v in row.items() if not k.startswith("_")})


@pytest.fixture
def shop(tmp_path: Path, sessions: Sessions) -> Shop:
    made = Shop(tmp_path / "shop", sessions)
    made.run()
    return made


WAYS = [
    (Refresh.INCREMENTAL, 100_000),  # followed on the driver
    (Refresh.INCREMENTAL, 100),  # by Spark where it is many
    (Refresh.INCREMENTAL, 0),  # by Spark
    (Refresh.FULL, 100_000),  # recomputed on the driver
    (Refresh.FULL, 0),  # by Spark
]


def history(shop: Shop, how: Refresh) -> tuple[dict[object, Row], list[tuple[object, ...]]]:
    for fewer, name in ((["c3", "c4"], "second"), (["c0"], "third")):  # c0: one right row with half of the orders
        shop.orders(range(0, ORDERS, 97), name)
        shop.customers(fewer, name)
        assert shop.how(shop.run(how, Fuse.APPLY)) == ("full" if how is Refresh.FULL else "incremental")
    assert shop.differences() == 0
    return output(shop.topology), shop.changes()


@pytest.mark.parametrize(
    "ways", [pytest.param(WAYS[2::2], id="here"), pytest.param(WAYS, id="by Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])]
)
def test_every_way_gives_the_same_rows_and_the_same_changes(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, ways: list[tuple[Refresh, int]]
) -> None:
    found = []
    for number, (how, limit) in enumerate(ways):
        limited(monkeypatch, small_rows=limit)
        made = Shop(tmp_path / str(number), sessions)
        made.run()
        found.append(history(made, how))
    assert all(f == found[0] for f in found)
    assert len(found[0][1]) > ORDERS + ORDERS / 2


def test_auto_recomputes_when_most_rows_are_affected_and_follows_changes_when_few_are(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, full_rows=1_000, full_share=0.3)
    shop.orders(range(10), "few")
    assert shop.how(shop.run()) == "incremental"
    shop.customers(["c0"], "one right row, half of the orders")
    many = shop.run(fuse=Fuse.APPLY)
    assert shop.how(many) == "full" and "affected" in shop.step(many, "resolve.enriched").detail["why"]
    shop.orders(range(ORDERS), "all")
    most = shop.run(fuse=Fuse.APPLY)
    assert shop.how(most) == "full" and shop.step(most, "respond.enriched.customers").ending is Ending.DEFERRED
    shop.orders(range(10), "few")
    assert shop.how(shop.run()) == "incremental"
    assert shop.differences() == 0


def test_strict_refuses_to_recompute_and_leaves_everything_as_it_was(shop: Shop) -> None:
    before = output(shop.topology)
    shop.define(', refresh="incremental_strict"')
    shop.orders(range(5), "followed")
    assert shop.how(shop.run()) == "incremental"
    (shop.root / "t.py").write_text((shop.root / "t.py").read_text().replace("AS name", "AS nick"))
    with pytest.raises(RefreshRefused, match="its definition is new"):
        shop.run()
    assert {k: v["note"] for k, v in output(shop.topology).items()} != {k: v["note"] for k, v in before.items()}
    assert "nick" not in output(shop.topology)[1]
    shop.run(Refresh.FULL)
    assert "nick" in output(shop.topology)[1] and shop.differences() == 0


def test_the_fuse_stops_a_run_that_would_change_too_much_until_told_to_go_on(shop: Shop) -> None:
    before = output(shop.topology)
    shop.orders(range(ORDERS // 2 + 1), "too many")
    with pytest.raises(ChangeTooLarge, match="1,001 of 2,000 rows"):
        shop.run()
    assert output(shop.topology) == before
    with pytest.raises(ChangeTooLarge):  # the input is not lost
        shop.run()
    assert shop.step(shop.run(fuse=Fuse.APPLY), "resolve.enriched").counts["changes"] == ORDERS // 2 + 1
    assert shop.differences() == 0


def test_an_output_that_was_skipped_stays_and_is_recomputed_by_the_next_run(shop: Shop) -> None:
    before = output(shop.topology)
    shop.orders(range(ORDERS), "skipped")
    held = shop.run(fuse=Fuse.SKIP)
    step = shop.step(held, "resolve.enriched")
    assert (step.ending, step.counts) == (Ending.KEPT, Resolved(withheld=ORDERS).counts)
    assert output(shop.topology) == before
    shop.orders(range(3), "later")
    again = shop.run()
    assert again.rebuild == ("enriched",) and shop.step(again, "resolve.enriched").counts["changes"] == ORDERS
    assert shop.differences() == 0


@pytest.mark.by_spark
@pytest.mark.postgres
def test_fault_look_after_a_skipped_run_the_changes_and_a_table_in_postgresql_follow_the_output(
    shop: Shop, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*notes: str) -> None:
        expected = output(shop.topology)
        assert {str(row["note"]).rpartition(" ")[0] for row in expected.values()} == set(notes)
        assert folded(shop.topology) == expected
        with psycopg.connect(database, row_factory=dict_row) as db:
            assert {row["id"]: row for row in db.execute("SELECT * FROM skipped.enriched").fetchall()} == expected

    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    shop.define(').to(postgres("skipped.enriched")')
    shop.orders(range(3), "before")
    shop.run()
    shop.orders(range(ORDERS), "skipped")
    shop.run(fuse=Fuse.SKIP)
    check("first", "before")
    shop.orders(range(3), "later")
    shop.run()
    check("skipped", "later")
    shop.orders(range(ORDERS), "skipped again")
    shop.run(fuse=Fuse.SKIP)
    shop.run()  # nothing new was landed
    check("skipped again")
    shop.orders(range(5), "normal")
    assert shop.run().rebuild == ()
    check("skipped again", "normal")


def test_told_to_recompute_a_run_trusts_no_changes(shop: Shop) -> None:
    shop.orders(range(ORDERS), "all")
    done = shop.run(fuse=Fuse.RECOMPUTE)
    assert (shop.how(done), shop.step(done, "resolve.enriched").detail["why"]) == ("full", "the run was told to recompute")
    assert shop.differences() == 0


@pytest.mark.by_spark
def test_a_run_says_how_it_read(shop: Shop) -> None:
    shop.orders([1, 2], "looked up")
    reads = shop.step(shop.run(), "resolve.enriched").detail["reads"]
    assert {(r["table"], r["path"], r["why"], r["rows"]) for r in reads} >= {("enriched", "local", "2 keys", 2)}


@pytest.mark.by_spark
def test_a_run_without_changes_starts_no_spark_job_and_writes_nothing_but_the_ledger(shop: Shop) -> None:
    def files() -> set[str]:
        return {str(p) for p in (shop.root / "lake" / "warehouse").rglob("*")}

    before = files()
    done = shop.run()
    assert files() == before
    assert {s.jobs for s in shop.topology.ledger.steps(done.number).values()} == {0}


@pytest.mark.by_spark
def test_a_small_run_is_a_job_for_each_frame_that_is_needed_and_no_more(shop: Shop) -> None:
    shop.run()
    shop.orders([1, 2, 3], "small")
    steps = shop.topology.ledger.steps(shop.run().number)
    jobs = {name: record.jobs for name, record in steps.items() if record.jobs}
    assert jobs == {"ingest.orders": 1, "subscribe.enriched": 1, "respond.enriched.customers": 2, "resolve.enriched": 2}

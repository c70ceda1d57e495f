"""Nothing bad gets out: expectations stop a run, warn, or hold rows back; held-back rows come again when they are fixed (P8, I1, I7)."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Sessions
from integration.shop import Row, event, folded, output, rows
from limited import limited

from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import Engine, LocalRelation
from rejoin.engines.spark.engine import SparkEngine, SparkRelation
from rejoin.engines.spark.types import collected
from rejoin.errors import UnknownTable, ValidationFailed
from rejoin.lake import table_names
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import Run
from rejoin.lake.query.quarantine_reader import entries
from rejoin.operate.quarantine import drop
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Fuse, Refresh, RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology
from rejoin.steps.validate.judging import Judging

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # one of the longest files: tests/conftest.py begins with these

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
        self.landed: dict[str, dict[object, Row]] = {"orders": {}, "customers": {}}
        for table in self.landed:
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
            self.landed[table].pop(row["id"], None)
            if len(row) > 1:
                self.landed[table][row["id"]] = row
            lines.append(event(self.lsn, row["id"], row if len(row) > 1 else None))  # type: ignore[arg-type]
        (self.root / "landing" / table / f"{self.lsn:08}.jsonl").write_text("".join(lines))

    def order(self, key: int, customer: int | None = 1, qty: int | None = 1, note: str | None = "n") -> Row:
        return {"id": key, "customer": customer, "qty": qty, "note": note}

    def run(self, **how: Any) -> Run:
        topology = self.topology
        return run_topology(topology, lambda: self.sessions(topology), f"test {len(topology.ledger.runs())}", options=RunOptions(**how))

    def names(self) -> dict[object, object]:
        return {k: r["name"] for k, r in output(self.topology).items()}

    def held(self, name: str = "enriched") -> set[object]:
        """Keys that the quarantine table says are held back."""
        if self.topology.refs.table(table_names.quarantine(name)) is None:
            return set()
        newest = {r["id"]: r for r in sorted(rows(self.topology, table_names.quarantine(name)), key=lambda r: int(str(r["_run"])))}
        return {k for k, r in newest.items() if r["_op"] == "Q"}

    def check(self, held: set[int]) -> None:
        """Exactly these keys are held back, all else is what plain Python says, and the changes folded give the output."""
        assert self.held() == held
        found, names = output(self.topology), {k: c["name"] for k, c in self.landed["customers"].items()}
        right = {
            k: {"id": k, "qty": o["qty"], "note": o["note"], "name": names.get(o["customer"])} for k, o in self.landed["orders"].items()
        }
        assert {k: r for k, r in found.items() if k not in held} == {k: r for k, r in right.items() if k not in held}
        shown = {k: r["name"] for k, r in found.items() if r["qty"] is not None and int(str(r["qty"])) < 1_000}
        reported = {k: {"id": k, "shouted": None if name is None else str(name).upper()} for k, name in shown.items()}
        assert output(self.topology, "report") == reported
        assert folded(self.topology) == found

    def verified(self) -> None:
        """`verify` says the same."""
        for fast in (False, True):
            assert [(d.node, d.total) for d in verify(self.topology, lambda: self.sessions(self.topology), fast=fast) if d.total] == []


HELD = 'enriched.expect(condition("name <> \'bad\'"), severity="quarantine")'


@pytest.fixture
def shop(tmp_path: Path, sessions: Sessions) -> Shop:
    """Three orders of customer 1 (Ann) and 2 (Bob), and what holds the name "bad" back."""
    made = Shop(tmp_path / "shop", sessions, HELD)
    made.land("customers", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"})
    made.land("orders", made.order(1, 1), made.order(2, 1), made.order(3, 2))
    made.run()
    return made


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"fuse": Fuse.RECOMPUTE}, id="recompute"),
        pytest.param({"fuse": Fuse.RECOMPUTE}, id="recompute by Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly]),
        pytest.param({"refresh": Refresh.FULL}, id="full", marks=[pytest.mark.by_spark, pytest.mark.nightly]),
    ],
)
def test_recomputing_holds_the_same_rows_back(shop: Shop, how: dict[str, Any]) -> None:
    shop.land("customers", {"id": 1, "name": "bad"})
    shop.run()
    shop.land("orders", {"id": 2}, shop.order(4, 1))
    shop.run(**how)
    assert shop.names() == {1: "Ann", 3: "Bob"}
    shop.check({1, 4})
    shop.verified()
    shop.land("customers", {"id": 1, "name": "Eve"})
    shop.run(**how)
    assert shop.names() == {1: "Eve", 3: "Bob", 4: "Eve"}
    shop.check(set())


# --- fail -------------------------------------------------------------------------------------------------------------


@pytest.mark.by_spark
@pytest.mark.invariant("I7")
def test_a_run_that_fails_leaves_everything_as_it_was_and_the_next_one_repairs(shop: Shop) -> None:
    shop.expect('enriched.expect(not_null("note"), between("qty", 0, 100), severity="fail")')
    before, head = output(shop.topology), shop.topology.ledger.head()
    consumed = shop.topology.ledger.consumed("orders")
    shop.land("orders", shop.order(1, note=None), shop.order(4, qty=987_654))
    with pytest.raises(ValidationFailed, match=r"2 of 2 expectations.*not_null.*1 of 2 rows.*between.*1 of 2 rows") as stopped:
        shop.run()
    assert stopped.value.exit_code == 3 and "987" not in str(stopped.value)
    assert (output(shop.topology), shop.topology.ledger.head(), shop.topology.ledger.consumed("orders")) == (before, head, consumed)
    failed = shop.topology.ledger.runs()[-1]
    kept = shop.root / "lake" / "validation" / "t" / str(failed.number) / "enriched"
    assert [v["unexpected"] for v in json.loads((kept / "result.json").read_text())] == [1, 1]
    assert (kept / "docs" / "index.html").is_file()
    shop.land("orders", shop.order(1, note="mended"), shop.order(4, qty=3))
    done = shop.run()
    assert output(shop.topology)[1]["note"] == "mended" and output(shop.topology)[4]["qty"] == 3
    detail = shop.topology.ledger.steps(done.number)["validate.enriched"].detail
    assert [v["met"] for v in detail["validation"]] == [True, True]
    shop.check(set())


def test_more_rows_to_hold_back_than_stated_stop_the_run(shop: Shop) -> None:
    shop.land("orders", *(shop.order(k, 1) for k in range(10, 30)))
    shop.run()
    shop.land("customers", {"id": 1, "name": "bad"})
    with pytest.raises(ValidationFailed, match=r"name <> 'bad'.*: 22 of 22 rows"):
        shop.run()
    shop.expect(HELD.replace('severity="quarantine"', 'severity="quarantine", max_share=1.0'))
    shop.run()
    shop.check({1, 2, *range(10, 30)})


# --- source tables ----------------------------------------------------------------------------------------------------

ON_TABLE = 'orders.expect(between("qty", 0, 100), severity="quarantine")'


def test_a_bad_version_of_a_source_row_waits_in_quarantine(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path / "shop", sessions, ON_TABLE)
    shop.land("customers", {"id": 1, "name": "Ann"})
    shop.land("orders", shop.order(1, qty=1), shop.order(2, qty=2), shop.order(3, qty=-3))
    first = shop.run()
    counts = shop.topology.ledger.steps(first.number)["ingest.orders"].counts
    assert (counts["read"], counts["applied"], counts["quarantined"]) == (3, 2, 1)
    assert (set(output(shop.topology)), shop.held("orders")) == ({1, 2}, {3})
    shop.land("orders", shop.order(1, qty=-1), shop.order(2, qty=-2))
    shop.run()
    assert {k: r["qty"] for k, r in output(shop.topology).items()} == {1: 1, 2: 2}
    assert shop.held("orders") == {1, 2, 3}
    shop.land("orders", shop.order(1, qty=5), {"id": 3})  # one is fixed, one is gone
    shop.run()
    assert {k: r["qty"] for k, r in output(shop.topology).items()} == {1: 5, 2: 2}
    assert shop.held("orders") == {2}
    shop.expect("")  # what waited comes back, unless something newer came
    shop.run()
    assert {k: r["qty"] for k, r in output(shop.topology).items()} == {1: 5, 2: -2}
    assert shop.held("orders") == set()
    shop.check(set())


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_quarantine_is_listed_shown_replayed_and_dropped(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path / "shop", sessions, ON_TABLE + "; " + HELD)
    text = (shop.root / "t.py").read_text()
    (shop.root / "t.py").write_text(text.replace("qty BIGINT, note", "qty INT, note"))
    shop.land("customers", {"id": 1, "name": "bad"})
    shop.land("orders", shop.order(1), shop.order(2, customer=None, qty=-2), shop.order(3, qty=2**40))
    shop.run()
    found = {(e.source, e.code): e for e in entries(shop.topology.ledger, shop.topology.refs)}
    assert set(found) == {("orders", "EXPECTATION"), ("orders", "VALUE_RANGE"), ("enriched", "EXPECTATION")}
    assert found["orders", "VALUE_RANGE"].line == 3 and found["orders", "EXPECTATION"].key == {"id": 2}
    assert json.loads(found["enriched", "EXPECTATION"].raw or "")["name"] == "bad"
    assert "name <> 'bad'" in found["enriched", "EXPECTATION"].reason
    with pytest.raises(UnknownTable, match="is an output"):
        drop(shop.topology, "test", "enriched")
    assert drop(shop.topology, "test", "orders", ["2"]) is not None
    assert {(e.source, e.code) for e in entries(shop.topology.ledger, shop.topology.refs)} == set(found) - {("orders", "EXPECTATION")}
    shop.expect('enriched.expect(condition("name <> \'bad\'"), severity="quarantine")')  # and qty is BIGINT
    (shop.root / "t.py").write_text((shop.root / "t.py").read_text())
    shop.run(replay=("orders", "enriched"))
    assert {(e.source, *e.key.values()) for e in entries(shop.topology.ledger, shop.topology.refs)} == {("enriched", 1), ("enriched", 3)}
    shop.land("customers", {"id": 1, "name": "Ann"})
    shop.run()
    assert {k: r["qty"] for k, r in output(shop.topology).items()} == {1: 1, 3: 2**40}, "what was dropped does not come back"
    assert entries(shop.topology.ledger, shop.topology.refs) == []
    del shop.landed["orders"][2]
    shop.check(set())


# --- every kind of expectation ------------------------------------------------------------------------------------------

ROW_KINDS = {
    'not_null("note")': {"note": None},
    'in_set("note", ["n", "m"])': {"note": "x"},
    'matches("note", "^[a-z]")': {"note": "N"},
    'between("qty", 0, 100)': {"qty": 101},
    'between("price", "0.10", "9.99")': {"price": Decimal("10.00")},
    'in_set("day", ["2024-02-29"])': {"day": date(2024, 3, 1)},
    'not_null("weight")': {"weight": float("nan")},
    "condition(\"qty < id * 1000 AND note <> '?'\")": {"note": "?"},
    'gxe.ExpectColumnValueLengthsToBeBetween(column="note", min_value=1, max_value=3)': {"note": "long"},
    'gxe.ExpectColumnPairValuesAToBeGreaterThanB(column_A="id", column_B="qty")': {"qty": 2_000},
}
SCHEMA = "id BIGINT, qty BIGINT, note STRING, price DECIMAL(10,2), day DATE, weight DOUBLE"
GOOD = {"qty": 1, "note": "n", "price": Decimal("1.00"), "day": date(2024, 2, 29), "weight": 1.0}


@pytest.mark.parametrize(("limit", "by"), [(100_000, "spark"), (0, "spark"), (100_000, "process")], ids=["pandas", "spark", "process"])
def test_every_row_expectation_tells_a_bad_row_from_good_ones(
    tmp_path: Path, sessions: Sessions, limit: int, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = f"""
import great_expectations.expectations as gxe
from rejoin import *
t = Topology("t")
rows = t.table("rows", key="id", schema="{SCHEMA}", source=snapshot("landing"))
rows.expect({", ".join(ROW_KINDS)}, severity="quarantine", max_share=1.0)
rows.filter("id > 0").named("out")
"""
    (tmp_path / "t.py").write_text(file)
    plan = load(str(tmp_path / "t.py"))
    spark = sessions(Topology(plan, lake_config(str(tmp_path / "lake")), str(tmp_path)))
    table = plan.table("rows")
    made = [(1_000, *GOOD.values()), *((1_001 + i, *{**GOOD, **bad}.values()) for i, bad in enumerate(ROW_KINDS.values()))]
    frame = spark.createDataFrame(made, SCHEMA).selectExpr("struct(*) AS _row")
    limited(monkeypatch, small_rows=limit)
    engine: Engine = SparkEngine(spark) if by == "spark" else DuckdbEngine(plan)
    rows = SparkRelation(frame) if by == "spark" else LocalRelation(collected(frame))
    bad = Judging(engine, table, 1, tmp_path / "report").changed_rows(rows, len(made))
    assert bad is not None
    found = {r["id"]: r["_reason"] for r in bad.here().to_pylist()}
    broken = {i: [n for n, e in enumerate(table.expectations) if e.title in why] for i, why in found.items()}
    # The note that is no letter, or too long, breaks the set as well; the one that is too large also its range.
    assert all(i in broken[1_001 + i] for i in range(len(ROW_KINDS))), broken
    assert 1_000 not in broken and len(broken) == len(ROW_KINDS)


TABLE_KINDS = {
    "enriched": [
        'unique("id")',
        'unique("note")',
        'unique("qty", "name")',
        "row_count(max_drop=0.5, max_growth=0.5)",
        'matched("customers", at_least=0.9)',
        "gxe.ExpectTableRowCountToBeBetween(max_value=3)",
    ],
    "orders": ['fresh("at", hours=1)', "row_count(max_growth=0.5)", 'unique("note")'],
}


def test_every_table_expectation_tells_a_bad_table_from_a_good_one(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path / "shop", sessions, "")
    lines = [f'{name}.expect({", ".join(kinds)}, severity="warn")' for name, kinds in TABLE_KINDS.items()]
    lines.append('enriched.expect(between("qty", 0, 5), severity="warn", rows="all")')
    shop.expect("import great_expectations.expectations as gxe\n" + "\n".join(lines))
    text = (shop.root / "t.py").read_text()
    (shop.root / "t.py").write_text(text.replace("note STRING", "note STRING, at TIMESTAMP"))

    def order(key: int, customer: int, note: str, at: datetime, qty: int = 1) -> Row:
        return {**shop.order(key, customer, qty, note), "at": int(at.timestamp() * 1_000_000)}

    now = datetime.now(UTC)
    shop.land("customers", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"})
    shop.land("orders", order(1, 1, "a", now), order(2, 2, "b", now))
    good = shop.topology.ledger.steps(shop.run().number)
    assert all(v["met"] for s in ("ingest.orders", "validate.enriched") for v in good[s].detail["validation"])
    past = now - timedelta(days=3)
    shop.land("orders", *(order(k, 9, "a", past, 9) for k in (1, 2, 3, 4)))
    bad = shop.topology.ledger.steps(shop.run().number)
    missed = {
        v["expectation"].split("(")[0] for s in ("ingest.orders", "validate.enriched") for v in bad[s].detail["validation"] if not v["met"]
    }
    met = [v["expectation"] for v in bad["validate.enriched"].detail["validation"] if v["met"]]
    assert missed == {
        "unique",
        "between",
        "ExpectTableRowCountToBeBetween",
        "row_count",
        "matched",
        "fresh",
    }
    assert met == ['unique("id")']
    assert output(shop.topology)[1]["note"] == "a", "a warning stops nothing"

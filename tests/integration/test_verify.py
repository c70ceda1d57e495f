"""verify sees what a run cannot see of itself: it reads by another way, and compares filtered reads with full ones."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from integration.conftest import Go, Sessions
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from rejoin.engines.choice import EngineChoice
from rejoin.errors import EngineRefused
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg import column_bounds
from rejoin.lake.read import duckdb_scan
from rejoin.lake.read.duckdb_scan import Relation
from rejoin.operate.expire import expire
from rejoin.operate.verify.comparison import Comparison, Difference
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

FILE = """
from rejoin import Topology, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, note STRING", source=snapshot("orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("customers"))
orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS name"]).named("enriched")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Topology:
    for table, text in (("orders", "id,customer,note\n1,1,a\n2,2,m\n3,1,z\n"), ("customers", "id,name\n1,Ann\n2,Bob\n")):
        (tmp_path / table).mkdir()
        (tmp_path / table / "1.csv").write_text(text)
    (tmp_path / "t.py").write_text(FILE)
    return Topology(load(str(tmp_path / "t.py")), lake_config(str(tmp_path / "lake")), str(tmp_path))


@pytest.fixture(params=[EngineChoice.LOCAL, EngineChoice.SPARK])
def compared(request: pytest.FixtureRequest, shop: Topology, sessions: Sessions) -> Callable[[], list[Difference]]:
    """What an engine says of the outputs, whoever ran."""
    by = Topology(shop.plan, replace(shop.config, engine=request.param), shop.root)
    return lambda: verify(by, lambda: sessions(shop), fast=False)


def test_fault_c3_verify_does_not_read_as_the_run_did(
    shop: Topology, go: Go, compared: Callable[[], list[Difference]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when DuckDB took columns from names of folders (A3): what it reads is wrong, in the run and ever after."""
    right = duckdb_scan.relation

    def wrong(table: Table, *args: object, **how: object) -> Relation | None:
        found = right(table, *args, **how)  # type: ignore[arg-type]
        if found is None or table.name()[-1] != "orders":
            return found
        return Relation(f"(SELECT * REPLACE ('prod' AS note) FROM {found.sql})", found.parameters)

    monkeypatch.setattr("rejoin.lake.read.duckdb_lookup.relation", wrong)
    go(shop)
    found = compared()
    assert [(d.rows, d.different) for d in found] == [(3, 3)]


def test_fault_c3_verify_sees_rows_that_a_filter_by_bounds_hides(
    shop: Topology, go: Go, compared: Callable[[], list[Difference]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when bounds were those of some row groups only (A1)."""
    right = column_bounds.settle

    def narrow(table: Table, files: list[DataFile]) -> None:
        right(table, files)
        for file in files if table.name()[-1] == "enriched" else ():
            file.upper_bounds[table.schema().find_field("note").field_id] = b"n"

    go(shop)
    assert [d.total for d in compared()] == [0]
    monkeypatch.setattr(column_bounds, "settle", narrow)
    (Path(shop.root) / "orders" / "2.csv").write_text("id,customer,note\n1,1,b\n2,2,n\n3,1,zz\n")
    go(shop)
    found = compared()
    assert [(d.missing, d.extra, d.different) for d in found] == [(0, 0, 0)]
    assert found[0].hidden > 0
    assert found[0].total > 0


def test_what_is_expired_while_it_is_compared_is_compared_anew_as_of_the_newest_run(
    shop: Topology, go: Go, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, compared = Comparison.made, list[int]()

    def beside(comparison: Comparison, looked_at: set[str], *, fast: bool) -> Difference:
        compared.append(shop.ledger.head() or 0)
        if len(compared) == 1:
            (Path(shop.root) / "orders" / "2.csv").write_text("id,customer,note\n1,1,b\n2,2,n\n3,1,zz\n4,1,x\n")
            go(shop)
            expire(shop, "test", timedelta(0))
        return right(comparison, looked_at, fast=fast)

    monkeypatch.setattr(Comparison, "made", beside)
    go(shop)
    assert [(d.rows, d.total) for d in verify(shop, lambda: sessions(shop), fast=False)] == [(4, 0)]
    assert compared == [1, 3]


def test_what_only_spark_computes_is_compared_by_spark_and_refused_where_it_must_not_be(tmp_path: Path, go: Go, sessions: Sessions) -> None:
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.csv").write_text("id,note\n1,a b\n2,c\n")
    (tmp_path / "t.py").write_text(
        """
from rejoin import Topology, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, note STRING", source=snapshot("orders"))
orders.filter("soundex(note) <> 'x'").named("sounding")
orders.filter("id > 1").named("late")
"""
    )
    topology = Topology(load(str(tmp_path / "t.py")), lake_config(str(tmp_path / "lake")), str(tmp_path))
    go(topology)
    found = {d.node: d for d in verify(topology, lambda: sessions(topology), fast=False)}
    assert {n: (d.engine, d.rows, d.total) for n, d in found.items()} == {"sounding": ("spark", 2, 0), "late": ("local", 1, 0)}
    assert "soundex" in found["sounding"].engine_why.lower()
    here = Topology(topology.plan, replace(topology.config, engine=EngineChoice.LOCAL), topology.root)
    with pytest.raises(EngineRefused):
        verify(here, lambda: sessions(topology), fast=False)

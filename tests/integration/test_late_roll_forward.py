"""A process that has committed a run and was paused before its roll-forward goes on when newer runs have been committed, or are open."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rejoin import Lake, snapshot
from rejoin import Topology as Declared
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.schema_evolution import evolve
from rejoin.plan.check.compile import compile
from rejoin.statements.own_columns import HASH, RUN
from rejoin.steps.run.topology import Topology


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    monkeypatch.chdir(tmp_path)
    for name in ("orders", "names"):
        (tmp_path / name).mkdir()
    Path("orders/1.csv").write_text("id,fk,total\n1,1,5\n2,1,6\n")
    return Lake(tmp_path / "lake")


def declared(*more: str) -> Declared:
    on = Declared("shop")
    orders = on.table("orders", key="id", schema="id BIGINT, fk BIGINT, total BIGINT", source=snapshot("orders"))
    names = on.table("names", key="id", schema="id BIGINT, name STRING", source=snapshot("names"))
    orders.left_join(names, foreign_key="fk", select=["left.id", "right.name", *more], name="named")
    return on


def run(lake: Lake, number: int, name: str, *more: str) -> None:
    Path(f"names/{number}.csv").write_text(f"id,name\n1,{name}\n")
    assert lake.run(declared(*more)).number == number


def shown(topology: Topology) -> list[dict[str, Any]]:
    """What readers of ``main`` see."""
    table = topology.refs.table("named")
    assert table is not None
    return sorted(table.scan().to_arrow().drop_columns([RUN, HASH]).to_pylist(), key=lambda r: int(r["id"]))


def late(topology: Topology, monkeypatch: pytest.MonkeyPatch, number: int) -> Callable[[], None]:
    """The roll-forward of a process that saw only this run unfinished."""
    monkeypatch.setattr(topology.ledger, "not_rolled_forward", lambda: [number])
    return topology.roll_forward


def test_main_does_not_go_back_and_columns_of_newer_runs_stay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    run(lake, 1, "A")
    run(lake, 2, "B")
    run(lake, 3, "C", "left.total")
    topology = Topology(compile(declared("left.total")), lake_config("lake"), ".")
    newest = [{"id": 1, "name": "C", "total": 5}, {"id": 2, "name": "C", "total": 6}]
    assert shown(topology) == newest
    late(topology, monkeypatch, 2)()
    assert shown(topology) == lake.read("named").to_arrow().sort_by("id").to_pylist() == newest


def test_a_column_stays_that_an_open_run_has_added(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    run(lake, 1, "A")
    topology = Topology(compile(declared("left.total")), lake_config("lake"), ".")
    topology.open("another")
    table = topology.refs.table("named")
    assert table is not None
    schema = table.schema().as_arrow()
    evolve(topology.refs, "named", schema.append(schema.field("id").with_name("total")), 9)
    late(topology, monkeypatch, 1)()
    assert [set(row) for row in shown(topology)] == [{"id", "name", "total"}] * 2


def test_a_column_that_the_newest_run_has_no_more_goes(lake: Lake) -> None:
    run(lake, 1, "A", "left.total")
    run(lake, 2, "B")
    topology = Topology(compile(declared()), lake_config("lake"), ".")
    assert shown(topology) == [{"id": 1, "name": "B"}, {"id": 2, "name": "B"}]

"""A process that goes on after a lake was deleted, or another was put in its place, does not talk to the files that are gone."""

import shutil
from pathlib import Path

import pytest

from rejoin import Lake, Topology, snapshot
from rejoin.lake.config import lake_config
from rejoin.lake.disconnect import disconnect
from rejoin.lake.iceberg.refs import catalog
from rejoin.lake.ledger.history import connected as read
from rejoin.lake.ledger.schema import connected


def topology() -> Topology:
    on = Topology("town")
    on.table("people", key="id", schema="id BIGINT, name STRING", source=snapshot("people")).named("known")
    return on


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    monkeypatch.chdir(tmp_path)
    Path("people").mkdir()
    Path("people/1.csv").write_text("id,name\n1,A\n")
    return Lake("lake")


def known() -> list[str]:
    """As a reader finds it who comes new."""
    return [r["name"] for r in Lake("lake").read("known").to_arrow().to_pylist()]


@pytest.mark.parametrize("forgotten", [False, True], ids=["as it is", "its connections closed"])
def test_a_lake_that_is_deleted_is_made_again_by_the_next_run_and_is_there_for_others(lake: Lake, forgotten: bool) -> None:
    assert lake.run(topology()).number == 1
    assert known() == ["A"]
    if forgotten:
        disconnect(lake_config("lake"))
    shutil.rmtree("lake")
    Path("people/1.csv").write_text("id,name\n1,B\n")
    assert lake.run(topology()).number == 1
    assert {f.name for f in Path("lake").iterdir()} >= {"catalog.db", "ledger.db"}
    assert known() == ["B"]


def test_a_lake_that_is_put_back_is_read_as_it_was(lake: Lake) -> None:
    lake.run(topology())
    disconnect(lake_config("lake"))
    shutil.copytree("lake", "copy")
    Path("people/2.csv").write_text("id,name\n1,B\n")
    lake.run(topology())
    assert known() == ["B"]
    shutil.rmtree("lake")
    Path("copy").rename("lake")
    assert known() == ["A"]
    assert lake.run(topology()).number == 2
    assert known() == ["B"]


def test_the_same_files_are_connected_once(lake: Lake) -> None:
    lake.run(topology())
    config = lake_config("lake")
    for connect in (lambda: connected(config.ledger), lambda: read(config.ledger), lambda: catalog(config)):
        assert connect() is connect()

"""A full load among changes (``changes(..., loaded=)``, which ``dms(...)`` has): one comes before all changes, in as many runs as it takes, and another one stops the run."""

from pathlib import Path

import pytest
from integration.conftest import Sessions
from integration.texts import Lake

from rejoin.errors import SnapshotAgain
from rejoin.plan import explain

pytestmark = pytest.mark.slow

TEXT = 't.table("orders", key="id", schema="id BIGINT, name STRING", source=dms("dms/orders"{})).named("out")'
HEADER = "Op,AR_H_CHANGE_SEQ,id,name\n"


@pytest.fixture
def lake(tmp_path: Path, sessions: Sessions) -> Lake:
    made = Lake(tmp_path, sessions, TEXT.format(""))
    made.land("dms/orders/LOAD00000001.csv", HEADER + ",,1,Ann\n,,2,Bob\n")
    made.run()
    return made


def names(lake: Lake) -> dict[object, object]:
    return {key: row["name"] for key, row in lake.rows("out").items()}


def additive(lake: Lake) -> None:
    lake.declare(TEXT.format(", loaded=None"))


def test_one_full_load_may_take_several_runs_and_changes_come_after_it(lake: Lake) -> None:
    lake.land("dms/orders/LOAD00000002.csv", HEADER + ",,3,Cid\n")
    lake.run()
    lake.land(
        "dms/orders/20261126-1.csv", HEADER + "U,20261126101010120000000000000000012,1,Eve\nD,20261126101010120000000000000000013,2,\n"
    )
    lake.run()
    assert names(lake) == {1: "Eve", 3: "Cid"}


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_fault_a_full_load_after_changes_stops_the_run(lake: Lake, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", engine)
    lake.land("dms/orders/20261126-1.csv", HEADER + "U,20261126101010120000000000000000012,1,Eve\n")
    lake.run()
    lake.land("dms/orders/LOAD00000002.csv", HEADER + ",,9,Zoe\n")
    with pytest.raises(
        SnapshotAgain, match=r"'orders' has rows of a full load after changes, or a second time, in run 3; (?s:.)*loaded=None"
    ):
        lake.run()
    assert names(lake) == {1: "Eve", 2: "Bob"}
    additive(lake)  # the file of the first full load was only late
    lake.run()
    assert names(lake) == {1: "Eve", 2: "Bob", 9: "Zoe"}


def test_fault_a_full_load_of_rows_that_are_there_stops_the_run(lake: Lake) -> None:
    lake.land("dms/orders/LOAD00000003.csv", HEADER + ",,2,Bea\n")
    with pytest.raises(SnapshotAgain, match="nothing was committed"):
        lake.run()
    assert names(lake) == {1: "Ann", 2: "Bob"}


def test_explain_says_what_is_a_full_load(lake: Lake) -> None:
    assert "    loaded   where nullif(AR_H_CHANGE_SEQ, '') IS NULL: another full load stops a run" in explain.text(lake.topology.plan)

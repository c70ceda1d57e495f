"""What commands say of runs and tables: failed runs, rows that are absent, outputs that have left the topology, owners that may live."""

import json
import os
import platform
import subprocess
import sys
from io import StringIO

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from small_lake import NASTY, make, plan

from rejoin.cli import main
from rejoin.lake.config import lake_config
from rejoin.lake.ledger import run_owner
from rejoin.lake.ledger.history import History
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord
from rejoin.lake.ledger.run_owner import Life
from rejoin.plan.change.compatibility import left_behind
from rejoin.plan.model.plan import Plan
from rejoin.report import history as report
from rejoin.steps.run.topology import Topology


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Runs 1 and 2 are committed, run 3 has failed and is still its owner's."""
    return make(tmp_path_factory.mktemp("states"))


def rejoin(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def without_the_output() -> Plan:
    return Plan("shop", (), ())


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A fourth run, committed, whose topology has neither its output nor its tables any more."""
    made = make(tmp_path_factory.mktemp("removed"))
    topology = Topology(without_the_output(), lake_config(made), ".", life=lambda _: Life.GONE)
    run = topology.open("later")
    topology.cut(run)
    topology.publish(run)
    return made


def test_fault_b_an_absent_row_is_no_unknown_run(location: str) -> None:
    done = rejoin("get", "enriched", "99", "--lake", location)
    assert done.exit_code == 4
    assert done.stderr.startswith("ROW_ABSENT table 'enriched' has no row with this key as of run 2")


def test_fault_b_a_table_that_exists_is_never_said_not_to(location: str) -> None:
    own = rejoin("get", "enriched__changes", "1", "--lake", location)
    source = rejoin("changes", "orders", "--lake", location)
    assert (own.exit_code, source.exit_code) == (2, 2)
    assert "'enriched__changes' is a table of rejoin's own" in own.stderr
    assert "'orders' is a source table" in source.stderr
    assert "has no table" not in own.stderr + source.stderr
    assert "has no table 'nothing'" in rejoin("get", "nothing", "1", "--lake", location).stderr


def test_fault_b_a_run_that_failed_reads_failed_until_its_owner_goes_on(location: str) -> None:
    config = lake_config(location)
    ledger, history = Ledger(config.ledger, "shop"), History(config.ledger, "shop")
    runs = [json.loads(line) for line in rejoin("history", "--json", "--lake", location).stdout.splitlines()]
    assert [r["state"] for r in runs] == ["committed", "committed", "failed"]
    assert "failed" in rejoin("history", "--lake", location).stdout
    assert json.loads(rejoin("history", "--run", "3", "--json", "--lake", location).stdout)["state"] == "failed"
    ledger.open("process:elsewhere:1:2.0", plan(), {"enriched": "f"})
    assert (ledger.run(3).standing, history.run(3).standing, ledger.run(3).note) == ("open", "open", None)
    ledger.fail(3, "SOURCE_MISSING orders", "ingest.orders")
    ledger.renew(3)  # another step of the same run goes on beside it
    ledger.began(3, "ingest.customers")
    assert (ledger.run(3).standing, history.run(3).standing) == ("failed", "failed")
    ledger.began(3, "ingest.orders")
    assert ledger.run(3).standing == "open"
    ledger.fail(3, f"SOURCE_CORRUPT {NASTY}")


def test_fault_b_a_removed_output_keeps_its_history_readable(removed: str) -> None:
    gone = rejoin("get", "enriched", "1", "--lake", removed)
    assert gone.exit_code == 2
    assert "run 2 was the last that had it" in gone.stderr
    then = rejoin("get", "enriched", "1", "--as-of", "2", "--lake", removed)
    assert json.loads(then.stdout) == {"id": 1, "note": "first", "customer": None}
    changes = [json.loads(line) for line in rejoin("changes", "enriched", "--run", "2", "--lake", removed).stdout.splitlines()]
    assert [(c["op"], (c["after"] or c["before"])["id"]) for c in changes] == [("U", 1), ("D", 2)]
    assert "run 2 was the last that had it" in rejoin("changes", "enriched", "--lake", removed).stderr


def test_fault_b_a_run_says_which_outputs_it_leaves_behind(removed: str) -> None:
    assert left_behind(plan(), without_the_output()) == ("orders", "customers", "enriched")
    shown = " ".join(rejoin("history", "--run", "4", "--lake", removed).stdout.split())
    assert "no longer in the topology: orders, customers, enriched; the tables stay as run 2 left them" in shown
    assert "no longer" not in rejoin("history", "--run", "2", "--lake", removed).stdout


def test_fault_b_the_start_of_spark_is_a_line_of_its_own(location: str) -> None:
    run = Ledger(lake_config(location).ledger, "shop").run(1)
    steps = [StepRecord("ingest.orders", {"read": 0}, 0.4, 3, {"spark_start": 6.25}), StepRecord("cut", {}, 0.1, 0)]
    console = Console(file=(shown := StringIO()), width=160)
    report.summary(console, run, steps)
    assert report.summary_data(run, steps)["spark_start"] == 6.25
    lines = [line.split() for line in shown.getvalue().splitlines()]
    assert ["start", "of", "Spark", "6.25"] in [line[:4] for line in lines]
    assert ["ingest.orders", "0.40"] in [line[:2] for line in lines]


def test_fault_look_a_process_of_another_container_of_the_same_host_name_is_not_taken_for_dead() -> None:
    mine = run_owner.this_process()
    assert run_owner.life(mine) is Life.UNKNOWN  # it is us: alive, and only the lease tells whether it goes on
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    pid, pids = ended.stdout.strip(), mine.split(":")[4]
    assert run_owner.life(f"process:{platform.node()}:{pid}:1.00:{pids}") is Life.GONE
    assert run_owner.life(f"process:{platform.node()}:{pid}:1.00:anothersetof") is Life.UNKNOWN
    assert run_owner.life(f"process:{platform.node()}:{pid}:1.00") is Life.UNKNOWN  # as earlier versions wrote it
    assert run_owner.life(f"process:elsewhere:{pid}:1.00:{pids}") is Life.UNKNOWN
    assert run_owner.life(f"process:{platform.node()}:{os.getpid()}:1.00:{pids}") is Life.GONE

"""kill -9 at every commit boundary, then run again: the end is that of an undisturbed run (F1, F6, I2, I9)."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from integration.forked import Forked, batched
from integration.shop import Shop, check, output, steps_of

from rejoin.errors import RunBusy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run(shop: Shop, remote: str, program: str = "rejoin.cli", **environment: str) -> subprocess.CompletedProcess[str]:
    words = ["run", str(shop.file), "--lake", str(shop.lake), "--root", str(shop.root)]
    return Forked(program, words, {**os.environ, "SPARK_REMOTE": remote, **environment}).wait(300)


@pytest.mark.invariant("I2", "I9")
@pytest.mark.parametrize(
    ("every", "engine"),
    [
        pytest.param(1, "spark", id="every one by Spark", marks=[pytest.mark.by_spark, pytest.mark.nightly]),
        pytest.param(1, "local", id="every one in the process", marks=pytest.mark.nightly),
        pytest.param(6, "local", id="every sixth in the process"),
        pytest.param(1, "task", id="every one of steps in tasks", marks=[pytest.mark.by_spark, pytest.mark.nightly]),
        pytest.param(30, "task", id="every 30th of steps in tasks", marks=pytest.mark.by_spark),
    ],
)
def test_a_crash_at_any_boundary_and_a_second_run_end_like_an_undisturbed_run(
    tmp_path: Path, remote: str, every: int, engine: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    # A point within a task kills its worker first. Spark SQL then does the step, and the process is killed at the same point.
    tasks = engine == "task"
    program = "integration.tasked" if tasks else "rejoin.cli"
    monkeypatch.setenv("REJOIN_ENGINE", "spark" if tasks else engine)
    shop = Shop(tmp_path)
    trace = tmp_path / "trace"
    for _ in range(2):  # the first load, then a run with changes on both sides: its points are the boundaries
        trace.unlink(missing_ok=True)
        shop.next_batch()
        done = run(shop, remote, program, REJOIN_CRASH_TRACE=str(trace))
        assert done.returncode == 0, done.stderr
        check(shop)
        steps = shop.topology().ledger.steps(shop.batch)
        assert ({"task"} == {s.detail["engine"] for s in steps.values() if "engine" in s.detail}) == tasks
    points = list(steps_of(trace.read_text().split()))
    assert len(points) >= 20
    chosen = points[int(pytestconfig.option.hypothesis_seed) % every :: every]
    for crashes in batched(chosen, 3):  # crashes upon crashes: each next run first has to take over what the last one left
        for point in crashes:
            shop.next_batch()
            killed = run(shop, remote, program, REJOIN_CRASH=point)
            assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{killed.stderr}"
        again = run(shop, remote, program)
        assert again.returncode == 0, f"after crashes at {crashes}:\n{again.stderr}"
        check(shop)
    print(f"\n{len(chosen)} of {len(points)} crash points: {', '.join(chosen)}")


@pytest.mark.by_spark
@pytest.mark.invariant("I2", "I7", "I9")
def test_a_crash_between_commit_and_roll_forward_is_visible_in_the_ledger_and_finished_by_the_next_open(
    tmp_path: Path, remote: str
) -> None:
    shop = Shop(tmp_path)
    shop.next_batch()
    assert run(shop, remote).returncode == 0
    before = output(shop.topology())
    shop.next_batch()
    assert run(shop, remote, REJOIN_CRASH="publish:committed").returncode == -signal.SIGKILL
    topology = shop.topology()
    assert topology.ledger.head() == 2
    assert output(topology) == before, "main moves only with the roll-forward"
    topology.roll_forward()
    check(shop)


def test_a_run_that_is_alive_refuses_others_with_the_way_out(tmp_path: Path, remote: str) -> None:
    shop = Shop(tmp_path)
    shop.next_batch()
    topology = shop.topology()
    topology.open("somebody else")
    refused = run(shop, remote)
    assert refused.returncode == RunBusy.exit_code
    assert "RUN_BUSY run 1 of topology 'shop' is open and alive (owner somebody else" in refused.stderr
    assert "rejoin abandon --run 1" in refused.stderr
    topology.ledger.abandon(1, "test")
    assert run(shop, remote).returncode == 0
    check(shop)

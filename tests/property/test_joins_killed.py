"""kill -9 at every boundary of runs over every kind of join and over groups, then run again: every output is what DuckDB makes of all that arrived."""

import os
import random
import signal
import subprocess
from pathlib import Path

import groups_by_hand as groups
import pytest
import test_joins_by_time as joins
from integration.forked import Forked
from integration.shop import steps_of

from rejoin import Lake

HERE = Path(__file__).parent
ALL_ARE_LARGE = "import dataclasses, rejoin.limits as of\nof.in_force = dataclasses.replace(of.in_force, large_group=0)\n"
"""Lines of a topology file with which every group has totals."""
AT_ONCE = 6
"""So many kills, one after the other, before a run may end: each next run first has to take over what the last one left."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def run(directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = ["run", str(directory / "mixed.py"), "--lake", str(directory / "lake"), "--root", str(directory), "--fuse", "apply", "--yes"]
    return Forked("rejoin.cli", words, {**os.environ, **environment}).wait(300)


@pytest.mark.invariant("I2", "I9")
@pytest.mark.parametrize(
    ("of", "every"),
    [
        pytest.param("joins", 120, id="every 120th"),
        pytest.param("joins", 1, id="every one", marks=pytest.mark.nightly),
        pytest.param("groups", 1, id="every one of groups", marks=pytest.mark.nightly),
    ],
)
def test_a_kill_at_any_boundary_and_a_second_run_end_like_an_undisturbed_run(
    of: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    (tmp_path / "mixed.py").write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom {of}_by_hand import topology\n\nmixed = topology()\n{ALL_ARE_LARGE}"
    )
    history, land, differences = (getattr({"joins": joins, "groups": groups}[of], name) for name in ("history", "land", "differences"))
    chance, runs = random.Random(int(pytestconfig.option.hypothesis_seed)), 400
    events = [event for number in range(runs // 2) for event in history(number, chance, runs, (40, 60))]
    lake, trace, seen = Lake(tmp_path / "lake"), tmp_path / "trace", 0

    def arrive() -> None:
        nonlocal seen
        land(tmp_path, seen, [event for event in events if event[1] == seen], chance)
        seen += 1

    def check(after: str) -> None:
        found = differences(lake, [event for event in events if event[1] < seen])
        assert not found, f"after {after}:\n" + "\n".join(found)

    for _ in range(2):
        trace.unlink(missing_ok=True)
        arrive()
        done = run(tmp_path, REJOIN_CRASH_TRACE=str(trace))
        assert done.returncode == 0, done.stderr
    check("two undisturbed runs")
    points = list(steps_of(trace.read_text().split()))
    assert len(points) >= 40
    chosen = points[chance.randrange(every) :: every]
    for crashes in [chosen[i : i + AT_ONCE] for i in range(0, len(chosen), AT_ONCE)]:
        for point in crashes:
            arrive()
            killed = run(tmp_path, REJOIN_CRASH=point)
            assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{killed.stderr}"
        again = run(tmp_path)
        assert again.returncode == 0, f"after kills at {crashes}:\n{again.stderr}"
        check(f"kills at {crashes}")
    print(f"\n{len(chosen)} of {len(points)} boundaries")

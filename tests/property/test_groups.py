"""Random histories over groups of tables, joins and groups, cut into runs at random: after every run every output is DuckDB's GROUP BY over all that arrived.

Each history is a value of the column ``s``, so that hundreds of them are one topology and a handful of runs. ``REJOIN_GROUP_HISTORIES=10000`` makes a long
one; the seed is that of the test run.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from groups_by_hand import differences, history, land, topology
from limited import in_ranges, limited
from sparkless import no_spark

from rejoin import Lake
from rejoin.lake.config import lake_config
from rejoin.operate.compact import compact
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.compile import compile
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.steps.run.topology import Topology

RUNS = 3


@pytest.mark.invariant("I1", "I3", "I8")
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("histories", "engine", "ranged"),
    [
        pytest.param(15, "local", (2,), id="15 histories", marks=pytest.mark.slow),
        pytest.param(200, "local", (0, 1, 2), id="200 histories in ranges", marks=pytest.mark.nightly),
        pytest.param(200, "spark", (), id="200 histories by Spark", marks=pytest.mark.nightly),
        pytest.param(10_000, "local", (), id="10,000 histories", marks=pytest.mark.nightly),
    ],
)
def test_every_group_is_that_of_sql_after_every_run(
    histories: int, engine: str, ranged: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """``ranged``: the runs that put everything off, and do it in small ranges of keys, two at once."""
    monkeypatch.setenv("REJOIN_ENGINE", engine)
    limited(monkeypatch, large_group=2, read_values=100)
    seed = int(os.environ.get("REJOIN_SEED") or pytestconfig.option.hypothesis_seed)
    print(f"REJOIN_SEED={seed}")
    chance = random.Random(seed)
    count = int(os.environ.get("REJOIN_GROUP_HISTORIES", histories))
    events = [event for number in range(count) for event in history(number, chance, RUNS)]
    lake, on = Lake(tmp_path / "lake"), Topology(compile(topology()), lake_config(str(tmp_path / "lake")), str(tmp_path))
    for run in range(RUNS):
        land(tmp_path, run, [event for event in events if event[1] == run], chance)
        with monkeypatch.context() as meanwhile:
            if run in ranged:
                in_ranges(meanwhile, 100)
            lake.run(topology(), root=tmp_path, options=RunOptions(fuse=Fuse.APPLY))
        if run == 1 and engine == "local":
            compact(on, no_spark, "test")
        found = differences(lake, [event for event in events if event[1] <= run])
        assert not found, f"REJOIN_SEED={seed}, run {run + 1}:\n" + "\n".join(found)
    if engine == "local":
        assert [d for d in verify(on, no_spark, fast=False) if d.total] == []

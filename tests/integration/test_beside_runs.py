"""Compactions and expiries of other processes beside runs, for a while: whoever comes in between is told to try again, and nothing is lost (F4)."""

import os
import random
from pathlib import Path

import pytest
from feeds import rolled_back
from integration.forked import Forked
from integration.shop import Shop, folded, output

from rejoin.lake.ledger.runs import RunKind

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1200)]

ROUNDS = 40
TRY_AGAIN = 75


@pytest.mark.invariant("I1", "I5", "I9")
def test_who_compacts_or_expires_beside_runs_ends_or_is_told_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    shop, chance = Shop(tmp_path), random.Random(int(pytestconfig.option.hypothesis_seed))
    words = {"run": [str(shop.file), "--root", str(tmp_path)], "compact": [], "expire": ["--keep-days", "0"]}
    refused = 0
    for _ in range(ROUNDS):
        shop.next_batch()
        beside = chance.sample(["run", "run", "compact", "compact", "expire"], 3)
        started = [Forked("rejoin.cli", [one, *words[one], "--lake", str(shop.lake)], dict(os.environ)) for one in beside]
        for one, process in zip(beside, started, strict=True):
            done = process.wait(300)
            assert done.returncode in (0, TRY_AGAIN), f"{one} beside {beside}: {done.stderr}"
            refused += done.returncode == TRY_AGAIN
    assert refused, "nothing ever met anything"
    assert Forked("rejoin.cli", ["run", *words["run"], "--lake", str(shop.lake)], dict(os.environ)).wait(300).returncode == 0
    topology = shop.topology()
    assert {RunKind.RUN, RunKind.COMPACT, RunKind.EXPIRE} <= {r.kind for r in topology.ledger.runs()}
    assert output(topology) == folded(topology, changes=rolled_back) == shop.expected()

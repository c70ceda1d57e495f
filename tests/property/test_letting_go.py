"""Compactions that let records of streams go, at random places of random histories: nobody sees it in any output.

After every run every output is what DuckDB makes of all records that were ever taken, and the feed folded from its start is the output. Between runs
come compactions, recomputations, replays, repairs and runs of some outputs only. ``REJOIN_SEED=<seed>`` repeats a history.
"""

import os
import random
from pathlib import Path

import pytest
from limited import limited
from sparkless import no_spark
from web import Web

from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.operate.verify.verify import verify
from rejoin.plan.model.policy import Refresh

RUNS = 7
pytestmark = [pytest.mark.timeout(600), *(pytest.mark.filterwarnings(f"ignore::{w}") for w in ("ResourceWarning",))]


def random_history(web: Web, seed: int) -> int:
    """Goes through a history, and says how many records were let go in it."""
    chance, did, gone = web.history.chance, list[str](), 0
    web.history.arrive()
    web.run()
    for _ in range(RUNS):
        if chance.random() < 0.6:
            gone += (now := web.compact())
            did.append(f"compact ({now})")
        did.append(web.step())
        found = web.differences()
        assert not found, f"REJOIN_SEED={seed}: {', '.join(did)}:\n" + "\n".join(found)
    return gone


SEEDS = [pytest.param(n, id=f"history {n}", marks=[pytest.mark.slow] if n < 1 else [pytest.mark.nightly]) for n in range(120)]


@pytest.mark.parametrize("number", SEEDS)
def test_no_output_shows_that_records_were_let_go(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    limited(monkeypatch, base_rows=random.Random(number).choice((3, 8, 50)), merged_files=random.Random(number).choice((3, 8)))
    seed = int(os.environ.get("REJOIN_SEED") or int(pytestconfig.option.hypothesis_seed) + number)
    print(f"REJOIN_SEED={seed}")
    web = Web.of(tmp_path, random.Random(seed), no_spark)
    while not random_history(web, seed):  # hardly ever: then it goes on
        pass
    assert web.stored("views") < len(web.history.taken["views"]) or web.stored("clicks") < len(web.history.taken["clicks"])


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.by_spark
@pytest.mark.parametrize("rewritten", [pytest.param(False, id="file by file"), pytest.param(True, id="rewritten as a whole")])
def test_neither_does_spark_show_it_and_its_comparison_finds_nothing(
    rewritten: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    limited(monkeypatch, base_rows=8, merged_files=3, **({"folded_rows": 1} if rewritten else {}))
    seed = int(os.environ.get("REJOIN_SEED") or int(pytestconfig.option.hypothesis_seed) + 1000 + rewritten)
    print(f"REJOIN_SEED={seed}")
    spark = session(lake_config(str(tmp_path / "lake")))
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    web, gone = Web.of(tmp_path, random.Random(seed), lambda: spark), 0
    while not gone:
        monkeypatch.setenv("REJOIN_ENGINE", "local")
        web.fill()
        monkeypatch.setenv("REJOIN_ENGINE", "spark")
        web.history.arrive()
        web.run()
        gone = web.compact()
    web.history.arrive()
    web.run(refresh=Refresh.FULL)
    assert web.differences() == [], f"REJOIN_SEED={seed}"
    assert [d.total for d in verify(web.topology, lambda: spark, fast=False)] == [0] * len(web.topology.plan.nodes), f"REJOIN_SEED={seed}"

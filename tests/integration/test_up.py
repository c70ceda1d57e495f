"""`rejoin up` and `rejoin down`, as a newcomer does it: start, trigger an example, look, stop; nothing is left running."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from rejoin.airflow import local
from rejoin.airflow.client import Client
from rejoin.lake.config import lake_config
from rejoin.lake.ledger import Ledger

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(900)]


def rejoin(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "rejoin.cli", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_up_runs_an_example_and_down_leaves_nothing_behind(tmp_path: Path) -> None:
    folder, port = tmp_path / "up", str(local.free_port())
    said = rejoin("up", "--dir", str(folder), "--port", port)
    try:
        made = local.state(folder)
        assert made is not None
        assert made.url in said
        assert made.password in said
        assert rejoin("up", "--dir", str(folder), "--port", port).splitlines()[0] == said.splitlines()[0], "a second `up` changes nothing"
        client = Client(made.url, local.USER, made.password)
        client.pause("shop", paused=False)
        assert client.follow("shop", client.trigger("shop", "by_hand"), lambda _: None) == "success"
        ledger = Ledger(lake_config(str(folder / "lake")).ledger, "shop")
        first = next(r for r in ledger.runs() if r.state == "committed")
        assert ledger.steps(first.number)["resolve.orders_enriched"].counts["inserted"] > 0
    finally:
        rejoin("down", "--dir", str(folder))
    left = [p.info for p in psutil.process_iter(["pid", "cmdline"]) if str(folder) in " ".join(p.info["cmdline"] or ())]
    assert left == []
    assert "nothing runs" in rejoin("down", "--dir", str(folder))

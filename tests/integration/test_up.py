"""`rejoin up` and `rejoin down`, as a newcomer does it: start, trigger an example, look, stop; nothing is left running."""

import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import psutil
import pytest

from rejoin.airflow import local
from rejoin.airflow.client import Client
from rejoin.lake.config import lake_config
from rejoin.lake.ledger import Ledger

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(900)]


def rejoin(*words: str, told: str = "") -> str:
    done = subprocess.run([sys.executable, "-m", "rejoin.cli", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert told in done.stderr
    return done.stdout


def listening(made: local.Local) -> set[str]:
    """The addresses that something in the folder listens on."""
    parts = [psutil.Process(pid) for pid, _ in made.processes.values()]
    found = {p.pid: p for part in parts for p in (part, *part.children(recursive=True))}
    mapped = "::ffff:"  # how Java writes an address of IPv4
    return {c.laddr.ip.removeprefix(mapped) for p in found.values() for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN}


def test_up_runs_an_example_and_down_leaves_nothing_behind(tmp_path: Path) -> None:
    folder, port = tmp_path / "up", str(local.free_port())
    said = rejoin("up", "--dir", str(folder), "--port", port)
    try:
        made = local.state(folder)
        assert made is not None
        assert made.url in said
        assert made.password in said
        secrets = ("up.json", "spark.token", "airflow/passwords.json", "airflow/jwt.secret", "airflow/airflow.cfg")
        assert {(folder / name).stat().st_mode & 0o777 for name in secrets} == {0o600}
        assert {(folder / name).stat().st_mode & 0o777 for name in ("airflow", "logs")} == {0o700}
        assert listening(made) and all(ip_address(address).is_loopback for address in listening(made)), listening(made)
        psutil.Process(made.processes["scheduler"][0]).kill()
        again = rejoin("up", "--dir", str(folder), "--port", port, told="not running any more: scheduler")
        assert again == said.replace(" (the examples have their first files)", "")
        after = local.state(folder)
        assert after is not None and {p for p in local.PARTS if after.processes[p] != made.processes[p]} == {"scheduler"}
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

"""`rejoin up` and `rejoin down`, as a newcomer does it: start, trigger the examples in the browser, look, stop; nothing is left running."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pictures
import psutil
import pytest
from integration.trigger_form import TriggerForm
from selenium.webdriver.remote.webdriver import WebDriver

from rejoin.airflow.local import server
from rejoin.airflow.local.client import Client
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.ledger import Ledger

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.timeout(900)]


BY_HAND = """
from functools import partial
from rejoin.airflow.local import server as local
from rejoin.cli import main

local.up = partial(local.up, schedules=False)
main()
"""
"""The command line, whose `up` starts no run by itself: a form that unpauses a DAG would have to wait for that one first."""


def rejoin(*words: str, told: str = "") -> str:
    done = subprocess.run([sys.executable, "-c", BY_HAND, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert told in done.stderr
    return done.stdout


@dataclass(frozen=True)
class Up:
    """What runs for all tests of this file, and what `rejoin up` has said of it."""

    folder: Path
    said: str

    @property
    def now(self) -> server.RunningAirflow:
        made = server.state(self.folder)
        assert made is not None
        return made

    @property
    def client(self) -> Client:
        return self.now.client()

    def ledger(self, topology: str) -> Ledger:
        return Ledger(lake_config(str(self.folder / "lake")).ledger, topology)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("newcomer") / "up"
    said = rejoin("up", "--dir", str(folder), "--port", str(server.free_port()))
    try:
        yield Up(folder, said)
    finally:
        rejoin("down", "--dir", str(folder))


@pytest.fixture(scope="module")
def browser(up: Up) -> Iterator[WebDriver]:
    with pictures.browser() as driver:
        pictures.log_in(driver, up.now.url, server.USER, up.now.password)
        yield driver


def listening(made: server.RunningAirflow) -> set[str]:
    """The addresses that something in the folder listens on."""
    parts = [psutil.Process(pid) for pid, _ in made.processes.values()]
    found = {p.pid: p for part in parts for p in (part, *part.children(recursive=True))}
    mapped = "::ffff:"  # how Java writes an address of IPv4
    return {c.laddr.ip.removeprefix(mapped) for p in found.values() for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN}


def test_up_prints_the_login_keeps_secrets_and_listens_on_loopback_only(up: Up) -> None:
    assert up.now.url in up.said
    assert up.now.password in up.said
    secrets = ("up.json", "spark.token", "airflow/passwords.json", "airflow/jwt.secret", "airflow/airflow.cfg")
    assert {(up.folder / name).stat().st_mode & 0o777 for name in secrets} == {0o600}
    assert {(up.folder / name).stat().st_mode & 0o777 for name in ("airflow", "logs")} == {0o700}
    assert listening(up.now) and all(ip_address(address).is_loopback for address in listening(up.now)), listening(up.now)


def test_a_second_up_starts_what_has_ended_and_says_the_same(up: Up) -> None:
    before = up.now
    psutil.Process(before.processes["scheduler"][0]).kill()
    again = rejoin("up", "--dir", str(up.folder), "--port", str(before.port), told="not running any more: scheduler")
    assert again == up.said.replace(" (the examples have their first files)", "")
    assert {p for p in server.PARTS if up.now.processes[p] != before.processes[p]} == {"scheduler"}


@pytest.mark.browser
@pytest.mark.parametrize("dags", [("shop",), pytest.param(("departures", "flights"), marks=pytest.mark.nightly)], ids="+".join)
def test_the_form_of_an_example_publishes_a_run_as_it_opens(up: Up, browser: WebDriver, dags: tuple[str, ...]) -> None:
    made = {dag: TriggerForm(browser, up.client, dag).send() for dag in dags}  # they run beside each other
    for dag, run_id in made.items():
        assert up.client.follow(dag, run_id, lambda _: None) == "success", (dag, up.client.states(dag, run_id))
        published = up.ledger(dag).newest(f"airflow:{dag}:{run_id}")
        assert published is not None and published.state == "committed"
        assert any(step.counts.get("inserted") for step in up.ledger(dag).steps(published.number).values())


@pytest.mark.browser
def test_a_form_of_which_every_field_was_emptied_may_be_sent(up: Up, browser: WebDriver) -> None:
    form = TriggerForm(browser, up.client, "shop")
    form.fill("note", "x")
    for field in ("only", "replay"):
        form.choose(field, "orders_enriched")
    for cross in form.crosses():
        cross.click()
    form.fill("note", "\b")
    assert len(form.crosses()) == 2, "of refresh and fuse, which are as declared again"
    assert form.may_be_sent and "required" not in form.text, form.text


def test_down_leaves_nothing_behind(up: Up) -> None:
    rejoin("down", "--dir", str(up.folder))
    left = [p.info for p in psutil.process_iter(["pid", "cmdline"]) if str(up.folder) in " ".join(p.info["cmdline"] or ())]
    assert left == []
    assert "nothing runs" in rejoin("down", "--dir", str(up.folder))

"""Processes of Airflow and Spark that die or are there twice while a DAG runs: the run ends well, and the table is right."""

import time
from datetime import UTC, datetime

import pytest
from running import Running, finished

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.postgres, pytest.mark.nightly, pytest.mark.timeout(1800)]


def test_two_schedulers_at_once(running: Running) -> None:
    flow, shop, _ = running
    flow.start("scheduler", "second scheduler")
    try:
        flow.until(lambda: "Starting the scheduler" in (flow.home / "second scheduler.log").read_text(), "second scheduler")
        shop.next_batch()
        for run in [flow.trigger("shop", f"two_schedulers_{n}") for n in range(2)]:
            finished(flow, shop, run)
        assert flow.processes["second scheduler"].poll() is None, "it did not live to the end"
    finally:
        flow.terminate("second scheduler")


def test_a_killed_scheduler_started_again_ends_the_run(running: Running) -> None:
    flow, shop, _ = running
    shop.next_batch()
    run = flow.trigger("shop", "scheduler_killed")
    flow.until(lambda: "running" in flow.states("shop", run).values() and flow.states("shop", run)["cut"] == "success", "running stage")
    flow.kill("scheduler")
    time.sleep(3)  # the stage goes on meanwhile, and nobody takes note of it
    flow.start("scheduler")
    finished(flow, shop, run)


def test_a_killed_spark_connect_server_started_again_ends_the_run(running: Running) -> None:
    flow, shop, connect = running
    shop.next_batch()
    run = flow.trigger("shop", "connect_killed")
    flow.until(lambda: flow.states("shop", run)["ingest.orders"] == "running", "running stage")
    connect.kill()
    time.sleep(6)  # longer than the pause before another try of the task, which finds no server
    restarted = datetime.now(UTC)
    connect.start()
    finished(flow, shop, run)
    ended = datetime.fromisoformat(flow.tasks("shop", run)["ingest.orders"]["end_date"])
    assert ended > restarted, "the stage needed no server while it was dead: the kill hit nothing"

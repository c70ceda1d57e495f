"""A DAG under a real scheduler, as a user has it: triggers, schedules, failures, clears, retries, backfills, and the DAGs that look after the lake. Every time the table is right."""

import time
from datetime import UTC, datetime, timedelta

import pictures
import psycopg
import pytest
from integration.airflow_server import PASSWORD, USER, Airflow
from integration.airflow_shop import MISSED
from integration.shop import check, folded, output
from integration.trigger_form import TriggerForm
from running import Running, finished

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.postgres, pytest.mark.timeout(1800)]

RESOLVE = "resolve.enriched"


def clear(flow: Airflow, run_id: str, task: str) -> None:
    """What the button does."""
    body = {
        "dry_run": False,
        "dag_run_id": run_id,
        "task_ids": [task],
        "only_failed": True,
        "include_downstream": True,
        "reset_dag_runs": True,
    }
    flow.call("POST", "/api/v2/dags/shop/clearTaskInstances", body)


def test_a_triggered_run_publishes_and_says_what_it_did(running: Running) -> None:
    flow, shop, _ = running
    shop.next_batch()
    finished(flow, shop, flow.trigger("shop", "first", note="the first load"))
    summary = flow.call("GET", "/api/v2/dags/shop/dagRuns/first/taskInstances/publish/xcomEntries/return_value", deserialize=True)["value"]
    assert summary["state"] == "committed" and summary["run"] == 1
    assert shop.topology().ledger.steps(1)["cut"].detail == {"note": "the first load"}
    assert shop.topology().ledger.run(1).owner == "airflow:shop:first"


@pytest.mark.nightly
def test_clearing_tasks_of_a_published_run_does_nothing_again_and_tells_other_dags_once(running: Running) -> None:
    flow, shop, _ = running
    shop.next_batch()
    finished(flow, shop, flow.trigger("shop", "cleared"))

    def events() -> list[object]:
        found = flow.call("GET", "/api/v2/assets/events", source_dag_id="shop", limit=100)["asset_events"]
        return [e["extra"] for e in found if e["source_run_id"] == "cleared"]

    told, head = events(), shop.topology().ledger.head()
    assert told == [{"run": head, "changes": shop.topology().ledger.steps(head or 0)["validate.enriched"].counts["changes"]}]
    body = {"dry_run": False, "dag_run_id": "cleared", "task_ids": [RESOLVE, "publish"], "only_failed": False, "reset_dag_runs": True}
    flow.call("POST", "/api/v2/dags/shop/clearTaskInstances", body)
    finished(flow, shop, "cleared")
    for task in (RESOLVE, "publish"):
        assert f"{task} was done by try 1" in flow.log("shop", "cleared", task, 2)
        assert "was done by" not in flow.log("shop", "cleared", task, 1)
    assert events() == told
    assert shop.topology().ledger.head() == head


def test_the_form_is_checked_before_a_run_starts(running: Running) -> None:
    flow = running.flow
    for wrong in ({"refresh": "sometimes"}, {"only": ["no such output"]}, {"stop_before_publish": "perhaps"}):
        answer = flow.request("POST", "/api/v2/dags/shop/dagRuns", {"dag_run_id": "wrong", "logical_date": None, "conf": wrong})
        assert answer.status_code == 400, wrong


def test_a_terminal_error_fails_at_once_and_clearing_the_task_goes_on_with_the_same_cut(running: Running) -> None:
    flow, shop, _ = running
    before = output(shop.topology())
    shop.next_batch()
    shop.order(f"{RESOLVE}:written", "terminal")
    assert flow.wait("shop", flow.trigger("shop", "terminal")) == "failed"
    assert shop.fired(f"{RESOLVE}:written")
    assert flow.tasks("shop", "terminal")[RESOLVE]["try_number"] == 1, "a terminal error is not tried again"
    assert output(shop.topology()) == before, "a failed run shows nothing"
    number = shop.topology().ledger.newest("airflow:shop:terminal")
    expected = shop.expected()
    shop.next_batch()  # arrives after the cut: not for this run
    clear(flow, "terminal", RESOLVE)
    assert flow.wait("shop", "terminal") == "success"
    assert output(shop.topology()) == expected
    assert shop.topology().ledger.head() == number.number if number else False


@pytest.mark.nightly
def test_the_next_run_abandons_a_failed_one_and_takes_its_input_along(running: Running) -> None:
    flow, shop, _ = running
    shop.next_batch()
    shop.order("ingest.orders:written", "terminal")
    assert flow.wait("shop", flow.trigger("shop", "left_behind")) == "failed"
    shop.next_batch()
    finished(flow, shop, flow.trigger("shop", "takes_along"))
    left = shop.topology().ledger.newest("airflow:shop:left_behind")
    assert left is not None and left.state == "abandoned"
    clear(flow, "left_behind", "ingest.orders")  # too late: it says so, and harms nobody
    assert flow.wait("shop", "left_behind") == "failed"
    assert "RUN_SUPERSEDED" in flow.log("shop", "left_behind", "ingest.orders", 2)
    check(shop)


@pytest.mark.parametrize("what", [pytest.param("fail", marks=pytest.mark.nightly), "kill"])
def test_an_error_that_may_pass_and_a_killed_task_are_tried_again(running: Running, what: str) -> None:
    flow, shop, _ = running
    shop.next_batch()
    shop.order(f"{RESOLVE}:registering", what)
    finished(flow, shop, flow.trigger("shop", what))
    assert shop.fired(f"{RESOLVE}:registering")
    assert flow.tasks("shop", what)[RESOLVE]["try_number"] == 2


@pytest.mark.nightly
def test_two_triggers_at_once_run_one_after_the_other(running: Running) -> None:
    flow, shop, _ = running
    shop.next_batch()
    runs = [flow.trigger("shop", f"at_once_{n}") for n in range(2)]
    for run in runs:
        finished(flow, shop, run)


@pytest.mark.nightly
def test_a_run_of_somebody_else_is_waited_for(running: Running) -> None:
    flow, shop, _ = running
    shop.next_batch()
    other = shop.topology().open("somebody at a terminal")
    run = flow.trigger("shop", "waits")
    flow.until(lambda: flow.states("shop", run)["cut"] == "up_for_retry", "waiting cut")
    assert "RUN_BUSY" in flow.log("shop", run, "cut", 1)
    shop.topology().ledger.abandon(other.number, "gone home")
    finished(flow, shop, run)


def test_stop_before_publish_waits_for_an_approval(running: Running) -> None:
    flow, shop, _ = running
    before = output(shop.topology())
    shop.next_batch()
    run = flow.trigger("shop", "asks", stop_before_publish=True)
    flow.until(lambda: flow.states("shop", run)["approve"] == "awaiting_input", "question", 600, lambda: flow.states("shop", run))
    assert output(shop.topology()) == before
    path = f"/api/v2/dags/shop/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"

    asked = flow.call("GET", path)["body"]
    number = shop.topology().ledger.newest(f"airflow:shop:{run}").number  # type: ignore[union-attr]
    counts = shop.topology().ledger.steps(number)["validate.enriched"].counts
    assert f"| enriched | {counts['inserted']} | {counts['updated']} | {counts['deleted']} | 0 | 0 |" in asked
    changed = [row for key, row in shop.expected().items() if before.get(key) != row]
    assert any(str(row["note"]) in asked for row in changed), "sample rows"
    assert f"](/rejoin/dag/shop/run/{run})" in asked

    def answered(states: dict[str, str]) -> None:
        if states["approve"] == "awaiting_input":
            # Airflow takes an answer right after the task began to wait for a crash of the task, and asks again (docs/airflow.md).
            time.sleep(5)
            flow.request("PATCH", path, {"chosen_options": ["Approve"], "params_input": {}})

    flow.follow("shop", run, answered)
    finished(flow, shop, run)


@pytest.mark.nightly
def test_other_dags_are_started_by_an_output_that_changed(running: Running) -> None:
    flow, shop, _ = running
    flow.ready("reader")
    shop.next_batch()
    finished(flow, shop, flow.trigger("shop", "tells"))

    def seen() -> set[int]:
        """The rejoin runs whose events have started a run of the reader."""
        runs = flow.call("GET", "/api/v2/dags/reader/dagRuns")["dag_runs"]
        path = "/api/v2/dags/reader/dagRuns/{}/taskInstances/seen/xcomEntries/return_value"
        found = [flow.call("GET", path.format(r["dag_run_id"]), deserialize=True)["value"] for r in runs if r["state"] == "success"]
        return {event["run"] for events in found for event in events if event["changes"] > 0}

    head = shop.topology().ledger.head()
    flow.until(lambda: head in seen(), "run of the reader", 120, seen)
    finished(flow, shop, flow.trigger("shop", "nothing_new"))
    time.sleep(8)  # within which a run of the reader would have been started and ended, as the one above was
    assert max(seen()) == head, "an output without changes starts nobody"


@pytest.mark.nightly
def test_a_missed_deadline_is_told(running: Running) -> None:
    flow, shop, _ = running
    flow.ready("shop_late")
    finished(flow, shop, flow.trigger("shop_late", "late"), "shop_late")
    flow.until(shop.alerted.exists, "alert", 90)
    assert shop.alerted.read_text().startswith("shop_late: shop is not published 0:00:01 after its run was queued")


@pytest.mark.nightly
def test_a_backfill_of_five_intervals_beside_a_live_run(running: Running) -> None:
    flow, shop, _ = running
    flow.ready("shop_daily")
    shop.next_batch()
    start = datetime(2025, 3, 1, tzinfo=UTC)
    body = {
        "dag_id": "shop_daily",
        "from_date": start.isoformat(),
        "to_date": (start + timedelta(days=4)).isoformat(),
        "max_active_runs": 2,
    }
    flow.call("POST", "/api/v2/backfills", body | {"reprocess_behavior": "none", "run_backwards": False, "dag_run_conf": {}})
    live = flow.trigger("shop", "beside_the_backfill")

    def states() -> list[str]:
        runs = flow.call("GET", "/api/v2/dags/shop_daily/dagRuns", run_type="backfill")["dag_runs"]
        return [r["state"] for r in runs]

    flow.until(lambda: len(states()) == 5 and set(states()) <= {"success", "failed"}, "end of the backfill", 900, states)
    assert states() == ["success"] * 5
    finished(flow, shop, live)


@pytest.mark.nightly
def test_catch_up_after_an_outage_the_first_run_does_all_the_work(running: Running) -> None:
    flow, shop, _ = running
    for _ in range(3):
        shop.next_batch()
    before = len(shop.topology().ledger.runs())
    flow.ready("shop_caught_up")

    def states() -> list[str]:
        return [r["state"] for r in flow.call("GET", "/api/v2/dags/shop_caught_up/dagRuns", run_type="scheduled")["dag_runs"]]

    flow.until(lambda: len(states()) >= MISSED and set(states()) == {"success"}, "end of the caught-up runs", 300, states)
    check(shop)
    made = shop.topology().ledger.runs()[before:]
    changes = [shop.topology().ledger.steps(r.number)["publish"].counts["changes"] for r in made]
    assert changes[0] > 0
    assert set(changes[1:]) == {0}


@pytest.mark.nightly
def test_scheduled_runs_go_on_while_batches_arrive(running: Running) -> None:
    flow, shop, _ = running
    flow.ready("shop_often")

    def ended() -> list[str]:
        runs = flow.call("GET", "/api/v2/dags/shop_often/dagRuns", run_type="scheduled")["dag_runs"]
        return [r["state"] for r in runs if r["state"] in ("success", "failed")]

    for number in range(1, 4):
        shop.next_batch()
        flow.until(lambda wanted=number: len(ended()) >= wanted, "scheduled run", 300, ended)  # type: ignore[misc]
    flow.pause("shop_often", paused=True)
    assert set(ended()) == {"success"}
    run, ledger = flow.trigger("shop", "after_the_scheduled_ones"), shop.topology().ledger

    def ended_too() -> bool:
        left = ledger.open_run()
        if left is not None and left.owner.startswith("airflow:shop_often:"):
            ledger.abandon(left.number, "its DAG is paused")  # in the middle of a run, which now waits: the documented action
        return flow.run("shop", run)["state"] in ("success", "failed")

    flow.until(ended_too, "end of the run", 300)
    finished(flow, shop, run)


@pytest.mark.nightly
def test_a_sink_that_is_down_fails_its_own_task_only_and_catches_up(running: Running) -> None:
    flow, shop, _ = running
    shop.next_batch()
    flow.ready("sold")
    assert flow.wait("sold", flow.trigger("sold", "no_sink")) == "failed"  # its database does not exist yet
    states = flow.states("sold", "no_sink")
    assert {task for task, state in states.items() if state == "failed"} == {"deliver.people.postgres"}
    assert states["publish"] == "success"
    with psycopg.connect(flow.sink.replace("/sink", "/postgres"), autocommit=True) as server:
        server.execute("CREATE DATABASE sink")
    shop.next_batch()
    assert flow.wait("sold", flow.trigger("sold", "sink_is_there")) == "success", flow.states("sold", "sink_is_there")
    with psycopg.connect(flow.sink) as target:
        assert dict(target.execute("SELECT id, name FROM people").fetchall()) == shop.customers


@pytest.mark.nightly
def test_maintenance_compacts_and_expires_without_a_difference_for_readers(running: Running) -> None:
    flow, shop, _ = running
    topology, before = shop.topology(), output(shop.topology())
    flow.ready("rejoin_maintenance")
    assert flow.wait("rejoin_maintenance", flow.trigger("rejoin_maintenance", "by_hand")) == "success"
    assert flow.tasks("rejoin_maintenance", "by_hand")["compact"]["rendered_map_index"] in ("shop", "sold")
    kinds = {r.kind for r in topology.ledger.runs() if r.state == "committed"}
    assert kinds == {"run", "compact", "expire"}
    assert output(topology) == folded(topology) == before


@pytest.mark.browser
@pytest.mark.nightly  # by day the form of an example (test_up)
def test_the_forms_that_look_after_the_lake_do_it_as_they_open(running: Running) -> None:
    flow, shop, _ = running
    topology = shop.topology()
    if topology.ledger.head() is None:
        shop.next_batch()
        finished(flow, shop, flow.trigger("shop", "something_to_verify"))
    before = output(topology)
    opened = topology.open("somebody at a terminal")
    with pictures.browser() as browser:
        pictures.log_in(browser, flow.url, USER, PASSWORD)
        sent = {"rejoin_abandon": TriggerForm(browser, flow, "rejoin_abandon").send()}
        flow.until(lambda: topology.ledger.run(opened.number).state == "abandoned", "end of the run, which is the only open one")
        for dag in ("rejoin_freshness", "rejoin_maintenance", "rejoin_verify"):
            sent[dag] = TriggerForm(browser, flow, dag).send()
    for dag, run_id in sent.items():
        assert flow.wait(dag, run_id) == "success", (dag, flow.states(dag, run_id))
    assert flow.tasks("rejoin_verify", sent["rejoin_verify"])["verify"]["rendered_map_index"] in ("shop", "sold"), (
        "called after its topology"
    )
    assert output(topology) == before


@pytest.mark.nightly
def test_verify_may_be_asked_to_recompute_everything_and_abandon_for_a_topology(running: Running) -> None:
    flow, shop, _ = running
    topology = shop.topology()
    opened = topology.open("somebody at a terminal")
    for dag, params in (("rejoin_abandon", {"topology": "shop"}), ("rejoin_verify", {"full": True})):
        flow.ready(dag)
        assert flow.wait(dag, flow.trigger(dag, "by_hand", **params)) == "success", flow.states(dag, "by_hand")
    assert topology.ledger.run(opened.number).state == "abandoned"

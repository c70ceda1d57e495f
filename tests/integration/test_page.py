"""rejoin's page in a real Airflow: refused without login, and in a real browser with one, alone and inside Airflow's UI."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlparse

import pictures
import pytest
from api_server import PASSWORDS, Airflow, airflow
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from shop import Shop

from rejoin.lake.spark.session import session
from rejoin.steps.run.schedule import run_topology

pytestmark = [pytest.mark.airflow, pytest.mark.browser, pytest.mark.slow]

DAG = """
from airflow.sdk import DAG, task

with DAG("shop"):
    before = None
    for step in ("cut", "ingest.orders", "ingest.customers", "subscribe.enriched", "respond.enriched.customers", "resolve.enriched", "publish"):
        one = task(task_id=step)(lambda: None)()
        before >> one if before is not None else None
        before = one
"""
EXPECTED = """
from rejoin import not_null

enriched.expect(not_null("note"), severity="warn")
"""
DAG_RUN = "manual__2026-11-21T10:00:00+00:00"
BAD = '{"key": {"id": "x"}, "value": {"before": null, "after": {"id": "x", "note": "<b>bad</b>"}, "op": "c"}, "headers": {}}\n'

PAGES = (
    "/",
    "/t/shop",
    "/t/shop/runs/1",
    "/t/shop/tables/orders",
    "/t/shop/tables/enriched?key=101",
    "/t/shop/tables/enriched__subscriptions__customers",
    "/t/shop/search?key=101",
    "/static/page.css",
    "/static/page.js",
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Three runs: by hand, by a DAG, and one that quarantines a record; of each output row something is expected."""
    made = Shop(tmp_path_factory.mktemp("page"))
    made.file.write_text(made.file.read_text().replace("\norders.left_join", "\nenriched = orders.left_join") + EXPECTED)
    for number, owner in enumerate(("process:here:1:2.0", f"airflow:shop:{DAG_RUN}", "process:here:1:2.0"), start=1):
        made.next_batch()
        if number == 3:
            feed = made.root / "landing" / "orders" / f"{made.batch:04}.jsonl"
            feed.write_text(feed.read_text() + BAD)
        topology = made.topology()
        run_topology(topology, lambda t=topology: session(t.config), owner)
    return made


@pytest.fixture(scope="module")
def server(shop: Shop) -> Iterator[Airflow]:
    dags = shop.root / "dags"
    dags.mkdir()
    (dags / "shop.py").write_text(DAG)
    with airflow(shop.root, str(shop.lake), dags) as running:
        body = {"dag_run_id": DAG_RUN, "logical_date": "2026-11-21T10:00:00Z"}
        made = running.ask("/api/v2/dags/shop/dagRuns", running.token("admin"), body)
        assert made.status == 200, made.text
        yield running


@pytest.fixture(scope="module", params=["light", pytest.param("dark", marks=pytest.mark.nightly)])
def browser(request: pytest.FixtureRequest, server: Airflow) -> Iterator[WebDriver]:
    with pictures.browser(dark=request.param == "dark") as driver:
        pictures.log_in(driver, server.url, "admin", PASSWORDS["admin"])
        driver.dark = request.param == "dark"
        yield driver


@pytest.mark.parametrize("page", [*PAGES, "/dag/shop", f"/dag/shop/run/{quote(DAG_RUN)}", "/t/nope"])
def test_without_a_login_every_page_is_refused_and_tells_nothing(server: Airflow, page: str) -> None:
    answer, other = server.ask(f"/rejoin{page}"), server.ask("/rejoin/t/there-is-none")
    assert answer.status == other.status == 401
    assert re.sub('next=[^"]*', "", answer.text) == re.sub('next=[^"]*', "", other.text)
    assert server.ask(f"/rejoin{page}", "no.such.token").status in (401, 403)


@pytest.mark.parametrize("page", PAGES)
def test_a_viewer_sees_every_page_and_no_page_may_load_from_elsewhere(server: Airflow, page: str) -> None:
    answer = server.ask(f"/rejoin{page}", server.token("viewer"))
    assert answer.status == 200, answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'self'" in policy
    assert "unsafe" not in policy


def test_pages_cannot_be_posted_to(server: Airflow) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert server.ask("/rejoin/t/shop", server.token("admin"), {}, method).status == 405


def test_who_may_not_read_the_dag_does_not_see_its_topology(server: Airflow) -> None:
    token = server.token("stranger")
    assert server.ask("/rejoin/t/shop/tables/orders", token).status == 403
    assert server.ask("/rejoin/dag/shop", token).status == 403
    for user in ("stranger", "viewer"):
        unknown = server.ask("/rejoin/t/nope", server.token(user))
        assert unknown.status == 404 and "shop" not in unknown.text, "no name before permission"
    overview = server.ask("/rejoin/", token)
    assert overview.status == 200
    assert "/t/shop" not in overview.text


@pytest.mark.parametrize(
    ("page", "status", "text"),
    [
        ("/t/nope", 404, "no topology &#39;nope&#39;"),
        ("/t/%3Cscript%3E", 404, "&lt;script&gt;"),
        ("/t/shop/runs/99", 404, "RUN_UNKNOWN"),
        ("/t/shop/runs/x", 400, "Not found"),
        ("/t/shop/tables/nope", 404, "UNKNOWN_TABLE"),
        ("/t/shop/tables/orders?key=abc", 404, "does not fit"),
        (f"/t/shop/tables/orders?key={'1' * 1001}", 400, "Not found"),
        ("/dag/other", 404, "made no run"),
        ("/dag/shop/run/other", 404, "opened no run"),
        ("/nope", 404, "no such page"),
    ],
)
def test_mistakes_are_pages_with_a_status_and_no_trace(server: Airflow, page: str, status: int, text: str) -> None:
    answer = server.ask(f"/rejoin{page}", server.token("viewer"))
    assert answer.status == status, answer.text
    assert text in answer.text
    assert "Traceback" not in answer.text
    assert "<script>" not in answer.text


def test_links_of_a_dag_and_of_a_task_lead_to_the_topology_and_to_the_step(server: Airflow) -> None:
    token = server.token("viewer")
    assert server.ask("/rejoin/dag/shop", token).headers["location"] == "/rejoin/t/shop"
    of_task = server.ask(f"/rejoin/dag/shop/run/{quote(DAG_RUN)}?task=ingest.orders", token)
    assert of_task.headers["location"] == "/rejoin/t/shop/runs/2#ingest.orders"


def test_a_browser_without_a_login_is_led_to_the_form_and_back(server: Airflow) -> None:
    with pictures.browser() as driver:
        driver.get(f"{server.url}/rejoin/t/shop")
        assert "Please log in" in pictures.shown(driver)
        assert "orders" not in pictures.shown(driver)
        pictures.log_in(driver, driver.find_element(By.LINK_TEXT, "Log in").get_attribute("href"), "viewer", PASSWORDS["viewer"])
        pictures.wait_for(driver, lambda: "left join customers" in pictures.shown(driver), "the page after the login")
        assert urlparse(driver.current_url).path == "/rejoin/t/shop"


def test_the_page_alone_shows_graph_runs_and_a_keys_history(server: Airflow, shop: Shop, browser: WebDriver) -> None:
    browser.get(f"{server.url}/rejoin/t/shop")
    text = pictures.shown(browser)
    boxes = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "svg .name")]
    assert sorted(boxes) == ["customers", "enriched", "left join customers", "orders"]
    assert f"{len(shop.expected())} rows" in text
    runs = [e.text.split() for e in browser.find_elements(By.CSS_SELECTOR, "#runs tbody tr")]
    assert [(r[0], r[1]) for r in runs] == [("3", "committed"), ("2", "committed"), ("1", "committed")]

    browser.find_element(By.LINK_TEXT, "enriched").click()
    browser.find_element(By.NAME, "key").send_keys("101\n")
    pictures.wait_for(browser, lambda: "History" in pictures.shown(browser), "the key's history")
    note = str(shop.expected()[101]["note"])
    row = browser.find_element(By.CSS_SELECTOR, "#key dl.row").text
    assert note in row
    history = [e.text.split() for e in browser.find_elements(By.CSS_SELECTOR, "table.history tbody tr")]
    assert history[-1][0] == "1"
    assert "inserted" in history[-1]


def test_the_strip_says_fresh_verified_what_is_in_quarantine_and_the_pace_of_runs(server: Airflow, shop: Shop, browser: WebDriver) -> None:
    shop.topology().ledger.verified(3, 0, fast=True)
    browser.get(f"{server.url}/rejoin/t/shop")
    cards = {c.find_element(By.TAG_NAME, "h2").text: c for c in browser.find_elements(By.CSS_SELECTOR, "#status .card")}
    assert list(cards) == ["Fresh", "Verified", "In quarantine", "Last 3 runs"]
    assert "yes:" in cards["Fresh"].text and "target 2 h" in cards["Fresh"].text
    assert "no difference" in cards["Verified"].text and "as of run 3" in cards["Verified"].text
    assert "1 of orders" in cards["In quarantine"].text
    bars = cards["Last 3 runs"].find_elements(By.TAG_NAME, "rect")
    assert len(bars) == 3 and all(b.size["height"] > 0 for b in bars)
    assert cards["Last 3 runs"].find_element(By.TAG_NAME, "polyline").size["width"] > 0
    tops = {c.location["y"] for c in cards.values()}
    assert len(tops) == 1, "the cards stand in one row"


def test_internal_tables_are_folded_away(server: Airflow, browser: WebDriver) -> None:
    for page in ("/t/shop", "/t/shop/runs/3", "/t/shop/tables/enriched?key=101"):
        browser.get(f"{server.url}/rejoin{page}")
        assert "__" not in pictures.shown(browser).replace(DAG_RUN[:20], ""), page
        assert "_hash" not in pictures.shown(browser), page
    browser.get(f"{server.url}/rejoin/t/shop")
    browser.find_element(By.CSS_SELECTOR, "#tables summary").click()
    pictures.wait_for(browser, lambda: "enriched__changes" in pictures.shown(browser), "the other tables")


def test_a_run_shows_its_graph_with_states_counts_and_some_changes(server: Airflow, shop: Shop, browser: WebDriver) -> None:
    browser.get(f"{server.url}/rejoin/t/shop/runs/3")
    boxes = {e.find_element(By.CSS_SELECTOR, ".name").text: e for e in browser.find_elements(By.CSS_SELECTOR, "#graph .box")}
    assert sorted(boxes) == ["customers", "enriched", "left join customers", "orders"]
    assert all("done" in b.get_attribute("class") for b in boxes.values())
    steps = shop.topology().ledger.steps(3)
    flows = [int(e.text) for e in browser.find_elements(By.CSS_SELECTOR, "#graph .flow")]
    counted = (steps["ingest.orders"].counts["changes"], steps["ingest.customers"].counts["changes"])
    assert sorted(flows) == sorted((*counted, steps["respond.enriched.customers"].counts["responses"]))
    changed = browser.find_elements(By.CSS_SELECTOR, "#changes tbody tr")
    assert len(changed) == min(6, steps["validate.enriched"].counts["changes"])
    assert {e.text for e in browser.find_elements(By.CSS_SELECTOR, "#changes tbody td:first-child")} <= {"inserted", "updated", "deleted"}
    engines = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "#steps tbody td:nth-child(4)")]
    assert engines[0] == "" and engines[1] == "process", "the cut needs no engine; small steps run in the process"


def test_a_run_is_followed_while_it_goes_on_and_a_failed_step_is_told(server: Airflow, shop: Shop, browser: WebDriver) -> None:
    topology = shop.topology()
    ledger, run = topology.ledger, topology.open("somebody")
    try:
        topology.cut(run)
        browser.get(f"{server.url}/rejoin/t/shop/runs/{run.number}")
        look = "return document.querySelector('#graph .box.source').classList"  # in one call: the page may replace the box at any time
        state = lambda: browser.execute_script(look)[-1]  # noqa: E731
        assert state() == "waiting"
        browser.execute_script("window.same = true")
        ledger.began(run.number, "ingest.orders")
        pictures.wait_for(browser, lambda: state() == "running", "the state that runs")
        ledger.began(run.number, "ingest.orders")
        ledger.broke(run.number, "ingest.orders", "SOURCE_MISSING <orders>\n  next: look for it")
        pictures.wait_for(browser, lambda: state() == "failed", "the state that failed")
        assert "ingest.orders failed in try 2" in pictures.shown(browser)
        pictures.wait_for(browser, lambda: "SOURCE_MISSING <orders>" in browser.find_element(By.ID, "failed").text, "the error as text")
        ledger.abandon(run.number, "the test is over")
        pictures.wait_for(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-live]"), "the last look")
        assert browser.execute_script("return window.same"), "the page was never loaded anew"
    finally:
        ledger.abandon(run.number, "the test is over")


def test_a_key_is_found_and_its_row_drawn_from_record_to_output(server: Airflow, shop: Shop, browser: WebDriver) -> None:
    browser.get(f"{server.url}/rejoin/t/shop")
    browser.find_element(By.CSS_SELECTOR, ".search input").send_keys("101\n")
    pictures.wait_for(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".hits a"), "what was found")
    assert [e.text for e in browser.find_elements(By.CSS_SELECTOR, "main section h2")] == ["orders", "enriched"]
    browser.find_elements(By.CSS_SELECTOR, ".hits a")[1].click()
    pictures.wait_for(browser, lambda: browser.find_elements(By.ID, "why"), "the path")
    boxes = {e.find_element(By.CSS_SELECTOR, ".name").text: e.rect["x"] for e in browser.find_elements(By.CSS_SELECTOR, "#key .box")}
    record = next(x for name, x in boxes.items() if name.startswith("0001.jsonl line 7"))
    assert record < boxes["orders 101"] < boxes["enriched 101"]
    browser.find_element(By.CSS_SELECTOR, "#key summary").click()
    pictures.wait_for(browser, lambda: "landing/orders/0001.jsonl line 7" in pictures.shown(browser), "the same in words")
    assert "LEFT JOIN" in browser.find_element(By.CSS_SELECTOR, "#sql pre").text


def test_data_docs_are_linked_and_cannot_run_anything(server: Airflow, shop: Shop, browser: WebDriver) -> None:
    browser.get(f"{server.url}/rejoin/t/shop/runs/1")
    browser.find_element(By.CSS_SELECTOR, "a.docs").click()
    pictures.wait_for(browser, lambda: "values must never be null" in pictures.shown(browser), "Data Docs")
    answer = server.ask("/rejoin/t/shop/runs/1/docs/enriched/index.html", server.token("viewer"))
    assert answer.status == 200 and "script-src" not in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    for other in ("../result.json", "%2e%2e/result.json", "..%2fresult.json", "nothing.html"):
        assert server.ask(f"/rejoin/t/shop/runs/1/docs/enriched/{other}", server.token("viewer")).status == 404, other
    assert server.ask("/rejoin/t/shop/runs/1/docs/enriched/index.html", server.token("stranger")).status == 403


def test_quarantine_and_skew_are_shown(server: Airflow, browser: WebDriver) -> None:
    browser.get(f"{server.url}/rejoin/t/shop/tables/orders#quarantine")
    assert "<b>bad</b>" in browser.find_element(By.ID, "quarantine").text
    browser.get(f"{server.url}/rejoin/t/shop/tables/enriched__subscriptions__customers")
    assert "live subscriptions" in browser.find_element(By.ID, "skew").text


def test_pages_fit_a_laptop_screen_and_are_light_or_dark(server: Airflow, browser: WebDriver) -> None:
    for page in PAGES[:7]:
        browser.get(f"{server.url}/rejoin{page}")
        wide = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{page} is {wide} pixels wider than the screen"
        assert _brightness(browser) == ("dark" if browser.dark else "light")


def test_the_page_is_a_menu_entry_of_airflow_and_a_tab_of_dags_runs_and_tasks(server: Airflow, browser: WebDriver) -> None:
    browser.get(server.url)
    pictures.wait_for(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "a[href*='plugin/rejoin']"), "the menu entry")
    run = f"/dags/shop/runs/{quote(DAG_RUN)}"
    for path, text in {
        "/plugin/rejoin": "Topologies",
        "/dags/shop/plugin/rejoin-topology": "left join customers",
        f"{run}/plugin/rejoin-run": "resolve.enriched",
        "/dags/shop/tasks/ingest.orders/plugin/rejoin-task": "left join customers",
        f"{run}/tasks/ingest.orders/plugin/rejoin-step": "resolve.enriched",
    }.items():
        pictures.open_embedded(browser, server.url, path, text)
        assert _brightness(browser) == ("dark" if browser.dark else "light"), path
        if path.endswith("rejoin-step"):
            assert browser.find_element(By.CSS_SELECTOR, "tr:target").get_attribute("id") == "ingest.orders"


def test_inside_airflow_the_page_follows_its_setting_and_links_leave_the_frame(server: Airflow, browser: WebDriver) -> None:
    pictures.open_embedded(browser, server.url, "/plugin/rejoin", "Topologies")
    browser.find_element(By.LINK_TEXT, "shop").click()
    pictures.wait_for(browser, lambda: "left join customers" in pictures.shown(browser), "the topology in the frame")
    other = "light" if browser.dark else "dark"
    browser.execute_script("parent.document.documentElement.className = arguments[0]", other)
    pictures.wait_for(browser, lambda: _brightness(browser) == other, "the other colours")

    browser.find_element(By.CSS_SELECTOR, "#runs a[data-airflow]").click()
    browser.switch_to.default_content()
    pictures.wait_for(browser, lambda: urlparse(browser.current_url).path.startswith("/dags/shop/runs/"), "Airflow's page of the DAG run")


def test_a_picture_is_made_of_the_dags_graph(server: Airflow, browser: WebDriver, tmp_path: Path) -> None:
    pictures.dag_graph(browser, server.url, "shop", tmp_path / "dag.png")
    assert (tmp_path / "dag.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_was_fetched_from_anywhere_else(server: Airflow, browser: WebDriver) -> None:
    pictures.open_embedded(browser, server.url, "/dags/shop/plugin/rejoin-topology", "left join customers")
    urls = pictures.requested(browser)
    assert any("/rejoin/static/page.css" in u for u in urls), "the log of requests is empty"
    assert {urlparse(u).netloc for u in urls} == {urlparse(server.url).netloc}


def _brightness(driver: WebDriver) -> str:
    """Whether the background is light or dark."""
    colour = str(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
    red, green, blue = (int(part) for part in colour.strip("rgba()").split(",")[:3])
    return "light" if red + green + blue > 3 * 128 else "dark"

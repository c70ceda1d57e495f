"""From data to HTML: everything escaped, graphs in their places, numbers and times as people read them."""

import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from small_lake import DAG_RUN, NASTY, SUBSCRIPTIONS, make

from rejoin.errors import QueryRefused
from rejoin.lake.ledger.history import RunLine, StepLine
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord
from rejoin.lake.ledger.run_owner import dag_run
from rejoin.lake.ledger.tries import StepTries
from rejoin.page import airflow_tasks, engines, formats, record_path, render, run_picture
from rejoin.page.gather import Lake
from rejoin.page.model import Pace, StepRow
from rejoin.page.run_picture import State, state_of
from rejoin.page.sparkline import sparkline
from rejoin.plan.model.step_results import Ending

DONE = StepLine(StepRecord("resolve.enriched", {}, 1.0, 0), 2.0)
LEFT = StepLine(StepRecord("resolve.enriched", {}, 1.0, 0, {}, Ending.KEPT), 2.0)
SITE = render.Site("/rejoin", "", 4_000_000_000.0)


class Elements(HTMLParser):
    """Every start tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every kind of page of the small lake."""
    lake = Lake(make(tmp_path_factory.mktemp("html")))
    tables = {t.name: render.table(SITE, lake.table("shop", t.name)) for t in lake.topology("shop").tables}
    return tables | {
        "overview": render.overview(SITE, lake.location, [lake.line("shop")]),
        "empty": render.overview(SITE, NASTY, []),
        "topology": render.topology(SITE, lake.topology("shop"), "shop_dag"),
        "run": render.run(SITE, lake.run("shop", 1)),
        "failed": render.run(SITE, lake.run("shop", 3)),
        "key": render.table(SITE, lake.table("shop", "enriched", ("1",))),
        "source key": render.table(SITE, lake.table("shop", "orders", ("1",))),
        "no such key": render.table(SITE, lake.table("shop", "orders", ("99",))),
        "search": render.search(SITE, lake.search("shop", "1")),
        "message": render.message(SITE, NASTY, NASTY, ("/x", NASTY)),
    }


def test_values_of_users_are_escaped_on_every_page(pages: dict[str, str]) -> None:
    assert not [name for name, text in pages.items() if NASTY in text]
    holding = {name for name, text in pages.items() if "alert(" in text}
    assert holding == {"empty", "topology", "run", "failed", "key", "source key", "message", "orders", "orders__quarantine", "no such key"}


def test_no_page_loads_anything_from_elsewhere_or_runs_anything_inline(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        for tag, attributes in Elements(text).found:
            loaded = attributes.get("src") or (attributes.get("href") if tag == "link" else None)
            assert loaded is None or loaded.startswith(("/rejoin/static/", "data:,")), (name, tag)
            assert tag != "style", name
            assert not any(a == "style" or a.startswith("on") for a in attributes), (name, tag, attributes)
            assert attributes.get("method", "get") == "get", name


def test_a_run_shows_what_was_expected_and_where_the_verdicts_are(pages: dict[str, str]) -> None:
    assert "<h2>Expectations</h2>" in pages["run"]
    assert "validation/shop/1/enriched/result.json" in pages["run"]
    assert "<h2>Expectations</h2>" not in pages["failed"]


def test_a_topology_links_to_its_dag_and_its_dag_runs(pages: dict[str, str]) -> None:
    links = {a["href"] for t, a in Elements(pages["topology"]).found if t == "a" and "data-airflow" in a}
    assert links == {"/dags/shop_dag", "/dags/shop_dag/runs/manual__2026-11-21T10%3A00%3A00%2B00%3A00"}


def test_every_link_to_a_table_or_run_leads_to_a_page(pages: dict[str, str]) -> None:
    known = {f"/rejoin/t/shop/runs/{n}" for n in (1, 2, 3)} | {f"/rejoin/t/shop/tables/{t}" for t in pages}
    links = {re.split("[?#]", str(a["href"]))[0] for text in pages.values() for t, a in Elements(text).found if t == "a"}
    assert "customers" in pages["topology"], "the graph shows customers, which no run has written yet, without a link"
    assert {x for x in links if "/shop/" in x} <= known


def test_a_step_can_be_linked_to(pages: dict[str, str]) -> None:
    ids = {a["id"] for t, a in Elements(pages["run"]).found if t == "tr" and "id" in a}
    assert {"cut", "ingest.orders", "respond.enriched.customers", "publish"} <= ids


def test_a_step_says_how_it_was_done_and_one_without_an_end_says_so(pages: dict[str, str]) -> None:
    assert "full: the definition is new" in pages["run"]
    assert "as a whole: all" in " ".join(pages["run"].split())
    assert "did not run" in pages["run"]
    assert ">waiting</span>" in pages["failed"]
    assert "failed, may go on" in pages["failed"]


def test_spark_jobs_are_a_number_where_all_were_counted_and_else_not_mentioned(pages: dict[str, str]) -> None:
    assert "<dt>engine</dt><dd>Spark</dd>" in pages["run"], "one step has not counted"
    assert '<td class="short">Spark SQL, 4 jobs</td>' in pages["run"]
    assert "<td>Spark, 4 jobs</td>" in pages["topology"], "run 2 has counted all"


@pytest.mark.parametrize(
    ("did", "of_steps", "of_run"),
    [
        ([("local", 0)], ["process"], "process"),
        ([("task", None)], ["Spark task"], "Spark"),
        ([("task", None), ("spark", None)], ["Spark task", "Spark SQL"], "Spark"),
        ([("spark", 3), ("local", 0)], ["Spark SQL, 3 jobs", "process"], "process and Spark, 3 jobs"),
        ([(None, 0)], [""], ""),
    ],
)
def test_who_did_a_step_is_told_exactly_and_who_did_a_run_in_short(
    did: list[tuple[str | None, int | None]], of_steps: list[str], of_run: str
) -> None:
    steps = [StepRecord(f"resolve.n{n}", {}, 1.0, jobs, {"engine": name} if name else {}) for n, (name, jobs) in enumerate(did)]
    run = RunLine("shop", 1, "run", "committed", "me", 0.0, None, (), 0.0, None, None, tuple(StepLine(s, 2.0) for s in steps))
    assert [engines.of_step(s) for s in steps] == of_steps
    assert engines.of_run(run) == of_run


def test_nothing_in_the_lake_says_what_to_do(pages: dict[str, str]) -> None:
    assert "rejoin run" in pages["empty"]
    assert "REJOIN_LAKE" in pages["empty"]


def test_a_row_that_is_no_longer_held_back_is_no_refusal(pages: dict[str, str]) -> None:
    articles = [a["class"] for t, a in Elements(pages["orders"]).found if t == "article"]
    assert articles == ["released", "refused"]
    assert "no longer held back" in pages["orders"]


def test_a_key_without_history_says_so(pages: dict[str, str]) -> None:
    assert "No run has changed this key" in pages["no such key"]
    assert SUBSCRIPTIONS in pages["topology"]


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (f"airflow:shop_dag:{DAG_RUN}", ("shop_dag", DAG_RUN)),
        ("process:host:12:3.4", None),
        ("airflow:shop_dag", None),
        ("airflow::x", None),
        ("airflow:shop:", None),
        ("shop", None),
    ],
)
def test_an_owner_tells_its_dag_run(owner: str, expected: tuple[str, str] | None) -> None:
    assert dag_run(owner) == expected


@pytest.mark.parametrize("task", ["ingest.orders", "ingest_orders", "ingest__orders"])
def test_a_task_finds_its_step_however_its_id_is_separated(task: str) -> None:
    assert airflow_tasks.step_of_task(task, ["cut", "ingest.orders", "publish"]) == "ingest.orders"


def test_a_task_that_is_no_step_finds_none() -> None:
    assert airflow_tasks.step_of_task("deliver", ["cut", "publish"]) is None


@pytest.mark.parametrize(
    ("gone", "text"),
    [
        (0, "0 s ago"),
        (59, "59 s ago"),
        (62, "1 min 2 s ago"),
        (660, "11 min ago"),
        (3600, "1 h ago"),
        (11_400, "3 h 10 min ago"),
        (90_000, "1 d 1 h ago"),
    ],
)
def test_ages_are_rounded_to_what_matters(gone: int, text: str) -> None:
    assert formats.age(1000.0, 1000.0 + gone) == text


def test_what_is_not_known_is_never_a_number() -> None:
    assert [formats.number(None), formats.seconds(None), formats.size(None), formats.moment(None), formats.age(None, 0)] == [
        "not known"
    ] * 5


def test_numbers_sizes_and_values_are_readable() -> None:
    assert [formats.number(1234567), formats.seconds(0.712), formats.seconds(12.34), formats.seconds(245)] == [
        "1,234,567",
        "0.71 s",
        "12.3 s",
        "4 min 5 s",
    ]
    assert [formats.size(48), formats.size(2048), formats.size(3 << 30)] == ["48 B", "2.0 KiB", "3.0 GiB"]
    assert [formats.value(v) for v in (None, "null", 7, b"\x01", {"a": None})] == ["null", "null", "7", "01", '{"a": null}']
    document = [{"é": Decimal("1.50"), "at": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"\x01", "n": math.nan}, None]
    assert formats.value(document) == '[{"é": "1.50", "at": "2026-01-02T00:00:00Z", "raw": "AQ==", "n": "NaN"}, null]'
    assert formats.counts({"read": 3, "noop": 2, "stale": 0}) == "read 3, no-op 2"
    assert formats.cut_off("abcdef", 4) == "abc…"


def test_templates_and_static_files_are_there() -> None:
    assert {p.name for p in Path(render.STATIC).iterdir()} == {"page.css", "page.js"}


@pytest.mark.parametrize(
    ("line", "tried", "state", "lease", "expected"),
    [
        (DONE, StepTries(2, 1.0, None), "open", 9.0, State.DONE),
        (LEFT, None, "committed", 0.0, State.KEPT),
        (None, StepTries(3, 1.0, "SPARK_DOWN"), "open", 9.0, State.FAILED),
        (None, StepTries(1, 1.0, None), "open", 9.0, State.RUNNING),
        (None, StepTries(1, 1.0, None), "open", 4.0, State.SILENT),
        (None, None, "open", 9.0, State.WAITING),
        (None, None, "abandoned", 0.0, State.MISSED),
        (None, StepTries(1, 1.0, None), "abandoned", 0.0, State.MISSED),
    ],
)
def test_what_a_step_is_at(line: StepLine | None, tried: StepTries | None, state: str, lease: float, expected: State) -> None:
    run = RunLine("shop", 1, "run", state, "me", lease, None, (), 0.0, None, None, ())
    assert state_of(StepRow("resolve.enriched", line, tried), run, 5.0) is expected


def test_the_graph_of_a_run_has_states_times_and_what_flows(tmp_path: Path) -> None:
    lake = Lake(make(tmp_path))
    drawn = run_picture.picture(lake.run("shop", 1), 0.0)
    assert drawn is not None
    boxes = {b.title: b for b in drawn.boxes}
    assert (boxes["orders"].lines, boxes["orders"].state) == (("7 read, 1 refused", "1.50 s"), "done")
    assert (boxes["customers"].lines, boxes["customers"].state) == (("did not run",), "missed")
    assert boxes["enriched"].lines == ("+6 ~0 -0", "2.30 s")
    assert "ingest.orders" in boxes["orders"].more
    assert sorted(a.label for a in drawn.arrows) == ["", "", "6"], "the arrow from orders; nobody answered"


@pytest.mark.parametrize(("ending", "label"), [(Ending.DONE, "0"), (Ending.DEFERRED, "")])
def test_a_join_that_was_not_asked_since_all_is_computed_anew_says_no_number(tmp_path: Path, ending: Ending, label: str) -> None:
    page, step = Lake(make(tmp_path)).run("shop", 1), "respond.enriched.customers"
    done = StepRow(step, StepLine(StepRecord(step, {"responses": 0}, 0.1, 0, {}, ending), 2.0), None)
    drawn = run_picture.picture(replace(page, steps=tuple(done if s.step == step else s for s in page.steps)), 0.0)
    assert drawn is not None
    assert [a.label for a in drawn.arrows] == ["6", "", label]


def test_changes_have_a_column_for_rows_before_only_where_there_were_some(pages: dict[str, str]) -> None:
    assert "<th>after</th>" in pages["run"] and "<th>before</th>" not in pages["run"], "run 1 has only inserted"
    assert "<th>before</th><th>after</th>" in pages["key"], "run 2 has updated the row"


def test_a_run_is_told_in_facts_that_wrap_and_its_quarantine_in_counts(pages: dict[str, str]) -> None:
    facts = re.findall("<dt>([^<]*)</dt>", pages["run"].split('id="graph"')[0])
    assert facts == ["opened", "took", "engine", "on top of", "made by", "rebuilt"]
    assert "In all: 1 <code>VALUE_TYPE</code>, 1 no longer held back." in pages["orders"]


def test_a_failed_step_is_shown_with_its_tries_and_error_and_the_page_looks_again_only_while_a_run_lives(tmp_path: Path) -> None:
    location = make(tmp_path)
    lake = Lake(location)
    assert lake.config is not None
    ledger = Ledger(lake.config.ledger, "shop")
    ledger.renew(3, 60)
    for error in ("SOURCE_MISSING one", f"SOURCE_CORRUPT {NASTY}"):
        ledger.began(3, "ingest.orders")
        ledger.broke(3, "ingest.orders", error)
    page = lake.run("shop", 3)
    now = render.run(render.Site("/rejoin", "", 1.0), page)
    assert "ingest.orders failed in try 2" in now and "SOURCE_CORRUPT" in now and "SOURCE_MISSING" not in now and NASTY not in now
    assert "data-live" in now and "data-live" not in render.run(SITE, page)


def test_a_bar_per_run_and_the_line_of_rows_over_it() -> None:
    drawn = sparkline([Pace(1, 2.0, 0), Pace(2, 4.0, 100), Pace(3, 1.0, 25)])
    assert [round(b.height) for b in drawn.bars] == [18, 36, 9]
    heights = [float(point.split(",")[1]) for point in drawn.line.split()]
    assert heights[1] < heights[2] < heights[0], "more rows are higher"
    assert drawn.bars[1].text == "run 2: 4.00 s, 100 rows changed"
    assert sparkline([]).bars == ()


def test_a_row_is_drawn_from_its_record_to_itself(tmp_path: Path) -> None:
    view = Lake(make(tmp_path)).table("shop", "enriched", ("1",)).key_view
    assert view is not None
    assert not isinstance(view.why, str)
    drawn = record_path.picture(view.why, frozenset({"orders"}))
    columns = {b.title: (b.column, b.link) for b in drawn.boxes}
    assert columns["orders 1"] == (1, "/tables/orders?key=1#key")
    assert columns["enriched 1"] == (2, ""), "it has no page here"
    assert [b.column for b in drawn.boxes if b.kind == "record"] == [0]
    assert "left" in {a.label for a in drawn.arrows}
    assert record_path.text(view.why).startswith("enriched 1: there")


def test_where_why_cannot_follow_a_join_the_page_says_so_and_shows_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise QueryRefused("enriched is another kind of join")

    monkeypatch.setattr("rejoin.page.tables.why", refuse)
    text = render.table(SITE, Lake(make(tmp_path)).table("shop", "enriched", ("1",)))
    assert "Not told: enriched is another kind of join." in text and "<h3>History</h3>" in text

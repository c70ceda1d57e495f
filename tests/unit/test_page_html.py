"""From data to HTML: everything escaped, graphs in their places, numbers and times as people read them."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from plans import Shop, everything, star
from small_lake import DAG_RUN, NASTY, SUBSCRIPTIONS, make

from rejoin import Topology, debezium
from rejoin.errors import QueryRefused
from rejoin.lake.history import RunLine, StepLine
from rejoin.lake.ledger import Ledger
from rejoin.lake.owner import dag_run
from rejoin.lake.records import StepRecord
from rejoin.lake.tried import Tried
from rejoin.page import drawing, graph, owners, path, render, running, words
from rejoin.page.gather import Lake
from rejoin.page.model import Kind, Pace, StepRow
from rejoin.page.running import State, state_of
from rejoin.page.sparkline import sparkline
from rejoin.plan.compile import compile
from rejoin.plan.results import Ending

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
    assert "Engine: Spark. On" in " ".join(pages["run"].split()), "one step has not counted"
    assert "<td>Spark, 4 jobs</td>" in pages["run"]
    assert "<td>Spark, 4 jobs</td>" in pages["topology"], "run 2 has counted all"


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


def test_boxes_of_a_graph_do_not_overlap_and_arrows_lead_to_the_right() -> None:
    drawn = graph.graph(everything(), ())
    places = {(b.x, b.y) for b in drawn.boxes}
    assert len(places) == len(drawn.boxes)
    assert all(0 <= b.x <= drawn.width - drawing.WIDTH and 0 <= b.y <= drawn.height - drawing.HEIGHT for b in drawn.boxes)
    for arrow in drawn.arrows:
        numbers = [int(n) for n in re.findall(r"\d+", arrow.path)]
        assert numbers[0] < numbers[-2], arrow


def test_an_arrow_over_several_columns_goes_past_the_boxes_between() -> None:
    drawn = graph.graph(everything(), ())
    long = [re.findall(r"(\d+) (\d+) H (\d+)", a.path) for a in drawn.arrows]
    passed = [(int(x), int(y), int(end)) for found in long for x, y, end in found]
    assert passed, "no arrow of this topology passes a column"
    for x, y, end in passed:
        assert end == x + drawing.WIDTH
        assert not [b for b in drawn.boxes if b.x == x and b.y <= y <= b.y + drawing.HEIGHT]


def test_a_star_is_tables_then_edges_then_the_output() -> None:
    shop = Shop()
    star(shop)
    drawn = graph.graph(shop.compile(), ())
    columns = {b.title: b.column for b in drawn.boxes}
    assert (columns["orders"], columns["join customers"], columns["left join products"], columns["star"]) == (0, 1, 1, 2)
    assert [b.lines for b in drawn.boxes if b.kind is Kind.OUTPUT] == [("rows not known", "no run yet")]


def test_boxes_of_joins_without_subscriptions_say_how_rows_are_found() -> None:
    web = Topology("web")
    schema = "id BIGINT, ad BIGINT, at TIMESTAMP"
    views, clicks = (web.stream(n, id="id", key="ad", event_time="at", schema=schema, source=debezium(n)) for n in ("views", "clicks"))
    ads, more = (web.table(n, key="id", schema="id BIGINT, name STRING", source=debezium(n)) for n in ("ads", "more"))
    ids = ["left.id", "right.id AS other"]
    views.join(clicks, within="1 hour", select=ids, name="near")
    views.join(clicks, before="1 minute", after="1 hour", select=ids, name="later")
    views.join(ads, foreign_key="ad", as_of="event_time", select=["left.id"], name="then")
    views.join(ads, foreign_key="ad", as_of="run", select=["left.id"], name="now")
    ads.full_join(more, select=["left.id", "right.name AS other"], name="both")
    texts = [box.lines[1] for box in graph.graph(compile(web), ()).boxes if box.kind is Kind.SUBSCRIPTIONS]
    assert sorted(texts) == ["1 minute before to 1 hour after", "as of at", "as of the run", "by their keys", "within 1 hour"]


def test_the_same_plan_gives_the_same_graph() -> None:
    assert graph.graph(everything(), ()) == graph.graph(everything(), ())


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
    assert owners.step_of_task(task, ["cut", "ingest.orders", "publish"]) == "ingest.orders"


def test_a_task_that_is_no_step_finds_none() -> None:
    assert owners.step_of_task("deliver", ["cut", "publish"]) is None


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
    assert words.age(1000.0, 1000.0 + gone) == text


def test_what_is_not_known_is_never_a_number() -> None:
    assert [words.number(None), words.seconds(None), words.size(None), words.moment(None), words.age(None, 0)] == ["not known"] * 5


def test_numbers_sizes_and_values_are_readable() -> None:
    assert [words.number(1234567), words.seconds(0.712), words.seconds(12.34), words.seconds(245)] == [
        "1,234,567",
        "0.71 s",
        "12.3 s",
        "4 min 5 s",
    ]
    assert [words.size(48), words.size(2048), words.size(3 << 30)] == ["48 B", "2.0 KiB", "3.0 GiB"]
    assert [words.value(v) for v in (None, "null", 7, b"\x01", {"a": None})] == ["null", "null", "7", "01", '{"a": null}']
    assert words.counts({"read": 3, "noop": 2, "stale": 0}) == "read 3, no-op 2"
    assert words.cut_off("abcdef", 4) == "abc…"


def test_templates_and_static_files_are_there() -> None:
    assert {p.name for p in Path(render.STATIC).iterdir()} == {"page.css", "page.js"}


@pytest.mark.parametrize(
    ("line", "tried", "state", "lease", "expected"),
    [
        (DONE, Tried(2, 1.0, None), "open", 9.0, State.DONE),
        (LEFT, None, "committed", 0.0, State.KEPT),
        (None, Tried(3, 1.0, "SPARK_DOWN"), "open", 9.0, State.FAILED),
        (None, Tried(1, 1.0, None), "open", 9.0, State.RUNNING),
        (None, Tried(1, 1.0, None), "open", 4.0, State.SILENT),
        (None, None, "open", 9.0, State.WAITING),
        (None, None, "abandoned", 0.0, State.MISSED),
        (None, Tried(1, 1.0, None), "abandoned", 0.0, State.MISSED),
    ],
)
def test_what_a_step_is_at(line: StepLine | None, tried: Tried | None, state: str, lease: float, expected: State) -> None:
    run = RunLine("shop", 1, "run", state, "me", lease, None, (), 0.0, None, None, ())
    assert state_of(StepRow("resolve.enriched", line, tried), run, 5.0) is expected


def test_the_graph_of_a_run_has_states_times_and_what_flows(tmp_path: Path) -> None:
    lake = Lake(make(tmp_path))
    drawn = running.picture(lake.run("shop", 1), 0.0)
    assert drawn is not None
    boxes = {b.title: b for b in drawn.boxes}
    assert (boxes["orders"].lines, boxes["orders"].state) == (("7 read, 1 refused", "1.50 s"), "done")
    assert (boxes["customers"].lines, boxes["customers"].state) == (("did not run",), "missed")
    assert boxes["enriched"].lines == ("+6 ~0 -0", "2.30 s")
    assert "ingest.orders" in boxes["orders"].more
    assert sorted(a.label for a in drawn.arrows) == ["", "", "6"], "the arrow from orders; nobody answered"


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
    drawn = path.picture(view.why, frozenset({"orders"}))
    columns = {b.title: (b.column, b.link) for b in drawn.boxes}
    assert columns["orders 1"] == (1, "/tables/orders?key=1#key")
    assert columns["enriched 1"] == (2, ""), "it has no page here"
    assert [b.column for b in drawn.boxes if b.kind == "record"] == [0]
    assert "left" in {a.label for a in drawn.arrows}
    assert path.text(view.why).startswith("enriched 1: there")


def test_where_why_cannot_follow_a_join_the_page_says_so_and_shows_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise QueryRefused("enriched is another kind of join")

    monkeypatch.setattr("rejoin.page.tables.why", refuse)
    text = render.table(SITE, Lake(make(tmp_path)).table("shop", "enriched", ("1",)))
    assert "Not told: enriched is another kind of join." in text and "<h3>History</h3>" in text

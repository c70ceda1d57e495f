"""Graphs on rejoin's page: boxes and the counts on arrows keep apart, and no text is cut where there is room for it."""

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from plans import Shop, everything, star

from rejoin import Topology, debezium, snapshot
from rejoin.page import boxes as drawing
from rejoin.page import plan_picture, text_widths
from rejoin.page.boxes import Box, Graph, Label, drawn
from rejoin.page.model import Kind, Rows, TableLine
from rejoin.plan.check.compile import compile
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.plan import Plan

DAGS = Path(__file__).parents[2] / "dags"
LARGE = "123,456,789"
Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def wide_star() -> Plan:
    """Twelve joins of two tables, each with both."""
    web = Topology("web")
    columns = ", ".join(f"k{n} BIGINT" for n in range(12))
    hits = web.table("hits", key="id", schema=f"id BIGINT, {columns}", source=debezium("hits"))
    pages = web.table("pages", key="id", schema="id BIGINT, name STRING", source=snapshot("pages"))
    made = hits.left_join(pages, "k0", ["left.*", "right.name AS n0"])
    for n in range(1, 12):
        made = made.left_join(pages, f"k{n}", ["left.*", f"right.name AS n{n}"])
    made.named("all_of_it")
    return compile(web)


PLANS = {
    "everything": everything(),
    "twelve joins": wide_star(),
    **{name: load(str(DAGS / f"{name}.py")) for name in ("flights", "departures", "aeroplanes", "shop")},
}
every_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())


def run_of(plan: Plan) -> Graph:
    """The picture of a run in which everything has a large count."""
    content = ((LARGE, "12.3 s"), "done", "")
    return plan_picture.picture(plan, lambda _: content, lambda *_: content, frozenset(), lambda *_: (LARGE, LARGE, LARGE))


def around(box: Box) -> Rectangle:
    return box.x, box.y, box.x + box.width, box.y + box.height


def labels(picture: Graph) -> list[Rectangle]:
    """Where the labels of arrows are."""
    half = text_widths.wide(LARGE, drawing.TEXT, bold=True) / 2
    return [(a.x - half, a.y - drawing.TEXT, a.x + half, a.y) for a in picture.arrows if a.label]


def meet(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@every_plan
def test_boxes_and_the_counts_on_arrows_keep_apart_and_lie_within_the_picture(plan: Plan) -> None:
    picture = run_of(plan)
    counts, boxes = labels(picture), [around(b) for b in picture.boxes]
    assert len(counts) == len([a for a in picture.arrows if a.label]) > 0
    assert [pair for pair in combinations([*counts, *boxes], 2) if meet(*pair)] == []
    assert all(
        left >= 0 and top >= 0 and right <= picture.width and bottom <= picture.height for left, top, right, bottom in counts + boxes
    )


@every_plan
def test_a_count_stands_on_its_own_arrow_where_that_is_level(plan: Plan) -> None:
    for arrow in run_of(plan).arrows:
        if arrow.label:
            level = [(int(x), int(y), int(end)) for x, y, end in re.findall(r"(\d+) (\d+) H (\d+)", arrow.path)]
            half = text_widths.wide(LARGE, drawing.TEXT, bold=True) / 2
            assert [y for x, y, end in level if x <= arrow.x - half and arrow.x + half <= end and y == arrow.y + drawing.ABOVE], arrow


@every_plan
def test_arrows_lead_to_the_right_and_no_two_meet_a_box_at_one_place(plan: Plan) -> None:
    paths = [[int(n) for n in re.findall(r"\d+", a.path)] for a in run_of(plan).arrows]
    assert all(p[0] < p[-1] for p in paths)
    assert len({(p[0], p[1]) for p in paths}) == len({(p[-1], p[-2]) for p in paths}) == len(paths)


@every_plan
def test_an_arrow_over_several_columns_goes_past_the_boxes_between(plan: Plan) -> None:
    picture = run_of(plan)
    for arrow in picture.arrows:
        for x, y, end in re.findall(r"(\d+) (\d+) H (\d+)", arrow.path):
            assert not [b for b in picture.boxes if meet((int(x), int(y) - 1, int(end), int(y) + 1), around(b))], arrow


def test_arrows_meet_a_box_in_the_order_of_their_other_ends() -> None:
    boxes = [Box(name, "", name, (), 0) for name in ("a", "b", "c")] + [Box("z", "", "z", (), 1)]
    picture = drawn(boxes, [("c", "z"), ("a", "z"), ("b", "z")])
    ends = {a.path.split()[2]: int(re.findall(r" (\d+) H \d+$", a.path)[0]) for a in picture.arrows}
    assert [ends[str(b.middle)] for b in picture.boxes if b.id != "z"] == sorted(ends.values())


def test_a_column_without_boxes_takes_no_room() -> None:
    boxes = [Box("a", "", "a", (), 0), Box("b", "", "b", (), 2)]
    near, far = (drawn([boxes[0], replace(boxes[1], column=c)], [("a", "b")]) for c in (1, 2))
    assert near == far


@every_plan
def test_no_text_of_the_examples_is_cut(plan: Plan) -> None:
    lines = tuple(TableLine(t, Kind.SOURCE, Rows(12_345_678, exact=False)) for t in plan.names)
    for box in plan_picture.graph(plan, lines).boxes:
        assert [text for _, text in box.shown] == [box.title, *box.lines]


def test_a_text_is_cut_only_where_its_column_is_as_wide_as_it_may_be() -> None:
    texts = {"short": "a", "long": "1 minute before to 12 hours after", "too long": "x" * 80}
    for name, text in texts.items():
        (box,) = drawn([Box("b", "", name, (text,), 0)], []).boxes
        assert (box.shown[1][1] == text) == (name != "too long")
        assert (box.width == drawing.MOST) == (name == "too long") and box.width >= drawing.LEAST
        assert text_widths.wide(box.shown[1][1], drawing.TEXT) <= box.width - 2 * drawing.PADDING


def test_the_lines_of_a_box_stand_in_its_middle_and_more_of_them_make_it_higher() -> None:
    for lines in ((), ("one",), ("one", "two"), ("one", "two", "three")):
        (box,) = drawn([Box("b", "", "title", lines, 0)], []).boxes
        first, last = box.shown[0][0], box.shown[-1][0]
        assert abs((first - drawing.TITLE + last) / 2 - box.middle) <= 2
        assert box.y < first - drawing.TITLE and last < box.y + box.height


def test_a_label_makes_room_only_where_it_is() -> None:
    boxes = [Box("a", "", "a", (), 0), Box("b", "", "b", (), 1), Box("c", "", "c", (), 2)]
    links = [("a", "b"), ("b", "c")]
    plain, labelled = drawn(boxes, links), drawn(boxes, links, {("a", "b"): Label(LARGE, at_end=True)})
    gaps = [[right.x - left.x - left.width for left, right in zip(g.boxes, g.boxes[1:], strict=False)] for g in (plain, labelled)]
    assert gaps[0] == [drawing.CURVE] * 2
    assert gaps[1][0] > drawing.CURVE == gaps[1][1]


def test_a_star_is_tables_then_edges_then_the_output() -> None:
    shop = Shop()
    star(shop)
    picture = plan_picture.graph(shop.compile(), ())
    columns = {b.title: b.column for b in picture.boxes}
    assert (columns["orders"], columns["join customers"], columns["left join products"], columns["star"]) == (0, 1, 1, 2)
    assert [b.lines for b in picture.boxes if b.kind is Kind.OUTPUT] == [("rows not known", "no run yet")]


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
    texts = [box.lines[1] for box in plan_picture.graph(compile(web), ()).boxes if box.kind is Kind.SUBSCRIPTIONS]
    assert sorted(texts) == ["1 minute before to 1 hour after", "as of at", "as of the run", "by their keys", "within 1 hour"]


MINUTE = 60_000_000


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (60, 60, "within 1 hour"),
        (0, 0, "at the same time"),
        (59, 0, "up to 59 minutes before"),
        (0, 90, "up to 90 minutes after"),
        (1, 60, "1 minute before to 1 hour after"),
        (-1, 720, "1 minute to 12 hours after"),
        (720, -1, "1 minute to 12 hours before"),
    ],
)
def test_the_reach_of_a_window_reads_as_people_say_it(before: int, after: int, text: str) -> None:
    assert plan_picture.reach(before * MINUTE, after * MINUTE) == text


@pytest.mark.parametrize(
    ("kind", "rows", "text"),
    [
        (Kind.SOURCE, Rows(1), "1 row"),
        (Kind.SUBSCRIPTIONS, Rows(1), "1 subscription"),
        (Kind.SUBSCRIPTIONS, Rows(1_234), "1,234 subscriptions"),
        (Kind.OUTPUT, Rows(2, exact=False), "at most 2 rows"),
        (Kind.OUTPUT, Rows(None), "rows not known"),
    ],
)
def test_one_row_is_no_rows(kind: Kind, rows: Rows, text: str) -> None:
    assert plan_picture.summary(TableLine("t", kind, rows)) == text


def test_a_texts_width_knows_narrow_wide_and_full_letters() -> None:
    assert (
        text_widths.wide("iii", 12) < text_widths.wide("nnn", 12) < text_widths.wide("mmm", 12) < text_widths.wide("\u6771\u4eac\u90fd", 12)
    )
    assert text_widths.wide("n", 12) < text_widths.wide("n", 12, bold=True) < text_widths.wide("n", 14, bold=True)
    assert text_widths.cut("n" * 100, 100, 12).endswith("n\u2026") and text_widths.cut("n", 0, 12) == "\u2026"
    assert text_widths.wide(text_widths.cut("n" * 100, 100, 12), 12) <= 100


def test_the_same_plan_gives_the_same_graph() -> None:
    assert plan_picture.graph(everything(), ()) == plan_picture.graph(everything(), ())

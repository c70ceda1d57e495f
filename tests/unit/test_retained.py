"""Which streams let records go, and up to where."""

from collections.abc import Callable
from typing import Any

import pytest

from rejoin import Topology, debezium, records
from rejoin.declare.topology import Relation
from rejoin.errors import SchemaRefused
from rejoin.operate.compact import _since as since
from rejoin.plan import explain
from rejoin.plan.change.compatibility import refuse_forgotten
from rejoin.plan.change.stream_retention import advanced, horizon, reach, settled, why_kept
from rejoin.plan.check.compile import compile
from rejoin.plan.model.json_form import from_json, to_json
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import Horizon

SECOND = 1_000_000
PAIR = ["left.id", "right.id AS other"]
Declare = Callable[[Relation, Relation, Relation], Any]


def plan(declare: Declare, *, clicks: str | None = "20 seconds", lateness: str = "5 seconds") -> Plan:
    on = Topology("web")

    def stream(name: str, kept: str | None) -> Relation:
        source = records(f"{name}/")
        schema = "id BIGINT, k STRING, at TIMESTAMP"
        return on.stream(name, id="id", key="k", event_time="at", schema=schema, source=source, lateness=lateness, retention=kept)

    declare(stream("views", "10 seconds"), stream("clicks", clicks), on.table("ads", "k", "k STRING, name STRING", debezium("ads/")))
    return compile(on)


def pairs(views: Relation, clicks: Relation, _: Relation) -> None:
    views.left_join(clicks, before="1 second", after="3 seconds", select=PAIR, name="pairs")


def two(views: Relation, clicks: Relation, ads: Relation) -> None:
    pairs(views, clicks, ads)
    views.join(clicks, within="10 seconds", select=PAIR, name="wide")


def newest(**times: int | None) -> Callable[[str], int | None]:
    return lambda name: None if (at := times.get(name)) is None else at * SECOND


def kept(declare: Declare, name: str = "views", **more: Any) -> str | None:
    made = plan(declare, **more)
    return why_kept(made, made.table(name))


def test_streams_that_refuse_old_records_on_both_sides_let_go() -> None:
    assert kept(pairs) is None and kept(pairs, "clicks") is None
    assert kept(lambda v, _c, _a: v.join(v, within="1 second", select=PAIR, name="own")) is None
    assert kept(lambda v, _c, a: v.left_join(a, as_of="arrival", select=["left.id", "right.name"], name="named")) is None


@pytest.mark.parametrize(
    ("declare", "more", "why"),
    [
        (pairs, {"clicks": None}, "pairs joins it with a stream that refuses no record"),
        (lambda v, c, _: v.join(c, within="1 second", clock="k", select=PAIR, name="p"), {}, "p has a clock of its own for every value"),
        (lambda v, _c, _a: v.select(["id", "at"]).named("all"), {}, "all can change at any age"),
        (lambda v, _c, a: v.left_join(a, foreign_key="k", select=["left.id", "right.name"], name="n"), {}, "n can change at any age"),
        (lambda v, _c, a: v.left_join(a, as_of="event_time", select=["left.id", "right.name"], name="n"), {}, "n can change at any age"),
    ],
)
def test_every_other_reader_keeps_a_stream_whole(declare: Declare, more: dict[str, Any], why: str) -> None:
    assert kept(declare, **more) == why


def test_a_result_of_a_join_that_is_joined_again_keeps_the_other_stream_only() -> None:
    def above(views: Relation, clicks: Relation, ads: Relation) -> None:
        named = views.left_join(ads, as_of="arrival", select=["left.id", "left.k", "left.at", "right.name"], name="named")
        named.join(clicks, on="k", within="1 second", select=["left.id", "right.id AS other"], name="p")

    assert kept(above) is None
    assert kept(above, "clicks") == "p joins it with a stream that refuses no record"


@pytest.mark.parametrize(
    ("times", "end"),
    [
        ({"views": 100, "clicks": 100}, 80),  # the longer retention
        ({"views": 100, "clicks": 200}, 90),  # the stream that is behind
        ({"views": 1000, "clicks": 15}, -5),  # before the epoch
    ],
)
def test_all_before_twice_the_window_before_the_oldest_that_may_come_can_go(times: dict[str, int], end: int) -> None:
    made = plan(pairs)
    for name in ("views", "clicks"):
        assert horizon(made, made.table(name), newest(**times)) == Horizon(name, (end - 8) * SECOND, end * SECOND)


def test_the_watermark_and_the_widest_window_keep_more() -> None:
    late = plan(lambda v, c, _: v.left_join(c, within="1 second", watermark="each", select=PAIR, name="p"), lateness="10 seconds")
    found = horizon(late, late.table("views"), newest(views=100, clicks=95))
    assert found == Horizon("views", 71 * SECOND, 75 * SECOND)
    both = plan(two)
    assert horizon(both, both.table("views"), newest(views=100, clicks=100)) == Horizon("views", 40 * SECOND, 80 * SECOND)
    assert [reach(edge.match) for node in both.nodes for edge in node.edges if edge.match] == [4 * SECOND, 20 * SECOND]  # type: ignore[arg-type]


def test_nothing_goes_before_both_streams_have_records() -> None:
    made = plan(pairs)
    assert horizon(made, made.table("views"), newest(views=100)) is None
    assert horizon(made, made.table("clicks"), newest(views=100)) is None
    assert horizon(made, made.table("ads"), newest(views=100, clicks=100)) is None


def test_a_horizon_never_goes_back_and_both_streams_refuse_what_lies_before_it() -> None:
    made = plan(pairs)
    first = made.with_horizons(advanced(made, Horizon("views", 72 * SECOND, 80 * SECOND)))
    assert first.horizons == (Horizon("clicks", None, 80 * SECOND), Horizon("views", 72 * SECOND, 80 * SECOND))
    assert advanced(first, Horizon("views", 60 * SECOND, 70 * SECOND)) == first.horizons
    assert (first.stored_from("clicks"), first.taken_from("clicks")) == (None, 80 * SECOND)
    assert from_json(to_json(first)) == first


def test_results_are_settled_where_a_stream_of_theirs_has_let_go() -> None:
    made = plan(two)
    gone = made.with_horizons((Horizon("clicks", 72 * SECOND, 80 * SECOND),))
    assert [settled(made, n) for n in made.nodes] == [False, False]
    assert [settled(gone, n) for n in gone.nodes] == [True, True]


def as_of(when: str, name: str = "right.name") -> Declare:
    return lambda v, _c, a: v.left_join(a, as_of=when, select=["left.id", f"{name} AS name"], name="named")


def test_an_edit_is_refused_if_either_definition_rests_on_what_is_gone() -> None:
    gone = (Horizon("views", 72 * SECOND, 80 * SECOND),)
    old = plan(as_of("arrival")).with_horizons(gone)
    refuse_forgotten(old, plan(as_of("arrival")).with_horizons(gone), "named", away=False)
    for edited in (as_of("event_time"), as_of("arrival", "upper(right.name)")):
        with pytest.raises(SchemaRefused, match="old records of views were let go"):
            refuse_forgotten(old, plan(edited).with_horizons(gone), "named", away=False)
        refuse_forgotten(plan(as_of("arrival")), plan(edited), "named", away=False)


def test_a_name_that_comes_back_is_refused_if_records_were_let_go_meanwhile_or_it_is_another_join_now() -> None:
    gone, further = (Horizon("views", 72 * SECOND, 80 * SECOND),), (Horizon("views", 73 * SECOND, 81 * SECOND),)
    old = plan(as_of("arrival")).with_horizons(gone)
    refuse_forgotten(old, plan(as_of("arrival")).with_horizons(gone), "named", away=True)
    with pytest.raises(SchemaRefused):
        refuse_forgotten(old, plan(as_of("arrival")).with_horizons(further), "named", away=True)
    with pytest.raises(SchemaRefused):
        refuse_forgotten(old, plan(as_of("arrival", "upper(right.name)")).with_horizons(gone), "named", away=True)


def test_explain_says_what_becomes_of_old_records() -> None:
    text = explain.text(plan(pairs, clicks=None))
    assert "old      every record stays stored: pairs joins it with a stream that refuses no record" in text
    assert "old      a compaction lets records go that no later one can meet" in explain.text(plan(pairs))


def test_nothing_more_goes_of_a_stream_that_something_else_reads_now() -> None:
    horizons = (Horizon("views", 5 * SECOND, 7 * SECOND),)
    assert since(plan(pairs).with_horizons(horizons), "views") == 5 * SECOND

    def starred(views: Relation, clicks: Relation, ads: Relation) -> None:
        pairs(views, clicks, ads)
        views.left_join(ads, foreign_key="k", select=["left.id", "right.name"], name="starred")

    assert since(plan(starred).with_horizons(horizons), "views") is None
    assert since(plan(pairs).with_horizons(horizons), "gone") is None


@pytest.mark.parametrize("other", ["stream", "table"])
def test_another_event_time_of_a_stream_that_has_let_go_is_refused(other: str) -> None:
    schema, source = "id BIGINT, k STRING, at TIMESTAMP, seen TIMESTAMP", records("views/")

    def declared(time: str | None) -> Plan:
        on = Topology("web")
        if time is None:
            views = on.table("views", "id", schema, debezium("views/"))
        else:
            views = on.stream("views", id="id", key="k", event_time=time, schema=schema, source=source, retention="1 day")
        ads = on.table("ads", "k", "k STRING, name STRING", debezium("ads/"))
        how = {"foreign_key": "k"} if time is None else {"as_of": "arrival"}
        views.left_join(ads, **how, select=["left.id", "right.name"], name="named" if time else "other")
        return compile(on)

    was, now = declared("at"), declared("seen" if other == "stream" else None)
    refuse_forgotten(was, now, "views", away=False)  # nothing was let go
    with pytest.raises(SchemaRefused, match="event time of stream 'views'"):
        refuse_forgotten(was, now.with_horizons((Horizon("views", 5, 7),)), "views", away=False)

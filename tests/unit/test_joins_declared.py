"""What a topology says of streams and of joins beside foreign keys: what it comes to, and every mistake with its line."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from rejoin import Topology, debezium, snapshot
from rejoin.declare.topology import Relation
from rejoin.errors import TopologyError
from rejoin.plan.check.compile import compile
from rejoin.plan.model import durations, json_form
from rejoin.plan.model.match import AsOf, SameKey, Window
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import steps
from rejoin.plan.sql.defining_query import topology_query


class Web:
    """A topology with two streams and two tables."""

    def __init__(self) -> None:
        self.on = Topology("web")
        self.views = self.stream("views", "view_id")
        self.clicks = self.stream("clicks", "click_id", lateness=timedelta(minutes=2))
        self.ads = self.on.table("ads", "ad", "ad STRING, name STRING", debezium("ads/"))
        self.owners = self.on.table("owners", "ad", "ad STRING, owner STRING", snapshot("owners/"))

    def stream(self, name: str, number: str, **more: object) -> Relation:
        schema = f"{number} BIGINT, ad STRING, at TIMESTAMP"
        return self.on.stream(name, id=number, key="ad", event_time="at", schema=schema, source=debezium(f"{name}/"), **more)  # type: ignore[arg-type]

    def plan(self) -> Plan:
        made = compile(self.on)
        assert json_form.from_json(json_form.to_json(made)) == made
        return made


PAIR = ["left.view_id", "left.at", "right.click_id"]


def mistakes(declare: Callable[[Web], object]) -> list[str]:
    web = Web()
    declare(web)
    with pytest.raises(TopologyError) as refused:
        compile(web.on)
    assert all(p.file == __file__ for p in refused.value.problems)
    return [f"{p.code} {p.message}" for p in refused.value.problems]


def test_two_streams_are_keyed_by_both() -> None:
    web = Web()
    web.views.left_join(web.clicks, within="10 seconds", select=PAIR, name="pairs")
    node = web.plan().node("pairs")
    assert node.key == ("view_id", "click_id") and node.two_sided and node.null_keys
    assert node.match == Window(("ad",), "at", "at", 10_000_000, 10_000_000, lateness=120_000_000)
    assert [s.id for s in steps(web.plan()) if "pairs" in s.id] == ["resolve.pairs", "validate.pairs"]


def test_the_event_time_follows_a_stream_under_another_name() -> None:
    web = Web()
    seen = web.views.filter("ad <> 'x'").select(["view_id", "ad AS what", "at AS seen_at"])
    on = "what = ad"
    seen.join(web.clicks, on=on, before="0 seconds", after="1 hour", select=["left.*", "right.click_id"], name="pairs")
    node = web.plan().node("pairs")
    assert isinstance(node.match, Window) and not node.null_keys
    assert (node.match.left_time, node.match.before, node.match.after) == ("seen_at", 0, 3_600_000_000)
    assert node.edges[0].foreign_key == ("l.`what`",)


def test_a_window_may_begin_after_the_left_record() -> None:
    web = Web()
    web.views.join(web.clicks, before="-1 minute", after="1 hour", select=PAIR, name="pairs")
    plan = web.plan()
    assert "BETWEEN 60000000 AND 3600000000" in topology_query(plan, plan.node("pairs"))


def test_as_of_event_time_reads_versions() -> None:
    web = Web()
    web.views.left_join(web.ads.filter("name <> 'x'"), as_of="event_time", name="named")
    plan = web.plan()
    assert plan.table("ads__versions").key == ("ad", "_valid_from")
    assert plan.node("named").match == AsOf(("ad",), "at", "_valid_from")
    assert plan.node("named").key == ("view_id",)
    assert [c.name for c in plan.node("named").columns] == ["view_id", "ad", "at", "name"]


def test_as_of_a_run_reads_the_table_itself_and_the_result_is_a_stream() -> None:
    web = Web()
    named = web.views.join(web.owners, as_of="run", name="named")
    named.join(web.clicks, within="1 second", select=["left.view_id", "left.owner", "right.click_id"], name="pairs")
    plan = web.plan()
    assert plan.node("named").match == AsOf(("ad",))
    assert plan.node("pairs").left.table == "named"


def test_tables_without_a_foreign_key_are_joined_by_their_keys() -> None:
    web = Web()
    web.ads.full_join(web.owners, name="both")
    node = web.plan().node("both")
    assert node.match == SameKey() and node.key == ("ad",) and not node.null_keys
    assert node.columns[0].sql == "coalesce(l.`ad`, r1.`ad`)"


def test_no_other_join_is_added_to_a_node_of_another_kind() -> None:
    web = Web()
    both = web.ads.full_join(web.owners)
    both.left_join(web.owners, foreign_key="owner", select=["left.*", "right.owner AS boss"], name="bosses")
    plan = web.plan()
    assert [len(n.edges) for n in plan.nodes] == [1, 1]
    assert plan.node("bosses").match is None


MISTAKES: dict[str, tuple[Callable[[Web], object], str]] = {
    "a stream and a table without a time": (lambda w: w.views.join(w.ads, name="x"), "BAD_OPTION a stream is joined with a table as_of="),
    "a table on the left": (lambda w: w.ads.join(w.owners, as_of="run", name="x"), "BAD_OPTION as_of: the left side must be a stream"),
    "an unknown as_of": (lambda w: w.views.join(w.ads, as_of="now", name="x"), "BAD_OPTION as_of='now' is not one of"),
    "a right join as of": (lambda w: w.views.right_join(w.ads, as_of="run", name="x"), "BAD_OPTION as_of: only the stream makes rows"),
    "versions of snapshots": (
        lambda w: w.views.join(w.owners, as_of="event_time", name="x"),
        "BAD_OPTION as_of='event_time': the right side must",
    ),
    "a window of tables": (lambda w: w.ads.join(w.owners, within="1 day", name="x"), "BAD_OPTION within: both sides must be streams"),
    "a window without length": (lambda w: w.views.join(w.clicks, select=PAIR, name="x"), "BAD_OPTION two streams are joined within="),
    "an odd length": (
        lambda w: w.views.join(w.clicks, within="10 moons", select=PAIR, name="x"),
        "BAD_OPTION within='10 moons': expected a text",
    ),
    "a window that ends before it begins": (
        lambda w: w.views.join(w.clicks, before="-3 seconds", after="2 seconds", select=PAIR, name="x"),
        "BAD_OPTION the window ends before it begins",
    ),
    "a window and a foreign key": (
        lambda w: w.views.join(w.clicks, foreign_key="ad", within="1 second", select=PAIR, name="x"),
        "BAD_OPTION foreign_key: streams are joined on=",
    ),
    "a clock that is no part of the key": (
        lambda w: w.views.join(w.clicks, within="1 second", clock="at", select=PAIR, name="x"),
        "BAD_OPTION clock='at': expected some of the columns",
    ),
    "unmatched of an inner join": (
        lambda w: w.views.join(w.clicks, within="1 second", unmatched="at_once", select=PAIR, name="x"),
        "BAD_OPTION unmatched: an inner join has no rows without partner",
    ),
    "a watermark of an inner join": (
        lambda w: w.views.join(w.clicks, within="1 second", watermark="each", select=PAIR, name="x"),
        "BAD_OPTION watermark: an inner join has no rows without partner",
    ),
    "an unknown watermark": (
        lambda w: w.views.left_join(w.clicks, within="1 second", watermark="both", select=PAIR, name="x"),
        "BAD_OPTION watermark='both' is not 'newest' or 'each'",
    ),
    "a watermark for which nothing waits": (
        lambda w: w.views.left_join(w.clicks, within="1 second", watermark="each", unmatched="at_once", select=PAIR, name="x"),
        "BAD_OPTION watermark='each': with unmatched='at_once' nothing waits for a watermark",
    ),
    "a lost right key": (
        lambda w: w.views.join(w.clicks, within="1 second", select=["left.view_id"], name="x"),
        "KEY_LOST select: the key column 'click_id' of clicks is lost",
    ),
    "a time that is none": (
        lambda w: w.on.stream("x", id="i", event_time="i", schema="i BIGINT", source=debezium("x/")),
        "BAD_OPTION table 'x': event_time: column 'i' is BIGINT",
    ),
    "a time that is not there": (
        lambda w: w.on.stream("x", id="i", event_time="at", schema="i BIGINT", source=debezium("x/")),
        "BAD_OPTION table 'x': event_time: the schema has no column 'at'",
    ),
    "keys of other lengths": (
        lambda w: w.ads.join(w.on.table("t", ["a", "b"], "a STRING, b STRING", debezium("t/")), name="x"),
        "FK_COUNT without a foreign_key two tables are joined by their keys",
    ),
}


@pytest.mark.parametrize(("declare", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_told(declare: Callable[[Web], object], expected: str) -> None:
    assert any(line.startswith(expected) for line in mistakes(declare)), mistakes(declare)


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        ("10 seconds", 10_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("250 milliseconds", 250_000),
        ("1 DAY", 86_400_000_000),
        (timedelta(seconds=1.5), 1_500_000),
        ("0 seconds", 0),
        ("-1 second", None),
        ("", None),
        ("10", None),
        ("1 fortnight", None),
        (10, None),
        ("9999999 weeks", None),
    ],
)
def test_lengths_of_time(written: object, micros: int | None) -> None:
    assert durations.micros(written) == micros
    if micros:
        assert durations.micros(durations.text(micros)) == micros

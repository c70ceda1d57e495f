"""What a topic says of itself decides where the next run begins; what a topology says of a topic is checked before."""

import random

import pytest

from rejoin import Topology, debezium, kafka, records, snapshot
from rejoin.declare.sources import SourceDeclaration
from rejoin.errors import PartitionsAdded, SetupError, SourceOverrun, TopicReplaced, TopologyError
from rejoin.plan.check.compile import compile
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.plan.topic_path import TopicPath, topic_path
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.kafka.client import Clients
from rejoin.sources.transports.kafka.offsets import Held, Mark, shared, starts
from rejoin.sources.transports.kafka.reading import spans

PATH = TopicPath("shop", "orders")
NOW = Held("c", "1:2", {0: 5, 1: 0}, {0: 90, 1: 10})


def mark(**changed: object) -> Mark:
    return Mark(**{"path": str(PATH), "cluster": "c", "topic": "1:2", "next": {0: 20, 1: 10}, "cut_at": 7, **changed})  # type: ignore[arg-type]


def test_a_new_source_begins_with_the_oldest_records() -> None:
    assert starts(PATH, None, NOW, by_arrival=True) == {0: 5, 1: 0}


def test_the_next_run_begins_where_the_last_one_ended_and_a_mark_comes_back_as_it_was() -> None:
    kept = mark(tombstones=60)
    assert Mark.from_dict(kept.to_dict()) == kept
    assert starts(PATH, kept, NOW, by_arrival=True) == {0: 20, 1: 10}
    assert starts(PATH, mark(next={0: 20}), NOW, by_arrival=False) == {0: 20, 1: 0}


@pytest.mark.parametrize(
    ("last", "kind", "why"),
    [
        (mark(next={0: 4, 1: 10}), SourceOverrun, "begins at offset 5, and 4 is the next to be read: 1 offsets are lost"),
        (mark(topic="3:4"), TopicReplaced, "another topic of that name"),
        (mark(cluster="d"), TopicReplaced, "in another cluster"),
        (mark(next={0: 91, 1: 10}), TopicReplaced, "partition 0 ends at offset 90, read up to 91"),
        (mark(next={0: 20, 1: 10, 2: 0}), TopicReplaced, "without partition 2"),
        (mark(next={0: 20}), PartitionsAdded, "has 2 partitions and had 1"),
    ],
)
def test_what_does_not_go_on_is_refused(last: Mark, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        starts(PATH, last, NOW, by_arrival=True)


def test_only_what_is_wanted_is_read_again() -> None:
    assert list(spans(10, 100_000, None)) == [(10, 100_000)]
    assert list(spans(10, 100_000, {9, 10, 12, 50_000, 50_001, 100_000})) == [(10, 13), (50_000, 50_002)]
    assert list(spans(10, 100, set())) == []


def planned(source: SourceDeclaration) -> Plan:
    shop = Topology("shop")
    shop.table("orders", key="id", schema="id BIGINT, total INT", source=source).filter("id > 0").named("out")
    return compile(shop)


def test_a_topic_is_named_as_for_a_sink_and_its_plan_has_no_address() -> None:
    plan = planned(debezium(kafka("shop.public.orders", name="east")))
    assert plan.table("orders").source.path == "kafka://east/shop.public.orders"
    assert topic_path("kafka://east/shop.public.orders") == TopicPath("east", "shop.public.orders")
    assert json_form.from_json(json_form.to_json(plan)) == plan


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (debezium(kafka("orders", value="row", partitions=3)), "value, partitions is about a sink"),
        (debezium(kafka("no topic")), "names no topic"),
        (debezium("kafka://orders"), "names no topic"),
        (debezium("KAFKA://a/orders"), "names no topic"),
        (debezium(kafka("")), "names no topic"),
        (debezium(kafka("orders"), topic="shop.public.orders"), "all that is read comes from 'orders'"),
        (snapshot("kafka://kafka/orders"), "snapshot.* reads files and tables of Iceberg: a topic has changes"),
        (records(kafka("orders")), "is for a stream"),
    ],
)
def test_mistakes_about_topics_are_told_with_the_topology(source: SourceDeclaration, why: str) -> None:
    with pytest.raises(TopologyError, match=why):
        planned(source)


def test_an_address_or_settings_say_where_the_cluster_is() -> None:
    assert Clients(SourceAccess(".", {"shop": {"address": "a:1"}}), PATH).registry is None
    assert Clients(SourceAccess(".", {"shop": {"bootstrap.servers": "a:1", "schema.registry.url": "http://r"}}), PATH).registry is not None
    with pytest.raises(SetupError, match="nothing says where the topic kafka://shop/orders is"):
        Clients(SourceAccess(".", {"other": {"address": "a:1"}}), PATH)
    with pytest.raises(SetupError, match=r"the settings of the source .shop. are refused: no\.such\.setting") as raised:
        Clients(SourceAccess(".", {"shop": {"address": "a:1", "no.such.setting": "s3cret"}}), PATH).admin()
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("waiting", "most", "read"),
    [
        ({0: 5, 1: 7}, None, {0: 5, 1: 7}),
        ({0: 5, 1: 7}, 20, {0: 5, 1: 7}),
        ({0: 1_000, 1: 10, 2: 0, 3: 1_000}, 210, {0: 100, 1: 10, 2: 0, 3: 100}),
        ({0: 5, 1: 5, 2: 5}, 14, {0: 4, 1: 5, 2: 5}),
        ({0: 9, 1: 9, 2: 9}, 1, {0: 0, 1: 0, 2: 1}),
    ],
)
def test_a_bound_is_shared_by_the_partitions(waiting: dict[int, int], most: int | None, read: dict[int, int]) -> None:
    assert shared(waiting, most) == read


@pytest.mark.parametrize("seed", range(50))
def test_a_bound_is_exact_fair_and_ends(seed: int) -> None:
    made = random.Random(seed)
    waiting, most = {p: made.choice([0, 3, 10, 999]) for p in range(made.randint(1, 9))}, made.randint(1, 600)
    for _ in range(10_000):
        read = shared(waiting, most)
        assert sum(read.values()) == min(most, sum(waiting.values()))
        short = [p for p in waiting if read[p] < waiting[p]]
        assert all(read[p] >= max(read.values()) - 1 for p in short), "a partition that waits gets as much as any other"
        waiting = {p: n - read[p] for p, n in waiting.items()}
        if not any(waiting.values()):
            return
    raise AssertionError("it does not end")


@pytest.mark.parametrize("most", ["0", "-5", "many", "1.5", ""])
def test_a_bound_is_a_number_of_records(most: str) -> None:
    with pytest.raises(SetupError, match=r"records\.per\.run of the source 'shop' is no number of records"):
        Clients(SourceAccess(".", {"shop": {"address": "a:1", "records.per.run": most}}), PATH)

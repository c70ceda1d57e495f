"""``.to(...)``: what it becomes in a plan, and every mistake with its line."""

import pytest
from plans import Shop

from rejoin import kafka, postgres
from rejoin.errors import TopologyError
from rejoin.plan.explain import text
from rejoin.plan.fingerprint import fingerprint
from rejoin.plan.model import Plan
from rejoin.plan.sinks import CatchUp, KafkaSink, PostgresSink, Value
from rejoin.plan.steps import steps


def compiled(*sinks: object) -> Plan:
    shop = Shop()
    shop.orders.filter("total > 0").named("big").to(*sinks)  # type: ignore[arg-type]
    return shop.compile()


def test_sinks_are_part_of_the_plan_both_ways_and_not_of_the_fingerprint() -> None:
    plan = compiled(kafka("big", value="row", producer={"linger.ms": 20, "acks": "all"}), postgres("a.big", catch_up="net"))
    [node] = plan.nodes
    assert node.sinks == (
        KafkaSink("kafka", "big", value=Value.ROW, producer=(("acks", "all"), ("linger.ms", "20"))),
        PostgresSink("postgres", "a.big", CatchUp.NET),
    )
    assert Plan.from_json(plan.to_json()) == plan
    plain = compiled()
    assert fingerprint(plan, node) == fingerprint(plain, plain.nodes[0])


def test_a_step_a_sink_comes_after_publish_and_waits_for_no_other() -> None:
    made = {s.id: s.after for s in steps(compiled(kafka("t"), kafka("u", name="second"), postgres("a.b")))}
    assert {name: after for name, after in made.items() if name.startswith("deliver")} == dict.fromkeys(
        ("deliver.big.kafka", "deliver.big.second", "deliver.big.postgres"), ("publish",)
    )


def test_explain_shows_where_changes_go_and_no_address() -> None:
    said = text(compiled(kafka("shop.big"), postgres("a.big")))
    assert "to       kafka (kafka), topic shop.big: envelope as json, exactly_once" in said and "table a.big" in said


def test_a_plan_of_before_sinks_still_reads() -> None:
    plan = compiled()
    assert Plan.from_json(plan.to_json().replace('"sinks": [], ', "")) == plan


def test_an_output_named_by_reference_and_twice() -> None:
    shop = Shop()
    shop.orders.named("all_orders").to(kafka("a"))
    shop.topology.relation("all_orders").to(postgres("a.b"))
    assert [s.name for s in shop.compile().nodes[0].sinks] == ["kafka", "postgres"]


MISTAKES = {
    "a topic with a space": (kafka("a b"), "topic is 'a b'"),
    "a table without schema": (postgres("orders"), "'schema.table'"),
    "an unknown value": (kafka("t", value="all"), "value is 'all'; expected one of 'envelope', 'row', 'key'"),
    "no records a transaction": (kafka("t", batch=0), "batch is 0"),
    "a partitioner that is no name": (kafka("t", partitioner="lambda k: 1"), "module:function"),
    "a secret": (kafka("t", producer={"sasl.password": "x"}), "part of the connection"),
    "not a sink": ("kafka", "takes kafka(...) and postgres(...)"),
    "a name that is not safe": (kafka("t", name="K-1"), "not safe"),
    "negative retries": (postgres("a.b", retries=-1), "retries is -1"),
}


@pytest.mark.parametrize(("sink", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told(sink: object, said: str) -> None:
    with pytest.raises(TopologyError, match="1 mistake") as raised:
        compiled(sink)
    assert said in str(raised.value) and __file__ in str(raised.value)


def test_two_sinks_of_one_name_and_a_key_of_two_columns_as_text() -> None:
    with pytest.raises(TopologyError, match="has a sink 'kafka' already"):
        compiled(kafka("a"), kafka("b"))
    shop = Shop()
    shop.rates.named("all_rates").to(kafka("t", key="text"))
    with pytest.raises(TopologyError, match="needs a key of one column"):
        shop.compile()


def test_only_an_output_can_be_delivered() -> None:
    shop = Shop()
    shop.orders.filter("total > 0").named("big")
    shop.orders.to(kafka("t"))
    with pytest.raises(TopologyError, match="only an output has changes"):
        shop.compile()

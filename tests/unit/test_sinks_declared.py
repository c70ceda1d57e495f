"""``.to(...)``: what it becomes in a plan, and every mistake with its line."""

import pytest
from plans import Shop

from rejoin import kafka, opensearch, postgres
from rejoin.errors import TopologyError
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.explain import text
from rejoin.plan.model import json_form
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.sinks import CatchUp, KafkaSink, OpenSearchSink, PostgresSink, Value
from rejoin.plan.model.steps import steps


def compiled(*sinks: object) -> Plan:
    shop = Shop()
    shop.orders.filter("total > 0").named("big").to(*sinks)  # type: ignore[arg-type]
    return shop.compile()


def test_sinks_are_part_of_the_plan_both_ways_and_not_of_the_fingerprint() -> None:
    plan = compiled(
        kafka("big", value="row", producer={"linger.ms": 20, "acks": "all"}), postgres("a.big", catch_up="net"), opensearch("big")
    )
    [node] = plan.nodes
    assert node.sinks == (
        KafkaSink("kafka", "big", value=Value.ROW, producer=(("acks", "all"), ("linger.ms", "20"))),
        PostgresSink("postgres", "a.big", CatchUp.NET),
        OpenSearchSink("opensearch", "big"),
    )
    assert json_form.from_json(json_form.to_json(plan)) == plan
    plain = compiled()
    assert fingerprint(plan, node) == fingerprint(plain, plain.nodes[0])


def test_a_step_a_sink_comes_after_publish_and_waits_for_no_other() -> None:
    made = {s.id: s.after for s in steps(compiled(kafka("t"), kafka("u", name="second"), postgres("a.b")))}
    assert {name: after for name, after in made.items() if name.startswith("deliver")} == dict.fromkeys(
        ("deliver.big.kafka", "deliver.big.second", "deliver.big.postgres"), ("publish",)
    )


def test_explain_shows_where_changes_go_and_no_address() -> None:
    said = text(compiled(kafka("shop.big"), postgres("a.big"), opensearch("big")))
    assert (
        "to       kafka (kafka), topic shop.big: envelope as json, exactly_once" in said and "table a.big" in said and "index big" in said
    )


def test_a_plan_of_before_sinks_still_reads() -> None:
    plan = compiled()
    assert json_form.from_json(json_form.to_json(plan).replace('"sinks": [], ', "")) == plan


def test_an_output_named_by_reference_and_twice() -> None:
    shop = Shop()
    shop.orders.named("all_orders").to(kafka("a"))
    shop.topology.relation("all_orders").to(postgres("a.b"))
    assert [s.name for s in shop.compile().nodes[0].sinks] == ["kafka", "postgres"]


MISTAKES = {
    "a topic with a space": (kafka("a b"), "topic is 'a b'"),
    "a topic that is a directory": (kafka(".."), "topic is '..'"),
    "rejoin's own table": (postgres("a.rejoin_cursors"), "how far its sinks are"),
    "a table of too many bytes": (postgres("a." + "é" * 32), "has 64 bytes"),
    "a table without schema": (postgres("orders"), "'schema.table'"),
    "an index with a capital": (opensearch("Orders"), "index is 'Orders'"),
    "an index with a comma": (opensearch("a,b"), "index is 'a,b'"),
    "a hidden index": (opensearch(".orders"), "index is '.orders'"),
    "rejoin's own index": (opensearch("rejoin_refused"), "keeps what it needs itself"),
    "an unknown value": (kafka("t", value="all"), "value is 'all'; expected one of 'envelope', 'row', 'key'"),
    "no records a transaction": (kafka("t", batch=0), "batch is 0"),
    "a partitioner that is no name": (kafka("t", partitioner="lambda k: 1"), "module:function"),
    "a secret": (kafka("t", producer={"sasl.password": "x"}), "part of the connection"),
    "not a sink": ("kafka", "takes kafka(...), opensearch(...) and postgres(...)"),
    "a name that is not safe": (kafka("t", name="K-1"), "not safe"),
    "negative retries": (postgres("a.b", retries=-1), "retries is -1"),
}


@pytest.mark.parametrize(("sink", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told(sink: object, said: str) -> None:
    with pytest.raises(TopologyError, match="1 mistake") as raised:
        compiled(sink)
    assert said in str(raised.value) and __file__ in str(raised.value)


UNFIT = {
    "a system column": ("xmin", "system column"),
    "another": ("ctid", "system column"),
    "64 bytes": ("c" * 64, "has 64 bytes"),
}


@pytest.mark.parametrize(("column", "said"), UNFIT.values(), ids=UNFIT.keys())
def test_fault_a17_a_column_that_postgresql_cannot_have_is_told_when_the_file_is_read(column: str, said: str) -> None:
    def selected(*sinks: object) -> Plan:
        shop = Shop()
        shop.orders.select(["order_id", f"total AS {column}"]).named("big").to(*sinks)  # type: ignore[arg-type]
        return shop.compile()

    with pytest.raises(TopologyError, match=r"test_sinks_declared\.py:\d+: UNSAFE_NAME") as raised:
        selected(postgres("a.big"))
    assert "1 mistake" in str(raised.value) and said in str(raised.value) and repr(column) in str(raised.value)
    assert selected(kafka("big", format="avro")).nodes[0].sinks, "a topic can have it"


def test_fault_a17_names_that_postgresql_takes_are_fine_and_so_is_what_rejoin_once_called_its_own() -> None:
    shop = Shop()
    chosen = ["order_id", "total AS rejoin_op", "total AS XMIN", "total AS oid", f"total AS {'c' * 63}", "total AS rejoin_staging"]
    shop.orders.select(chosen).named("big").to(postgres("a.big"), postgres("b.rejoin_staging", name="second"))
    assert [s.name for s in shop.compile().nodes[0].sinks] == ["postgres", "second"]


@pytest.mark.parametrize("name", ["`a-b`", "`a b`", "`é`", "`1a`"])
def test_fault_a17_a_column_that_avro_cannot_have_is_no_column_of_any_output(name: str) -> None:
    shop = Shop()
    shop.orders.select(["order_id", f"total AS {name}"]).named("big").to(kafka("big", format="avro"))
    with pytest.raises(TopologyError, match=r"test_sinks_declared\.py:\d+: UNSAFE_NAME"):
        shop.compile()


@pytest.mark.parametrize("other", ["total", "TOTAL"])
def test_fault_a17_two_columns_of_one_name_are_no_output(other: str) -> None:
    shop = Shop()
    shop.orders.select(["order_id", "total", f"total + 1 AS {other}"]).named("big").to(kafka("big", format="avro"), postgres("a.b"))
    with pytest.raises(TopologyError, match=r"test_sinks_declared\.py:\d+: DUPLICATE_NAME"):
        shop.compile()


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


def delivered(first: object, second: object) -> None:
    shop = Shop()
    shop.orders.filter("total > 0").named("x").to(first)  # type: ignore[arg-type]
    shop.orders.filter("total > 1").named("y").to(second)  # type: ignore[arg-type]
    shop.compile()


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (postgres("a.t"), postgres("a.t", catch_up="net"), "output 'x' delivers to table 'a.t' of sink 'postgres' already"),
        (opensearch("t"), opensearch("t", catch_up="net"), "output 'x' delivers to index 't' of sink 'opensearch' already"),
        (kafka("t"), kafka("t", value="row"), "output 'x' delivers to topic 't' of sink 'kafka' already"),
    ],
    ids=["a table", "an index", "a topic"],
)
def test_two_outputs_do_not_share_a_target(first: object, second: object, said: str) -> None:
    with pytest.raises(TopologyError, match="1 mistake") as raised:
        delivered(first, second)
    assert "DUPLICATE_NAME" in str(raised.value) and said in str(raised.value)


def test_outputs_may_have_targets_of_one_name_in_two_places() -> None:
    delivered(postgres("a.t"), postgres("a.t", name="elsewhere"))
    delivered(postgres("a.t"), postgres("a.u"))
    delivered(kafka("a.t"), postgres("a.t"))
    delivered(kafka("t", name="one"), postgres("one.t", name="one"))

"""Bare lines and lines with schemas are read by DuckDB and by whole columns as the careful decoder reads them, whatever is wrong with them."""

import json
import random
from typing import Any

import pytest
import test_fast_path
from bare_feed import FORMS, KEY, SCHEMA, STYLES, lines, octets, value, written
from both_ways import check
from source_cases import table
from source_fuzz import PLAIN, seeds

from rejoin.plan.model.added_columns import versions
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.shapes import registry

ONE = table(PLAIN, "id", DebeziumSource("f"))
OF_TOPIC = table(PLAIN, "id", DebeziumSource("f", topic="shop.public.orders"))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("form", FORMS)
def test_all_lines_of_a_plain_feed_are_proven(form: str, style: tuple[str, str]) -> None:
    made = []
    for i in range(100):
        known = i % 3 == 0 and {"id": i % 7, "name": "was", "n": None, "price": None, "at": None}
        made.append(written(form, value("cur"[i % 3], i, schema=form.endswith("schema"), before=known or None), style))
    assert check(ONE, b"\n".join(made)) == (100, 100)
    assert check(OF_TOPIC, b"\n".join(made)) == (100, 100)


@pytest.mark.parametrize("form", FORMS)
def test_lines_of_another_table_are_not_taken_for_those_of_the_topic(form: str) -> None:
    made = []
    for i in range(60):
        one = value("c", i, schema=form.endswith("schema"))
        one["source"]["table"] = "orders" if i % 3 else "items"
        made.append(written(form, one))
    proved, records = check(OF_TOPIC, b"\n".join(made))
    assert (proved, records) == (40 if form.startswith("bare") else 60, 60)


@pytest.mark.parametrize("form", [form for form in FORMS if form.startswith("bare")])
def test_a_key_that_changes_is_not_proven_and_one_that_stays_is(form: str) -> None:
    made = []
    for i in range(60):
        before = {"id": 99 if i == 40 else i % 7, "name": None if i % 2 else "b", "n": i, "price": None, "at": None}
        made.append(written(form, value("u", i, schema=form.endswith("schema"), before=before)))
    assert check(ONE, b"\n".join(made)) == (59, 60)


@pytest.mark.parametrize("form", [form for form in FORMS if form.startswith("bare")])
def test_deletes_of_bare_lines_are_read_beside_the_proven_ones(form: str) -> None:
    schema = form.endswith("schema")
    made = [written(form, value("d" if i % 5 == 4 else "u", i, schema=schema, before=None)) for i in range(90)]
    for i, line in enumerate(made):  # a shape of both
        one = json.loads(line)
        row = one["payload"] if schema else one
        row["before"] = row["before"] or {"id": i % 7, "name": None, "n": 0, "price": None, "at": None}
        made[i] = json.dumps(one, separators=STYLES[0], ensure_ascii=False).encode()
    assert check(ONE, b"\n".join(made)) == (72, 90)


def test_updates_that_say_more_than_the_first_lines_are_proven() -> None:
    made = [value("r", i, schema=False) for i in range(1_000)]
    made += [value("u", i, schema=False, before=made[i % 7]["after"]) for i in range(1_000)]
    assert check(ONE, b"\n".join(written("bare", one) for one in made), chunk=4_000) == (2_000, 2_000)


CENTS = (
    0,
    1,
    -1,
    127,
    128,
    -128,
    -129,
    255,
    256,
    32767,
    -32768,
    10**10 - 1,
    -(10**10 - 1),
    10**10,
    -(10**10),
    2**55,
    -(2**55),
    2**63,
    2**119,
    -(2**127),
)


@pytest.mark.parametrize("type_", ["DECIMAL(10,2)", "DECIMAL(18,2)", "DECIMAL(36,2)", "DECIMAL(38,2)", "DECIMAL(10,3)", "DECIMAL(2,2)"])
@pytest.mark.parametrize("form", ["bare with schema", "texts with schema"])
def test_decimals_of_bytes_are_proven(form: str, type_: str) -> None:
    of = table(PLAIN.replace("DECIMAL(10,2)", type_), "id", DebeziumSource("f"))
    prices = [*map(octets, CENTS), "AB==", "A===", "AAA", "AA==\n", "====", " AAA", "-_A=", "AAAAAAA=", "/////////////////////////////w=="]
    made = [written(form, value("c", i, schema=True, price=price)) for i, price in enumerate([octets(i) for i in range(10)] + prices)]
    proved, _ = check(of, b"\n".join(made))
    assert proved > 15 if type_ in ("DECIMAL(10,2)", "DECIMAL(18,2)", "DECIMAL(36,2)") else proved >= 0


def test_a_decimal_of_bytes_without_a_schema_of_its_own_is_left_to_the_careful_decoder() -> None:
    made = []
    for i in range(60):
        one = {"schema": {"type": "struct", "fields": []}, "payload": value("c", i, schema=False, price=("1234", "12.5", "BNI=")[i % 3])}
        made.append(json.dumps(one, separators=STYLES[0]))
    assert check(ONE, "\n".join(made).encode())[0] == 0


@pytest.mark.parametrize(
    "type_",
    ["DATE", "TIMESTAMP", *(pytest.param(t, marks=pytest.mark.slow) for t in ("TIMESTAMP_NTZ", "BIGINT", "INT", "STRING", "BOOLEAN"))],
)
@pytest.mark.parametrize(
    "name",
    [
        None, "io.debezium.time.Date", "io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp", "io.debezium.time.NanoTimestamp",
        "org.apache.kafka.connect.data.Decimal", "unknown",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["int64", "bytes", "string", None])
def test_what_a_schema_says_of_a_column_is_understood_alike(type_: str, name: str | None, kind: str | None) -> None:
    of = table(f"id BIGINT; v {type_}", "id", DebeziumSource("f", units=(("v", "ms"),)))
    field = {"field": "v", "parameters": {"scale": "2"}} | ({"type": kind} if kind else {}) | ({"name": name} if name else {})
    schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [{"type": "int64", "field": "id"}, field]}]}
    source = {"connector": "postgresql", "lsn": 5}
    for odd in (
        [0, 1, -1, 19_782, 86_400_000, 1_700_000_000_000, 2**62],
        ["BNI=", "2024-02-29", "1.5", "x"],
        [1.5, 3.0, -0.5],
        [True, False],
    ):
        made = []
        for i, v in enumerate([odd[0]] * 10 + odd * 3):
            document = {"op": "c", "source": source, "before": None, "after": {"id": i, "v": v}}
            made.append(json.dumps({"schema": schema, "payload": document}, separators=STYLES[0]))
        check(of, "\n".join(made).encode())


@pytest.mark.parametrize(
    "odd",
    [
        lambda s, p: f'{{"schema":{s},"payload":{p},"payload":{p}}}', lambda s, p: f'{{"schema":{s},"schema":{s},"payload":{p}}}',
        lambda s, p: f'{{"schema":{s},"payload":{p},"x":{s}}}', lambda s, p: f'{{"payload":{p},"schema":{s}}}', lambda _, p: f'{{"schema":null,"payload":{p}}}',
        lambda _, p: f'{{"schema":"","payload":{p}}}', lambda s, p: f'{{"schema":{s}{s},"payload":{p}}}', lambda s, p: f'{{"schema":{s},"payload":{p}}}}}',
        lambda s, p: f'{{"schema":{s.replace("int64", "int32")},"payload":{p}}}', lambda s, p: f'{{"schema":{s},"payload":{s}}}',
        lambda s, p: f'{{"schema":{s},"payload":{p.replace("null", s, 1)}}}', lambda _, p: p, lambda _, p: f'{{"schema":\\u0001,"payload":{p}}}',
        lambda _, p: f'{{"schema":"\\u0001","payload":{p}}}', lambda s, p: f'{{"schema":{s},"payload":{p.replace("n 3", "u0001")}}}',
        lambda s, p: f'{{"schema":{s},"payload":{p.replace("n 3", s)}}}', lambda s, p: f'{{"schema":{s} ,"payload":{p}}}', lambda _, p: f'{{"payload":{p}}}',
        lambda s, p: f'{{"schema":{s},"payload":{p.replace("n 3", json.dumps(s)[1:-1])}}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["bare with schema", "texts with schema"])
def test_a_schema_counts_only_in_its_own_place(form: str, odd: Any) -> None:
    texts = [json.dumps(one, separators=STYLES[0], ensure_ascii=False) for one in (SCHEMA, value("c", 3, schema=True))]
    line: str = odd(*texts)
    if form.startswith("texts"):
        line = json.dumps(
            {"key": json.dumps({"schema": KEY, "payload": {"id": 3}}), "value": line}, separators=STYLES[0], ensure_ascii=False
        )
    made = [written(form, value("c", i, schema=True)) for i in range(40)]
    proved, records = check(ONE, b"\n".join([*made[:20], line.encode(), *made[20:]]))
    assert (proved in (40, 41), records) == (True, 41)


@pytest.mark.parametrize("seed", seeds(60))
@pytest.mark.parametrize("form", FORMS)
def test_odd_and_damaged_lines_are_read_alike(form: str, seed: int) -> None:
    """In the night 50,000 of them, and as many of bare ones alone."""
    random_ = random.Random(f"{form} {seed}")
    of = (ONE, OF_TOPIC, versions(ONE))[seed % 3]
    made = lines(random_, 150, form, odd=(0.02, 0.3)[seed % 2], damaged=(0, 0.05, 0.9)[seed // 2 % 3])
    data = b"\n".join(made)
    check(of, data)
    if of.versions_of is None:
        test_fast_path.check(of, data, length=random_.choice([2, 12]))
    found = [n for batch in registry.decode(of, "f", 0, iter(enumerate(made, 1))) for n in batch["_line"].to_pylist()]
    assert found == [n for n, line in enumerate(made, 1) if line.strip()], "each line has one fate"


@pytest.mark.nightly
@pytest.mark.parametrize("seed", seeds(50))
@pytest.mark.parametrize("form", [form for form in FORMS if form.startswith("bare")])
def test_fault_a_thousand_damaged_bare_lines_are_read_alike(form: str, seed: int) -> None:
    random_ = random.Random(f"{form} {seed} thousand")
    data = b"\n".join(lines(random_, 1_000, form, odd=0.1, damaged=1))
    check(ONE, data)
    test_fast_path.check(ONE, data)

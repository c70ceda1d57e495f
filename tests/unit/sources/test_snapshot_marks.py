"""Where in a snapshot a row stands: what Debezium's words become, by the careful decoder, by whole columns and by DuckDB."""

import json
import random
from typing import Any

import pytest
from both_ways import ONE, STYLES, as_texts, check, line, plain
from source_cases import CAPTURES, decode, event, rows, table

from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.shapes import registry

ORIGIN = {"name": "shop", "db": "d", "schema": "public", "table": "orders"}


def marks(*lines: dict[str, Any]) -> list[Any]:
    return [e["_snapshot"] for e in decode(table("id BIGINT; n INT"), *lines)]


def read(op: str = "r", **source: Any) -> dict[str, Any]:
    return event(op, {"id": 1}, {"id": 1, "n": 2}, source={"connector": "postgresql", "lsn": 7, **source})


@pytest.mark.parametrize(
    ("said", "mark"),
    [
        ("first", "first shop.d.public.orders"),
        ("first_in_data_collection", "first shop.d.public.orders"),
        ("last", "last shop.d.public.orders"),
        ("last_in_data_collection", "last shop.d.public.orders"),
        ("true", "row"),
        (True, "row"),
        ("false", "row"),
        (None, "row"),
        ("a word of tomorrow", "row"),
        ("incremental", "added"),
    ],
)
def test_words_of_debezium(said: Any, mark: str) -> None:
    one = read(snapshot=said, **ORIGIN)
    assert marks(one) == [mark]
    assert marks(*[one] * 20) == [mark] * 20, "by whole columns"
    assert marks(read("u", snapshot=said, **ORIGIN)) == [None], "only what a snapshot read has a mark"


@pytest.mark.parametrize(
    ("op", "sequence", "mark"),
    [
        ("u", '[null,"7"]', "after"),
        ("d", '[null,"7"]', "after"),
        ("r", '[null,"7"]', "row"),
        ("u", '["5","7"]', None),
        ("u", None, None),
        ("u", 5, None),
        ("u", "nothing", None),
    ],
)
def test_a_change_whose_transaction_is_the_first_after_a_snapshot_says_so(op: str, sequence: Any, mark: str | None) -> None:
    assert marks(*[read(op, sequence=sequence)] * 20) == [mark] * 20


def test_a_connector_may_leave_out_parts_of_the_name() -> None:
    assert marks(read(snapshot="first"), read(snapshot="last", name="shop", db="d", schema=None, table="orders")) == [
        "first ",
        "last shop.d.orders",
    ]


def test_a_row_that_is_refused_still_begins_or_ends_its_snapshot() -> None:
    bad = event("r", {"id": 1}, {"id": 1, "n": "no number"}, source={"connector": "postgresql", "lsn": 7, "snapshot": "last", **ORIGIN})
    (found,) = decode(table("id BIGINT; n INT"), bad)
    assert (found["_kind"], found["_snapshot"], found["_position"]) == ("quarantined", "last shop.d.public.orders", f"{7:020}.0.{0:020}")


def test_a_connector_writes_one_beginning_and_one_end_for_each_of_several_tables() -> None:
    source = DebeziumSource("orders", topic="e6.shop.items")
    lines = (CAPTURES / "debezium_capture.jsonl").read_bytes().splitlines()
    found = rows(registry.decode(table("order_id INT; line INT; sku STRING", "order_id,line", source), "f", 0, iter(enumerate(lines, 1))))
    assert [e["_snapshot"] for e in found if e["_snapshot"]] == ["first e6.postgres.shop.items", "last e6.postgres.shop.items"]


@pytest.mark.parametrize("style", STYLES, ids=["dense", "spaced"])
@pytest.mark.parametrize("texts", [False, True], ids=["objects", "texts"])
def test_duckdb_makes_the_same_marks(style: tuple[str, str], texts: bool) -> None:
    chance = random.Random(7)
    words: list[Any] = [
        "first",
        "first_in_data_collection",
        "true",
        "last_in_data_collection",
        "last",
        "incremental",
        "false",
        None,
        'od"d',
        True,
    ]
    names: list[Any] = ["shop", "a b", 'q"uote', None, 7]
    proven = 0
    for _ in range(8):
        parts = [name for name in ORIGIN if chance.random() < 0.8]
        said, lines = chance.sample(words, chance.randrange(1, 6)), []
        for i in range(100):
            one = json.loads(plain(i))
            one["value"]["op"] = chance.choice("ruc")
            usual = chance.random() < 0.9
            own = {name: "shop" if usual else chance.choice(names) for name in parts}
            one["value"]["source"] |= {"snapshot": chance.choice(said), **own}
            if chance.random() < 0.8:
                before: Any = chance.choice([None, str(100 + i), str(chance.randrange(300)), 5, "x", "9" * 25])
                one["value"]["source"]["sequence"] = json.dumps([before, str(100 + i)], separators=chance.choice(STYLES))
            one["value"]["transaction"] = chance.choice([None, {"total_order": chance.randrange(3)}])
            raw = json.dumps(one, separators=style, ensure_ascii=False).encode()
            lines.append(as_texts(raw, style) if texts else raw)
        proven += check(ONE, b"\n".join(lines) + b"\n")[0]
    assert proven > 100


def test_a_line_without_the_word_is_read_fast_as_well() -> None:
    raw = line("r", {"id": 1}, {"id": 1, "name": "n", "n": 1, "price": "1.50", "at": "2024-02-29T11:14:00Z"}, 7).replace(
        b',"snapshot":"false"', b""
    )
    assert b"snapshot" not in raw
    assert check(ONE, (raw + b"\n") * 100) == (100, 100)

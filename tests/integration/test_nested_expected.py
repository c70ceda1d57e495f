"""What is expected of arrays, structs and maps: rows of sources, groups and documents are held back by it, and come again; by both engines."""

from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Sessions
from integration.texts import Lake, line, put
from limited import limited

from rejoin.lake.query.quarantine_reader import entries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE = """
orders = t.table("orders", key="id", schema="id BIGINT, buyer STRUCT<name: STRING, tags: ARRAY<STRING>>", source=debezium("orders"))
lines = t.table("lines", key="id", schema="id BIGINT, order_id BIGINT, quantity INT, sizes MAP<STRING, INT>", source=debezium("lines"))
orders.expect(condition("buyer.name <> '' AND NOT array_contains(buyer.tags, 'bad')"), severity="quarantine")
documents = orders.nest(lines, "order_id", name="lines", select=["id AS line", "quantity", "sizes"]).named("documents", max_change_share=1.0)
documents.expect(not_null("buyer"), not_empty("lines"), condition("array_min(lines.quantity) > 0"), severity="quarantine")
totals = lines.group_by("order_id AS id").aggregate(sizes="max(sizes['a'])", lines="collect(quantity)").named("totals", max_change_share=1.0)
totals.expect(condition("size(lines) < 3"), severity="quarantine")
"""


FIRST = "condition(\"buyer.name <> '' AND NOT array_contains(buyer.tags, 'bad')\")"
MINIMUM = 'condition("array_min(lines.quantity) > 0")'


def kept(lake: Lake, table: str) -> dict[Any, str]:
    """Key -> why it is held back."""
    return {entry.key["id"]: entry.reason for entry in entries(lake.topology.ledger, lake.topology.refs, table)}


@pytest.mark.parametrize("small", [200_000, pytest.param(0, marks=[pytest.mark.by_spark, pytest.mark.nightly])], ids=["here", "by_spark"])
def test_a_document_is_held_back_by_what_is_in_it_and_comes_again(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    limited(monkeypatch, small_rows=small)
    lake = Lake(tmp_path, sessions, FILE)
    buyers = [{"name": "A", "tags": []}, {"name": "", "tags": None}, {"name": None, "tags": [None]}, {"name": "D", "tags": ["bad"]}, None]
    lake.land("orders/1.jsonl", "".join(put(n, n, buyer=buyer) + "\n" for n, buyer in enumerate(buyers, 1)))
    quantities = {1: [1, 2], 3: [1, 0], 5: [1]}
    numbered = [(order, quantity) for order, given in quantities.items() for quantity in given]
    lake.land("lines/1.jsonl", "".join(put(n, n, order_id=o, quantity=q, sizes={"a": q}) + "\n" for n, (o, q) in enumerate(numbered, 1)))
    lake.run()
    assert kept(lake, "orders") == {2: FIRST, 4: FIRST}
    assert kept(lake, "documents") == {3: MINIMUM, 5: 'not_null("buyer")'}
    assert set(lake.rows("documents")) == {1}
    lake.land("orders/2.jsonl", put(11, 2, buyer={"name": "B", "tags": []}) + "\n" + put(12, 5, buyer={"name": None, "tags": None}) + "\n")
    lake.land("lines/2.jsonl", "".join(put(20 + n, n, order_id=o, quantity=q, sizes=None) + "\n" for n, o, q in [(11, 1, 3), (4, 3, None)]))
    lake.run()
    assert kept(lake, "documents") == {2: 'not_empty("lines")'}
    assert kept(lake, "totals") == {1: 'condition("size(lines) < 3")'}
    assert lake.rows("totals")[1] == {"id": 1, "sizes": 2, "lines": [1, 2]}, "what was published last"
    assert {key: len(row["lines"]) for key, row in lake.rows("documents").items()} == {1: 3, 3: 2, 5: 1}
    lake.land("lines/3.jsonl", line("d", 41, {"id": 1}) + "\n")
    lake.run()
    assert (kept(lake, "totals"), lake.rows("totals")[1]["lines"]) == ({}, [2, 3])

"""A declared column that a source does not have stops the run before it becomes null without a word, unless the topology allows it (S17)."""

import importlib
from pathlib import Path

import pytest
from integration.conftest import Sessions
from integration.texts import Lake, put
from limited import limited

from rejoin.errors import SchemaDrift

pytestmark = pytest.mark.slow
reading = importlib.import_module("rejoin.sources.read")
FEED = 't.table("f", key="id", schema="id BIGINT, name STRING{more}", source=debezium("f"){options}).filter("id > 0").named("published")'


def feed(more: str = "", options: str = "") -> str:
    return FEED.format(more=more, options=options)


@pytest.mark.parametrize("path", ["driver", "workers"])
def test_fault_look_a_column_of_a_feed_that_is_renamed_at_its_source_stops_the_run(
    tmp_path: Path, sessions: Sessions, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "workers":
        limited(monkeypatch, fetched_bytes=0)
    lake = Lake(tmp_path, sessions, feed())
    lake.land("f/1.jsonl", put(1, 1, Name="Ann"))
    with pytest.raises(SchemaDrift, match=r"newest event of table 'f' lacks: name; it has, not declared \(renamed\?\): Name"):
        lake.run()
    (tmp_path / "f/1.jsonl").unlink()
    lake.land("f/2.jsonl", "\n".join([put(1, 1), put(2, 2), put(10, 1, name="Ann")]))  # the column was added between 2 and 10
    lake.run()
    assert {k: r["name"] for k, r in lake.rows("published").items()} == {1: "Ann", 2: None}
    lake.land("f/3.jsonl", put(5, 3))  # late, from before it was added
    lake.run()
    lake.land("f/4.jsonl", "\n".join([put(11, 2, name="Bob"), put(12, 1, title="Anne")]))
    with pytest.raises(SchemaDrift, match=r"lacks: name; it has, not declared \(renamed\?\): title"):
        lake.run()
    assert {k: r["name"] for k, r in lake.rows("published").items()} == {1: "Ann", 2: None, 3: None}
    assert lake.topology.ledger.head() == 3
    lake.declare(feed(", title STRING", ', optional=["name"]'))  # title is declared before some events have it: 11 is older than 12
    lake.run()
    found = lake.rows("published")
    assert {k: (r["name"], r["title"]) for k, r in found.items()} == {1: (None, "Anne"), 2: ("Bob", None), 3: (None, None)}


def test_fault_look_a_header_in_another_spelling_stops_the_first_load_and_optional_columns_may_be_absent(
    tmp_path: Path, sessions: Sessions
) -> None:
    text = 't.table("s", key="id", schema="id BIGINT, name STRING, later INT", source=snapshot("s"){}).filter("id > 0").named("published")'
    lake = Lake(tmp_path, sessions, text.format(', optional="later"'))
    lake.land("s/1.csv", "id,Name,other\n1,Ann,x\n")
    with pytest.raises(SchemaDrift, match=r"snapshot of table 's' lacks: name; it has, not declared \(renamed\?\): Name, other"):
        lake.run()
    lake.land("s/2.csv", "id,name,other\n1,Ann,x\n")
    lake.run()
    assert lake.rows("published") == {1: {"id": 1, "name": "Ann", "later": None}}
    lake.declare(text.format(""))
    lake.land("s/3.csv", "id,name,other\n1,Ann,x\n")
    with pytest.raises(SchemaDrift, match=r"lacks: later;.*nothing was committed"):
        lake.run()


def test_fault_look_what_a_source_does_not_look_into_is_counted_and_named(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, feed())
    lake.land("f/1.jsonl", put(1, 1, name="Ann"))
    lake.land("f/2024-01-01/2.jsonl", put(2, 2, name="Bob"))
    lake.land("f/archive/3.jsonl", put(3, 3, name="Cid"))
    lake.land("f/2024-01-01/more/4.jsonl", put(4, 4, name="Dee"))
    assert lake.run()["cut"]["ignored"] == 2
    assert set(lake.rows("published")) == {1, 2}
    head = lake.topology.ledger.head()
    assert lake.topology.ledger.steps(head)["cut"].detail["ignored"] == ["f/2024-01-01/more", "f/archive"]
    assert lake.run()["cut"]["ignored"] == 2, "also where nothing is new"

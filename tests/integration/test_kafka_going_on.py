"""A topic that does not go on as it was read, and somebody who accepts it: what is lost is said before, and nothing else is (S5, S6)."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from integration.conftest import New, Sessions
from integration.connector import Connector
from integration.fed_lake import fed, gone, held_open, order
from integration.sent import Topic, of_lines
from integration.servers import KafkaServer
from integration.texts import Lake

from rejoin.cli import main
from rejoin.errors import LedgerConflict, SourceOverrun, TopicReplaced
from rejoin.operate.accept import accept, proposed

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]


def said(root: Path, *words: str) -> Result:
    """What a command says, with --lake and --root."""
    where = ["--lake", str(root / "lake"), "--root", str(root)]
    command, *rest = words
    files = [str(root / "t.py")] if command in ("plan", "accept") else []
    options = where if command in ("plan", "accept") else where[:2]
    return CliRunner().invoke(main, [command, *files, *rest, *options])


def test_fault_s5_a_table_goes_on_without_records_that_are_gone(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(2)
    shop = fed(tmp_path, sessions, topic)
    first = [*of_lines([order(i, i) for i in range(10, 30)], 1)]
    topic.send([(i % 2, *rest) for i, (_, *rest) in enumerate(first)])
    shop.run()
    assert said(tmp_path, "accept", "orders", "--yes").output == "nothing to accept: no run stops at the source of orders\n"
    topic.send([(1, *rest) for _, *rest in of_lines([order(i, i) for i in range(30, 90)], 1)])
    topic.forget(1, 50)
    with pytest.raises(SourceOverrun, match="`rejoin accept FILE TABLE` says what is lost"):
        shop.run()
    refused = said(tmp_path, "accept", "orders")
    assert refused.exit_code == 2 and "PLAN_NOT_APPROVED" in refused.output
    told = "40 offsets of partition 1 are lost (10 to 49); it goes on at offset 50"
    assert told in refused.output
    with pytest.raises(SourceOverrun):
        shop.run()  # nothing was decided
    done = said(tmp_path, "accept", "orders", "--yes", "--json")
    assert json.loads(done.stdout)["said"] == [told] and json.loads(done.stdout)["code"] == "SOURCE_OVERRUN"
    topic.forget(1, 55)
    with pytest.raises(SourceOverrun, match="5 offsets are lost"):
        shop.run()  # nobody has accepted this
    assert said(tmp_path, "accept", "orders", "--yes").exit_code == 0
    assert shop.run()["ingest.orders"]["read"] == 15
    assert shop.rows("enriched").keys() == {*range(10, 30), *range(75, 90)}
    history = said(tmp_path, "history", "--run", json.dumps(json.loads(done.stdout)["run"])).output
    assert f"orders goes on after SOURCE_OVERRUN: {told}" in " ".join(history.split())
    for command in (["plan"], ["verify", "--fast"]):
        assert "orders lacks records: run 6 accepted SOURCE_OVERRUN" in said(tmp_path, *command).output


def test_fault_s6_another_topic_of_that_name_is_read_from_its_beginning(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    topic.send([*of_lines([order(1, 1), order(2, 22), order(3, 3)], 1)])
    shop.run()
    topic.drop()
    for _ in range(50):  # it is gone a moment later
        if topic.name not in topic.admin.list_topics().topics:
            break
        time.sleep(0.1)
    topic.make(3)
    topic.send([*of_lines([order(2, 22), *gone(6, 3), order(5, 5)], 3)])
    with pytest.raises(TopicReplaced):
        shop.run()
    done = said(tmp_path, "accept", "orders", "--yes")
    assert "at most 4 records of this one are read from its beginning" in done.output
    counts = shop.run()["ingest.orders"]
    assert (counts["read"], counts["duplicate"]) == (4, 2)
    assert shop.rows("enriched").keys() == {1, 22, 5}


CANAL = """
t.table("orders", key="id", schema="id BIGINT, note STRING", source=feed(kafka({!r}), "canal", only="s.o")).filter("id > 0").named("published")
"""


def canal(key: int, note: str) -> bytes:
    return json.dumps({"database": "s", "table": "o", "type": "INSERT", "isDdl": False, "data": [{"id": str(key), "note": note}]}).encode()


def test_partitions_that_are_added_where_they_are_the_order_can_be_accepted(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = Lake(tmp_path, sessions, CANAL.format(topic.name))
    topic.send([(0, None, canal(i, "old"), {}) for i in range(1, 4)])
    shop.run()
    topic.grow(2)
    topic.send([(1, None, canal(2, "moved"), {}), (0, None, canal(4, "old"), {})])
    done = said(tmp_path, "accept", "orders", "--yes")
    assert "PARTITIONS_ADDED" in done.output and "partition 1 is new, and read from offset 0" in done.output
    assert "at most 1 records of the partitions that were there before are still to be read" in done.output
    shop.run()
    assert {key: row["note"] for key, row in shop.rows("published").items()} == {1: "old", 2: "moved", 3: "old", 4: "old"}
    topic.send([(0, None, canal(2, "newest"), {})])
    shop.run()
    assert shop.rows("published")[2]["note"] == "newest", "what comes later is newer, whatever partition it was on"
    assert "lacks records" not in said(tmp_path, "plan").output, "nothing was lost"


def test_another_topic_of_a_dialect_without_positions_ends_as_its_newest_records_say(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = Lake(tmp_path, sessions, CANAL.format(topic.name))
    topic.send([(0, None, canal(1, f"n{i}"), {}) for i in range(20)])
    shop.run()
    topic.drop()
    topic.make(1)
    topic.send([(0, None, canal(1, "after"), {})])
    assert said(tmp_path, "accept", "orders", "--yes").exit_code == 0
    shop.run()
    assert shop.rows("published")[1]["note"] == "after", "offset 0 of the new topic is newer than offset 19 of the former"


FEED = """
t.table("notes", key="id", schema="id BIGINT, body STRING", source=debezium(kafka({!r}), max_delete_share=1)).filter("id >= 0").named("published")
"""


def test_a_snapshot_that_was_lost_in_part_deletes_nothing_and_the_next_one_makes_up_for_it(
    tmp_path: Path, sessions: Sessions, new: New
) -> None:
    topic: Topic = new(1)
    shop, connector = Lake(tmp_path, sessions, FEED.format(topic.name)), Connector()

    def send() -> None:
        topic.send([(0, json.dumps(m["key"]).encode(), json.dumps(m["value"]).encode(), {}) for m in map(json.loads, connector.take())])

    for key in range(10):
        connector.put(key, "first", seen=False)
    connector.snapshot()
    send()
    shop.run()
    connector.delete(3, seen=False)
    connector.snapshot()
    send()
    topic.forget(0, 10 + 5)  # its beginning is gone
    assert said(tmp_path, "accept", "notes", "--yes").exit_code == 0
    assert "reconciled" not in {n for n, c in shop.run()["ingest.notes"].items() if c}
    assert shop.rows("published").keys() == set(range(10)), "nobody knows whether row 3 is among what was lost"
    assert "notes lacks records" in said(tmp_path, "plan").output
    connector.snapshot()
    send()
    assert shop.run()["ingest.notes"]["reconciled"] == 1
    assert shop.rows("published").keys() == set(connector.rows)
    assert "lacks records" not in said(tmp_path, "plan").output


def test_a_run_reads_no_more_than_it_is_to_and_the_next_ones_go_on(
    tmp_path: Path, sessions: Sessions, new: New, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new(3)
    monkeypatch.setenv("REJOIN_SOURCE_KAFKA", json.dumps({"address": broker.address, "records.per.run": 10}))
    shop = Lake(tmp_path, sessions, CANAL.format(topic.name))
    topic.send([(p, None, canal(100 * p + i + 1, "x"), {}) for p, count in enumerate((17, 2, 6)) for i in range(count)])
    assert "10 new records of a topic, or fewer; 15 more are left for later runs" in " ".join(said(tmp_path, "plan").output.split())
    assert shop.run()["ingest.orders"]["read"] == 10
    assert {p: sum(key // 100 == p for key in shop.rows("published")) for p in range(3)} == {0: 4, 1: 2, 2: 4}
    assert json.loads(said(tmp_path, "history", "--run", "1", "--json").stdout)["steps"][0]["detail"]["left"] == {"orders": 15}
    assert [shop.run()["ingest.orders"]["read"] for _ in range(3)] == [10, 5, 0]
    assert len(shop.rows("published")) == 25


def test_a_bound_does_not_part_the_end_of_a_snapshot_from_its_rows(
    tmp_path: Path, sessions: Sessions, new: New, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_SOURCE_KAFKA", json.dumps({"address": broker.address, "records.per.run": 3}))
    for partitions, read in ((1, [3, 3, 2]), (2, [8, 0, 0])):
        topic = new(partitions)
        (root := tmp_path / str(partitions)).mkdir()
        shop = fed(root, sessions, topic)
        topic.send([(i % partitions, *rest) for i, (_, *rest) in enumerate(of_lines([order(i, i) for i in range(1, 9)], 1))])
        assert [shop.run()["ingest.orders"]["read"] for _ in range(3)] == read


def test_fault_s19_a_transaction_that_is_open_for_long_is_told(
    tmp_path: Path, sessions: Sessions, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new(1)
    shop = fed(tmp_path, sessions, topic)
    producer = held_open(topic, shop)
    assert "holds partition" not in said(tmp_path, "plan").output
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60 * 17)
    told = f"a transaction that is open for 17 minutes holds partition 0 of topic kafka://kafka/{topic.name} at offset 1: 2 offsets wait"
    assert told in " ".join(said(tmp_path, "plan").output.split())
    shop.run()
    assert told in " ".join(said(tmp_path, "history", "--run", "2").output.split())
    monkeypatch.undo()
    producer.abort_transaction(20)


def test_what_was_looked_at_before_another_decision_is_not_accepted(tmp_path: Path, sessions: Sessions, new: New) -> None:
    topic = new(1)
    shop = Lake(tmp_path, sessions, CANAL.format(topic.name))
    topic.send([(0, None, canal(1, "old"), {})])
    shop.run()
    topic.grow(2)
    found = proposed(shop.topology, "orders")
    assert found is not None
    accept(shop.topology, "one", "orders", found)
    with pytest.raises(LedgerConflict, match="was read while it was looked at"):
        accept(shop.topology, "two", "orders", found)
    assert shop.run()["ingest.orders"]["read"] == 0, "the decision that failed is in nobody's way"

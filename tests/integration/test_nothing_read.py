"""What was refused whole, or not read at all, never ends well: exit code 3, and what to do (issue 35, B1; issue 37, 9 and 11)."""

import gzip
import os
import subprocess
from pathlib import Path

import pytest
from integration.forked import Forked

pytestmark = pytest.mark.slow

FILE = """
from rejoin import Topology, debezium, records, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT", source={source})
orders.select(["id"]).named("ids")
"""
GOOD = '{"key": {"id": 1}, "value": {"op": "c", "source": {"connector": "postgresql", "lsn": 1}, "after": {"id": 1, "customer": 7}}}\n'
BARE = '{"before": null, "after": {"id": 1, "customer": 7}, "source": {"connector": "postgresql", "lsn": 1}, "op": "c"}\n'
FLAT = '{"id": 1, "customer": 7, "__op": "c", "__lsn": 5}\n'
HEARTBEAT = '{"key": {"serverName": "s"}, "value": {"ts_ms": 1}}\n'
FEED = 'debezium("landing/orders", max_bad_share=1.0)'


class Place:
    def __init__(self, root: Path) -> None:
        self.root = root

    def land(self, path: str, content: str) -> None:
        file = self.root / "landing" / "orders" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content.encode()) if path.endswith(".gz") else content.encode())

    def run(self, source: str = "", *, file: str = "") -> subprocess.CompletedProcess[str]:
        (self.root / "t.py").write_text(file or FILE.format(source=source))
        words = ["run", str(self.root / "t.py"), "--lake", str(self.root / "lake"), "--root", str(self.root), "--engine", "local"]
        return Forked("rejoin.cli", words, {**os.environ}).wait(60)  # another owner each time


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("lines", [1, 2, 40])
def test_a_feed_of_which_every_record_is_refused_stops_the_run_however_few_they_are(place: Place, lines: int) -> None:
    place.land("1.jsonl", FLAT * lines)
    done = place.run(FEED)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "BAD_RECORDS " in (done.stdout + done.stderr)
    assert ("the only record of table 'orders'" if lines == 1 else f"each of the {lines} records of table 'orders'") in (
        done.stdout + done.stderr
    )
    assert "landing/orders/1.jsonl:1" in (done.stdout + done.stderr)
    assert "they look like flattened rows of Debezium (`__op`, `__lsn`): " in (done.stdout + done.stderr)


def test_bare_envelopes_are_read_and_their_tombstones_counted(place: Place) -> None:
    gone = (
        BARE.replace('"after"', '"x"')
        .replace('"before": null', '"before": {"id": 1}')
        .replace('"c"', '"d"')
        .replace('"lsn": 1', '"lsn": 2')
    )
    place.land("1.jsonl", BARE + gone + "null\n" + BARE.replace('"id": 1', '"id": 2'))
    done = place.run(FEED)
    assert done.returncode == 0, done.stdout + done.stderr
    place.land("2.jsonl", gone.replace('{"id": 1}', "null"))
    done = place.run(FEED)
    assert done.returncode == 3
    assert "MISSING_KEY at landing/orders/2.jsonl:1: the key is not in the record" in (done.stdout + done.stderr)
    (place.root / "landing/orders/2.jsonl").unlink()
    place.land("3.jsonl", BARE.replace('"customer"', '"client"').replace('"lsn": 1', '"lsn": 9'))
    done = place.run(FEED)
    assert done.returncode == 3
    assert "SCHEMA_DRIFT" in (done.stdout + done.stderr)
    assert "it has, not declared (renamed?): client;" in (done.stdout + done.stderr)


def test_records_that_are_skipped_do_not_make_up_for_it_and_one_good_record_does(place: Place) -> None:
    place.land("1.jsonl", HEARTBEAT * 3 + FLAT)
    assert place.run(FEED).returncode == 3
    place.land("2.jsonl", GOOD)
    done = place.run(FEED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "quarantined" in (done.stdout + done.stderr)
    place.land("3.jsonl", FLAT)
    assert place.run(FEED).returncode == 3
    (place.root / "landing/orders/3.jsonl").unlink()
    assert place.run(FEED).returncode == 0


SNAPSHOT = 'snapshot("landing/orders", max_bad_share=1.0)'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("1.csv", "id,customer\nx,1\ny,2\n"),
        ("1.csv", "id,customer\n1,1\n1,2\n"),  # the declared key is none
        ("1.jsonl", '{"id": "x", "customer": 1}\n{"id": null, "customer": 1}\n'),
    ],
    ids=["no values", "no key", "no rows"],
)
def test_so_does_a_snapshot(place: Place, name: str, content: str) -> None:
    place.land(name, content)
    done = place.run(SNAPSHOT)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "each of the 2 records of table 'orders'" in (done.stdout + done.stderr)


VIEWS = """
from rejoin import Topology, records

t = Topology("t")
views = t.stream("orders", id="id", key="id", event_time="timestamp_millis(at)", schema="id BIGINT, at BIGINT",
                 source=records("landing/orders", max_bad_share=1.0))
views.select(["id"]).named("ids")
"""


@pytest.mark.parametrize(
    "content", ['{"id": "x", "at": 1}\n' * 2, '{"id": 1, "at": null}\n{"id": 2, "at": null}\n'], ids=["no id", "no time"]
)
def test_and_so_do_records(place: Place, content: str) -> None:
    place.land("1.jsonl", content)
    done = place.run(file=VIEWS)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "each of the 2 records of table 'orders'" in (done.stdout + done.stderr)
    place.land("1.jsonl", content + '{"id": 3, "at": 1}\n')
    assert place.run(file=VIEWS).returncode == 0


@pytest.mark.parametrize("path", ["a.txt", "part/1.jsonl", "_delta_log/1.json"])
@pytest.mark.parametrize("file", [FILE.format(source=SNAPSHOT), VIEWS], ids=["snapshot", "records"])
def test_a_directory_that_holds_nothing_for_them_is_told(place: Place, file: str, path: str) -> None:
    place.land(path, "x")
    done = place.run(file=file)
    hidden = path.startswith("_") and file == VIEWS  # no files yet
    assert done.returncode == (0 if hidden else 3), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (FEED, "topics/orders/partition=0/orders+0+0000000000.json"),
        (FEED, "shop.public.orders/2026/11/26/1.jsonl"),
    ],
)
def test_a_directory_of_which_nothing_was_ever_read_is_told(place: Place, source: str, path: str) -> None:
    place.land(path, GOOD)
    done = place.run(source)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "SOURCE_MISSING source path 'landing/orders' of table 'orders' holds nothing that is read, and never did: " in (
        done.stdout + done.stderr
    )
    assert f"landing/orders/{path.partition('/')[0]}" in (done.stdout + done.stderr)


def test_a_directory_without_files_yet_is_no_fault_and_neither_is_one_beside_files_that_were_read(place: Place) -> None:
    (place.root / "landing/orders").mkdir(parents=True)
    assert place.run(FEED).returncode == 0
    place.land("1.jsonl.tmp", GOOD)
    assert place.run(FEED).returncode == 0
    place.land("1.jsonl", GOOD)
    assert place.run(FEED).returncode == 0
    place.land("aside/1.jsonl", GOOD)
    done = place.run(FEED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not looked into (1): landing/orders/aside" in (done.stdout + done.stderr)


def test_a_path_of_which_nothing_is_read_is_told_though_another_was_read_before(place: Place) -> None:
    place.land("1.jsonl", GOOD)
    assert place.run(FEED).returncode == 0
    done = place.run(FEED.replace("landing/orders", "landing"))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "source path 'landing' of table 'orders' holds nothing that is read, and never did: landing/orders" in (
        done.stdout + done.stderr
    )


OF_ORDERS = GOOD.replace('{"key"', '{"topic": "shop.orders", "key"')
TWO = """
from rejoin import Topology, debezium

t = Topology("t")
for name, topic in {tables}.items():
    t.table(name, key="id", schema="id BIGINT, customer BIGINT", source=debezium("landing/orders", topic=topic)).filter("id > 0").named(name + "_")
"""


@pytest.mark.parametrize(
    ("source", "lines", "names"),
    [
        ('debezium("landing/orders", topic="shop.order")', OF_ORDERS + HEARTBEAT, "shop.orders"),
        ('debezium("landing/orders", topic="s.d.o")', BARE.replace('"lsn"', '"name": "s", "schema": "d", "table": "x", "lsn"'), "s.d.x"),
        (
            'feed("landing/orders", "maxwell", only="shop.order")',
            '{"database": "shop", "table": "orders", "type": "insert", "ts": 1, "position": "b.1:2", "commit": true, "data": {"id": 1, "customer": 2}}\n',
            "shop.orders",
        ),
    ],
    ids=["topic", "bare", "table"],
)
def test_a_feed_of_which_all_records_are_of_others_is_told_by_what_they_are_of(place: Place, source: str, lines: str, names: str) -> None:
    file = FILE.replace("debezium, records", "debezium, feed, records")
    place.land("1.jsonl", lines)
    done = place.run(file=file.format(source=source))
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"never did: {lines.count(chr(10))} of others, such as {names}, in run 1" in " ".join((done.stdout + done.stderr).split())
    corrected = source.replace("shop.order", "shop.orders").replace("s.d.o", "s.d.x")
    assert place.run(file=file.format(source=corrected)).returncode == 0


def test_records_that_are_about_no_rows_stop_nothing_and_are_told(place: Place) -> None:
    place.land("1.jsonl", HEARTBEAT * 3)
    done = place.run('debezium("landing/orders", topic="shop.orders")')
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no record of orders was ever found: 3 records read, and none of them is about rows" in done.stdout + done.stderr
    place.land("2.jsonl", OF_ORDERS)
    done = place.run('debezium("landing/orders", topic="shop.orders")')
    assert (done.returncode, "was ever found" in done.stdout + done.stderr) == (0, False), done.stdout + done.stderr
    place.land("3.jsonl", HEARTBEAT)
    done = place.run('debezium("landing/orders", topic="shop.orders")')
    assert "was ever found" not in done.stdout + done.stderr


def test_a_table_that_is_still_empty_in_a_directory_of_several_stops_nothing_and_is_read_anew_when_its_name_is_corrected(
    place: Place,
) -> None:
    place.land("1.jsonl", OF_ORDERS + OF_ORDERS.replace("shop.orders", "shop.items").replace('"id": 1', '"id": 2'))
    done = place.run(file=TWO.format(tables={"orders": "shop.orders", "items": "shop.item"}))
    assert done.returncode == 0, done.stdout + done.stderr
    said = "no record of items was ever found: 2 records read, and they are of shop.orders, shop.items"
    assert said in done.stdout + done.stderr
    done = place.run(file=TWO.format(tables={"orders": "shop.orders", "items": "shop.items"}))
    assert "2 rows read, 1 row changed" in done.stdout + done.stderr
    done = place.run(file=TWO.format(tables={"orders": "shop.orders", "items": "shop.items"}))
    assert "nothing new" in done.stdout + done.stderr

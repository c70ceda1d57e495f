"""``rejoin capture`` against a real PostgreSQL: what lands, joined by rejoin, is what PostgreSQL says; what it refuses, and where it goes on."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from integration.captured_shop import CapturedShop

from rejoin.capture.server import Server, number, url_of
from rejoin.errors import SourceMissing

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def shop(logging_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[CapturedShop]:
    name = request.node.originalname.removeprefix("test_")[:30]
    with psycopg.connect(logging_server) as db:
        taken = {n for (n,) in db.execute("SELECT datname FROM pg_database").fetchall()}
    made = CapturedShop(logging_server, name if name not in taken else f"{name}_{len(taken)}", tmp_path, monkeypatch)
    made.fill(300)
    with made.db:
        yield made


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_rows_and_changes(shop: CapturedShop) -> None:
    assert "public.orders read, 300 rows" in shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()
    shop.db.execute("UPDATE orders SET note = repeat('large ', 1000) WHERE id IN (5, 6)")
    shop.db.execute("UPDATE orders SET id = id + 1000 WHERE id IN (1, 2, 5)")  # the large one says nothing of its note
    shop.db.execute("UPDATE orders SET total = 0 WHERE id = 6; DELETE FROM orders WHERE id = 7; INSERT INTO orders VALUES (7, 1, -1, NULL)")
    shop.db.execute("TRUNCATE customers; INSERT INTO customers VALUES (3, 'é\"\\ \t\u2028')")
    shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()
    before = shop.files
    assert "0 rows, 0 changes" in shop.capture() and shop.files == before


def test_empty_tables_and_single_rows(shop: CapturedShop) -> None:
    shop.db.execute("TRUNCATE orders, customers; INSERT INTO orders VALUES (1, 1, 1, 'only')")
    shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()
    shop.db.execute("INSERT INTO customers VALUES (1, 'first')")
    shop.capture()
    shop.run()
    assert shop.joined() == [(1, 1, 1, "only", "first")]


def test_a_transaction_over_two_tables_lands_in_files_of_one_name(shop: CapturedShop) -> None:
    shop.capture()
    with shop.db.transaction():
        shop.db.execute("UPDATE orders SET total = 1 WHERE id = 1")
        shop.db.execute("UPDATE customers SET name = 'both' WHERE id = 1")
    shop.db.execute("UPDATE orders SET total = 2 WHERE id = 1")
    shop.capture()
    names = {f.parent.name: f.name for f in shop.files if "snapshot" not in f.name}
    assert names.keys() == {"public.orders", "public.customers"} and len(set(names.values())) == 1


def test_a_change_that_the_log_has_before_the_snapshot_and_that_commits_after_it(shop: CapturedShop) -> None:
    shop.capture()
    sessions = [psycopg.connect(shop.url) for _ in range(3)]
    sessions[0].execute("UPDATE orders SET total = 10 WHERE id = 10")
    capture = shop.started("--once", "--resnapshot")

    def waiting_for(number: int) -> bool:
        asked = "SELECT count(*) FROM pg_stat_activity a WHERE %s = ANY (pg_blocking_pids(a.pid))"
        return shop.db.execute(asked, (sessions[number].info.backend_pid,)).fetchone() == (1,)

    wait_for(lambda: waiting_for(0))
    sessions[1].execute("UPDATE orders SET total = 11 WHERE id = 11")
    sessions[0].commit()
    wait_for(lambda: waiting_for(1))
    sessions[2].execute("UPDATE orders SET total = 12 WHERE id = 12")  # decoded, and not in the snapshot that is taken now
    sessions[1].commit()
    wait_for(lambda: len(list(shop.root.glob("landing/*/public.customers/*-snapshot-000000.parquet"))) == 2)
    sessions[2].commit()
    assert capture.wait(60).returncode == 0
    for session in sessions:
        session.close()
    shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()


@pytest.mark.parametrize("point", ["capture.asked", "capture.prepared", "capture.read", "capture.placed"])
def test_killed_before_the_rows_have_landed(shop: CapturedShop, point: str) -> None:
    shop.capture(code=-signal.SIGKILL, REJOIN_CRASH=point)
    shop.db.execute("DELETE FROM orders WHERE id < 50; UPDATE orders SET total = 0 WHERE id < 100")
    shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()


@pytest.mark.parametrize("table", ["orders", "customers"])
def test_killed_before_the_server_knows_what_has_landed(shop: CapturedShop, table: str) -> None:
    shop.capture()
    shop.db.execute("DELETE FROM orders WHERE id < 50; UPDATE customers SET name = 'new' WHERE id < 100")
    shop.capture(code=-signal.SIGKILL, REJOIN_CRASH=f"capture.landed:public.{table}")
    shop.db.execute("UPDATE customers SET name = 'newer' WHERE id < 50")
    shop.capture()
    lines = [line for file in shop.files if "snapshot" not in file.name for line in file.read_bytes().splitlines()]
    assert len(lines) == len(set(lines)) == 49 + 99 + 49
    shop.run()
    assert shop.joined() == shop.expected()


def test_an_idle_publication_holds_no_log(shop: CapturedShop) -> None:
    asked = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'rejoin_' || current_database()"
    shop.capture()
    shop.db.execute("CREATE TABLE other (x text); INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
    ((before,),) = shop.db.execute("SELECT pg_current_wal_lsn()").fetchall()
    shop.capture()
    wait_for(lambda: shop.db.execute(f"SELECT ({asked}) >= %s::pg_lsn", (before,)).fetchone() == (True,))


def test_what_is_written_is_on_the_disk_at_once_so_that_nobody_waits_for_it(shop: CapturedShop) -> None:
    with closing(Server(shop.at, url_of({shop.at: {"url": shop.url}}, shop.at))) as server, psycopg.connect(shop.url) as session:
        session.execute("UPDATE orders SET total = 2 WHERE id = 2")  # which nothing puts onto the disk
        before, written = server.rows("", "SELECT pg_current_wal_insert_lsn()::text")[0][0], server.written()
        flushed = server.rows("", "SELECT pg_current_wal_flush_lsn()::text")[0][0]
    assert number(before) < written <= number(flushed)


def test_it_follows_until_it_is_told_to_end(shop: CapturedShop) -> None:
    capture = shop.started()
    wait_for(lambda: len(shop.files) == 6)
    shop.db.execute("DELETE FROM orders WHERE id < 50")
    time.sleep(1)
    busy = shop.capture(code=75)
    capture.signal(signal.SIGTERM)
    done = capture.wait(30)
    assert (done.returncode, len(shop.files)) == (0, 7) and "49 changes" in done.stdout
    assert "CAPTURE_BUSY" in busy
    shop.run()
    assert shop.joined() == shop.expected()


def test_a_slot_that_is_gone_is_told_and_a_new_snapshot_makes_good(shop: CapturedShop) -> None:
    shop.capture()
    shop.run()
    shop.db.execute("SELECT pg_drop_replication_slot('rejoin_' || current_database())")
    shop.db.execute("DELETE FROM orders WHERE id < 50; UPDATE orders SET total = 0 WHERE id < 100; TRUNCATE customers")
    told = shop.capture(code=3)
    assert "SLOT_LOST" in told and "--resnapshot" in told
    shop.capture("--resnapshot", code=-signal.SIGKILL, REJOIN_CRASH="capture.prepared")
    shop.db.execute("DELETE FROM orders WHERE id = 60")
    assert "public.orders read, 250 rows" in shop.capture()  # the new snapshot was asked for, and is not forgotten
    shop.run()
    assert shop.joined() == shop.expected()


def test_a_publication_that_is_gone_is_told_too(shop: CapturedShop) -> None:
    shop.capture()
    shop.run()
    shop.db.execute(f"DROP PUBLICATION rejoin_{shop.at}")  # type: ignore[arg-type]
    shop.db.execute("DELETE FROM orders WHERE id < 50")
    assert "SLOT_LOST the publication" in shop.capture(code=3)
    shop.capture("--resnapshot", code=-signal.SIGKILL, REJOIN_CRASH="capture.asked")
    shop.capture("--resnapshot")
    shop.db.execute("DELETE FROM orders WHERE id = 51")
    shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()


def test_whole_rows_in_the_log_and_a_table_of_partitions(shop: CapturedShop) -> None:
    shop.db.execute("DROP TABLE customers; CREATE TABLE customers (id int PRIMARY KEY, name text) PARTITION BY RANGE (id)")
    for low in (0, 100):
        shop.db.execute(f"CREATE TABLE part_{low} PARTITION OF customers FOR VALUES FROM ({low}) TO ({low + 100})")  # type: ignore[arg-type]
    shop.db.execute("INSERT INTO customers SELECT i, 'name ' || i FROM generate_series(1, 150) i; ALTER TABLE orders REPLICA IDENTITY FULL")
    shop.db.execute("UPDATE orders SET note = repeat('large ', 1000) WHERE id IN (5, 6)")
    shop.capture()
    shop.db.execute("UPDATE orders SET total = 0 WHERE id = 5; UPDATE orders SET id = 1006 WHERE id = 6; DELETE FROM orders WHERE id = 7")
    shop.db.execute("UPDATE customers SET id = id + 100 WHERE id IN (60, 61); DELETE FROM customers WHERE id > 140 AND id < 150")
    shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()


def test_columns_that_come_and_go_while_changes_are_captured(shop: CapturedShop) -> None:
    shop.capture()
    shop.db.execute("UPDATE orders SET total = 1 WHERE id = 1; ALTER TABLE orders ADD extra int DEFAULT 7, DROP COLUMN customer")
    shop.db.execute("UPDATE orders SET total = 2 WHERE id = 2; ALTER TABLE orders DROP COLUMN extra, ADD customer int")
    shop.db.execute("UPDATE orders SET customer = 3, total = 3 WHERE id IN (1, 2, 3)")
    shop.capture()
    shop.run()
    assert shop.joined()[:3] == shop.expected()[:3]


def test_a_table_that_was_left_out_for_a_while_is_read_again(shop: CapturedShop) -> None:
    shop.capture()
    file = shop.root / "shop.py"
    whole = file.read_text()
    file.write_text(whole.partition("customers =")[0] + 'orders.select("*").named("enriched")\n')
    shop.capture()
    shop.db.execute("DELETE FROM customers WHERE id < 50; UPDATE customers SET name = 'new' WHERE id < 100")
    shop.capture()
    file.write_text(whole)
    assert "public.customers read, 151 rows" in shop.capture()


def refused(shop: CapturedShop, change: str, table: str = "orders") -> str:
    shop.db.execute(change.format(table))  # type: ignore[arg-type]
    return shop.capture(code=3)


def test_what_cannot_be_captured_is_refused_with_the_way_out(shop: CapturedShop) -> None:
    assert "REPLICA IDENTITY" in refused(shop, "ALTER TABLE orders REPLICA IDENTITY NOTHING")
    assert "the declared key (id)" in refused(shop, "ALTER TABLE orders REPLICA IDENTITY DEFAULT, DROP CONSTRAINT orders_pkey")
    assert "that is logged" in refused(shop, "ALTER TABLE orders ADD PRIMARY KEY (id), SET UNLOGGED")
    assert "there is no table" in refused(shop, "ALTER TABLE orders SET LOGGED; ALTER TABLE orders RENAME TO others")
    shop.db.execute("ALTER TABLE others RENAME TO orders")
    shop.capture()
    file = shop.root / "shop.py"
    file.write_text(file.read_text().replace('Topology("shop")', 'Topology("other")'))
    assert "CAPTURE_REFUSED topology 'shop' captures" in shop.capture(code=3)


def test_two_directories_do_not_take_changes_from_each_other(shop: CapturedShop) -> None:
    shop.capture()
    other = shop.root / "other"
    other.mkdir()
    done = shop.started("--once", "--root", str(other)).wait(60)
    assert done.returncode == 3 and "belong to the files of another directory" in done.stderr


def test_a_user_without_rights_is_told_and_no_secret_is(shop: CapturedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.db.execute(
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 'pa55'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
    )
    url = shop.url.replace("rejoin@", "reader:pa55@")
    said = shop.capture(code=3, **{f"REJOIN_SOURCE_{shop.at.upper()}": url})
    assert "SOURCE_DENIED" in said and "pa55" not in said
    said = shop.capture(code=75, **{f"REJOIN_SOURCE_{shop.at.upper()}": "postgresql://me:pa55@127.0.0.1:1/x"})
    assert "SOURCE_DOWN" in said and "pa55" not in said
    said = shop.capture(code=5, **{f"REJOIN_SOURCE_{shop.at.upper()}": "pa55 is no address"})
    assert "is not a URL of PostgreSQL" in said and "pa55" not in said


def test_a_server_that_does_not_log_enough(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = CapturedShop(database, "quiet", tmp_path, monkeypatch)
    with shop.db:
        assert "wal_level is replica" in shop.capture(code=3)


def test_nothing_captured_yet_is_told_by_the_run(shop: CapturedShop) -> None:
    with pytest.raises(SourceMissing, match="rejoin capture"):
        shop.run()

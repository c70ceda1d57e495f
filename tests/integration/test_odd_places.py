"""A lake, its sources and its topology in a folder whose name has every odd letter: runs by both paths, compaction, expiry, reads."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.conftest import Go, Sessions
from integration.shop import SOURCE, Shop, check, event
from limited import limited

from rejoin.operate.compact import compact
from rejoin.operate.expire import expire
from rejoin.operate.verify.verify import verify
from rejoin.page.gather import Lake
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NAME = 'a b=c%20%#d?e+f;g&h,i é日🙂 it\'s "j" [k]l*{m,n} $HOME ~!@^|()<>'
ODD = NAME + ":o"
"""Of a folder: Spark opens no Parquet file with a colon in its name."""


class Odd(Shop):
    """The shop with one customer whose name is every odd letter, and snapshots in Parquet files with odd names."""

    def snapshot(self, name: str, customers: dict[int, str]) -> None:
        self.customers = customers
        rows = {"id": pa.array(list(customers), pa.int64()), "name": pa.array(list(customers.values()), pa.string())}
        pq.write_table(pa.table(rows), self.root / "landing" / "customers" / f"{name}.parquet")

    def orders_of(self, number: int, orders: dict[int, int]) -> None:
        lines = []
        for key, customer in orders.items():
            self.lsn += 1
            self.orders[key] = {"id": key, "customer_id": customer, "note": f"n{self.lsn}"}
            lines.append(event(self.lsn, key, self.orders[key]))
        (self.root / "landing" / "orders" / f"{number} {ODD}.jsonl").write_text("".join(lines))


def test_fault_a5_everything_works_in_a_folder_with_odd_letters_and_nothing_is_beside_it(
    tmp_path: Path, go: Go, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Odd(tmp_path / "env=prod" / ODD)
    shop.file.write_text(SOURCE)
    for number, rows in enumerate((0, 200_000, 0, 200_000), 1):  # by Spark and on the driver in turn
        limited(monkeypatch, small_rows=rows)
        shop.orders_of(number, {key: (key + number) % 4 for key in range(number, number + 5)})
        shop.snapshot(f"{number} {NAME}", {1: f"Ann {number}", 2: "Bob", number + 2: "Cleo"})
        go(shop.topology())
        check(shop)
    limited(monkeypatch, small_rows=200_000)
    topology = shop.topology()
    spark = sessions(topology)
    assert sum(d.total for d in verify(topology, lambda: spark, fast=False)) == 0
    assert compact(topology, lambda: spark, "test") is not None
    check(shop)
    _expired(shop, topology)
    check(shop)
    shop.snapshot("5:00", {1: "Ann", 2: "Bob", 6: "Dee"})
    go(shop.topology())
    check(shop)
    lake = Lake(str(shop.lake))
    assert lake.topologies() == ["shop"] and lake.table("shop", "enriched", ("1",)) is not None
    assert [p.name for p in tmp_path.iterdir()] == ["env=prod"]
    assert [p.name for p in (tmp_path / "env=prod").iterdir()] == [ODD]


def _expired(shop: Odd, topology: Topology) -> None:
    """All files are old, and one is nobody's: it alone goes."""
    [data] = {p.parent for p in (shop.lake / "warehouse").rglob("*.parquet") if p.parent.parent.name == "enriched"}
    stray = data / "stray.parquet"
    stray.write_bytes(b"nobody knows this file")
    before = time.time() - 5 * 86_400
    for path in (shop.lake / "warehouse").rglob("*"):
        if path.is_file():
            os.utime(path, (before, before))
    live = {task.file.file_path.removeprefix("file://") for task in topology.refs.table("enriched").scan().plan_files()}
    assert expire(topology, "test") is not None
    assert not stray.exists() and all(Path(p).is_file() for p in live)

"""How often a run asks an object store, and for how much: it follows the changes, not the tables."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.forked import Forked
from object_store import Asked, object_store, told

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TOPOLOGY = """
from rejoin import Topology, debezium, snapshot

shop = Topology("large")
orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=debezium("landing/orders"))
customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("landing/customers"))
orders.left_join(customers, foreign_key="customer_id", select=["left.*", "right.name AS customer"], name="enriched")
"""


class Large:
    """A shop of many orders, ten for each customer."""

    def __init__(self, root: Path, orders: int) -> None:
        self.root, self.orders, self._lsn, self._file = root, orders, 0, 0
        (root / "large.py").write_text(TOPOLOGY)
        self.land("customers", ({"id": i, "name": f"customer {i}"} for i in range(orders // 10)))
        self.land("orders", (self.order(i) for i in range(orders)))

    def order(self, i: int, note: str = "") -> dict[str, object]:
        return {"id": i, "customer_id": i * 7919 % self.orders // 10, "note": f"note {i * 2_654_435_761 % 2**32}{note}"}

    def land(self, table: str, rows: Iterator[dict[str, object]]) -> None:
        directory = self.root / "landing" / table
        directory.mkdir(parents=True, exist_ok=True)
        self._file += 1
        with (directory / f"{self._file:04}.jsonl").open("w") as out:
            for row in rows:
                self._lsn += 1
                source = {"connector": "postgresql", "lsn": self._lsn, "snapshot": "false"}
                value = {"before": None, "after": row, "source": source, "op": "u"}
                out.write(json.dumps({"key": {"id": row["id"]}, "value": value, "headers": {}}) + "\n")

    def run(self) -> None:
        """As a process of its own: nothing is known of the files that an earlier run read or wrote."""
        words = ["run", str(self.root / "large.py"), "--lake", str(self.root / "lake.toml"), "--root", str(self.root)]
        done = Forked("rejoin.cli", words, dict(os.environ)).wait(600)
        assert done.returncode == 0, done.stderr


CHANGES = 1_000
REQUESTS, BYTES = 120, 5 << 20
"""What a run of so many changes of neighbouring rows may ask and move at most, whatever the size of the tables."""


@pytest.mark.parametrize("orders", [120_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_requests_and_bytes_follow_the_changes_not_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, orders: int) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with object_store(tmp_path) as store:
        store.lake(tmp_path)
        shop = Large(tmp_path, orders)

        def asked(what: str) -> list[Asked]:
            before = len(store.asked())
            shop.run()
            found = store.asked(before)
            print(f"\n{what} of {orders:,} orders\n{told(found)}")
            return found

        asked("first load")
        middle = orders // 2
        shop.land("orders", (shop.order(i, " again") for i in range(middle, middle + CHANGES)))
        neighbours = asked(f"{CHANGES:,} neighbours")
        shop.land("orders", (shop.order(i, " once more") for i in random.Random(3).sample(range(orders), CHANGES)))
        asked(f"{CHANGES:,} scattered rows")
        assert not asked("nothing new")
    assert len(neighbours) <= REQUESTS
    assert sum(one.sent + one.received for one in neighbours) <= BYTES
    assert all(one.status < 300 for one in neighbours), "nobody asks for what is not there"
    written = [one.path for one in neighbours if one.method in ("PUT", "POST")]
    assert len(written) == len(set(written)), "a file that is not large takes one request"

"""Expiry frees what only old runs need, and stray files; what is published stays, and runs go on."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from feeds import rolled_back
from integration.conftest import Go, Sessions
from integration.shop import Shop, folded, output

from rejoin.errors import SnapshotExpired
from rejoin.lake.query.point_query import PointQuery
from rejoin.operate.compact import compact
from rejoin.operate.expire import expire
from rejoin.operate.verify.verify import verify

pytestmark = pytest.mark.slow


def test_expiry_frees_old_states_and_strays_and_nothing_else(tmp_path: Path, go: Go, sessions: Sessions) -> None:
    shop = Shop(tmp_path)
    topology = shop.topology()
    assert expire(topology, "nobody") is None
    for _ in range(2):
        shop.next_batch(40)
        go(topology)
    compact(topology, lambda: sessions(topology), "upkeep")
    data = next((tmp_path / "lake" / "warehouse").rglob("enriched/data"))
    old, young = data / "stray-old.parquet", data / "stray-young.parquet"
    for file in (old, young):
        file.write_bytes(b"left by a crash")
    os.utime(old, (time.time() - 5 * 86400,) * 2)
    before = output(topology)

    kept = expire(topology, "upkeep", timedelta(days=1))
    assert kept is not None
    assert not old.exists() and young.exists()
    assert PointQuery(topology.ledger, topology.refs, 1).get("enriched", ("101",)) is not None, "younger than a day: still there"

    gone = expire(topology, "upkeep", timedelta(0))
    assert gone is not None and topology.ledger.steps(gone.number)["expire.enriched"].counts["snapshots"] > 0
    assert sum(s.counts.get("files", 0) for s in topology.ledger.steps(gone.number).values()) > 0
    assert output(topology) == before
    with pytest.raises(SnapshotExpired):
        PointQuery(topology.ledger, topology.refs, 1).get("enriched", ("101",))

    shop.next_batch(40)
    go(topology)
    assert output(topology) == shop.expected()
    assert folded(topology, changes=rolled_back) == shop.expected()
    assert [d.total for d in verify(topology, lambda: sessions(topology), fast=False)] == [0]

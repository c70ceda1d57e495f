"""A run of some outputs only: the others stay as they are, and the next run makes up for it."""

from pathlib import Path

import pytest
from integration.conftest import Sessions
from integration.shop import SOURCE, Shop, folded, output

from rejoin.errors import UnknownTable
from rejoin.operate.compact import compact
from rejoin.operate.verify.verify import verify
from rejoin.plan.model.policy import RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

SECOND = '\norders.filter("customer_id IS NOT NULL").select(["id", "note"]).named("known")\n'


def test_what_is_left_out_stays_as_it_is_and_is_recomputed_by_the_next_run(tmp_path: Path, sessions: Sessions) -> None:
    shop = Shop(tmp_path)
    shop.file.write_text(SOURCE + SECOND)

    def run(*only: str) -> Topology:
        topology = shop.topology()
        run_topology(topology, lambda: sessions(topology), f"test {len(topology.ledger.runs())}", options=RunOptions(only=only))
        return topology

    def known() -> dict[int, object]:
        return {k: {"id": k, "note": o["note"]} for k, o in shop.orders.items() if o["customer_id"] is not None}

    shop.next_batch(30)
    topology = run()
    assert output(topology, "known") == known()
    before = output(topology, "known")
    for _ in range(2):
        shop.next_batch(30)
        topology = run("enriched")
        assert output(topology) == shop.expected()
        assert output(topology, "known") == before != known()
        assert topology.ledger.kept(topology.ledger.head() or 0) == ["known"]
    assert [(d.node, d.total, d.kept) for d in verify(topology, lambda: sessions(topology), fast=False)] == [
        ("enriched", 0, False),
        ("known", 0, True),
    ]
    compact(topology, lambda: sessions(topology), "upkeep")
    topology = run()
    assert topology.ledger.runs()[-1].rebuild == ("known",)
    assert output(topology, "known") == folded(topology, "known") == known()
    assert output(topology) == folded(topology) == shop.expected()
    with pytest.raises(UnknownTable, match="no output orders"):
        run("orders")

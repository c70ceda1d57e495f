"""V11: hashes of one bit, so that half of all rows have the hash of any other one. Outputs and their changes stay what the joined tables say."""

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import mmh3
import pytest
from feeds import changes_of
from integration.conftest import Sessions
from integration.texts import Lake, line
from limited import limited

from rejoin.statements import provenance, value_hash

pytestmark = pytest.mark.slow

FILE = """
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, product BIGINT, state BIGINT", source=debezium("orders"))
customers = t.table("customers", key="id", schema="id BIGINT, region BIGINT, name BIGINT", source=debezium("customers"))
products = t.table("products", key="id", schema="id BIGINT, name BIGINT", source=debezium("products"))
regions = t.table("regions", key="id", schema="id BIGINT, name BIGINT", source=debezium("regions"))
star = orders.left_join(customers, "customer", ["left.*", "right.name AS who", "right.region"])
star.join(products, "product", ["left.*", "right.name AS what"]).named("star", max_change_share=1.0)
chain = star.left_join(regions, "region", ["left.id", "left.state", "left.who", "right.name AS place"])
chain.named("chain", max_change_share=1.0).expect(condition("state < 3"), severity="quarantine")
"""
COLUMNS = {"orders": ("customer", "product", "state"), "customers": ("region", "name"), "products": ("name",), "regions": ("name",)}
Rows = dict[int, dict[str, Any]]


class World:
    """Random changes, and what the outputs are of the tables that they make."""

    def __init__(self, seed: int) -> None:
        self.random, self.lsn = random.Random(seed), 0
        self.tables: dict[str, Rows] = {name: {} for name in COLUMNS}
        self.shown: Rows = {}

    def change(self) -> Iterator[tuple[str, str]]:
        """Lines of some changes, and of which tables these are."""
        for _ in range(self.random.randrange(1, 30)):
            name, key = self.random.choice(["orders", "orders", "customers", "products", "regions"]), self.random.randrange(6)
            self.lsn += 1
            if self.random.random() < 0.2 and self.tables[name].pop(key, None):
                yield name, line("d", self.lsn, {"id": key})
                continue
            before = self.tables[name].get(key, {})
            row = {
                c: before[c] if c in before and self.random.random() < 0.5 else self.random.choice([None, *range(4)]) for c in COLUMNS[name]
            }
            self.tables[name][key] = row
            yield name, line("u", self.lsn, {"id": key}, {"id": key, **row})

    def joined(self) -> tuple[Rows, Rows]:
        """Star and chain; a row of the chain whose state is too large stays as it was, one whose order is gone is gone."""
        star, chain = {}, {}
        for key, order in self.tables["orders"].items():
            customer = self.tables["customers"].get(order["customer"], {})
            who = {"who": customer.get("name"), "region": customer.get("region")}
            if product := self.tables["products"].get(order["product"]):
                star[key] = {"id": key, **order, **who, "what": product["name"]}
            region = self.tables["regions"].get(customer.get("region"), {})  # type: ignore[arg-type]
            row = {"id": key, "state": order["state"], "who": who["who"], "place": region.get("name")}
            if order["state"] is None or order["state"] < 3:
                chain[key] = row
            elif key in self.shown:
                chain[key] = self.shown[key]
        self.shown = chain
        return star, chain


def of_one_bit(encoded: bytes) -> bytes:
    return bytes([mmh3.hash_bytes(encoded)[0] & 1]) * 16


def folded(lake: Lake, output: str) -> Rows:
    found: Rows = {}
    for change in sorted(changes_of(lake.topology, output), key=lambda c: c["_run"]):
        before, after = ({k: v for k, v in row.items() if k != "_hash"} if row else None for row in (change["_before"], change["_after"]))
        assert found.pop(change["id"], None) == before
        if after is not None:
            found[change["id"]] = after
    return found


@pytest.mark.parametrize(
    ("runs", "read_values"),
    [
        pytest.param(5, 0, id="rows before are made once more"),
        pytest.param(60, 0, marks=pytest.mark.nightly, id="often"),
        pytest.param(60, 10**9, marks=pytest.mark.nightly, id="rows before are read"),
    ],
)
def test_fault_v11_rows_of_one_hash_are_told_apart(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config, runs: int, read_values: int
) -> None:
    world, lake = World(int(pytestconfig.option.hypothesis_seed)), Lake(tmp_path, sessions, FILE)
    for module in (value_hash, provenance):
        monkeypatch.setattr(module, "hashed_bytes", of_one_bit)
    limited(monkeypatch, read_values=read_values)
    different = set[tuple[Any, ...]]()
    for number in count():
        if number >= runs and len(different) > 2:
            break
        lines: dict[str, list[str]] = {name: [] for name in COLUMNS}
        for name, written in world.change():
            lines[name].append(written)
        for name, some in lines.items():
            if some or not number:
                lake.land(f"{name}/{number:03}.jsonl", "".join(one + "\n" for one in some))
        lake.run()
        star, chain = world.joined()
        assert (lake.rows("star"), lake.rows("chain")) == (star, chain)
        assert (folded(lake, "star"), folded(lake, "chain")) == (star, chain)
        different |= {tuple(row.values()) for row in star.values()}
    hashes = {c["_after"]["_hash"] for c in changes_of(lake.topology, "star") if c["_after"]}
    assert len(hashes) <= 2 < len(different), "rows that differ have one hash"

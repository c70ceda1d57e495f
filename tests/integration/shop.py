"""A small shop whose right answer plain Python knows: orders (feed) left join customers (snapshots)."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from feeds import changes_of
from pyiceberg.expressions import AlwaysTrue

from rejoin.lake.config import lake_config
from rejoin.lake.table_roles import state_tables
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

SOURCE = """
from rejoin import Topology, debezium, snapshot

shop = Topology("shop")
orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=debezium("landing/orders"))
customers = shop.table(
    "customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers", max_delete_share=0.9)
)
orders.left_join(
    customers, foreign_key="customer_id", select=["left.id", "left.note", "right.name AS customer"], name="enriched"
)
"""

Row = dict[str, object]


@dataclass
class Shop:
    """Files of a shop under ``root``, and the state that they describe."""

    root: Path
    seed: int = 7
    orders: dict[int, Row] = field(default_factory=dict)
    customers: dict[int, str] = field(default_factory=dict)
    lsn: int = 0
    batch: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        for table in ("orders", "customers"):
            (self.root / "landing" / table).mkdir(parents=True, exist_ok=True)
        self.file.write_text(SOURCE)

    @property
    def file(self) -> Path:
        return self.root / "shop.py"

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    def topology(self) -> Topology:
        return Topology(load(str(self.file)), lake_config(str(self.lake)), str(self.root))

    def next_batch(self, size: int = 6) -> None:
        """Lands a feed file and a snapshot that change something on both sides."""
        self.batch += 1
        lines = [self._order(self.random.randrange(12)) for _ in range(size)]
        lines.append(self._order(100 + self.batch))  # so that every batch changes the output for sure
        (self.root / "landing" / "orders" / f"{self.batch:04}.jsonl").write_text("".join(lines))
        for key in range(1, 5):
            if self.random.random() < 0.8 or key == 1:  # never all of them: that would be refused as shrunk
                self.customers[key] = f"name {self.random.randrange(100)}"
            elif len(self.customers) > 1:
                self.customers.pop(key, None)
        rows = "".join(f"{k},{v}\n" for k, v in sorted(self.customers.items()))
        (self.root / "landing" / "customers" / f"{self.batch:04}.csv").write_text("id,name\n" + rows)

    def expected(self) -> dict[int, Row]:
        """The output's rows by key."""
        return {
            k: {"id": k, "note": o["note"], "customer": self.customers.get(o["customer_id"]) if o["customer_id"] else None}  # type: ignore[call-overload]
            for k, o in self.orders.items()
        }

    def _order(self, key: int) -> str:
        self.lsn += 1
        after: Row | None = None
        if self.random.random() < 0.25 and key < 100:
            self.orders.pop(key, None)
        else:
            after = {"id": key, "customer_id": self.random.choice([None, 1, 2, 3, 4, 9]), "note": f"n{self.lsn}"}
            self.orders[key] = after
        return event(self.lsn, key, after)


def event(lsn: int, key: int, after: Row | None) -> str:
    """One line as Debezium writes it; ``after`` None is a delete."""
    source = {"connector": "postgresql", "lsn": lsn, "snapshot": "false"}
    value = {"before": None, "after": after, "source": source, "op": "d" if after is None else "u"}
    return json.dumps({"key": {"id": key}, "value": value, "headers": {}}) + "\n"


def rows(topology: Topology, table: str, snapshot_id: int | None = None) -> list[Row]:
    """A stored table as another engine reads it: ``main``, or a snapshot."""
    found = topology.refs.table(table)
    assert found is not None
    return list(found.scan(row_filter=AlwaysTrue(), snapshot_id=snapshot_id).to_arrow().to_pylist())


def output(topology: Topology, node: str = "enriched") -> dict[object, Row]:
    """The published output by key, without bookkeeping; asserts one row a key."""
    found = rows(topology, node)
    by_key = {r["id"]: {k: v for k, v in r.items() if not k.startswith("_")} for r in found}
    assert len(by_key) == len(found), "two rows of one key"
    return by_key


def folded(
    topology: Topology,
    node: str = "enriched",
    changes: Callable[[Topology, str], list[Row]] = changes_of,
    key: Callable[[Row], object] = itemgetter("id"),
) -> dict[object, Row]:
    """The changes folded from the start; asserts that every change is real and fits the row before it (I5)."""
    state: dict[object, Row] = {}
    for change in sorted(changes(topology, node), key=lambda r: int(str(r["_run"]))):
        at, before, after = key(change), _plain(change["_before"]), _plain(change["_after"])
        assert before == state.get(at), f"run {change['_run']}: the row before the change is another one"
        assert before != after, f"run {change['_run']}: not a change"
        if after is None:
            state.pop(at)
        else:
            state[at] = after
    return state


def _plain(row: object) -> Row | None:
    return None if row is None else {k: v for k, v in row.items() if not k.startswith("_")}  # type: ignore[attr-defined]


def check(shop: Shop) -> None:
    """The published output and its folded changes are what plain Python says."""
    topology = shop.topology()
    assert output(topology) == shop.expected()
    assert folded(topology) == shop.expected()
    assert set(topology.refs.tables()) <= set(state_tables(topology.plan)), "a run wrote a table that is not in the list"


def steps_of(points: list[str]) -> Iterator[str]:
    """Distinct names in their order."""
    return iter(dict.fromkeys(points))

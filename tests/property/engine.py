"""rejoin under test: runs, and reads of the ledger's snapshots with PyIceberg alone (not with rejoin's own readers)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feeds import changes_of
from file_bounds import counted_above, wrong_bounds
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from values import same

from rejoin.lake import table_names
from rejoin.lake.config import LakeConfig
from rejoin.operate.compact import compact
from rejoin.operate.verify.verify import verify
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """One row of a changes table; rows without bookkeeping columns."""

    op: str
    key: Row
    before: Row | None
    after: Row | None


class Engine:
    """One topology on a lake."""

    def __init__(self, plan: Plan, config: LakeConfig, root: Path, spark: Callable[[], Any]) -> None:
        self.plan, self.spark = plan, spark
        self._topology = Topology(plan, config, str(root))

    @property
    def topology(self) -> Topology:
        """What runs."""
        return self._topology

    def run(self) -> int:
        """One run of everything; its number."""
        return run_topology(self._topology, self.spark, "property test").number

    def compact(self) -> int | None:
        """A compaction; its number, None if there was nothing to do."""
        done = compact(self._topology, self.spark, "property test")
        return None if done is None else done.number

    def scattered(self) -> bool:
        """Whether a table is in more than one file."""
        ledger = self._topology.ledger
        states = ledger.states(ledger.head())
        return any(len(list(self._topology.refs.require(t, s).scan(snapshot_id=s).plan_files())) > 1 for t, s in states.items())

    def verified(self, *, fast: bool) -> int:
        """How many differences rejoin itself finds."""
        return sum(difference.total for difference in verify(self._topology, self.spark, fast=fast))

    def counts(self, run: int, table: str) -> dict[str, int]:
        """What the ingest of a source table counted."""
        return self._topology.ledger.steps(run)[f"ingest.{table}"].counts

    def source(self, name: str) -> list[tuple[Row, Row]]:
        """(key, row) of the live rows of a source table: the newest version of each key."""
        table = self.plan.table(name)
        newest = _newest(self._scan(name), table.key)
        return [(key, _values(row, [c.name for c in table.columns])) for key, row in newest if row["_op"] != "D"]

    def output(self, node: Node) -> list[tuple[Row, Row]]:
        """(key, row) of an output."""
        columns = [p.name for p in node.columns]
        return [(_values(row, node.key), _values(row, columns)) for row in self._scan(node.name)]

    def changes(self, node: Node, run: int) -> list[Change]:
        """What a run changed in an output."""
        columns = [p.name for p in node.columns]

        def side(row: dict[str, Any] | None) -> Row | None:
            return None if row is None else _values(row, columns)

        found = [change for change in self.feed(node) if change["_run"] == run]
        return [Change(row["_op"], _values(row, node.key), side(row["_before"]), side(row["_after"])) for row in found]

    def feed(self, node: Node) -> list[dict[str, Any]]:
        """All changes of an output."""
        return changes_of(self._topology, node.name)

    def subscriptions(self, node: Node, edge: Edge) -> list[tuple[Row, Row]]:
        """((fk_1.., pk_1..), (hash of the left row,)) of the live subscriptions."""
        fks, pks = len(edge.foreign_key), len(self.plan.left_key(node))
        key = [*(f"fk_{i + 1}" for i in range(fks)), *(f"pk_{i + 1}" for i in range(pks))]
        newest = _newest(self._scan(table_names.subscriptions(node, edge)), key)
        return [(key, (row["_hash"],)) for key, row in newest if row["_op"] == "S"]

    def wrong_bounds(self) -> list[str]:
        """What the manifests say of the files and is not so."""
        return wrong_bounds(self._topology.refs, self._topology.ledger.states(self._topology.ledger.head()))

    def above(self, node: Node, column: str, value: Any) -> dict[str, int]:
        """How many rows of an output have a larger value, by reader."""
        snapshot = self._topology.ledger.states(self._topology.ledger.head())[node.name]
        return counted_above(self._topology.refs, self.spark(), node.name, snapshot, column, value)

    def hashes(self, name: str) -> dict[Row, bytes]:
        """Key -> stored value hash of a source table's or output's live rows."""
        return {key: row["_hash"] for key, row in _newest(self._scan(name), self.plan.key_of(name)) if row.get("_op") != "D"}

    def _scan(self, table: str, condition: BooleanExpression = AlwaysTrue()) -> list[dict[str, Any]]:  # noqa: B008 -- immutable
        head = self._topology.ledger.head()
        snapshot = self._topology.ledger.states(head).get(table)
        if snapshot is None:
            return []
        found = self._topology.refs.require(table, snapshot)
        return found.scan(row_filter=condition, snapshot_id=snapshot).to_arrow().to_pylist()


def _values(row: dict[str, Any], columns: Any) -> Row:
    return tuple(same(row[c]) for c in columns)


def _newest(rows: list[dict[str, Any]], key: Any) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The rows of a key's newest run: one a key, or the test fails on the second."""
    newest: dict[Row, int] = {}
    for row in rows:
        at = _values(row, key)
        newest[at] = max(newest.get(at, 0), row["_run"])
    return ((at, row) for row in rows if newest[at := _values(row, key)] == row["_run"])

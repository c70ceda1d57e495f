"""Random edits of one topology between its runs: columns, edges, their order and kinds, filters, unnamed joins, tables and outputs come and go.

The data change in every run too, also those of tables that are away. What a table holds is computed here by plain Python: rows that changed while
a column was not declared lack its value.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from expressions import BIGINT, STRING
from topologies import FEED, TableSpec

from rejoin import Topology, debezium
from rejoin.declare.topology import Relation

Row = dict[str, Any]

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "a": {"id": BIGINT, "b": BIGINT, "c": BIGINT, "n": BIGINT, "s": STRING, "x": STRING, "y": BIGINT},
    "b": {"id": BIGINT, "d": BIGINT, "bv": STRING, "bn": BIGINT},
    "c": {"id": BIGINT, "d": BIGINT, "cv": STRING, "cn": BIGINT},
    "d": {"id": BIGINT, "dv": STRING},
}
KEYS: Final = 6
FILTERS: Final = ("n > 1", "n IS NOT NULL OR s = '2'", "coalesce(s, '') <> 'x'")


@dataclass
class Declared:
    """The topology as it stands. ``edges``: what is joined, in order; ``inner``: those that leave rows out; ``right``: right columns that are shown."""

    extra: set[str] = field(default_factory=lambda: {"x"})
    edges: list[str] = field(default_factory=lambda: ["b", "c"])
    inner: set[str] = field(default_factory=set)
    right: set[str] = field(default_factory=lambda: {"b_bv", "c_cv"})
    before: str | None = None
    after: str | None = None
    plain: bool = True

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """The declared tables and their columns."""
        read = {"b": "b", "bd": "bd", "c": "c", "cd": "cd", "chain": "bd", "number": "c"}
        names = {"a", *(t for edge in self.edges for t in read[edge])}
        return {t: {c: k for c, k in COLUMNS[t].items() if c not in {"x", "y"} - self.extra} for t in sorted(names)}

    def topology(self, name: str) -> Topology:
        made = Topology(name)
        table = {
            t: made.table(t, key="id", schema=", ".join(f"{c} {k}" for c, k in columns.items()), source=debezium(f"{t}/"))
            for t, columns in self.tables.items()
        }
        rows = table["a"] if self.before is None else table["a"].filter(self.before)
        if self.plain:
            table["a"].filter("n IS NOT NULL").select(["id", "n"]).named("plain")
        for edge in self.edges:
            rows = self._joined(rows, edge, table)
        (rows if self.after is None else rows.filter(self.after)).named("out")
        return made

    def _joined(self, rows: Relation, edge: str, table: Mapping[str, Relation]) -> Relation:
        """``bd``, ``cd``: the right side is a join without a name; ``chain``: the foreign key comes from one; ``number``: a filter protects it."""
        kind = "join" if edge in self.inner else "left_join"
        first, shown = ("c" if edge == "number" else edge[0]), [c for c in COLUMNS["b"] | COLUMNS["c"] if f"{edge}_{c}" in self.right]
        items = ["left.*", *(f"right.{c} AS {edge}_{c}" for c in shown if c in COLUMNS[first])]
        if edge in ("bd", "cd"):
            right = table[edge[0]].left_join(table["d"], "d", ["left.*", "right.dv"])
            return getattr(rows, kind)(right, edge[0], [*items, f"right.dv AS {edge}_dv"])
        if edge == "chain":
            through = rows.left_join(table["b"], "b", ["left.*", "right.d AS chain_d"])
            return getattr(through, kind)(table["d"], "chain_d", ["left.*", "right.dv AS chain_dv"])
        if edge == "number":
            return getattr(rows.filter("s RLIKE '^[0-9]+$'"), kind)(table["c"], "CAST(s AS BIGINT)", items)
        return getattr(rows, kind)(table[edge], edge, items)


def edit(rng: random.Random, declared: Declared) -> str:
    """Changes the topology in one way; says how."""
    made: dict[str, Callable[[], Any]] = {
        "a column of a": lambda: declared.extra.symmetric_difference_update({rng.choice("xy")}),
        "an edge added": lambda: _add_edge(rng, declared),
        "an edge removed": lambda: (
            declared.edges.remove(rng.choice(declared.edges)) if len(declared.edges) > 1 else _add_edge(rng, declared)
        ),
        "edges in another order": lambda: rng.shuffle(declared.edges),
        "another kind": lambda: declared.inner.symmetric_difference_update({rng.choice(declared.edges)}),
        "a right column": lambda: declared.right.symmetric_difference_update(
            {f"{edge}_{c}" for edge in declared.edges for c in rng.choice((("bv", "cv"), ("bn", "cn"), ("d",)))}
        ),
        "a filter before": lambda: setattr(declared, "before", rng.choice([None, *FILTERS])),
        "a filter after": lambda: setattr(declared, "after", rng.choice([None, *FILTERS])),
        "an output": lambda: setattr(declared, "plain", not declared.plain),
    }
    what = rng.choice(list(made))
    made[what]()
    return what


def _add_edge(rng: random.Random, declared: Declared) -> None:
    """At any place: also before unnamed joins that are there."""
    absent = [e for e in ("b", "bd", "c", "cd", "chain", "number") if e not in declared.edges]
    if absent:
        declared.edges.insert(rng.randint(0, len(declared.edges)), rng.choice(absent))


class Data:
    """The feeds below a folder, and what the tables hold after a run that reads them."""

    def __init__(self, rng: random.Random, root: Path) -> None:
        self._rng, self._root, self._lsn = rng, root, 0
        self._rows: dict[str, dict[tuple[Any, ...], Row]] = {t: {} for t in COLUMNS}
        self._unread: dict[str, list[tuple[int, Row | None]]] = {t: [] for t in COLUMNS}
        for table in COLUMNS:
            (root / table).mkdir(parents=True)

    def land(self) -> None:
        """New events of some tables, whether these are declared or not."""
        for table in COLUMNS:
            if self._unread[table] and self._rng.random() < 0.3:
                continue
            events = [(key, self._row(table, key)) for key in self._rng.sample(range(KEYS), self._rng.randint(1, 4))]
            self._unread[table] += events
            (self._root / table / f"{self._lsn:06}.jsonl").write_text("".join(self._event(k, r) for k, r in events))

    def read(self, tables: Mapping[str, Mapping[str, str]]) -> None:
        """A run has read the feeds of these tables with these columns."""
        for table, columns in tables.items():
            for key, row in self._unread[table]:
                self._rows[table].pop((key,), None)
                if row is not None:
                    self._rows[table][key,] = {c: v if c in columns else None for c, v in row.items()}
            self._unread[table] = []

    def rows(self, table: str) -> dict[tuple[Any, ...], Row]:
        """The live rows of a table by key, as ``model.Model`` has them."""
        return self._rows[table]

    def _row(self, table: str, key: int) -> Row | None:
        if self._rng.random() < 0.15:
            return None
        values = {BIGINT: [None, 0, 1, 2, 3, 4], STRING: [None, "x", "1", "2", "3", "long " * 3]}
        return {c: key if c == "id" else self._rng.choice(values[k]) for c, k in COLUMNS[table].items()}

    def _event(self, key: int, row: Row | None) -> str:
        self._lsn += 1
        value = {"before": None, "after": row, "source": {"connector": "postgresql", "lsn": self._lsn}, "op": "d" if row is None else "u"}
        return json.dumps({"key": {"id": key}, "value": value, "headers": {}}) + "\n"


def specs(tables: Mapping[str, Mapping[str, str]]) -> dict[str, TableSpec]:
    """The declared tables as the oracle takes them."""
    return {t: TableSpec(t, "number", True, ("id",), columns, (), FEED, KEYS) for t, columns in tables.items()}

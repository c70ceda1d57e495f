"""The second engine where rows are held back: DuckDB computes, plain Python judges, a key that fails keeps what was published."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from engine import Row
from expressions import BIGINT, STRING
from histories import Event, Feed, Key, Snapshot
from model import Model
from topologies import TableSpec
from values import ARROW, same

from rejoin import condition, in_set, not_null
from rejoin.declare.expectations import Expected
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.sql.defining_query import node_query

Passes = Callable[[Any], bool]
Rule = tuple[str, Expected, Passes]
"""A column, what is expected of it, and whether a value passes."""


def rule(rng: random.Random, columns: Mapping[str, str | None]) -> Rule:
    """Something random that about half of the values of some column meet."""
    name = rng.choice(sorted(columns))
    if columns[name] == BIGINT and rng.random() < 0.7:
        return name, condition(f"`{name}` % 2 = 0"), lambda v: v is None or v % 2 == 0
    if columns[name] == STRING and rng.random() < 0.7:
        values = ["x", "", "日本", "y"]
        return name, in_set(name, values), lambda v: v is None or v in values
    return name, not_null(name), lambda v: same(v) not in (None, "NaN")


class Published:
    """What every output must show after each run, given the rows of the source tables and the rules of the run."""

    def __init__(self, plan: Plan, specs: Mapping[str, TableSpec]) -> None:
        self._plan, self._specs = plan, specs
        self._queries = {n.name: self._query(n) for n in plan.nodes}
        self._connection = duckdb.connect()
        self.held: dict[str, set[Row]] = {}

    def load(self, model: Model, rules: Mapping[str, Rule]) -> None:
        """One run: the model's rows as they are now."""
        for name, spec in self._specs.items():
            schema = pa.schema([pa.field(c, ARROW[t]) for c, t in spec.columns.items()])
            self._connection.register("given", pa.Table.from_pylist(list(model.rows(name).values()), schema=schema))
            self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')
            self._connection.unregister("given")
        for node in self._plan.nodes:
            self._publish(node, rules.get(node.name))

    def output(self, node: Node) -> list[tuple[Row, Row]]:
        """(key, row) of an output."""
        return [(key, row) for _, key, row in self._rows(node, node.name)]

    def _publish(self, node: Node, rule: Rule | None) -> None:
        db, name = self._connection, node.name
        known = name in {t[0] for t in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        db.execute(f'CREATE OR REPLACE TABLE new AS SELECT *, row_number() OVER () AS "_n" FROM ({self._queries[name]})')
        before = {key: (n, row) for n, key, row in self._rows(node, name)} if known else {}
        new = list(self._rows(node, "new"))
        at = [p.name for p in node.columns].index(rule[0]) if rule else 0
        bad = [(n, key) for n, key, row in new if rule and not rule[2](row[at]) and before.get(key, (0, None))[1] != row]
        self.held[name] = {key for _, key in bad}
        stays = [before[key][0] for _, key in bad if key in before]
        rows = f'SELECT * EXCLUDE ("_n") FROM new WHERE NOT list_contains({[n for n, _ in bad]}::BIGINT[], "_n")'
        if known:
            rows += f' UNION ALL SELECT * EXCLUDE ("_n") FROM "{name}" WHERE list_contains({stays}::BIGINT[], "_n")'
        db.execute(f'CREATE OR REPLACE TABLE made AS SELECT *, row_number() OVER () AS "_n" FROM ({rows})')
        db.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM made')

    def _rows(self, node: Node, table: str) -> list[tuple[int, Row, Row]]:
        columns = [p.name for p in node.columns]
        at = [columns.index(k) for k in node.key]
        shown = ", ".join(f'"{c}"' for c in columns)
        found = self._connection.execute(f'SELECT "_n", {shown} FROM "{table}"').fetchall()
        made = [(n, tuple(map(same, row))) for n, *row in found]
        return [(n, tuple(row[i] for i in at), row) for n, row in made]

    def _query(self, node: Node) -> str:
        text = node_query(self._plan, node, lambda name: f"`{name}`")
        return sqlglot.transpile(text, read="spark", write="duckdb")[0]


class HeldModel(Model):
    """The source tables where bad rows wait: plain Python, with the rules of the run in ``rules`` (table -> rule)."""

    def __init__(self, specs: Mapping[str, TableSpec], plan: Plan) -> None:
        super().__init__(specs, plan)
        self.rules: dict[str, Rule] = {}
        self.waiting: dict[str, dict[Key, Event]] = {name: {} for name in specs}

    def receive(self, arriving: Mapping[str, Feed | list[Snapshot]]) -> dict[str, Counter[str]]:
        """As before; a table that has lost its rule takes what waited."""
        counts = super().receive(arriving)
        for name, waiting in self.waiting.items():
            if name not in self.rules:
                for key in list(waiting):
                    self._place(name, key, [], Counter())
        return counts

    def _place(self, table: str, key: Key, events: list[Event], counts: Counter[str]) -> None:
        stored = self._newest.get((table, key), (-1, 0, 0))
        older = self.waiting[table].pop(key, None)
        fresh = [e for e in [*events, *([older] if older else [])] if e.position > stored]
        if not fresh:
            return
        newest = max(fresh, key=lambda e: e.position)
        if newest.row is not None and self._fails(table, key, newest.row):
            self.waiting[table][key] = newest
            return
        self._newest[table, key] = newest.position
        self._put(table, key, newest.row)

    def _shown(self, spec: TableSpec, snapshot: Snapshot) -> Counter[str]:
        self.waiting[spec.name].clear()
        seen = {tuple(row[c] for c in spec.key) for row in snapshot.rows}
        for row in snapshot.rows:
            key = tuple(row[c] for c in spec.key)
            if key in snapshot.spoiled:
                continue
            if self._fails(spec.name, key, row):
                self.waiting[spec.name][key] = Event(spec.name, key, (0, 0, 0), row, 0)
            else:
                self._put(spec.name, key, row)
        for key in self._rows[spec.name].keys() - seen:
            self._put(spec.name, key, None)
        return Counter()

    def _fails(self, table: str, key: Key, row: dict[str, Any]) -> bool:
        rule, now = self.rules.get(table), self._rows[table].get(key)
        unchanged = now is not None and {c: same(v) for c, v in now.items()} == {c: same(v) for c, v in row.items()}
        return rule is not None and not unchanged and not rule[2](row[rule[0]])

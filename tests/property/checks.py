"""Checks of one run. Each returns what is wrong as sentences, none if all is right."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping

from engine import Change, Engine, Row
from file_bounds import READERS
from model import Model
from oracle import Oracle
from topologies import TableSpec
from values import same

SHOWN = 5
MOST = 300
State = dict[str, dict[Row, Row]]


def shown(value: object) -> str:
    """A value for a message: of long ones the beginning."""
    text = repr(value)
    return text if len(text) < MOST else f"{text[:MOST]}..."


def unlike(what: str, expected: Iterable[tuple[Row, Row]], found: Iterable[tuple[Row, Row]]) -> list[str]:
    """How two tables of (key, row) differ, and which keys stand twice."""
    wanted, there = list(expected), list(found)
    doubled = [
        f"{what}: key {shown(key)} stands {n} times" for rows in (wanted, there) for key, n in Counter(k for k, _ in rows).items() if n > 1
    ]
    right, left = dict(wanted), dict(there)
    wrong = [key for key in {**right, **left} if right.get(key) != left.get(key)]
    lines = [f"{what}: key {shown(key)}: expected {shown(right.get(key))}, found {shown(left.get(key))}" for key in wrong[:SHOWN]]
    return doubled + lines + ([f"{what}: {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else [])


def sources(engine: Engine, model: Model, specs: Mapping[str, TableSpec]) -> list[str]:
    """The source tables hold what the model says."""
    wrong = []
    for name, spec in specs.items():
        expected = [(key, tuple(same(row[c]) for c in spec.columns)) for key, row in model.rows(name).items()]
        wrong += unlike(f"table {name}", expected, engine.source(name))
    return wrong


def outputs(engine: Engine, oracle: Oracle) -> list[str]:
    """Every output is what DuckDB computes from the model's rows (I1)."""
    wrong = []
    for node in engine.plan.nodes:
        at = [[p.name for p in node.columns].index(k) for k in node.key]
        expected = [(tuple(row[i] for i in at), row) for row in oracle.output(node.name)]
        wrong += unlike(f"output {node.name}", expected, engine.output(node))
    return wrong


def changes(engine: Engine, run: int, before: State) -> list[str]:
    """The run's changes are real, and folded over the tables before they give the tables now (I5)."""
    wrong = []
    for node in engine.plan.nodes:
        table, made = dict(before.get(node.name, {})), engine.changes(node, run)
        wrong += unreal(node.name, table, made)
        for change in made:
            table.pop(change.key, None)
            if change.after is not None:
                table[change.key] = change.after
        wrong += unlike(f"changes of {node.name}", table.items(), engine.output(node))
    return wrong


def unreal(name: str, before: Mapping[Row, Row], made: list[Change]) -> list[str]:
    """Changes that change nothing, do not start from the row that was there, have the wrong operation, or are not the only one of their key."""
    wrong = [f"changes of {name}: {n} changes of key {shown(key)}" for key, n in Counter(c.key for c in made).items() if n > 1]
    for change in made:
        op = "I" if change.before is None else "D" if change.after is None else "U"
        if change.before == change.after or change.op != op or before.get(change.key) != change.before:
            wrong.append(f"changes of {name}: {shown(change)}, but the row was {shown(before.get(change.key))}")
    return wrong


def conserved(engine: Engine, run: int, expected: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Every line that was written has the fate that the model gives it (I4)."""
    wrong = []
    for table, fates in expected.items():
        counted = engine.counts(run, table)
        kinds = ("read", "applied", "noop", "superseded", "duplicate", "stale", "quarantined", "skipped", "truncates")
        differing = {kind: (fates.get(kind, 0), counted[kind]) for kind in kinds if fates.get(kind, 0) != counted[kind]}
        if differing:
            wrong.append(f"ingest {table}: fate: (expected, counted): {differing}")
        if counted["read"] != sum(counted[kind] for kind in kinds if kind != "read"):
            wrong.append(f"ingest {table}: the fates do not add up to what was read: {counted}")
    return wrong


def subscriptions(engine: Engine, oracle: Oracle) -> list[str]:
    """Every left row with a foreign key has exactly one live subscription, with the row's stored hash; there is no other (I8)."""
    wrong = []
    for node in engine.plan.nodes:
        hashes = engine.hashes(node.left.table) if node.edges else {}
        for edge in node.edges:
            keys = oracle.subscriptions(node.name, edge.name)
            pks = len(engine.plan.left_key(node))
            expected = [(key, (hashes.get(key[-pks:], b"the row is not stored"),)) for key in keys]
            wrong += unlike(f"subscriptions of {node.name}.{edge.name}", expected, engine.subscriptions(node, edge))
    return wrong


def filtered(engine: Engine, rng: random.Random) -> list[str]:
    """A condition on a column of every output gives every reader the rows that it gives to who reads all of them."""
    wrong = []
    for node in engine.plan.nodes:
        rows, columns = [row for _, row in engine.output(node)], [p.name for p in node.columns]
        compared = [c for c, p in enumerate(node.columns) if (p.type or "").startswith(("STRING", "BIGINT", "DECIMAL", "DATE"))]
        texts = [c for c in compared if node.columns[c].type == "STRING"]
        at = rng.choice(texts or compared)
        present = sorted({row[at] for row in rows if row[at] is not None})
        if not present:
            continue
        value = rng.choice(present[-3:])
        value = value[:8] if isinstance(value, str) else value
        expected = sum(row[at] is not None and row[at] > value for row in rows)
        counted = engine.above(node, columns[at], value)
        if counted != dict.fromkeys(READERS, expected):
            wrong.append(f"output {node.name}: {expected} rows with {columns[at]} > {shown(value)}; {counted}")
    return wrong


def state(engine: Engine) -> State:
    """Every output as it is now."""
    return {node.name: dict(engine.output(node)) for node in engine.plan.nodes}

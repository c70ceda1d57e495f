"""The changes of an output in full, another way than the package's: what a run has loaded is read from the snapshot that it published."""

from typing import Any

from pyiceberg.expressions import AlwaysTrue

from rejoin.lake import table_names
from rejoin.statements.load_reference import LOADED
from rejoin.steps.run.topology import Topology


def changes_of(topology: Topology, node: str) -> list[dict[str, Any]]:
    """The stored changes of all committed runs, with an insert for every row of the output in place of the reference to them."""
    ledger = topology.ledger
    states = ledger.states(ledger.head())
    made = []
    for change in _scan(topology, table_names.changes(node), states):
        if change["_op"] != LOADED:
            made.append(change)
            continue
        key = [c for c in change if not c.startswith("_")]
        assert all(change[c] is None for c in change if c not in ("_run", "_op")), "a reference has no values"
        for row in _scan(topology, node, ledger.states(change["_run"])):
            image = {c: v for c, v in row.items() if c != "_run"}
            made.append({**{k: row[k] for k in key}, "_run": change["_run"], "_op": "I", "_before": None, "_after": image})
    return made


def rolled_back(topology: Topology, node: str) -> list[dict[str, Any]]:
    """The same where the snapshot of that run is gone: from the newest rows and the first later change of each key."""
    states = topology.ledger.states(topology.ledger.head())
    changes = sorted(_scan(topology, table_names.changes(node), states), key=lambda c: -c["_run"])
    load = next(c["_run"] for c in changes if c["_op"] == LOADED)
    later = [c for c in changes if c["_op"] != LOADED]
    key = [c for c in changes[0] if not c.startswith("_")]
    rows = {
        tuple(r[k] for k in key): {c: v for c, v in r.items() if c != "_run"} for r in _scan(topology, node, states) if r["_run"] == load
    }
    rows |= {tuple(c[k] for k in key): c["_before"] for c in later}  # the first one of a key comes last
    inserts = [{**dict(zip(key, k, strict=True)), "_run": load, "_op": "I", "_before": None, "_after": r} for k, r in rows.items() if r]
    return later + inserts


def _scan(topology: Topology, table: str, states: dict[str, int]) -> list[dict[str, Any]]:
    if table not in states:
        return []
    found = topology.refs.require(table, states[table])
    rows: list[dict[str, Any]] = found.scan(row_filter=AlwaysTrue(), snapshot_id=states[table]).to_arrow().to_pylist()
    return rows


def stored_ops(topology: Topology, node: str) -> dict[int, list[str]]:
    """What the changes table stores of each run: the operations alone."""
    found: dict[int, list[str]] = {}
    for change in _scan(topology, table_names.changes(node), topology.ledger.states(topology.ledger.head())):
        found.setdefault(change["_run"], []).append(change["_op"])
    return found

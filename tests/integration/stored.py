"""What a run has left behind: every row of every table, and who did each step.

``python -m integration.stored FILE LAKE``: the rows as JSON, for who is not where the lake is reached from.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any, Protocol

from rejoin.lake.config import lake_config
from rejoin.lake.table_roles import Role, state_tables
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

Stored = dict[str, list[tuple[str, ...]]]
"""All rows, by table."""


class _Place(Protocol):
    @property
    def topology(self) -> Topology: ...


def stored(place: _Place) -> Stored:
    """Every row that is stored in every table of the topology, hashes included."""
    topology, found = place.topology, Stored()
    states = topology.ledger.states(topology.ledger.head())
    for name, table in state_tables(topology.plan).items():
        if name in states and table.role is not Role.RESPONSES:
            rows = topology.refs.require(name, states[name]).scan(snapshot_id=states[name]).to_arrow().to_pylist()
            found[name] = sorted(tuple(f"{k}={row[k]!r}" for k in sorted(row)) for row in rows)
    return found


def engines(place: _Place, run: int) -> dict[str, Any]:
    """Who did each step of a run that had something to do."""
    steps = place.topology.ledger.steps(run)
    return {name: done.detail["engine"] for name, done in steps.items() if "engine" in done.detail}


if __name__ == "__main__":
    json.dump(stored(SimpleNamespace(topology=Topology(load(sys.argv[1]), lake_config(sys.argv[2]), "."))), sys.stdout)

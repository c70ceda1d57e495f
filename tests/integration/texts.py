"""A topology as text, what lands below it, and its runs."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from integration.conftest import Sessions
from integration.shop import Row, rows

from rejoin.lake.config import lake_config
from rejoin.lake.query.quarantine_reader import entries
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

UNCHANGED = "__debezium_unavailable_value"
"""What Debezium writes for an unchanged large value."""


class Lake:
    """``text`` is the body of a topology file whose topology is called ``t``."""

    def __init__(self, root: Path, sessions: Sessions, text: str) -> None:
        self.root, self._sessions = root, sessions
        self.declare(text)

    def declare(self, text: str) -> None:
        (self.root / "t.py").write_text("from rejoin import *\nt = Topology('t')\n" + text)

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake")), str(self.root))

    def land(self, name: str, content: str | bytes | pa.Table) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def run(self, **how: Any) -> dict[str, dict[str, int]]:
        topology = self.topology
        done = run_topology(topology, lambda: self._sessions(topology), f"test {len(topology.ledger.runs())}", options=RunOptions(**how))
        return {name: step.counts for name, step in topology.ledger.steps(done.number).items()}

    def rows(self, output: str) -> dict[object, Row]:
        return {r["id"]: {k: v for k, v in r.items() if not k.startswith("_")} for r in rows(self.topology, output)}

    def kept_aside(self, table: str) -> dict[tuple[str | None, int | None], tuple[str, str]]:
        return {(e.file, e.line): (e.code, e.raw or "") for e in entries(self.topology.ledger, self.topology.refs, table)}


def line(op: str, lsn: int, key: Row | None, after: Row | None = None, **parts: Any) -> str:
    """A change event of PostgreSQL; ``value`` overrides members of the envelope, other parts those of the line."""
    source = {"connector": "postgresql", "lsn": lsn}
    value = {"before": None, "after": after, "source": source, "op": op} | parts.pop("value", {})
    return json.dumps({"key": key, "value": value, "headers": {}} | parts)


def put(lsn: int, key: int, was: int | None = None, **values: object) -> str:
    """The row of ``key``; ``was``: its key before."""
    headers = {} if was is None else {"__debezium.oldkey": json.dumps({"id": was})}
    return line("u", lsn, {"id": key}, {"id": key, **values}, headers=headers)

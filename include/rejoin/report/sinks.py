"""What people see of sinks: how far each is, and the numbers of its last delivery."""

import time
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from rejoin.lake.ledger.deliveries import Deliveries
from rejoin.plan.model.steps import deliveries as steps_of
from rejoin.report.history import iso
from rejoin.sinks.position import Position
from rejoin.steps.deliver.step import find
from rejoin.steps.run.topology import Topology


def deliveries_data(topology: Topology) -> dict[str, Any]:
    """The sinks as data: what ``--json`` prints."""
    known, cursors = Deliveries(topology.ledger), Deliveries(topology.ledger).cursors()
    runs, made = known.runs(), []
    for step in steps_of(topology.plan):
        cursor, last = cursors.get(step.target), known.last(step.target)
        at = None if cursor is None or cursor.position is None else Position.from_json(cursor.position).done
        _, sink = find(topology, step.target)
        made.append(
            {
                "sink": step.target,
                "kind": sink.kind,
                "target": sink.target,
                "at_run": at,
                "runs_behind": sum(run > (at or 0) for run in runs),
                "moved_at": None if cursor is None or cursor.moved_at is None else iso(cursor.moved_at),
                "last": None if last is None else asdict(last),
            }
        )
    return {"sinks": made}


def deliveries(console: Console, topology: Topology, *, news: bool = False) -> None:
    """One line a sink; nothing where there are none, nor where there are no ``news``: every sink has everything, and its last delivery was empty."""
    found = deliveries_data(topology)["sinks"]
    if not found or (news and not any(s["runs_behind"] or s["last"] is None or s["last"]["records"] for s in found)):
        return
    table = Table("sink", "target", "at run", "runs behind", "moved", "records", "seconds", "last delivery", box=None)
    for sink in found:
        last = sink["last"] or {"records": 0, "seconds": 0.0, "failed": None, "detail": {}}
        moved = "-" if sink["moved_at"] is None else f"{time.time() - datetime.fromisoformat(sink['moved_at']).timestamp():,.0f} s ago"
        numbers = ", ".join(f"{k} {v:,}" for k, v in last["detail"].items() if v)
        said = str(last["failed"]).split("\n", maxsplit=1)[0] if last["failed"] else numbers
        row = (sink["sink"], f"{sink['kind']} {sink['target']}", "-" if sink["at_run"] is None else str(sink["at_run"]))
        table.add_row(*row, str(sink["runs_behind"]), moved, f"{last['records']:,}", f"{last['seconds']:.2f}", said)
    console.print(table)

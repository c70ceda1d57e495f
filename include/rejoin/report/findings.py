"""What people see of what ``rejoin doctor`` has found."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from rejoin.doctor.findings import Finding, State

_STYLES = {State.OK: "green", State.WARNING: "yellow", State.PROBLEM: "red"}


def findings(console: Console, found: Sequence[Finding]) -> None:
    """A line each, and how many there are of each kind."""
    table = Table("", "of", "what", "found", "to do", box=None)
    for one in found:
        table.add_row(str(one.state), one.of, one.what, one.found, one.do, style=None if one.state is State.OK else _STYLES[one.state])
    console.print(table)
    counts = {state: sum(one.state is state for one in found) for state in State}
    console.print(f"{counts[State.PROBLEM]} problems, {counts[State.WARNING]} warnings, {counts[State.OK]} ok")


def findings_data(topology: str, found: Iterable[Finding]) -> dict[str, Any]:
    """The same as data: what ``--json`` prints."""
    return {"topology": topology, "findings": [vars(one) | {"state": str(one.state)} for one in found]}

"""What is kept aside, for people: listed without Spark, and dropped by a small run of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from rejoin.conduct import Topology
from rejoin.errors import UnknownTable
from rejoin.lake import names
from rejoin.lake.pointquery import PointQuery
from rejoin.lake.records import Run, StepRecord, Write
from rejoin.lake.runs import RunKind
from rejoin.plan.model import Plan
from rejoin.stages.columns import HELD_CODES, SOURCE_FILE
from rejoin.typed_keys import key_text


@dataclass(frozen=True)
class Entry:
    """One row or record that is kept aside now. ``key``: by column, null where it could not be read; ``line``: of ``file``."""

    source: str
    key: Mapping[str, Any]
    code: str
    reason: str
    file: str | None
    line: int | None
    run: int
    raw: str | None

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "key": dict(self.key)}


def entries(topology: Topology, name: str | None = None, key: Sequence[str] = ()) -> list[Entry]:
    """What the newest committed run keeps aside.

    Args:
        topology: the topology.
        name: only of this table or output.
        key: only of this key, as texts (``typed_keys.NULL``: null).

    Raises:
        RunUnknown: nothing was committed yet.
        UnknownTable: no such table or output.
    """
    query = PointQuery(topology.ledger, topology.refs)
    known = query.plan.names
    if name is not None and name not in known:
        raise UnknownTable(f"topology {query.plan.topology!r} has no table {name!r}", expected=", ".join(known))
    found = [e for of in known if name in (None, of) for e in open_entries(query.plan, of, query.quarantine(of))]
    return [e for e in found if not key or tuple(map(key_text, e.key.values())) == tuple(key)]


def open_entries(plan: Plan, name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    """What the rows of a quarantine table (of all keys or of some) still keep aside.

    A key that is held back has its newest row; a record that was refused is known by file and line.
    """
    columns = plan.key_of(name)
    newest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda r: int(r["_run"])):
        place = tuple(row[k] for k in columns) if row["_code"] in HELD_CODES else (row[SOURCE_FILE], row["_line"])
        newest[row["_code"] in HELD_CODES, *place] = row
    for row in newest.values():
        if row.get("_op") != "R":
            file, line = row.get(SOURCE_FILE), row.get("_line")
            yield Entry(name, {k: row[k] for k in columns}, row["_code"], row["_reason"], file, line, row["_run"], row["_raw"])


def drop(topology: Topology, who: str, name: str, key: Sequence[str] = ()) -> Run | None:
    """Forgets what is kept aside of a source table, or of one key of it. None if there is nothing.

    Raises:
        RunBusy: a run is open and alive.
        UnknownTable: no such table, or an output: what is held back of it would be missing without being listed.
    """
    found = entries(topology, name, key)
    if any(n.name == name for n in topology.plan.nodes):
        raise UnknownTable(
            f"{name!r} is an output: its rows are made from others and cannot be dropped",
            expected="a source table",
            next_step="correct the input, or relax the expectation",
        )
    if not found:
        return None
    return topology.upkeep(who, RunKind.DROP, lambda run: _drop(topology, run, name, found))


def _drop(topology: Topology, run: Run, name: str, found: Sequence[Entry]) -> None:
    import pyarrow as pa

    from rejoin.lake import commit
    from rejoin.lake.local import fitted

    started, table = monotonic(), names.quarantine(name)
    base = topology.ledger.states(run.base)[table]
    existing = topology.refs.require(table, base)
    schema = existing.schema().as_arrow()
    marks = [{**e.key, "_run": run.number, "_op": "R", "_code": e.code, SOURCE_FILE: e.file, "_line": e.line} for e in found]
    rows = pa.Table.from_pylist(marks, pa.schema([schema.field(c) for c in marks[0]]))
    files = commit.data_files(existing, fitted(rows, schema))
    write = Write(table, topology.refs.commit_files(table, names.branch(run.number, RunKind.DROP), base, files))
    record = StepRecord(f"{RunKind.DROP}.{name}", {"dropped": len(found)}, monotonic() - started, 0)
    topology.ledger.register(run.number, record, RunKind.DROP, (write,))

"""What is kept aside of a source table is dropped, by a small run of its own."""

from collections.abc import Sequence
from time import monotonic

from rejoin.errors import UnknownTable
from rejoin.lake import table_names
from rejoin.lake.ledger.records import Run, StepRecord, Write
from rejoin.lake.ledger.runs import RunKind
from rejoin.lake.query.quarantine_entries import Entry
from rejoin.lake.query.quarantine_reader import entries
from rejoin.statements.own_columns import SOURCE_FILE
from rejoin.steps.run.topology import Topology


def drop(topology: Topology, who: str, name: str, key: Sequence[str] = ()) -> Run | None:
    """Forgets what is kept aside of a source table, or of one key of it. None if there is nothing.

    Raises:
        RunBusy: a run is open and alive.
        UnknownTable: no such table, or an output: what is held back of it would be missing without being listed.
    """
    found = entries(topology.ledger, topology.refs, name, key)
    head = topology.ledger.head()
    # What is an output by the newest committed run, whose plan this one keeps: a later run that failed may have had another topology.
    if head is not None and any(n.name == name for n in topology.ledger.run(head).plan.nodes):
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

    from rejoin.engines.arrow_tables import fitted
    from rejoin.lake.iceberg import commits

    started, table = monotonic(), table_names.quarantine(name)
    base = topology.ledger.states(run.base)[table]
    existing = topology.refs.require(table, base)
    schema = existing.schema().as_arrow()
    marks = [{**e.key, "_run": run.number, "_op": "R", "_code": e.code, SOURCE_FILE: e.file, "_line": e.line} for e in found]
    rows = pa.Table.from_pylist(marks, pa.schema([schema.field(c) for c in marks[0]]))
    files = commits.data_files(existing, fitted(rows, schema))
    write = Write(table, topology.refs.commit_files(table, table_names.branch(run.number, RunKind.DROP), base, files))
    record = StepRecord(f"{RunKind.DROP}.{name}", {"dropped": len(found)}, monotonic() - started, 0)
    topology.ledger.register(run.number, record, RunKind.DROP, (write,))

"""What a compaction can let go of streams, as the tables of a run are."""

from collections.abc import Collection, Mapping

from rejoin.lake.compact import folding
from rejoin.lake.iceberg import snapshot_files
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.plan.change.stream_retention import advanced, horizon
from rejoin.plan.model.plan import Plan


def letting_go(plan: Plan, states: Mapping[str, int], refs: Refs, kept: Collection[str], now: int) -> Plan:
    """The plan with the horizons up to which files of streams can go; the same plan if none can.

    Args:
        plan: that of the run whose tables these are.
        states: table -> snapshot id.
        refs: the tables.
        kept: outputs that were left as they were: they have yet to meet the records that came since.
        now: the time in microseconds: a record from the future does not make the others old for good.
    """
    waiting = {name for n in plan.nodes if n.name in kept for name in n.reads}

    def newest(name: str) -> int | None:
        column = plan.table(name).event_time if plan.is_table(name) else None
        if column is None or name not in states:
            return None
        table = refs.require(name, states[name])
        found = snapshot_files.newest(table, files_of(table, states[name]), column)
        return None if found is None else min(found, now)

    for stream in (t for t in plan.tables if t.name in states and t.name not in waiting):
        found = horizon(plan, stream, newest)
        if found is None:
            continue
        assert found.stored is not None
        if folding.lets_go(refs.require(stream.name, states[stream.name]), states[stream.name], stream.order, found.stored):
            plan = plan.with_horizons(advanced(plan, found))
    return plan

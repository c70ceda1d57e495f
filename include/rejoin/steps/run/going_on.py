"""Where the cut of a source goes on: what committed runs have read of it."""

from collections.abc import Callable, Mapping
from functools import partial

from rejoin.context.topology_lake import TopologyLake
from rejoin.lake import table_names
from rejoin.lake.ledger.records import Run
from rejoin.lake.read.table_sizes import Sizes
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import chosen
from rejoin.plan.pin import Pin


def going_on(topology: TopologyLake, run: Run, table: Table) -> tuple[Pin | None, Callable[[], Mapping[str, int]]]:
    """The last pin of a source, and the files that were taken: nothing where all is looked at again.

    Args:
        topology: whose source it is.
        run: the open run.
        table: the table.
    """
    ledger = topology.ledger
    last = ledger.last_pin(table.name)
    if last is not None and _chooses_anew(topology, run, table):
        return None, dict
    return None if last is None else Pin.from_dict(last), partial(ledger.consumed, table.name)


def _chooses_anew(topology: TopologyLake, run: Run, table: Table) -> bool:
    """Whether a table that no run has found a record of chooses other records now: it may be one of those that were passed over."""
    if run.base is None:
        return False
    before = next((t.source for t in topology.ledger.run(run.base).plan.tables if t.name == table.name), None)
    if before is None or chosen(before) == chosen(table.source):
        return False
    sizes = Sizes(lambda: topology.refs, topology.ledger.states(run.base))
    return not (sizes.rows(table.name) or sizes.rows(table_names.quarantine(table.name)))

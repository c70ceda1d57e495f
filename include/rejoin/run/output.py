"""What ``resolve`` and ``validate`` share: net changes become the new state of an output."""

import pyarrow as pa

from rejoin.engines.engine import Rows
from rejoin.lake.records import Write
from rejoin.lake.writer import Writer
from rejoin.plan.model import Node
from rejoin.plan.results import Changed
from rejoin.run.work import Work

OPS = {"inserted": "_op = 'I'", "updated": "_op = 'U'", "deleted": "_op = 'D'"}
"""What is counted of changes, and the conditions."""


def apply(work: Work, writer: Writer, node: Node, written: Rows, log: Write, made: Changed, located: pa.Table | None) -> tuple[Write, ...]:
    """Writes the output with a run's changes applied, unless there is nothing to write.

    Args:
        work: the attempt.
        writer: its writer.
        node: the node.
        written: the changes, as they were written to the changes table.
        log: that write.
        made: how many of each kind they are.
        located: where the rows to replace lie, if that is known.
    """
    columns, inserts = [p.name for p in node.columns], made.updated + made.deleted == 0
    if made.changes == 0 and work.before.has(node.name) and not work.facts.rebuilt(node):
        return (log,)
    return (log, writer.upsert(node.name, written, log, columns, node.key, located, only_inserts=inserts, nulls=node.null_keys))

"""What ``resolve`` and ``validate`` share: net changes become the new state of an output."""

import pyarrow as pa

from rejoin import crash
from rejoin.engines.engine import Here, Rows
from rejoin.lake import names
from rejoin.lake.records import Write
from rejoin.lake.writer import Writer
from rejoin.plan.model import Node
from rejoin.plan.results import Changed
from rejoin.run.work import Work
from rejoin.stages import loaded

OPS = {"inserted": "_op = 'I'", "updated": "_op = 'U'", "deleted": "_op = 'D'"}
"""What is counted of changes, and the conditions."""


def loading(work: Work, node: Node) -> bool:
    """Whether this run writes the output for the first time."""
    return not work.before.has(node.name)


def load(work: Work, writer: Writer, node: Node, written: Rows) -> tuple[Write, ...]:
    """Writes an output for the first time, and a reference to its rows as its changes. ``written``: rows of the changes table, all of them inserts."""
    reference = Here(loaded.reference(written.schema, work.facts.run.number))
    log = writer.append(names.changes(node.name), reference, node.key)
    crash.point(f"load.{node.name}:changes")
    rows = work.engine.query(loaded.rows(work.engine.sql, [p.name for p in node.columns]), changes=written)
    return log, writer.append(node.name, rows, node.key)


def apply(work: Work, writer: Writer, node: Node, written: Rows, log: Write, made: Changed, located: pa.Table | None) -> tuple[Write, ...]:
    """Writes an output that is there already with a run's changes applied, unless there is nothing to write.

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
    if made.changes == 0 and not work.facts.rebuilt(node):
        return (log,)
    return (log, writer.upsert(node.name, written, log, columns, node.key, located, only_inserts=inserts, nulls=node.null_keys))

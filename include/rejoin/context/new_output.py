"""What ``resolve`` and ``validate`` share: net changes become the new state of an output."""

from collections.abc import Mapping

from rejoin import crash
from rejoin.context.work import Work
from rejoin.engines.relation import KeySpread, LocalRelation, Relation
from rejoin.lake import table_names
from rejoin.lake.ledger.records import Write
from rejoin.lake.write import output_changes
from rejoin.lake.write.writer import LoggedChanges, Writer
from rejoin.plan.model.plan import Node
from rejoin.plan.model.step_results import Changed
from rejoin.statements import load_reference
from rejoin.statements.dialect import counted
from rejoin.statements.own_columns import HASH, RUN

OPS = {"inserted": "_op = 'I'", "updated": "_op = 'U'", "deleted": "_op = 'D'"}
"""What is counted of changes, and the conditions."""
COUNTS = counted(OPS | {"unchanged": "_op = 'N'"})
"""The same as aggregates, with the rows that stay as they are."""
CHANGED = "_op <> 'N'"
"""Of the rows that ``resolve.difference`` gives, those that change."""


def load(
    work: Work, writer: Writer, node: Node, changes: Relation, at_most: int, spread: KeySpread | None = None
) -> tuple[Mapping[str, int], tuple[Write, ...]]:
    """Writes an output for the first time, and a reference to its rows as its changes.

    Args:
        work: the attempt.
        writer: its writer.
        node: the node.
        changes: rows of the changes table, all of them inserts but those that change nothing.
        at_most: how many these are.
        spread: how their keys lie.

    Returns:
        The counts of ``COUNTS``, and the writes.
    """
    reference = LocalRelation(load_reference.reference(output_changes.logged(changes.schema), work.facts.run.number))
    log = writer.append(table_names.changes(node.name), reference, node.key)
    crash.point(f"load.{node.name}:changes")
    columns = [p.name for p in node.columns]
    rows = work.engine.query(load_reference.rows(work.engine.sql, columns, node.key), changes=changes)
    observed, seen = work.engine.counted(rows, COUNTS)
    shown = work.engine.picked(observed, [*columns, RUN, HASH], CHANGED)
    written = writer.append(node.name, work.engine.ranged(work.engine.small(shown, at_most), node.key, spread), node.key)
    return seen(), (log, written)


def applied(log: LoggedChanges, made: Changed, *, rebuilt: bool) -> tuple[Write, ...]:
    """Writes an output that is there already with a run's changes applied, unless there is nothing to write.

    Args:
        log: the changes, as they were written.
        made: how many of each kind they are.
        rebuilt: the output gets a state of its own even if nothing changes.
    """
    if made.changes == 0 and not rebuilt:
        return (log.write,)
    return (log.write, log.apply(made))

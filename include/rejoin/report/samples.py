"""Some of what a run has changed, or is about to change, for people who look at it or approve it. PyIceberg on snapshot ids, never Spark."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rejoin.lake import table_names
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.query import bounded_looks
from rejoin.lake.query.point_query import plain
from rejoin.plan.model.plan import Plan
from rejoin.statements.load_reference import LOADED
from rejoin.why.answer import differing

SAMPLED = 6
"""So many changes are taken of an output."""


@dataclass(frozen=True)
class RowChange:
    """One change of a row. ``changed``: the columns that differ."""

    op: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changed: frozenset[str]


@dataclass(frozen=True)
class Sample:
    """Some changes that a run made, or is about to make, in an output; ``changes`` None: its snapshot is beyond retention."""

    output: str
    key: tuple[str, ...]
    changes: tuple[RowChange, ...] | None


def samples(refs: Refs, plan: Plan, run: int, writes: Mapping[str, int]) -> tuple[Sample, ...]:
    """Some of what a run has changed, or is about to change, in each output. ``writes``: table -> snapshot id that it wrote."""
    found = []
    for node in plan.nodes:
        snapshot = writes.get(table_names.changes(node.name))
        if node.published and snapshot is not None:
            table = refs.table(table_names.changes(node.name))
            there = table is not None and table.snapshot_by_id(snapshot) is not None
            rows = bounded_looks.of_run(table, snapshot, run, SAMPLED) if table is not None and there else None
            if rows and rows[0]["_op"] == LOADED:
                rows = _loaded(refs, node.name, run, writes)
            changes = None if rows is None else tuple(row_change(r["_op"], plain(r["_before"]), plain(r["_after"])) for r in rows)
            found.append(Sample(node.name, node.key, changes))
    return tuple(found)


def _loaded(refs: Refs, output: str, run: int, writes: Mapping[str, int]) -> list[dict[str, Any]] | None:
    """Some inserts of the run that loaded an output."""
    table = refs.table(output)
    if table is None or table.snapshot_by_id(writes[output]) is None:
        return None
    return [{"_op": "I", "_before": None, "_after": row} for row in bounded_looks.of_run(table, writes[output], run, SAMPLED)]


def row_change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> RowChange:
    """A change with the columns that differ."""
    return RowChange(op, before, after, frozenset(differing(before, after)))

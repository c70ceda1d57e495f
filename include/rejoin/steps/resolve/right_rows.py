"""The right rows of results that nobody has told: looked up as of this run, or as of the one before."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.context.work import Work
from rejoin.engines.relation import Relation
from rejoin.joins.foreign_key import resolve as star
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.read.reader import Reader
from rejoin.plan.model.plan import Node
from rejoin.statements.dialect import counted


def filled(work: Work, reader: Reader, node: Node, state: Relation, missing: Mapping[str, int], paired: Relation) -> Relation:
    """``state`` with every ``r<i>``.

    Args:
        work: the attempt.
        reader: as of when right rows are looked up.
        node: the node.
        state: what ``star.pair`` gives, possibly observed: it may stand only once in what is executed.
        missing: how many rows lack each edge's right row (``lacks_<i>``), at most.
        paired: the same as ``state``.
    """
    for number, edge in enumerate(work.engine.node(node).edges, start=1):
        right, key = edge.right.table, work.facts.plan.key_of(edge.right.table)
        wanting = missing.get(f"lacks_{number}", 0)
        if wanting:
            wanted = work.engine.query(star.missing(work.engine.sql, number, edge, key), state=paired)
            rights = reader.lookup(right, LookupKeys(wanted, wanting))
        elif f"r{number}" not in state.columns:
            rights = reader.none(right)
        else:
            continue
        fill = star.fill(work.engine.sql, state.columns, number, edge, key, none=not wanting)
        state = work.engine.query(fill, state=state, rights=rights)
    return state


def lacking(node: Node, paired: pa.Table) -> dict[str, int]:
    """What ``lacks`` counts, of rows in this process."""
    numbers = range(1, len(node.edges) + 1)
    found = {name: pc.sum(paired[name]).as_py() or 0 for i in numbers for name in (f"lacks_{i}", f"stale_{i}")}
    return {f"lacks_{i}": found[f"lacks_{i}"] for i in numbers} | {"stale": sum(found[f"stale_{i}"] for i in numbers)}


def lacks(node: Node) -> dict[str, str]:
    """Counts over what ``star.pair`` gives."""
    numbers = range(1, len(node.edges) + 1)
    stale = " + ".join(["count(CASE WHEN false THEN 1 END)", *(f"count(CASE WHEN stale_{i} THEN 1 END)" for i in numbers)])
    return {**counted({f"lacks_{i}": f"lacks_{i}" for i in numbers}), "stale": stale}

"""The right rows of results that nobody has told: looked up as of this run, or as of the one before."""

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from rejoin.context.work import Work
from rejoin.engines.relation import Engine, Relation
from rejoin.joins.foreign_key import resolve as star
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.read.reader import Reader
from rejoin.plan.model.plan import Edge
from rejoin.statements.dialect import aggregated, counted


def filled(work: Work, reader: Reader, edges: Sequence[Edge], state: Relation, missing: Mapping[str, int]) -> Relation:
    """``state`` with every ``r<i>``.

    Args:
        work: the attempt.
        reader: as of when right rows are looked up.
        edges: those of the node, in the engine's dialect.
        state: what ``star.pair`` gives.
        missing: how many rows lack each edge's right row (``lacks_<i>``).
    """
    paired = state
    for number, edge in enumerate(edges, start=1):
        right, key = edge.right.table, work.facts.plan.key_of(edge.right.table)
        wanting = missing[f"lacks_{number}"]
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


def lacking(engine: Engine, edges: int, state: Relation) -> dict[str, int]:
    """How many rows of what ``star.pair`` gives lack each edge's right row (``lacks_<i>``), and how many ``stale`` responses there are, of so many ``edges``."""
    flags = [f"{flag}_{i}" for i in range(1, edges + 1) for flag in ("lacks", "stale")]
    if not flags:
        return {"stale": 0}
    if state.local is not None:
        found = {name: pc.sum(state.local[name]).as_py() or 0 for name in flags}
    else:
        counts = engine.one(aggregated(engine.sql, counted({name: name for name in flags}), "state"), state=state)
        found = {name: int(str(count)) for name, count in counts.items()}
    return {**found, "stale": sum(count for name, count in found.items() if name.startswith("stale_"))}

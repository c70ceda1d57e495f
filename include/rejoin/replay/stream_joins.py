"""The joins of streams, and of tables by their keys, that ``rejoin replay`` runs, declared with the public API.

Streams have the records (scenario, n): n is the order of arrival. They are joined by (scenario, id), and each scenario has a clock of its own.
"""

from collections.abc import Callable
from typing import Final

from rejoin.declare.declarations import SourceDeclaration
from rejoin.declare.sources import debezium
from rejoin.declare.topology import Relation, Topology

Variant = tuple[tuple[str, int], ...]
"""What a scenario says beside its join: ``before_ms``, ``after_ms`` and ``grace_ms`` of a window, ``versioned`` and ``map_fk`` (1)."""

OF_STREAMS: Final = ("stream-stream", "stream-table", "stream-global")
"""Joins whose results are records, not rows of a table."""
SIDES: Final = {
    "table": ("table", "table"),
    "stream-stream": ("stream", "stream"),
    "stream-table": ("stream", "table"),
    "stream-global": ("stream", "table"),
}
"""What the left and the right side of a join are."""
HOWS: Final = {"table": ("inner", "left", "outer"), "stream-stream": ("inner", "left", "outer")} | dict.fromkeys(
    OF_STREAMS[1:], ("inner", "left")
)

_VALUE = "concat(coalesce(left.value, 'null'), '+', coalesce(right.value, 'null')) AS value"
_LATEST = "coalesce(CASE WHEN left.at >= right.at THEN left.at ELSE right.at END, left.at) AS at"


def declare(on: Topology, join: str, how: str, variant: Variant) -> Relation:
    """The joined relation; its columns are ``scenario``, ``id``, ``value``, and of streams ``at``."""
    said = dict(variant)
    left = _stream(on, "left", said) if SIDES[join][0] == "stream" else _table(on, "left")
    right = _stream(on, "right", said) if SIDES[join][1] == "stream" else _table(on, "right")
    method: Callable[..., Relation] = {"inner": left.join, "left": left.left_join, "outer": left.full_join}[how]
    if join == "table":
        return method(right, select=["left.scenario", "left.id", _VALUE])
    if join == "stream-stream":
        keys = ["left.scenario AS l_scenario", "left.n AS l_n", "right.scenario AS r_scenario", "right.n AS r_n"]
        shown = ["coalesce(left.scenario, right.scenario) AS scenario", "coalesce(left.id, right.id) AS id", _VALUE, _LATEST]
        before, after = (f"{said[name]} milliseconds" for name in ("before_ms", "after_ms"))
        return method(right, select=[*keys, *shown], before=before, after=after, clock="scenario")
    by = ["scenario", "CAST(nullif(split_part(value, '|', 1), '') AS STRING)"] if said.get("map_fk") else None
    as_of = "run" if join == "stream-global" else "event_time" if said.get("versioned") else "arrival"
    return method(right, foreign_key=by, select=["left.scenario", "left.n", "left.id", _VALUE, "left.at"], as_of=as_of)


def _stream(on: Topology, side: str, said: dict[str, int]) -> Relation:
    schema = "scenario BIGINT, n BIGINT, id STRING, value STRING, at TIMESTAMP"
    late = f"{said.get('grace_ms', 0)} milliseconds"
    return on.stream(
        side, id=["scenario", "n"], key=["scenario", "id"], event_time="at", schema=schema, source=_source(on, side), lateness=late
    )


def _table(on: Topology, side: str) -> Relation:
    return on.table(side, key=["scenario", "id"], schema="scenario BIGINT, id STRING, value STRING", source=_source(on, side))


def _source(on: Topology, side: str) -> SourceDeclaration:
    return debezium(f"{on.name}/{side}/", placeholder="replayed events carry every column", on_bad_record="fail")

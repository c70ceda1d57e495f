"""A plan as JSON, both ways: what the ledger keeps with a run, and ``rejoin explain --json`` prints."""

import dataclasses
import json
from typing import Any

from rejoin.plan.model.expectations import expectations_of
from rejoin.plan.model.grouping import grouping_of
from rejoin.plan.model.match import JoinKind, match_of
from rejoin.plan.model.plan import Column, Edge, Node, Plan, Projection, Table, View
from rejoin.plan.model.policy import MAX_MEMBERS, Fuse, Horizon, Policy, Refresh
from rejoin.plan.model.sinks import sink_of
from rejoin.plan.model.sources import SOURCES, OnBadRecord, OnIncomplete, Snapshots, format_from


def to_json(plan: Plan) -> str:
    """The plan as JSON; the same text for the same plan."""
    return json.dumps(dataclasses.asdict(plan), sort_keys=True, ensure_ascii=False)


def from_json(text: str) -> Plan:
    """The plan that was written, by this version or an older one."""
    data = json.loads(text)
    tables, nodes = tuple(_table(t) for t in data["tables"]), tuple(_node(n) for n in data["nodes"])
    horizons = tuple(Horizon(**h) for h in data.get("horizons", ()))
    return Plan(data["topology"], tables, nodes, tuple(data.get("replay", ())), tuple(data.get("repair", ())), horizons)


def _table(data: dict[str, Any]) -> Table:
    source = dict(data["source"])
    source["on_bad_record"] = OnBadRecord(source["on_bad_record"])
    if source["kind"] == "debezium":
        source["units"] = tuple((c, u) for c, u in source["units"])
    for name, words in (("snapshots", Snapshots), ("on_incomplete", OnIncomplete)):
        if name in source:
            source[name] = words(source[name])
    if source["kind"] == "changes":
        source["order"] = tuple(source["order"])
    if "columns" in source:
        source["columns"] = tuple((c, of) for c, of in source["columns"])
    if "format" in source:
        source["format"] = format_from(source["format"])
    columns = tuple(Column(**c) for c in data["columns"])
    key, used, optional = (tuple(data.get(of, ())) for of in ("key", "used", "optional"))
    read, expected = SOURCES[source["kind"]](**source), expectations_of(data)
    timed = map(data.get, ("event_time", "versions_of", "retention", "computed_time"))
    return Table(data["name"], key, columns, read, used, expected, optional, *timed)


def _projections(data: list[dict[str, Any]]) -> tuple[Projection, ...]:
    return tuple(Projection(**p) for p in data)


def _view(data: dict[str, Any]) -> View:
    return View(data["table"], _projections(data["columns"]), data["where"], tuple(data["key"]))


def _edge(data: dict[str, Any]) -> Edge:
    return Edge(data["name"], _view(data["right"]), tuple(data["foreign_key"]), JoinKind(data["kind"]), match_of(data.get("match")))


def _policy(data: dict[str, Any]) -> Policy:
    return Policy(Refresh(data["refresh"]), data["max_change_share"], Fuse(data["fuse"]), data.get("max_members", MAX_MEMBERS))


def _node(data: dict[str, Any]) -> Node:
    return Node(
        name=data["name"],
        left=_view(data["left"]),
        edges=tuple(_edge(e) for e in data["edges"]),
        columns=_projections(data["columns"]),
        where=data["where"],
        key=tuple(data["key"]),
        used=tuple(data["used"]),
        published=data["published"],
        policy=_policy(data["policy"]) if "policy" in data else Policy(),
        sinks=tuple(sink_of(s) for s in data.get("sinks", ())),
        expectations=expectations_of(data),
        null_keys=data.get("null_keys", False),
        grouping=grouping_of(data.get("grouping")),
    )

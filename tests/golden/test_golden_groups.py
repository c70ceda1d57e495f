"""Groups against ``groupBy().aggregate()`` of Kafka Streams: every scenario of ``group_by.jsonl.gz``, some events a run, compared after every run.

Kafka's aggregates are lists of members, so that all others can be told from them. It leaves out rows without a group, which SQL has in a group of their own.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from traces import HERE

from rejoin.engines.choice import EngineChoice
from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.notebook import Lake
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
FILE, LINES = "group_by.jsonl.gz", 5_280
TOPOLOGY = """
from rejoin import Topology, debezium

t = Topology("groups")
members = t.table("members", key=("scenario", "id"), schema="scenario BIGINT, id STRING, g STRING, n BIGINT", source=debezium("members"))
lines = t.table("lines", key=("scenario", "id"), schema="scenario BIGINT, id STRING, g STRING, fk STRING", source=debezium("lines"))
rights = t.table("rights", key=("scenario", "id"), schema="scenario BIGINT, id STRING, n BIGINT", source=debezium("rights"))
of_group = {"n": "count(n)", "every": "count(*)", "total": "sum(n)", "low": "min(n)", "high": "max(n)", "first": "min_by(id, n)", "members": "collect(struct(id, n))"}
totals = members.group_by("scenario", "g").aggregate(**of_group).named("totals")
of_totals = {"every": "count(*)", "total": "sum(total)"}
totals.group_by("scenario", "CASE WHEN g LIKE 'A%' THEN 'A' ELSE 'B' END AS g").aggregate(**of_totals).named("regions")
pair = {"foreign_key": ("scenario", "fk"), "select": ["left.*", "right.n AS n"]}
for joined, name in ((lines.left_join(rights, **pair), "left"), (lines.join(rights, **pair), "inner")):
    joined.named(f"{name}_lines").group_by("scenario", "g").aggregate(**of_group).named(f"{name}s")
"""
OUTPUTS = {"group": "totals", "group-group": "regions", "group-fk-left": "lefts", "group-fk-inner": "inners"}
"""Where the groups of a scenario are, by its shape."""
Members = list[tuple[str, str]]


@dataclass(frozen=True)
class Scenario:
    """One line: ``events`` (topic, key, value) and after each of them the groups that changed, None for those that are gone."""

    number: int
    shape: str
    events: list[tuple[str, str, str | None]]
    groups: list[dict[str, Members | None]]

    def after(self, events: int) -> dict[str, Members]:
        """The groups after so many events."""
        found: dict[str, Members | None] = {}
        for step in self.groups[:events]:
            found |= step
        return {group: members for group, members in found.items() if members is not None}


def scenarios() -> list[Scenario]:
    found = [json.loads(line) for line in gzip.decompress((HERE / FILE).read_bytes()).splitlines()]
    assert len(found) == LINES
    return [Scenario(number, line["shape"], line["events"], line["groups"]) for number, line in enumerate(found)]


def event(scenario: Scenario, at: int) -> tuple[str, dict[str, Any]]:
    """The table that an event changes, and the change as Debezium says it."""
    topic, key, value = scenario.events[at]
    table = "rights" if topic == "right" else "lines" if "fk" in scenario.shape else "members"
    of, row = {"scenario": scenario.number, "id": key}, None
    if value is not None:
        first, _, second = value.rpartition("|")
        about = {"fk": second or None} if table == "lines" else {"n": None if second == "null" else int(second)}
        row = {**of, **({} if table == "rights" else {"g": first or None}), **about}
    source = {"connector": "postgresql", "lsn": scenario.number * 100 + at + 1, "snapshot": "false"}
    return table, {"key": of, "value": {"op": "d" if row is None else "u", "source": source, "before": None, "after": row}}


def expected(members: Members) -> dict[str, object]:
    """What SQL makes of a group."""
    numbers = [(int(n), member) for member, n in members if n != "null"]
    only = [n for n, _ in numbers]
    return {
        "n": len(only),
        "every": len(members),
        "total": sum(only) if only else None,
        "low": min(only, default=None),
        "high": max(only, default=None),
        "first": min(numbers, default=(0, None))[1],
        "members": [{"id": member, "n": None if n == "null" else int(n)} for member, n in members],
    }


def of_region(groups: Members) -> dict[str, object]:
    return {"every": len(groups), "total": sum(int(total) for _, total in groups)}


def played(root: Path, chosen: list[Scenario], at_once: int, engine: EngineChoice) -> Iterator[tuple[int, Lake]]:
    """Runs with so many events of every scenario at once; after each run: how many have happened, and the lake."""
    (root / "topology.py").write_text(TOPOLOGY)
    for table in ("members", "lines", "rights"):
        (root / table).mkdir()
    config = replace(lake_config(str(root / "lake")), engine=engine)
    topology = Topology(load(str(root / "topology.py")), config, str(root))
    for first in range(0, max(len(s.events) for s in chosen), at_once):
        lines: dict[str, list[str]] = {}
        for scenario in chosen:
            for at in range(first, min(first + at_once, len(scenario.events))):
                table, change = event(scenario, at)
                lines.setdefault(table, []).append(json.dumps(change))
        for table, written in lines.items():
            (root / table / f"{first:03}.jsonl").write_text("\n".join(written) + "\n")
        run_topology(topology, lambda: session(config), f"events from {first}", options=RunOptions(fuse=Fuse.APPLY))
        yield first + at_once, Lake(root / "lake")


def compared(chosen: list[Scenario], happened: int, lake: Lake) -> int:
    """Compares the groups of all scenarios; returns how many there are."""
    count = 0
    for shape, output in OUTPUTS.items():
        rows = lake.read(output).to_arrow().to_pylist()
        found = {(row["scenario"], row["g"]): row for row in rows if row["g"] is not None}
        of = of_region if shape == "group-group" else expected
        for scenario in (s for s in chosen if s.shape == shape):
            groups = scenario.after(happened)
            for group, members in groups.items():
                key = {"scenario": scenario.number, "g": group}
                assert found.pop((scenario.number, group), None) == {**key, **of(members)}, (scenario, happened)
            count += len(groups)
        others = {s.number for s in chosen if s.shape != shape}  # members of two shapes are in one table
        assert not [key for key in found if key[0] not in others]
    return count


SOME = ("some", 7, EngineChoice.LOCAL)
MODES = (
    pytest.param(*SOME, id="some, seven events a run"),
    *(pytest.param("all", n, EngineChoice.LOCAL, id=f"all, {n} a run", marks=pytest.mark.nightly) for n in (1, 7, 40)),
    pytest.param("few", 20, EngineChoice.SPARK, id="few by Spark", marks=[pytest.mark.nightly, pytest.mark.by_spark]),
)


@pytest.mark.parametrize(("which", "at_once", "engine"), MODES)
def test_groups_are_those_of_kafka_streams(tmp_path: Path, which: str, at_once: int, engine: EngineChoice) -> None:
    every = scenarios()
    chosen = {"all": every, "some": every[::8], "few": every[::60]}[which]
    counted = [compared(chosen, happened, lake) for happened, lake in played(tmp_path, chosen, at_once, engine)]
    assert counted[-1] > len(chosen) / 4, counted

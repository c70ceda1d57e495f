"""replay: scenarios of events, as a streams engine was given them, through the real engine: sources, lake, runs.

All scenarios of one shape (join and kinds) are one topology; each has its own key space in it. Event i of every scenario is read in run i,
so thousands of scenarios cost as many runs as the longest one has events.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoin.context.progress import SILENT, START, Progress, telling
from rejoin.engines.placement import chosen, placed
from rejoin.errors import SetupError
from rejoin.lake.config import LakeConfig, lake_config
from rejoin.lake.ledger import run_owner
from rejoin.lake.ledger.records import topologies
from rejoin.lake.spark.session import session
from rejoin.plan.check.compile import compile
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.replay.scenarios import Event, Scenario, scenarios
from rejoin.replay.stream_joins import OF_STREAMS, Variant
from rejoin.replay.table_joins import OUTPUT, sides, topology
from rejoin.steps.run import schedule
from rejoin.steps.run import topology as conduct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.engines.relation import Engine, Relation

AT_ONCE = 3
"""Shapes that run at once in the session: small runs wait for the driver more than for cores."""

CLOCK = "~clock"
"""The key of records that only let time pass: their results are left out."""
Change = tuple[str | None, str | None]
"""(key, new value); None: the key is gone."""


@dataclass
class _Played:
    """What became of one scenario: its changes run by run, and its part of the output as it was published: rows by key, or records."""

    changes: list[list[Change]]
    table: dict[str | None, str] = field(default_factory=dict)
    results: list[tuple[str | None, str, int]] = field(default_factory=list)


def replay(files: Sequence[str], location: str | None, progress: Progress = SILENT, *, per_event: bool) -> Iterator[dict[str, Any]]:
    """Runs every scenario of ``files`` and gives, in the order of the lines, ``{"name", "changes", "table"}``.

    ``changes`` holds, a run, the ``[key, value or None]`` that the run changed in the output, in byte order of the keys; ``table`` is the
    output at the end. Nothing is given before everything has run.

    Args:
        files: scenario files, JSON lines (see ``replay.scenarios``).
        per_event: one run an event, else one run with all events.
        location: the lake to make the tables in; it must not hold any of these topologies. None: a temporary one, removed at the end.
        progress: is told of every run.

    Raises:
        ScenarioRefused: a line is no scenario, or its shape is not supported; nothing was run.
        SetupError: the lake holds a topology of that name already, or Spark cannot start.
    """
    found = list(scenarios(files))
    if not found:
        return
    shapes: dict[tuple[str, tuple[str, ...], Variant], list[Scenario]] = defaultdict(list)
    for scenario in sorted(found, key=lambda s: -len(s.events)):  # the shape with the most runs begins first
        shapes[scenario.join, scenario.how, scenario.variant].append(scenario)
    played = {s.number: _Played([[] for _ in _batches(s, per_event=per_event)]) for s in found}
    with tempfile.TemporaryDirectory(prefix="rejoin-replay-") as directory:
        config = lake_config(location or f"{directory}/lake")
        _check_unused(config, [topology(*shape).name for shape in shapes])
        spark = cache(lambda: _started(config, progress))
        games = [(_Shape(kind, config, directory, spark, progress), members) for kind, members in shapes.items()]
        progress.planned({run: 1 for game, members in games for run in game.runs(members, per_event=per_event)}, "runs")
        _all([partial(game.play, members, played, per_event=per_event) for game, members in games])
    for scenario in found:
        result = played[scenario.number]
        changes = {"name": scenario.name, "changes": [[list(c) for c in run] for run in result.changes]}
        if scenario.join in OF_STREAMS:
            yield {**changes, "results": [list(r) for r in sorted(result.results, key=lambda r: (r[0] or "", *r[1:]))]}
        else:
            yield {**changes, "table": result.table}


def _started(config: LakeConfig, progress: Progress) -> "SparkSession":
    with telling(progress, START):
        return session(config)


def _all(tasks: Sequence[Callable[[], None]]) -> None:
    """Does every task, some at once; the first error keeps those from starting that have not begun."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Shape:
    """One topology and the directory that its events land in."""

    def __init__(
        self,
        kind: tuple[str, tuple[str, ...], Variant],
        config: LakeConfig,
        root: str,
        spark: Callable[[], "SparkSession"],
        progress: Progress,
    ) -> None:
        plan = compile(topology(*kind))
        self._topology, self._spark = conduct.Topology(plan, config, root), spark
        self._progress, self._sides, self._of_streams = progress, sides(kind[0]), kind[0] in OF_STREAMS
        self._landing = {side: Path(root, plan.topology, side) for side in self._sides}
        for path in self._landing.values():
            path.mkdir(parents=True)

    def runs(self, members: Sequence[Scenario], *, per_event: bool) -> list[str]:
        """The runs that playing them takes, by the names that progress knows them by."""
        return [
            f"{self._topology.plan.topology} run {n}" for n in range(1, max(len(_batches(s, per_event=per_event)) for s in members) + 1)
        ]

    def play(self, members: Sequence[Scenario], played: dict[int, _Played], *, per_event: bool) -> None:
        """Runs all events of all members and puts what came out into ``played``."""
        batches = {s.number: _batches(s, per_event=per_event) for s in members}
        runs: dict[int, int] = {}
        for index, name in enumerate(self.runs(members, per_event=per_event)):
            self._land(index, [(n, event) for n, b in batches.items() for event in (b[index] if index < len(b) else ())])
            with telling(self._progress, name):
                run = schedule.run_topology(self._topology, self._spark, run_owner.this_process(), options=RunOptions(fuse=Fuse.APPLY))
            runs[run.number] = index
        self._collect(runs, played)

    def _land(self, index: int, events: Sequence[tuple[int, Event]]) -> None:
        """Writes one run's events as Debezium would, one file a table that has any."""
        lines: dict[str, list[str]] = defaultdict(list)
        for number, event in events:
            made = _record(number, event) if self._sides[event.side] == "stream" else _debezium(number, event)
            lines[event.side].append(json.dumps(made))
        for side, texts in lines.items():
            (self._landing[side] / f"{index:06d}.jsonl").write_text("\n".join(texts) + "\n")

    def _collect(self, runs: dict[int, int], played: dict[int, _Played]) -> None:
        """Reads the output and all its changes, once."""
        choice = chosen(self._topology.config.engine, cluster=self._topology.config.cluster)
        (changes, rows), _ = placed(choice, self._topology.plan, self._spark, self._read)
        for row in changes:
            if row["id"] != CLOCK:
                played[row["scenario"]].changes[runs[row["_run"]]].append((row["id"], row["value"]))
        for row in rows:
            if not self._of_streams:
                played[row["scenario"]].table[row["id"]] = row["value"]
            elif row["id"] != CLOCK:
                played[row["scenario"]].results.append((row["id"], row["value"], round(row["at"].timestamp() * 1000)))

    def _read(self, engine: "Engine") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """All changes of the output, and its rows."""
        from rejoin.lake.read.reader import Reader

        ledger, sql, changes, rows = self._topology.ledger, engine.sql, list[dict[str, Any]](), list[dict[str, Any]]()
        reader = Reader(engine, self._topology.plan, ledger.states(ledger.head()), self._topology.refs)
        if reader.has(OUTPUT):
            known = ", ".join(f"coalesce({sql.get('_after', c)}, {sql.get('_before', c)}) AS {c}" for c in ("scenario", "id"))
            statement = f"SELECT _run, {known}, {sql.get('_after', 'value')} AS value FROM found"
            changes = _sorted(engine.query(statement, found=reader.feed(OUTPUT)))
            rows = _sorted(reader.every(OUTPUT, ["scenario", "id", "value", *(["at"] if self._of_streams else [])]))
        return changes, rows


def _batches(scenario: Scenario, *, per_event: bool) -> list[tuple[Event, ...]]:
    """A scenario's events, run by run."""
    return (
        [() if event is None else (event,) for event in scenario.events]
        if per_event
        else [tuple(e for e in scenario.events if e is not None)]
    )


def _debezium(number: int, event: Event) -> dict[str, Any]:
    key = {"scenario": number, "id": event.key}
    upsert = event.value is not None
    value = {
        "op": "u" if upsert else "d",
        "before": None,
        "after": {**key, "value": event.value} if upsert else None,
        "source": {"connector": "postgresql", "lsn": event.lsn, "ts_ms": event.time},
        "transaction": {"total_order": event.order},
    }
    return {"key": key, "value": value}


def _record(number: int, event: Event) -> dict[str, Any]:
    """A record of a stream, as Debezium tells of a row of an append-only table."""
    key = {"scenario": number, "n": event.lsn}
    row = {**key, "id": event.key, "value": event.value, "at": event.time * 1000}
    source = {"connector": "postgresql", "lsn": event.lsn, "ts_ms": event.time}
    return {"key": key, "value": {"op": "c", "before": None, "after": row, "source": source}}


def _sorted(found: "Relation") -> list[dict[str, Any]]:
    """The rows in byte order of ``id``."""
    rows: list[dict[str, Any]] = found.here().to_pylist(maps_as_pydicts="strict")
    return sorted(rows, key=lambda row: (row["id"] or "").encode())


def _check_unused(config: LakeConfig, wanted: list[str]) -> None:
    used = sorted(set(wanted) & set(topologies(config.ledger)))
    if used:
        raise SetupError(
            f"the lake at {config.location} already holds {', '.join(used)}: a replay starts from empty tables",
            next_step="pass another --lake, or leave it out",
        )

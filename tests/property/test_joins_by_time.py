"""Random histories over every kind of join, cut into runs at random: after every run every output is what DuckDB makes of all that arrived.

Each history is a value of the column ``s``, so that hundreds of them are one topology and a handful of runs.
``REJOIN_JOIN_HISTORIES=10000`` makes a long one; the seed is that of the test run.
"""

import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from joins_by_hand import QUERIES, topology
from limited import in_ranges

from rejoin import Lake
from rejoin.plan.model.policy import Fuse, RunOptions

RUNS = 4
Event = tuple[str, int, dict[str, Any], dict[str, Any] | None, int]
"""Table, run, key, the other columns (None: deleted), commit time in milliseconds."""
SCHEMAS = {
    "views": [("s", pa.int64()), ("v", pa.int64()), ("k", pa.string()), ("note", pa.string()), ("at", pa.int64())],
    "clicks": [("s", pa.int64()), ("c", pa.int64()), ("k", pa.string()), ("note", pa.string()), ("at", pa.int64())],
    "ads": [("s", pa.int64()), ("k", pa.string()), ("name", pa.string())],
    "owners": [("s", pa.int64()), ("k", pa.string()), ("ad", pa.string()), ("owner", pa.string())],
}
VALID = [("s", pa.int64()), ("k", pa.string()), ("name", pa.string()), ("gone", pa.bool_()), ("since", pa.int64()), ("until", pa.int64())]


def history(number: int, chance: random.Random, runs_of_all: int = RUNS, lengths: tuple[int, ...] = (0, 3, 12, 25)) -> Iterator[Event]:
    """The events of one history, in the order of their arrival, with the run that each arrives in."""
    length = chance.choice(lengths)
    runs = sorted(chance.choices(range(runs_of_all), k=length))
    clock, keys = 0, ["a", "b", "c"][: chance.randint(1, 3)]
    for arrival, run in enumerate(runs):
        clock += chance.choice((0, 0, 1, 1, 2, 8)) * 1_000_000
        at = max(0, clock - chance.choice((0, 0, 0, 1, 3, 10)) * 1_000_000 + chance.choice((0, 0, 1)))
        key = chance.choice(keys)
        table = chance.choice(("views", "views", "clicks", "clicks", "ads", "owners"))
        if table in ("views", "clicks"):
            joined = None if chance.random() < 0.1 else key
            yield (
                table,
                run,
                {"s": number, table[0]: arrival},
                {"k": joined, "note": chance.choice(("x", "y", "")), "at": at},
                clock // 1000,
            )
        elif chance.random() < 0.25:
            yield table, run, {"s": number, "k": key}, None, clock // 1000
        elif table == "ads":
            yield table, run, {"s": number, "k": key}, {"name": chance.choice(("a", "b", "c"))}, at // 1000
        else:
            value = {"ad": chance.choice((*keys, None)), "owner": chance.choice(("Ann", "Bob"))}
            yield table, run, {"s": number, "k": key}, value, clock // 1000


def land(root: Path, run: int, events: list[Event], chance: random.Random) -> None:
    """Writes a run's events; some records of streams twice."""
    lines = defaultdict[str, list[str]](list)
    for lsn, (table, _, key, rest, committed) in enumerate(events, start=run * 1_000_000):
        source = {"connector": "postgresql", "lsn": lsn, "ts_ms": committed}
        value = {"op": "d" if rest is None else "c", "before": None, "after": None if rest is None else key | rest, "source": source}
        line = json.dumps({"key": key, "value": value})
        lines[table] += [line] * (2 if table in ("views", "clicks") and chance.random() < 0.1 else 1)
    for table in SCHEMAS:
        (root / table).mkdir(exist_ok=True)
        if lines[table]:
            (root / table / f"{run}.jsonl").write_text("\n".join(lines[table]) + "\n")


def arrived(events: list[Event]) -> dict[str, pa.Table]:
    """What the tables hold, and the versions of ``ads``."""
    rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {table: {} for table in SCHEMAS}
    versions: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = defaultdict(dict)
    for table, _, key, rest, committed in events:
        at = tuple(key.values())
        if rest is None:
            rows[table].pop(at, None)
        else:
            rows[table][at] = key | rest
        if table == "ads":
            versions[at][committed * 1000] = {"name": None, **key, **(rest or {}), "gone": rest is None}
    valid = []
    for found in versions.values():
        times = sorted(found)
        ends = [*times[1:], 1 << 62]
        valid += [found[since] | {"since": since, "until": until} for since, until in zip(times, ends, strict=True)]
    made = {table: pa.Table.from_pylist(list(found.values()), pa.schema(SCHEMAS[table])) for table, found in rows.items()}
    return made | {"valid": pa.Table.from_pylist(valid, pa.schema(VALID))}


def differences(lake: Lake, events: list[Event]) -> list[str]:
    """A line for every output that is not what DuckDB makes of the events."""
    database, found = duckdb.connect(), []
    for name, table in arrived(events).items():
        database.register(name, table)
    for output, query in QUERIES.items():
        database.execute(f"CREATE TABLE {output} AS {query}")
        names = [row[0] for row in database.execute(f"DESCRIBE {output}").fetchall()]
        database.register("stored", lake.read(output).to_arrow())
        line = ", ".join('epoch_us("at") AS "at"' if n == "at" else n for n in names)
        for one, other, what in ((output, "stored", "missing"), ("stored", output, "too many")):
            sides = [f"SELECT {'*' if side == output else line} FROM {side}" for side in (one, other)]
            rows = database.execute(f"{sides[0]} EXCEPT ALL {sides[1]} ORDER BY ALL").fetchall()
            found += [f"{output}: {what} {len(rows)}, such as {rows[:3]}"] if rows else []
    return found


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("histories", "engine", "ranged"),
    [
        pytest.param(60, "local", (3,), id="60 histories", marks=pytest.mark.slow),
        pytest.param(200, "local", range(RUNS), id="200 histories in ranges", marks=pytest.mark.nightly),
        pytest.param(200, "spark", (), id="200 histories by Spark", marks=pytest.mark.nightly),
        pytest.param(10_000, "auto", (), id="10,000 histories", marks=pytest.mark.nightly),
    ],
)
def test_every_output_is_the_sql_join_after_every_run(
    histories: int, engine: str, ranged: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """``ranged``: the runs that put everything off, and do it in small ranges of keys, two at once."""
    monkeypatch.setenv("REJOIN_ENGINE", engine)
    seed = int(os.environ.get("REJOIN_SEED") or pytestconfig.option.hypothesis_seed)
    print(f"REJOIN_SEED={seed}")
    chance = random.Random(seed)
    count = int(os.environ.get("REJOIN_JOIN_HISTORIES", histories))
    events = [event for number in range(count) for event in history(number, chance)]
    lake, seen = Lake(tmp_path / "lake"), list[Event]()
    monkeypatch.chdir(tmp_path)
    for run in range(RUNS):
        now = [event for event in events if event[1] == run]
        land(tmp_path, run, now, chance)
        seen += now
        with monkeypatch.context() as meanwhile:
            if run in ranged:
                in_ranges(meanwhile, 100)
            lake.run(topology(), options=RunOptions(fuse=Fuse.APPLY))
        found = differences(lake, seen)
        assert not found, f"REJOIN_SEED={seed}, run {run + 1}:\n" + "\n".join(found)

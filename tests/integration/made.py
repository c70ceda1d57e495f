"""A lake made without Spark: committed runs of one output with the changes that a test wants, in the tables that a run would have written."""

import datetime as dt
import decimal
import json
import os
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from integration.forked import Forked

from rejoin.lake import table_names
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import StepRecord, Write
from rejoin.plan.check.topology_file import load
from rejoin.statements.load_reference import reference
from rejoin.steps.run.topology import Topology

SOURCE = """
from rejoin import Topology, kafka, opensearch, postgres, snapshot

town = Topology("{name}")
persons = town.table(
    "persons",
    key="id",
    schema="id BIGINT, name STRING, paid DECIMAL(12,2), share DOUBLE, born DATE, seen TIMESTAMP, photo BINARY, active BOOLEAN",
    source=snapshot("persons"),
)
persons.filter("name <> ''").select({columns}).named("people").to({sinks})
"""
COLUMNS = [
    ("id", pa.int64()),
    ("name", pa.string()),
    ("paid", pa.decimal128(12, 2)),
    ("share", pa.float64()),
    ("born", pa.date32()),
    ("seen", pa.timestamp("us", "UTC")),
    ("photo", pa.binary()),
    ("active", pa.bool_()),
]
IMAGE = pa.struct([*COLUMNS, ("_hash", pa.binary())])
CHANGES = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("id", pa.int64()), ("_before", IMAGE), ("_after", IMAGE)])
OUTPUT = pa.schema([*COLUMNS, ("_run", pa.int64()), ("_hash", pa.binary())])

Row = dict[str, object]


@dataclass
class Lake:
    """A lake under ``root`` and the state of its output."""

    root: Path
    sinks: str
    state: dict[int, Row] = field(default_factory=dict)
    seed: int = 3
    name: str = "town"
    columns: list[str] = field(default_factory=lambda: [c for c, _ in COLUMNS])

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        (self.root / "persons").mkdir(parents=True, exist_ok=True)
        self.declare(self.sinks)

    @property
    def file(self) -> Path:
        return self.root / "town.py"

    @property
    def location(self) -> Path:
        return self.root / "lake"

    def declare(self, sinks: str, *, without: tuple[str, ...] = ()) -> None:
        """Another list of sinks; from the next run on the output lacks some columns."""
        self.columns = [c for c, _ in COLUMNS if c not in without]
        self.file.write_text(SOURCE.format(sinks=sinks, name=self.name, columns=self.columns))

    def topology(self) -> Topology:
        return Topology(load(str(self.file)), lake_config(str(self.location)), str(self.root))

    def run(self, changed: dict[int, Row | None]) -> int:
        """One committed run with these rows; None deletes. Returns its number."""
        topology = self.topology()
        run = topology.open("made")
        lacking = [c for c, _ in COLUMNS if c not in self.columns]
        losing = {key: row for key, row in self.state.items() if any(row[c] is not None for c in lacking)}  # as a rebuilt output does
        wanted = {**losing, **changed}
        changed = {key: row and {c: row[c] if c in self.columns else None for c, _ in COLUMNS} for key, row in wanted.items()}
        rows = [r for key, new in changed.items() if (r := self._change(run.number, key, new)) is not None]
        for key, new in changed.items():
            self.state.pop(key, None) if new is None else self.state.__setitem__(key, {**new, "_run": run.number, "_hash": b"h"})
        log, output = self._table(topology, table_names.changes("people"), CHANGES), self._table(topology, "people", OUTPUT)
        with output.update_schema() as update:
            update.union_by_name(OUTPUT)  # an output really loses the columns that its plan lacks
        log.append(pa.Table.from_pylist(rows, CHANGES) if output.metadata.snapshots else reference(CHANGES, run.number))
        rows_after = pa.Table.from_pylist(list(self.state.values()), OUTPUT)
        output.overwrite(rows_after) if output.metadata.snapshots else output.append(rows_after)
        writes = []
        for name in ("people", table_names.changes("people")):
            found = topology.refs.table(name)
            assert found is not None
            snapshot = found.current_snapshot()
            assert snapshot is not None
            writes.append(Write(name, snapshot.snapshot_id))
        counts = {"changes": len(rows), "inserted": 0, "updated": 0, "deleted": 0}
        topology.ledger.register(run.number, StepRecord("resolve.people", counts, 0.0, 0), "made", tuple(writes))
        topology.ledger.publish(run.number)
        topology.roll_forward()
        return run.number

    def some(self, count: int, keys: int = 40) -> dict[int, Row | None]:
        """Random changes, a quarter of them deletes."""
        return {
            key: None if key in self.state and self.random.random() < 0.25 else self.row(key)
            for key in self.random.sample(range(keys), min(count, keys))
        }

    def row(self, key: int) -> Row:
        number = self.random.randrange(10**6)
        return {
            "id": key,
            "name": f"näme {number}",
            "paid": decimal.Decimal(number).scaleb(-2),
            "share": number / 7,
            "born": dt.date(1970, 1, 1) + dt.timedelta(days=number % 9000),
            "seen": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=number),
            "photo": number.to_bytes(4, "big"),
            "active": None if number % 3 == 0 else number % 2 == 0,
        }

    def _change(self, run: int, key: int, new: Row | None) -> Row | None:
        old = self.state.get(key)
        if old is None and new is None:
            return None
        op = "I" if old is None else "D" if new is None else "U"
        before = None if old is None else {k: v for k, v in old.items() if k != "_run"}
        return {"_run": run, "_op": op, "id": key, "_before": before, "_after": None if new is None else {**new, "_hash": b"h"}}

    def _table(self, topology: Topology, name: str, schema: pa.Schema):  # type: ignore[no-untyped-def]
        topology.refs.create(name, schema, {"format-version": "2"})
        return topology.refs.table(name)

    def rows(self) -> dict[int, Row]:
        """What every sink must come to."""
        return {key: {c: row[c] for c in self.columns} for key, row in self.state.items()}


def publish(lake: Lake, *arguments: str, sink: str = "people.kafka", **environment: str) -> subprocess.CompletedProcess[str]:
    """``rejoin publish`` of one sink in a process of its own."""
    words = ["publish", str(lake.file), "--lake", str(lake.location), "--sink", sink, *arguments]
    return Forked("rejoin.cli", words, {**os.environ, **environment}).wait(120)


def deliver(lake: Lake, sink: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``jobs/deliver.py`` in a process of its own."""
    return delivering(lake, sink, *arguments, **environment).wait(120)


def delivering(lake: Lake, sink: str, *arguments: str, **environment: str) -> Forked:
    """The same, under way."""
    words = [str(lake.file), f"people.{sink}", "--lake", str(lake.location), *arguments]
    return Forked("jobs/deliver.py", words, {**os.environ, **environment})


def plain(rows: dict[int, Row]) -> dict[int, Row]:
    """Rows as the JSON of a topic has them."""

    def text(value: object) -> object:
        match value:
            case dt.datetime():
                return value.isoformat().replace("+00:00", "Z")
            case dt.date():
                return value.isoformat()
            case decimal.Decimal():
                return str(value)
            case bytes():
                import base64

                return base64.b64encode(value).decode()
        return value

    return {key: {c: text(v) for c, v in row.items()} for key, row in rows.items()}


def dumped(rows: dict[int, Row]) -> str:
    return json.dumps(plain(rows), sort_keys=True)

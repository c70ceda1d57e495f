"""Writes what arrives in a run as files where the sources look: Debezium JSON lines in dated folders, CSV, JSON lines and Parquet snapshots."""

import csv
import gzip
import io
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from histories import Event, Feed, Row, Snapshot
from topologies import CSV_NULL, TableSpec
from values import ARROW, as_csv, as_json

SPOILT = "no number"


def land(rng: random.Random, root: Path, run: int, specs: Mapping[str, TableSpec], arriving: Mapping[str, Feed | list[Snapshot]]) -> None:
    """Writes the new files of one run below ``root``. Every source's folder exists afterwards."""
    for name, spec in specs.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        delivery = arriving.get(name, [])
        if isinstance(delivery, Feed):
            _feed(rng, folder, run, spec, delivery)
            continue
        for number, snapshot in enumerate(delivery):
            _snapshot(rng, folder / f"{run:03d}_{number}", spec, snapshot)


# --- feeds ------------------------------------------------------------------------------------------------------------


def _feed(rng: random.Random, folder: Path, run: int, spec: TableSpec, feed: Feed) -> None:
    """One or two files; the second one's name may sort before those of earlier runs."""
    middle = rng.randint(0, len(feed.lines)) if rng.random() < 0.4 else len(feed.lines)
    for number, part in enumerate((feed.lines[:middle], feed.lines[middle:])):
        text = "".join(line + "\n" for what, event in part for line in _lines(rng, spec, what, event))
        if text:
            day = folder / f"2024-01-{28 - run if number else run + 1:02d}"
            day.mkdir(exist_ok=True)
            packed = rng.random() < 0.3
            path = day / f"{run}_{number}.jsonl{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())


def _lines(rng: random.Random, spec: TableSpec, what: str, event: Event | None) -> list[str]:
    if event is None:
        value: Any = {"ts_ms": 1} if what == "noise" else {"op": "?", "source": {}}
        return [json.dumps({"key": None, "value": value, "headers": {}, "topic": "__debezium-heartbeat.x"})]
    key: Any = {c: as_json(rng, v) for c, v in zip(spec.key, event.key, strict=True)}
    value = _envelope(rng, event, key)
    as_text = rng.random() < 0.5
    made = [{"key": json.dumps(key) if as_text else key, "value": json.dumps(value) if as_text else value, "headers": {}}]
    if what == "tombstone":
        made.append({"key": made[0]["key"], "value": None, "headers": {}})
    return [json.dumps(line, ensure_ascii=rng.random() < 0.5) for line in made]


def _envelope(rng: random.Random, event: Event, key: Row) -> dict[str, Any]:
    lsn, rank, order = event.position
    op = "d" if event.row is None else "r" if rank == 0 else rng.choice("cu")
    after = None if event.row is None else {c: as_json(rng, v) for c, v in event.row.items()} | {"undeclared": 1}
    made = {"op": op, "before": key if op == "d" else None, "after": after, "source": {"connector": "postgresql", "lsn": lsn}}
    if order or rng.random() < 0.5:
        made["transaction"] = {"id": "1", "total_order": order, "data_collection_order": 1}
    return made


# --- snapshots --------------------------------------------------------------------------------------------------------


def _snapshot(rng: random.Random, target: Path, spec: TableSpec, snapshot: Snapshot) -> None:
    """One file, or a folder of one or two files."""
    if rng.random() < 0.5:
        _file(rng, Path(f"{target}.{spec.source}"), spec, snapshot.rows, snapshot.spoiled)
        return
    target.mkdir()
    middle = rng.randint(1, len(snapshot.rows))
    for number, rows in enumerate((snapshot.rows[:middle], snapshot.rows[middle:])):
        if rows:
            _file(rng, target / f"part-{number}.{spec.source}", spec, rows, snapshot.spoiled)


def _file(rng: random.Random, path: Path, spec: TableSpec, rows: tuple[Row, ...], spoiled: frozenset[tuple[Any, ...]]) -> None:
    bad = next((c for c in spec.payload if spec.columns[c] == "BIGINT"), "")
    written = [{**row, bad: SPOILT} if tuple(row[c] for c in spec.key) in spoiled else row for row in rows]
    if spec.source == "parquet":
        fields = [pa.field(c, pa.timestamp("us", tz="UTC") if t == "TIMESTAMP" else ARROW[t]) for c, t in spec.columns.items()]
        pq.write_table(pa.Table.from_pylist(written, schema=pa.schema(fields)), path)
    elif spec.source == "csv":
        text = io.StringIO()
        table = csv.writer(text)
        table.writerow(spec.columns)
        table.writerows([as_csv(row[c], CSV_NULL) for c in spec.columns] for row in written)
        path.write_text(text.getvalue(), newline="")
    else:
        path.write_text("".join(json.dumps({c: as_json(rng, v) for c, v in row.items()}) + "\n" for row in written))

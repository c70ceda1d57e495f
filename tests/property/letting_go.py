"""Random histories of streams with a retention, and what their joins have to be: DuckDB's SQL over all records that were ever taken."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from rejoin import Topology, debezium, records
from rejoin.declare.expectations import not_null
from rejoin.declare.topology import Relation

SECOND = 1_000_000
RETENTION = {"views": 12, "clicks": 8}
LATENESS = 2
START = datetime(1969, 12, 31, 23, 59, tzinfo=UTC)
"""Times are before and after the epoch."""


@dataclass(frozen=True)
class Window:
    """Kind, seconds before and after, when rows without partner are there; ``right``: the stream on the right."""

    kind: str
    before: int
    after: int
    when: str = "closed"
    right: str = "clicks"


WINDOWS = {
    "inner_pairs": Window("INNER", 3, 3),
    "left_pairs": Window("LEFT", 1, 3),
    "right_pairs": Window("RIGHT", 2, 0),
    "full_pairs": Window("FULL", 2, 2),
    "full_at_once": Window("FULL", 1, 2, "at_once"),
    "full_each": Window("FULL", 2, 1, "each"),
    "later_pairs": Window("LEFT", -1, 3),
    "wide_pairs": Window("FULL", 5, 5),
    "self_pairs": Window("LEFT", 2, 1, "closed", "views"),
    "held_pairs": Window("FULL", 2, 2),
}
MORE = {"closed": {}, "at_once": {"unmatched": "at_once"}, "each": {"watermark": "each"}}


def topology(windows: dict[str, Window], *, zoned: bool = True, retention: dict[str, int] = RETENTION) -> Topology:
    """Two streams, one keyed by an id and one by the place of its records, in all kinds of windows, with outputs above them."""
    on = Topology("web")
    time = "TIMESTAMP" if zoned else "TIMESTAMP_NTZ"
    schema = f"v BIGINT, k STRING, note STRING, at {time}"
    late = f"{LATENESS} seconds"
    views = on.stream(
        "views", id="v", key="k", event_time="at", schema=schema, lateness=late, retention=f"{retention['views']} seconds",
        source=records("views/", max_bad_share=1.0),
    )  # fmt: skip
    clicks = on.stream(
        "clicks", key="k", event_time="at", schema=f"c BIGINT, k STRING, at {time}", lateness=late,
        retention=f"{retention['clicks']} seconds", source=records("clicks/", max_bad_share=1.0),
    )  # fmt: skip
    ads = on.table("ads", "k", "k STRING, name STRING", debezium("ads/"))
    made = {name: _windowed(views, clicks, name, window) for name, window in windows.items()}
    if "held_pairs" in made:
        made["held_pairs"].expect(not_null("note"), severity="quarantine", max_share=1.0)
    views.left_join(ads, as_of="arrival", select=["left.v", "right.name"], name="named")
    above = made["left_pairs"].left_join(ads, foreign_key="k", select=["left.v", "left.record", "left.c", "right.name"])
    above.named("above")
    return on


def _windowed(views: Relation, clicks: Relation, name: str, of: Window) -> Relation:
    join = {"INNER": views.join, "LEFT": views.left_join, "RIGHT": views.right_join, "FULL": views.full_join}[of.kind]
    right, key = (views, ["right.v AS c"]) if of.right == "views" else (clicks, ["right.record", "right.c"])
    times = {"before": timedelta(seconds=of.before), "after": timedelta(seconds=of.after)}
    return join(right, select=["left.v", "left.k", "left.note", *key], name=name, **times, **MORE[of.when])  # type: ignore[arg-type]


@dataclass
class History:
    """Records as they arrive, file by file; what was taken of them, by another way than the package's: one record after the other."""

    chance: random.Random
    root: Path
    zoned: bool = True
    clock: int = 0
    number: int = 0
    taken: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"views": [], "clicks": []})
    late: dict[str, int] = field(default_factory=lambda: {"views": 0, "clicks": 0})
    _written: int = 0
    files: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)

    def begin(self) -> None:
        (self.root / "ads").mkdir()
        rows = [{"k": "a", "name": "A"}, {"k": "b", "name": ""}]
        source = {"connector": "postgresql", "lsn": 1, "ts_ms": 1}
        lines = [{"key": {"k": r["k"]}, "value": {"op": "c", "before": None, "after": r, "source": source}} for r in rows]
        (self.root / "ads" / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        for name in self.taken:
            (self.root / name).mkdir()

    def arrive(self, most: int = 9) -> None:
        """One more file of each stream, or none; now and then an old file of views again."""
        for name, number in (("views", "v"), ("clicks", "c")):
            rows = [self._record(number) for _ in range(self.chance.choice((0, 1, most, most)))]
            self.land(name, rows)
        old = [rows for name, rows in self.files if name == "views"]
        if old and self.chance.random() < 0.4:
            self.land("views", self.chance.choice(old))

    def _record(self, number: str) -> dict[str, Any]:
        self.clock += self.chance.choice((0, 0, 1, 1, 2, 3))
        at = self.clock - self.chance.choice((0, 0, 0, 1, 2, 5, 9, 11, 14))
        self.number += 1
        row = {
            number: self.number,
            "k": self.chance.choice(("a", "a", "b", "c", None, "")),
            "at": None if self.chance.random() < 0.03 else at,
        }
        return row | ({"note": self.chance.choice(("x", "", "long " * 50, None))} if number == "v" else {})

    def land(self, name: str, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        self.files.append((name, rows))
        self.write(name, rows)
        self._take(name, rows)

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        self._written += 1
        zone = "Z" if self.zoned else ""
        texts = [r | {"at": None if r["at"] is None else _time(r["at"]) + zone} for r in rows]
        (self.root / name / f"{self._written:05}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in texts))

    @staticmethod
    def seconds(micros: int) -> int:
        """A stored time as the ``at`` of a record."""
        return (micros - int(START.timestamp()) * SECOND) // SECOND

    def _take(self, name: str, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            newest = max((r["at"] for r in self.taken[name] if r["at"] is not None), default=None)
            if None not in (newest, row["at"]) and row["at"] < newest - RETENTION[name]:
                self.late[name] += 1
            elif name == "clicks" or all(r["v"] != row["v"] for r in self.taken[name]):
                self.taken[name].append(row)


def _time(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def expected(history: History, windows: dict[str, Window]) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Every output and its rows: ``v``, ``c`` and, where it has one, the name."""
    database = _database(history)
    for name, window in windows.items():
        rows = database.execute(_query(window, "note IS NOT NULL" if name == "held_pairs" else "true")).fetchall()
        yield name, _ordered(rows)
    yield "named", _ordered(database.execute("SELECT v, name FROM views LEFT JOIN ads USING (k)").fetchall())
    left = f"SELECT o.v, o.c, name FROM ({_query(WINDOWS['left_pairs'])}) AS o LEFT JOIN views USING (v) LEFT JOIN ads USING (k)"
    yield "above", _ordered(database.execute(left).fetchall())


def unnoted(history: History) -> list[tuple[Any, ...]]:
    """The results of ``held_pairs`` that are held back."""
    return _database(history).execute(_query(WINDOWS["held_pairs"], "note IS NULL")).fetchall()


def _database(history: History) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    for name, number in (("views", "v"), ("clicks", "c")):
        schema = pa.schema(
            [(number, pa.int64()), ("k", pa.string()), ("at", pa.int64()), *([("note", pa.string())] if number == "v" else [])]
        )
        database.register(name, pa.Table.from_pylist(history.taken[name], schema))
    database.execute("CREATE TABLE ads AS SELECT * FROM (VALUES ('a', 'A'), ('b', '')) AS t(k, name)")
    return database


def _query(of: Window, where: str = "true") -> str:
    number = "v" if of.right == "views" else "c"
    newest = f'(SELECT max("at") AS newest FROM views UNION ALL SELECT max("at") FROM {of.right})'
    marked = "CASE WHEN count(newest) = 2 THEN min(newest) END" if of.when == "each" else "max(newest)"
    mark = f"(SELECT {marked} - {LATENESS} FROM {newest})"
    met = f'l.k = r.k AND r."at" - l."at" BETWEEN -({of.before}) AND {of.after}'
    waits, theirs = (
        "true" if of.when == "at_once" else f'({side}.k IS NULL OR {side}."at" IS NULL OR {side}."at" + {reach} < {mark})'
        for side, reach in (("l", of.after), ("r", of.before))
    )
    rows = f"""
        SELECT l.v AS v, r.{number} AS c, l.note FROM views AS l {of.kind} JOIN {of.right} AS r ON {met}
        WHERE (l.v IS NOT NULL AND r.{number} IS NOT NULL) OR (r.{number} IS NULL AND {waits}) OR (l.v IS NULL AND {theirs})"""
    return f"SELECT v, c FROM ({rows}) WHERE {where}"


def _ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(
        rows, key=lambda row: tuple((value is None, value or 0) if isinstance(value, int | None) else (False, str(value)) for value in row)
    )


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Stored rows of an output likewise."""
    return _ordered([tuple(row[c] for c in ("v", "c", "name") if c in row) for row in rows])

"""Every table has one type a column, whichever path wrote it: on the driver, by Spark, by both in turn, and after a compaction."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.conftest import Sessions
from integration.shop import rows
from limited import limited

from rejoin.engines import relation
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import Run
from rejoin.operate.compact import compact
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE = """
from rejoin import *

t = Topology("t")
visits = t.table(
    "visits",
    key=["at", "nr"],
    schema="at TIMESTAMP_NTZ, nr DECIMAL(20,0), place_at TIMESTAMP_NTZ, place_nr BINARY, b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE,"
    " c DECIMAL(12,3), s STRING, x BINARY, day DATE, ts TIMESTAMP, wall TIMESTAMP_NTZ",
    source=debezium("landing/visits"),
).expect(condition("i < 100"), severity="quarantine", max_share=1.0)
places = t.table(
    "places", key=["at", "nr"], schema="at TIMESTAMP_NTZ, nr BINARY, wall TIMESTAMP_NTZ, ts TIMESTAMP, name STRING", source=debezium("landing/places")
)
seen = visits.left_join(
    places,
    foreign_key=["place_at", "place_nr"],
    select=["left.*", "right.wall AS place_wall", "right.ts AS place_ts", "right.name", "CAST(left.ts AS TIMESTAMP_NTZ) AS ts_wall",
            "CAST(left.x AS STRING) AS x_text"],
).named("seen").expect(condition("l < 100"), severity="quarantine", max_share=1.0)
"""
PARQUET = """
from rejoin import Topology, snapshot

t = Topology("t")
words = t.table("words", key="k", schema="k STRING, s STRING, x BINARY", source=snapshot("landing", max_bad_share=0.9))
words.select(["*", "CAST(x AS STRING) AS t"]).named("out")
"""
WALL, INSTANT = 1_774_751_400_123_456, 1_774_751_400_654_321  # 2026-03-29, in the hour that Central Europe does not have
PLAIN = {
    "visits": {
        "at": "timestamp", "nr": "decimal(20, 0)", "place_at": "timestamp", "place_nr": "binary", "b": "boolean", "i": "int", "l": "long",
        "f": "float", "d": "double", "c": "decimal(12, 3)", "s": "string", "x": "binary", "day": "date", "ts": "timestamptz", "wall": "timestamp",
    },
    "places": {"at": "timestamp", "nr": "binary", "wall": "timestamp", "ts": "timestamptz", "name": "string"},
}  # fmt: skip
SEEN = {
    **PLAIN["visits"],
    "place_wall": "timestamp",
    "place_ts": "timestamptz",
    "name": "string",
    "ts_wall": "timestamp",
    "x_text": "string",
}


LOOSE = relation._loose


def instants(kind: pa.DataType) -> pa.DataType:
    """What versions before made of a type: every wall clock an instant."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, instants(field.type)) for field in kind])
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind


class Lake:
    """One lake with the landing files of all."""

    def __init__(self, root: Path, name: str, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.lake, self._sessions, self._patch = root, root / name, sessions, monkeypatch

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.lake)), str(self.root))

    def run(self, *, here: bool, wrong: bool = False) -> Run:
        """One run, on the driver or by Spark; ``wrong``: on the driver as versions before did it."""
        self._patch.setattr(relation, "_loose", instants if wrong else LOOSE)
        limited(self._patch, small_rows=200_000 if here else 0, sparse=20 if here else 0)
        topology = self.topology
        return run_topology(topology, lambda: self._sessions(topology), f"test {len(topology.ledger.runs())}")

    def compact(self, *, here: bool) -> None:
        limited(self._patch, folded_rows=20_000_000 if here else -1)
        topology = self.topology
        assert compact(topology, lambda: self._sessions(topology), "compactor") is not None

    def types(self) -> dict[str, dict[str, str]]:
        """Table -> column -> type, fields of structs by their path."""
        found: dict[str, dict[str, str]] = {}
        for name in self.topology.refs.tables():
            table = self.topology.refs.table(name)
            assert table is not None
            found[name] = {}
            for field in table.schema().fields:
                parts = getattr(field.field_type, "fields", None)
                pairs = [(field.name, field)] if parts is None else [(f"{field.name}.{p.name}", p) for p in parts]
                found[name] |= {path: str(f.field_type) for path, f in pairs}
        return found

    def values(self) -> list[dict[str, Any]]:
        found = [{k: v for k, v in row.items() if k != "_run"} for row in rows(self.topology, "seen")]
        return sorted(found, key=lambda r: str((r["at"], r["nr"])))

    def differences(self) -> int:
        return sum(d.total for d in verify(self.topology, lambda: self._sessions(self.topology), fast=False))


def land(root: Path, table: str, lsn: int, *found: dict[str, Any]) -> None:
    source = {"connector": "postgresql", "snapshot": "false"}
    key = ("at", "nr")
    lines = [
        {
            "key": {k: row[k] for k in key},
            "value": {"before": None, "after": row, "source": {**source, "lsn": lsn + n}, "op": "u"},
            "headers": {},
        }
        for n, row in enumerate(found)
    ]
    place = root / "landing" / table
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{lsn:08}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def visit(number: int, **other: Any) -> dict[str, Any]:
    plain = {
        "place_at": WALL,
        "place_nr": "AP8=",
        "b": True,
        "i": 1,
        "l": 2,
        "f": 1.5,
        "d": -0.0,
        "c": "1.250",
        "s": "é",
        "x": "gGE=",
        "day": 20_000,
    }
    return {"at": WALL + number, "nr": str(number), **plain, "ts": INSTANT, "wall": WALL, **other}


def place_(name: str) -> dict[str, Any]:
    return {"at": WALL, "nr": "AP8=", "wall": WALL, "ts": INSTANT, "name": name}


def lands(root: Path, step: int) -> None:
    """New rows, changed ones on both sides, one that its table refuses and one that the output holds back."""
    land(root, "places", step * 100, place_(f"place {step}"))
    land(root, "visits", step * 100 + 50, visit(step), visit(1, i=step, wall=WALL + step), visit(90 + step, i=100), visit(80 + step, l=100))


@pytest.fixture
def lakes(tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> dict[str, Lake]:
    (tmp_path / "t.py").write_text(FILE)
    return {name: Lake(tmp_path, name, sessions, monkeypatch) for name in ("driver", "spark", "turns", "old")}


@pytest.mark.by_spark
@pytest.mark.nightly  # 12 runs with Great Expectations, half of them all by Spark
@pytest.mark.timeout(3600)
def test_fault_a12_a_column_has_one_type_whichever_path_wrote_it(lakes: dict[str, Lake], tmp_path: Path) -> None:
    ways = {"driver": (True, True, True), "spark": (False, False, False), "turns": (True, False, True), "old": (True, False, True)}
    for step in range(3):
        lands(tmp_path, step + 1)
        for name, lake in lakes.items():
            lake.run(here=ways[name][step], wrong=name == "old" and step == 0)
        if step == 0:
            assert lakes["old"].types()["seen"]["wall"] == "timestamptz", "this is what earlier versions stored"
        if step == 1:
            for name, lake in lakes.items():
                lake.compact(here=ways[name][0])
    types = {name: lake.types() for name, lake in lakes.items()}
    assert types["driver"] == types["spark"] == types["turns"] == types["old"]
    _check(types["driver"])
    values = {name: lake.values() for name, lake in lakes.items()}
    assert values["driver"] == values["spark"] == values["turns"] == values["old"] and len(values["driver"]) == 3
    assert {r["x_text"] for r in values["driver"]} == {"\N{REPLACEMENT CHARACTER}a"}, "bytes that are no UTF-8 have one rule"
    assert {r["wall"].tzinfo for r in values["driver"]} == {None} and {r["ts"].tzinfo is None for r in values["driver"]} == {False}
    assert {r["wall"].isoformat() for r in values["driver"]} == {f"2026-03-29T02:30:00.{123456 + n}" for n in (0, 3)}
    assert [lake.differences() for lake in lakes.values()] == [0, 0, 0, 0]


def _check(found: dict[str, dict[str, str]]) -> None:
    for table, plain in PLAIN.items():
        assert plain.items() <= found[table].items()
        values = {f"_before.{c}": t for c, t in plain.items() if c not in ("at", "nr")}
        assert values.items() <= found[table].items()
    assert SEEN.items() <= found["seen"].items()
    for side in ("_before", "_after"):
        assert {f"{side}.{c}": t for c, t in SEEN.items()}.items() <= found["seen__changes"].items()
    held = {f"_row.{c}": t for c, t in PLAIN["visits"].items() if c not in ("at", "nr")}
    assert held.items() <= found["visits__quarantine"].items() and found["seen__quarantine"]["at"] == "timestamp"
    [subscriptions] = [t for t in found if "__subscriptions__" in t]
    assert [found[subscriptions][c] for c in ("fk_1", "fk_2", "pk_1", "pk_2")] == ["timestamp", "binary", "timestamp", "decimal(20, 0)"]
    [responses] = [t for t in found if "__responses__" in t]
    assert found[responses]["right.wall"] == "timestamp" and found[responses]["right.ts"] == "timestamptz"
    candidates = found["seen__candidates"]
    assert candidates["_after.wall"] == candidates["_before.ts_wall"] == "timestamp" and candidates["_after.ts"] == "timestamptz"


@pytest.mark.by_spark
def test_fault_a11_text_in_parquet_that_is_no_utf8_is_quarantined(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.py").write_text(PARQUET)
    (tmp_path / "landing").mkdir()
    for number, bad in enumerate((b"\xff", b"\xed\xa0\x80"), 1):  # a byte of nothing, half of a pair of UTF-16
        kinds = pa.schema([("k", pa.string()), ("s", pa.string()), ("x", pa.binary())])
        texts = [pa.array(values, pa.binary()).view(pa.string()) for values in ([b"good", b"row", b"key " + bad], [b"\xc3\xa9", bad, b"s"])]
        pq.write_table(pa.table([*texts, pa.array([bad] * 3)], schema=kinds), tmp_path / "landing" / f"{number}.parquet")
        lake = Lake(tmp_path, "lake", sessions, monkeypatch)
        run = lake.run(here=number == 1)
        assert lake.topology.ledger.steps(run.number)["ingest.words"].counts["quarantined"] == 2
        assert {r["k"]: (r["s"], r["x"], r["t"]) for r in rows(lake.topology, "out")} == {
            "good": ("é", bad, "\N{REPLACEMENT CHARACTER}" * (1 if number == 1 else 3))
        }
        found = [r for r in rows(lake.topology, "words__quarantine") if r["_run"] == run.number]
        assert {(r["k"], r["_code"], r["_reason"]) for r in found} == {
            ("row", "VALUE_TYPE", "column 's': no UTF-8"),
            (None, "VALUE_TYPE", "column 'k': no UTF-8"),
        }
        assert all(json.loads(r["_raw"]).keys() == {"k", "s", "x"} for r in found)
        assert lake.differences() == 0

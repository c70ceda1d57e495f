"""Streams whose records have no id: what tells them from each other is where they were read, so equal records are two."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from limited import limited

from rejoin import Lake, Topology, debezium, records
from rejoin.cli import main
from rejoin.errors import TopologyError
from rejoin.plan.check.compile import compile

SCHEMA = "ad STRING, at TIMESTAMP"
SELECT = ["left.record AS view", "right.record AS click", "left.ad"]
FILE = f"""
from rejoin import Topology, records

web = Topology("web")
views, clicks = (web.stream(n, key="ad", event_time="at", schema="{SCHEMA}", source=records(n)) for n in ("views", "clicks"))
views.left_join(clicks, within="10 seconds", select={SELECT}, name="clicked", max_change_share=1.0)
"""


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def lines(*rows: tuple[str, int]) -> str:
    return "".join(json.dumps({"ad": ad, "at": at(second)}) + "\n" for ad, second in rows)


@pytest.fixture(params=["local", *(pytest.param(engine, marks=pytest.mark.nightly) for engine in ("spark", "spark, by its workers"))])
def web(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REJOIN_ENGINE", request.param.partition(",")[0])
    if "workers" in request.param:
        limited(monkeypatch, fetched_bytes=0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.py").write_text(FILE)
    for name in ("views", "clicks"):
        (tmp_path / name).mkdir()
    return tmp_path


def clicked(lake: Lake) -> list[tuple[str, str | None, str]]:
    rows = lake.read("clicked").to_arrow().to_pylist()
    return sorted(((r["view"], r["click"], r["ad"]) for r in rows), key=str)


def test_equal_records_are_two_whatever_they_are_written_in(web: Path) -> None:
    (web / "views" / "1.jsonl").write_text(lines(("a", 0), ("a", 0)) + "no record\n" + lines(("b", 1)))
    times = [datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in (5, 5, 30)]
    pq.write_table(pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "ad": ["a", "c", None]}), web / "clicks" / "1.parquet")
    lake = Lake(web / "lake")
    lake.run(web / "web.py")
    pairs = [(f"views/1.jsonl:{n}", "clicks/1.parquet:1", "a") for n in (1, 2)]
    assert clicked(lake) == [*pairs, ("views/1.jsonl:4", None, "b")]
    [bad] = lake.sql("SELECT record, _code, _line, _raw FROM web.views__quarantine").to_arrow().to_pylist()
    assert bad == {"record": "views/1.jsonl:3", "_code": "BAD_JSON", "_line": 3, "_raw": "no record"}

    (web / "views" / "2.csv").write_text("at,ad\n" + f"{at(0)},a\n" * 2)
    lake.run(web / "web.py")
    more = [(f"views/2.csv:{n}", "clicks/1.parquet:1", "a") for n in (2, 3)]
    assert clicked(lake) == sorted([*pairs, ("views/1.jsonl:4", None, "b"), *more], key=str)
    (web / "views" / "3.jsonl.gz").write_bytes(gzip.compress(lines(("c", 9)).encode()))
    lake.run(web / "web.py")
    assert ("views/3.jsonl.gz:1", "clicks/1.parquet:2", "c") in clicked(lake)
    assert lake.read("views").to_arrow().num_rows == 6


def test_a_record_is_asked_for_by_its_place(web: Path) -> None:
    (web / "views" / "1.jsonl").write_text(lines(("a", 0), ("a", 0)))
    Lake(web / "lake").run(web / "web.py")
    found = CliRunner().invoke(main, ["get", "views", "views/1.jsonl:2", "--lake", "lake"])
    assert found.exit_code == 0, found.output
    assert "views/1.jsonl:2" in found.output
    assert "views/1.jsonl:1" not in found.output


def test_what_is_wrong_without_an_id_is_said() -> None:
    web = Topology("web")
    web.stream("views", event_time="at", schema=SCHEMA, source=debezium("views"))
    web.stream("clicks", event_time="at", schema=SCHEMA + ", record BIGINT", source=records("clicks"))
    with pytest.raises(TopologyError) as refused:
        compile(web)
    told = str(refused.value)
    assert "a stream of change events needs id=, the columns of their key" in told
    assert "without id= a stream has a column 'record', the place of each record, and the schema has one, too" in told
    assert told.count("line ") <= 4, "no mistake that follows from another"

"""Steps in this process: no JVM, the same tables as by Spark, and Spark's turn where a step is not for one process."""

import io
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.shop import Shop as Town
from integration.shop import check
from integration.stored import engines, stored
from integration.test_refresh import Shop
from limited import limited
from rich.console import Console

from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation
from rejoin.engines.spark.engine import SparkEngine
from rejoin.errors import EngineRefused, NotComputable
from rejoin.operate.verify.verify import verify
from rejoin.plan.model.policy import Fuse, Refresh
from rejoin.report.history import decisions
from rejoin.statements.value_hash import canonical, hashed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # one of the longest files: tests/conftest.py begins with these


def test_a_process_without_java_runs_and_changes_a_lake(tmp_path: Path) -> None:
    shop = Town(tmp_path)
    bare = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME", "JDK_JAVA_OPTIONS")}
    for _ in range(2):
        shop.next_batch()
        words = ["run", str(shop.file), "--lake", str(shop.lake), "--root", str(shop.root), "--engine", "local"]
        without = {**bare, "PATH": str(Path(sys.executable).parent)}
        program = [sys.executable, "-c", "import sys; sys.modules['pyspark'] = None; from rejoin.cli import main; main()", *words]
        done = subprocess.run(program, env=without, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    check(shop)


@pytest.mark.nightly
def test_every_row_of_every_table_is_the_same_by_either_engine_and_by_both_in_turn(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name in ("local", "spark", "in turn"):
        shop = Shop(tmp_path / name, sessions)
        for number in range(4):
            engine = ("local", "spark")[number % 2] if name == "in turn" else name
            monkeypatch.setenv("REJOIN_ENGINE", engine)
            if number:
                shop.orders(range(0, 2_000, 31 * number), f"change {number}")
                shop.customers([f"c{number}", "c0"], f"change {number}")
            done = shop.run(Refresh.FULL if number == 3 else Refresh.INCREMENTAL, Fuse.APPLY)
            assert set(engines(shop, done.number).values()) == {engine}
        found.append(stored(shop))
    assert shop.differences() == 0
    assert found[0] == found[1]
    assert found[0] == found[2]
    assert sum(map(len, found[0].values())) > 9_000


def test_what_is_not_portable_is_sparks_work_and_says_why(tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path, sessions)
    file = tmp_path / "t.py"
    file.write_text(file.read_text().replace('"right.name AS name"', '"soundex(right.name) AS name"'))
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    with pytest.raises(EngineRefused, match=r"column name: soundex is not proven equal in DuckDB.*nothing was committed"):
        shop.run()
    monkeypatch.setenv("REJOIN_ENGINE", "auto")
    run = shop.run()
    assert engines(shop, run.number) == {
        "ingest.orders": "local",
        "ingest.customers": "local",
        "subscribe.enriched": "spark",
        "resolve.enriched": "spark",
    }
    steps = list(shop.topology.ledger.steps(run.number).values())
    console = Console(file=io.StringIO(), width=200)
    decisions(console, run, steps)
    told = [line.split() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert ["ingest.orders", "local", "portable"] in told
    assert ["resolve.enriched", "spark", "column", "name:", "soundex", "is", "not", "proven", "equal", "in", "DuckDB"] in told
    assert not sum(d.total for d in verify(shop.topology, lambda: sessions(shop.topology), fast=False))


@pytest.mark.parametrize("rows", [pytest.param(0, marks=pytest.mark.nightly), 300])
def test_every_row_is_the_same_where_much_is_put_off_until_it_is_written(
    rows: int, tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    found = []
    for limit, most, cores in ((200_000, 1_500_000, 2), (rows, 150, 16)):
        monkeypatch.setattr("pyarrow.cpu_count", lambda cores=cores: cores)
        limited(monkeypatch, small_rows=limit, sparse=0 if limit == rows else 20, range_rows=most, fewest_range_rows=most // 2)
        # The package has a function of this name.
        limited(monkeypatch, fetched_bytes=0 if limit == rows else 32 << 20)
        shop = Shop(tmp_path / f"{limit} {cores}", sessions)
        for number in range(4):
            if number:
                shop.orders(range(0, 2_000, 3 * number), f"change {number}")
                shop.customers([f"c{number}", "c0"], f"change {number}")
            done = shop.run(Refresh.FULL if number == 3 else Refresh.INCREMENTAL, Fuse.APPLY)
            assert set(engines(shop, done.number).values()) == {"local"}
        found.append(stored(shop))
        ways = {read["path"] for step in shop.topology.ledger.steps(2).values() for read in step.detail.get("reads", ())}
        assert ("files" in ways) == (limit == rows)
    assert found[0] == found[1]
    assert shop.differences() == 0


def test_a_value_that_cannot_be_computed_is_told_by_spark(tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path, sessions)
    file = tmp_path / "t.py"
    file.write_text(file.read_text().replace('"right.name AS name"', '"left.id DIV (left.id - 7) AS name"'))
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    with pytest.raises(EngineRefused, match=r"a value cannot be computed here \(InvalidInputException\)"):
        shop.run()
    monkeypatch.setenv("REJOIN_ENGINE", "auto")
    with pytest.raises(NotComputable, match="output 'enriched' cannot be computed for 1 rows"):
        shop.run()
    assert shop.topology.ledger.head() is None


def moments(zone: timezone | None) -> list[datetime]:
    return [datetime(*at, tzinfo=zone) for at in ((1, 1, 1), (1969, 12, 31, 23, 59, 59, 1), (2024, 2, 29, 1, 2, 3, 4), (9999, 12, 31))]


NUMBERS = [Decimal(n) for n in ("0.00", "0.10", "1.00", "-0.50", "12.50", "12.05", "100.00", "-99999999.99", "20.00", "2.00", "0.01")]
VALUES = {
    "BOOLEAN": pa.array([True, False]),
    "INT": pa.array([0, -1, 10, 100, 2**31 - 1, -(2**31)], pa.int32()),
    "BIGINT": pa.array([0, -1, 10, 100, 2**63 - 1, -(2**63)], pa.int64()),
    "DECIMAL(10,2)": pa.array(NUMBERS, pa.decimal128(10, 2)),
    "DECIMAL(38,0)": pa.array([Decimal(0), Decimal(10), Decimal(100), Decimal("9" * 38), Decimal("-" + "9" * 38)], pa.decimal128(38, 0)),
    "STRING": pa.array(["", " ", "a", "a ", "A", "ß", "😀", "e\u0301", "é", "0", "x" * 70_000, "-", "s1:a"]),
    "BINARY": pa.array([b"", b"\x00", b"\x00\x00", b"a", bytes(range(256))]),
    "DATE": pa.array([date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "TIMESTAMP": pa.array(moments(UTC), pa.timestamp("us", "UTC")),
    "TIMESTAMP_NTZ": pa.array(moments(None), pa.timestamp("us")),
}


def test_the_encoding_of_a_value_is_the_same_by_both_engines_and_that_of_no_other_value(tmp_path: Path, sessions: Sessions) -> None:
    topology = Shop(tmp_path, sessions).topology
    for kind, values in VALUES.items():
        rows = LocalRelation(pa.table({"v": pa.concat_arrays([values, pa.nulls(1, values.type)]), "nr": range(len(values) + 1)}))
        found = []
        for engine in (SparkEngine(sessions(topology)), DuckdbEngine(topology.plan)):
            encoded = canonical(engine.sql, [(engine.sql.name("v"), kind)])
            made = engine.query(f"SELECT nr, {encoded} AS e, {hashed(encoded)} AS h FROM given", given=rows).here().sort_by("nr")
            found.append([(e, h) for e, h in zip(made["e"].to_pylist(), made["h"].to_pylist(), strict=True)])
        assert found[0] == found[1], kind
        assert len({e for e, _ in found[0]}) == len({h for _, h in found[0]}) == len(values) + 1, kind

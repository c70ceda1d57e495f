"""The time zone of the machine changes nothing: whatever reads, decodes or computes, a time without a zone is UTC."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from datetime import UTC, datetime
import pyarrow as pa
from rejoin.engines.relation import LocalRelation
from rejoin.engines.deferred_relation import DeferredRelation
from rejoin.engines import duckdb_connection as duck
from rejoin.plan.sql.portable import printed
from rejoin.sources.decode.row_sql import database as clock
from rejoin.sources.decode.proven_lines import _database as decoder

at = datetime(2024, 7, 1, 1, tzinfo=UTC)
rows = LocalRelation(pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))}))
for text, expected in {
    "CAST(t.at AS DATE)": "2024-07-01", "hour(t.at)": "1", "CAST(t.at AS STRING)": "2024-07-01 01:00:00",
    "CAST('2024-07-01 01:00:00' AS TIMESTAMP) = t.at": "True", "CAST(date_trunc('DAY', t.at) AS STRING)": "2024-07-01 00:00:00",
}.items():
    shown = printed(text.replace("t.at", "t.`at`"), {"t": {"at": "TIMESTAMP"}}).text
    found = DeferredRelation(f"SELECT {shown} AS v FROM t", {"t": rows}).here()["v"].to_pylist()
    assert [str(v) for v in found] == [expected], (text, found)
for made in (duck.cursor(), duck.fresh().cursor(), clock().cursor(), decoder().cursor()):
    assert made.sql("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
    assert made.sql("SELECT CAST('2024-07-01 12:00:00' AS TIMESTAMPTZ) = TIMESTAMPTZ '2024-07-01 12:00:00+00'").fetchall() == [(True,)]
print("right")
"""


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_expressions_and_decoders_do_not_know_where_the_machine_is(zone: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TZ": zone},
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("right")

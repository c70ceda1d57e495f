"""A benchmark compares speeds of the same work: every engine in bench/ has to come to the same result."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

ENGINES = {
    "rejoin",
    "duckdb full",
    "spark full, shuffle",
    "spark full, broadcast",
    "spark full, grouped by key",
    "spark merge, upsert",
    "spark merge, update only",
    "duckdb indexed",
}


def test_groups_are_measured_and_right() -> None:
    ran = subprocess.run([sys.executable, "bench/groups.py", "20000", "--check"], capture_output=True, text=True, timeout=580, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(ran.stdout.splitlines()) == 2 + 6


def test_all_engines_of_the_benchmark_come_to_the_same_result(tmp_path: Path) -> None:
    settings = {**os.environ, "PYTHONPATH": str(Path("include").resolve())}
    command = [sys.executable, "bench/run.py", "20000", "--check", "--out", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=580, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    same = {line[:26].strip() for line in ran.stdout.splitlines() if line.endswith(": the same")}
    assert same == ENGINES
    rows = json.loads((tmp_path / "bench" / "results" / "curve-20000.json").read_text())
    assert {r["engine"] for r in rows} == ENGINES | {"spark load, plain"}
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert "## When not to use rejoin" in page
    assert "| 20,000 | rejoin |" in page
    picture = tmp_path / "docs" / "images" / "benchmarks.png"
    assert 0 < picture.stat().st_size < 150_000

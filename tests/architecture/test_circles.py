"""Rooms that need each other are one room. Those that do are listed, and the list may only shrink."""

import subprocess
import sys
from pathlib import Path

from checker import PACKAGE, ROOT
from count import circles

KNOWN = [["engines", "lake"]]
"""The process's engine takes its database from ``lake/read/duckdb_scan.py``, which also knows how Iceberg's files are read."""


def test_rooms_are_in_no_circle_but_the_known_ones() -> None:
    assert circles(ROOT) == KNOWN


def test_a_circle_is_seen(tmp_path: Path) -> None:
    for path, text in {
        "a/x.py": "from rejoin.b import y",
        "b/y.py": "import rejoin.c.z",
        "c/z.py": "from rejoin.a import x",
        "d/w.py": "import rejoin.a.x",
    }.items():
        (file := tmp_path / PACKAGE / path).parent.mkdir(parents=True)
        file.write_text(text)
    assert circles(tmp_path) == [["a", "b", "c"]]


def test_an_import_that_runs_later_makes_no_circle(tmp_path: Path) -> None:
    for path, text in {"a/x.py": "from rejoin.b import y", "b/y.py": "def f():\n    from rejoin.a import x"}.items():
        (file := tmp_path / PACKAGE / path).parent.mkdir(parents=True)
        file.write_text(text)
    assert circles(tmp_path) == []


def test_anybody_can_count() -> None:
    done = subprocess.run([sys.executable, "tests/architecture/count.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("modules ") and "circles of rooms" in done.stdout

"""DuckDB's databases in this process: how much memory they take, where they spill, and how they reach files that are not on this machine."""

import os
import re
import tempfile
from functools import cache
from pathlib import Path

import duckdb

from rejoin.engines import object_stores
from rejoin.errors import SetupError
from rejoin.plan.sql.portable import UTC

MEMORY = "2GB"
"""What is read for one lookup or one sink keeps no more in memory than this; larger sorts go to a temporary directory."""
MEMORY_SETTING = "REJOIN_MEMORY"
"""The environment variable that says how much memory the steps of this process may take together, as ``6GB``."""
_SIZE = re.compile(r"[1-9][0-9]*(\.[0-9]+)? ?[KMGT]i?B")
_CGROUP = Path("/sys/fs/cgroup/memory.max")


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database a process: it keeps the footers of files."""
    return reading()


def memory() -> str:
    """How much memory steps may take: what ``REJOIN_MEMORY`` says, else a sixth of what there is: all that a process has is up to half as much again.

    Raises:
        SetupError: it says no size.
    """
    stated = os.environ.get(MEMORY_SETTING, "")
    if stated and not _SIZE.fullmatch(stated):
        raise SetupError(f"{MEMORY_SETTING} is no size", expected="a number with its unit, for example 6GB")
    if stated:
        return stated
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = _CGROUP.read_text().strip() if _CGROUP.is_file() else "max"
    return f"{max(1 << 30, min(there, int(allowed) if allowed.isdigit() else there) // 6) >> 20}MiB"


def reading(limit: str = MEMORY) -> duckdb.DuckDBPyConnection:
    """A database of its own that can read all files of all tables (``opens``), wherever they are."""
    made = fresh(limit)
    made.register_filesystem(object_stores.Stores())
    return made


def fresh(limit: str = MEMORY) -> duckdb.DuckDBPyConnection:
    """A database of its own, in memory. ``limit``: what it may take of that before it spills."""
    # Else what does not fit into memory goes to a folder .tmp where the process happens to work. Users of one machine do not share it.
    spill = Path(tempfile.gettempdir()) / f"rejoin-duckdb-{os.getuid()}"
    made = duckdb.connect(config={"temp_directory": str(spill)})
    made.execute(f"{UTC}; SET memory_limit = '{limit}'; SET enable_progress_bar = false")
    made.execute("SET parquet_metadata_cache = true")  # files never change
    return made


def cursor() -> duckdb.DuckDBPyConnection:
    """A connection of the caller's own."""
    return _database().cursor()

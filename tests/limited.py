"""The one way for a test to set limits (``rejoin.limits``): small numbers, so that few rows show what many do."""

from dataclasses import replace

import pytest

from rejoin.limits import Limits, limits


def sparks_own(given: Limits) -> Limits:
    """The limits with which a step over some thousand rows is no task: Spark SQL does it."""
    return replace(given, task_rows=50_000, task_bytes=8 << 20)


def limited(monkeypatch: pytest.MonkeyPatch, **changed: float) -> None:
    """Until the test ends, these limits are in force, and the others stay as they are."""
    monkeypatch.setattr("rejoin.limits.in_force", replace(limits(), **changed))  # type: ignore[arg-type]


def in_ranges(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Until the test ends, nearly everything is put off, and done in ranges of keys of about so many rows, two at once. Spans of time are still fetched."""
    limited(monkeypatch, small_rows=3, found_times=100_000, range_rows=rows, fewest_range_rows=rows // 4)
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 4)

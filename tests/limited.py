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

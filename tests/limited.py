"""The one way for a test to set limits (``rejoin.limits``): small numbers, so that few rows show what many do."""

from dataclasses import replace

import pytest

from rejoin.limits import limits


def limited(monkeypatch: pytest.MonkeyPatch, **changed: float) -> None:
    """Until the test ends, these limits are in force, and the others stay as they are."""
    monkeypatch.setattr("rejoin.limits.in_force", replace(limits(), **changed))  # type: ignore[arg-type]

"""What pytest needs: a fixture, and that a comparison of a table with a text shows what differs."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rejoin.declare.topology import Topology
from rejoin.testing.driver import Driver
from rejoin.testing.grid import Grid


def fixture(topology: Topology | str | Path, *, engine: str = "local", **options: Any) -> Callable[..., Any]:
    """Makes a fixture of pytest's that is a new ``Driver`` for each test.

    Give it a name in a file of tests or a ``conftest.py``: ``shop = fixture("shop.py")``.

    Args:
        topology: as of ``Driver``; a path starts at the folder of the file that calls this.
        engine: as of ``Driver``.
        options: of ``pytest.fixture`` (``scope``, ``name`` ...).
    """
    import pytest

    here = os.path.dirname(inspect.stack()[1].filename)  # noqa: PTH120 -- beside the next line
    what = topology if isinstance(topology, Topology) else os.path.join(here, topology)  # noqa: PTH118 -- "shop.py:name" is no path

    def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
        if not request.config.pluginmanager.is_registered(sys.modules[__name__]):
            request.config.pluginmanager.register(sys.modules[__name__])
        with Driver(what, engine=engine) as made:
            yield made

    made: Callable[..., Any] = pytest.fixture(driver, **options)
    return made


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """What pytest shows of ``table == text``."""
    if op != "==":
        return None
    if isinstance(left, Grid) and isinstance(right, str):
        return left.difference(right)
    return right.difference(left) if isinstance(left, str) and isinstance(right, Grid) else None

"""What Airflow's processes load before they fork."""

from importlib.util import find_spec

import pytest

from rejoin.airflow.tasks.preload import MODULES


@pytest.mark.parametrize("name", [m for m in MODULES if m.startswith("rejoin.")])
def test_it_is_there(name: str) -> None:
    found = find_spec(name)
    assert found is not None and found.has_location, "a folder without code is no module"

"""The lake that tests of readers share."""

import pytest
from small_lake import make


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a small lake is. A test that changes it makes one of its own."""
    return make(tmp_path_factory.mktemp("small"))

"""The end of the output says how much was compared with Kafka: a green test that compared nothing would look the same."""

import pytest

COMPARED = pytest.StashKey[list[str]]()


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> list[str]:
    """Lines for the end of the test output."""
    return request.config.stash.setdefault(COMPARED, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(COMPARED, []):
        terminalreporter.write_line(line)

"""The end of the output says how much was compared with Kafka: a green test that compared nothing would look the same."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each mode, from what the tests recorded (in whatever process they ran)."""
    reports = [r for of in terminalreporter.stats.values() for r in of if isinstance(r, pytest.TestReport)]
    for line in sorted({str(value) for r in reports for name, value in r.user_properties if name == "compared"}):
        terminalreporter.write_line(line)

"""What every test run does: say how to repeat it, and refuse to skip in silence."""

import gc
import os
import random
import re
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import quick_java
from hypothesis import settings
from limited import sparks_own

from rejoin import limits

os.environ.update(quick_java.settings())  # for every JVM, whoever starts it
# As for a user: small steps run in the process. Tests of what Spark does are marked `by_spark`; REJOIN_ENGINE=spark lets Spark do all the others too.
os.environ.setdefault("REJOIN_ENGINE", "auto")
# Spark SQL is tested with up to some thousand rows, which a user's Spark would leave to a task. Tests of tasks say how large theirs are.
# Rows before a run are made once more, however few; `test_rows_before` compares this with reading them, as histories of every other seed do.
limits.in_force = replace(sparks_own(limits.Limits()), read_values=0)

# A first example can pay for starting Spark: time is pytest-timeout's business. The blob of a failure repeats exactly that failure.
settings.register_profile("rejoin", deadline=None, print_blob=True)
settings.load_profile("rejoin")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """One Hypothesis seed a run, drawn here so that the header can show it and every worker has the same."""
    if config.option.hypothesis_seed is None:
        drawn = str(random.SystemRandom().randrange(2**32))
        config.option.hypothesis_seed = getattr(config, "workerinput", {}).get("hypothesis_seed", drawn)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What pytest-xdist tells a worker before it starts."""
    node.workerinput["hypothesis_seed"] = node.config.option.hypothesis_seed


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that the run leaves out as a whole (``-m "not slow and not kafka"``) is not imported, by any worker."""
    wanted = config.option.markexpr
    if " or " in wanted or collection_path.suffix != ".py":
        return None
    of_all = re.search(r"^pytestmark = (?:\[\n(?:    .*\n)+|.*)", collection_path.read_text(), re.MULTILINE)
    marks = set(re.findall(r"pytest\.mark\.(\w+)", of_all[0])) if of_all else set()
    return bool(marks & set(re.findall(r"not (\w+)", wanted))) or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that may take longest first, so that no worker is left with one of them at the end."""
    longest: dict[Path, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        longest[item.path] = max(longest.get(item.path, 0.0), mark.args[0] if mark else 0.0)
    items.sort(key=lambda item: -longest[item.path])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The mark `by_spark` holds for a test's fixtures too, whatever their scope."""
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("by_spark"):
            patch.setenv("REJOIN_ENGINE", "spark")
        return (yield)


@pytest.fixture(autouse=True, scope="module")
def connections() -> Generator[None]:
    """A process keeps the connections of every lake it has opened, a dozen files each: the lakes of a module are needed no more after it."""
    yield
    if "sqlalchemy" in sys.modules:
        from sqlalchemy import Engine

        for pool in [found for found in gc.get_objects() if isinstance(found, Engine)]:
            pool.dispose()


class _AtOnce:
    """Shows why a test failed when it fails: the rest may take half an hour, or be stopped."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reporter.write_line(f"\nFAILED {report.nodeid} after {report.duration:.0f} s\n{report.longreprtext[-3000:]}", red=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        session.config.pluginmanager.register(_AtOnce(reporter))


def pytest_report_header(config: pytest.Config) -> str:
    hash_seed = os.environ.get("PYTHONHASHSEED", "not set")
    return f"to repeat this run: PYTHONHASHSEED={hash_seed} pytest --hypothesis-seed={config.option.hypothesis_seed}"


SKIPPED = "This test wanted to skip. Here a skip is a failure: what a test needs is installed by `.ci/run` or `make setup`.\n"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure (an expected failure is reported as skipped too, and stays what it is)."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", SKIPPED + str(report.longrepr)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module that skips itself."""
    report = yield
    if report.skipped:
        report.outcome, report.longrepr = "failed", SKIPPED + str(report.longrepr)
    return report

"""Runs quick tests against every mutant: ``make mutants``.

Tests are imported once, by the process that forks a child for each mutant. It runs nothing itself, so that no thread of DuckDB is lost in a child. A first child
runs all tests as they are and says which lines of statements each of them reaches; the others run those that reach what is wrong, and stop at the first that fails.
"""

import argparse
import json
import os
import select
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest
from applied import apply, known_functions
from mutants import PACKAGE, Mutant, mutants

TESTS = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
POOL = ("unit/statements", "unit/testing")
"""The tests that have to find a mutant."""
QUICK = "not slow and not airflow and not kafka and not postgres and not debezium and not browser and not nightly"
SECONDS = 60.0
"""Longer than this, and than ten times what its tests take, no mutant runs."""
BUDGET = 10.0
"""So many seconds of tests at most are tried on a mutant, the quickest first: what is not found in them has no quick test."""
BROKEN = ("Parser Error", "Binder Error", "Catalog Error")
"""What DuckDB says of a mutant that is no statement at all. Any test finds it, so it does not count."""


@dataclass
class Known:
    """What is known of a test: how long it takes, and which lines of statements it reaches, as ``file:line``."""

    seconds: float
    lines: set[str]


@dataclass
class Child:
    """A process that tries something, and what it has said so far."""

    name: str
    pid: int
    pipe: int
    until: float
    said: bytes = b""


@dataclass(eq=False)
class Hunt:
    """A plugin of pytest that runs the collected tests in children.

    Args:
        chosen: the mutants to try.
        workers: how many children at once.
    """

    chosen: Sequence[Mutant]
    workers: int
    verdicts: dict[str, str] = field(default_factory=dict)
    failed: str = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = f"{'broken' if any(text in report.longreprtext for text in BROKEN) else 'killed'} by {report.nodeid}"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        began = time.time()
        known = self._reached(items)
        print(
            f"{len(known)} tests took {sum(k.seconds for k in known.values()):.0f} s; {time.time() - began:.0f} s with what they reach",
            flush=True,
        )
        functions = known_functions()
        killers: dict[tuple[str, str], list[str]] = defaultdict(list)
        waiting, running = list(reversed(self.chosen)), dict[int, tuple[Child, Mutant]]()
        while waiting or running:
            while waiting and len(running) < self.workers:
                mutant = waiting.pop()
                tests = self._tests(mutant, known, killers[mutant.file, mutant.template.function])
                limit = max(SECONDS, 10 * sum(known[t].seconds for t in tests))
                child = _forked(mutant.name, lambda m=mutant, t=tests: self._try(m, [items[n] for n in t], functions), limit)  # type: ignore[misc]
                running[child.pipe] = child, mutant
            for child, mutant in _ended(running):
                verdict = child.said.decode() or ("timeout" if time.time() > child.until else "killed by the end of its process")
                self.verdicts[mutant.name] = verdict
                if verdict.startswith("survived"):
                    print(f"{verdict}: {mutant.name}", flush=True)
                if verdict.startswith("killed by tests"):
                    killers[mutant.file, mutant.template.function].insert(0, verdict.removeprefix("killed by "))
        return True

    def _tests(self, mutant: Mutant, known: Mapping[str, Known], killers: Sequence[str]) -> list[str]:
        """The tests that reach a mutant: what found others beside it first, then the quickest."""
        first, last = mutant.template.lines
        lines = {f"{mutant.file}:{line}" for line in range(first, last + 1)}
        reach = [name for name, test in known.items() if test.lines & lines or not mutant.template.function]  # a constant is reached by all
        reach.sort(key=lambda name: (killers.index(name) if name in killers else len(killers), known[name].seconds))
        ends = accumulate(known[name].seconds for name in reach)
        return [name for name, end in zip(reach, ends, strict=True) if end <= BUDGET or name == reach[0]]

    def _try(self, mutant: Mutant, tests: Sequence[pytest.Item], functions: Mapping[tuple[str, str], list[FunctionType]]) -> str:
        if not tests:
            return "survived: no test reaches it"
        apply(mutant, functions)
        self._run(tests)
        return self.failed or "survived"

    def _run(self, tests: Sequence[pytest.Item], before: Callable[[pytest.Item], None] = lambda _: None) -> None:
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            before(test)
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if self.failed:
                return

    def _reached(self, items: Mapping[str, pytest.Item]) -> dict[str, Known]:
        """What each test reaches. Afterwards everything that they import is imported here too."""
        child = _forked("all tests", lambda: self._observe(list(items.values())), 3600)
        said = b""
        while piece := os.read(child.pipe, 1 << 20):
            said += piece
        os.waitpid(child.pid, 0)
        if not said.startswith(b"{"):
            raise SystemExit(f"the tests ended before they were done: {said.decode()}")
        found = json.loads(said)
        if found["failed"]:
            raise SystemExit(f"a test fails without any mutant: {found['failed']}")
        for name in found["modules"]:
            with suppress(Exception):
                import_module(name)
        return {name: Known(test["seconds"], set(test["lines"])) for name, test in found["tests"].items()}

    def _observe(self, items: Sequence[pytest.Item]) -> str:
        already, lines, marks = set(sys.modules), set[str](), list[tuple[str, float, int]]()
        reached = dict[str, set[str]]()

        def seen(frame: FrameType, event: str, arg: object) -> Any:
            if not frame.f_code.co_filename.startswith(str(PACKAGE)):
                return None
            name = frame.f_code.co_filename[len(str(PACKAGE)) + 1 :]

            def line(inner: FrameType, event: str, arg: object) -> Any:
                lines.add(f"{name}:{inner.f_lineno}")
                return line

            return line if name in files else None

        def begins(item: pytest.Item) -> None:
            if marks:
                reached[marks[-1][0]] = set(lines)
            lines.clear()
            marks.append((item.nodeid, time.process_time(), 0))

        files = {mutant.file for mutant in self.chosen}
        sys.settrace(seen)
        threading.settrace(seen)
        self._run(items, begins)
        sys.settrace(None)
        reached[marks[-1][0]] = set(lines)
        ends = [*(at for _, at, _ in marks[1:]), time.process_time()]
        tests = {name: {"seconds": end - at, "lines": sorted(reached[name])} for (name, at, _), end in zip(marks, ends, strict=True)}
        return json.dumps({"failed": self.failed, "tests": tests, "modules": sorted(set(sys.modules) - already)})


def _forked(name: str, work: Callable[[], str], limit: float) -> Child:
    """A child that works, says how it went, and ends."""
    reads, writes = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(writes)
        return Child(name, pid, reads, time.time() + limit)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        said = work()
    except BaseException as error:  # noqa: BLE001 -- whatever it is, this process ends here
        said = f"killed by {error!r}"
    with os.fdopen(writes, "wb") as pipe:
        pipe.write(said.encode())
    os._exit(0)


def _ended(running: dict[int, tuple[Child, Mutant]]) -> Iterator[tuple[Child, Mutant]]:
    """Waits a moment; the children that have ended, or had to."""
    readable = select.select(list(running), [], [], 1.0)[0]
    for pipe, (child, mutant) in list(running.items()):
        piece = os.read(pipe, 1 << 16) if pipe in readable else None
        child.said += piece or b""
        if piece == b"" or time.time() > child.until:
            os.killpg(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            os.close(pipe)
            del running[pipe]
            yield child, mutant


def reasons(text: str) -> dict[str, str]:
    """The mutants that do not change what a statement says, each with why: names below a reason, which begins with ``# ``."""
    found, why = dict[str, str](), ""
    for line in text.splitlines():
        if line.startswith("# "):
            why = line.removeprefix("# ")
        elif line:
            found[line] = why
    return found


def report(verdicts: Mapping[str, str], reasons: Mapping[str, str]) -> int:
    """Prints who survived; 1 if any did of which the list does not say why."""
    counts = {word: sum(v.startswith(word) for v in verdicts.values()) for word in ("killed", "timeout", "broken")}
    found = [name for name, verdict in verdicts.items() if verdict.startswith("survived")]
    survivors = [name for name in found if name not in reasons]
    if survivors:
        print(f"{len(survivors)} mutants survived, and nothing says that they are equivalent:", *survivors, sep="\n  ")
    for name in sorted(set(reasons) & set(verdicts) - set(found)):
        print(f"listed as equivalent, and killed: {name}")
    caught, counted = counts["killed"] + counts["timeout"], len(verdicts) - counts["broken"] - (len(found) - len(survivors))
    print(
        f"{caught} of {counted} mutants were killed ({caught / max(counted, 1):.1%}), {counts['timeout']} of them by time; {len(survivors)} survived; "
        f"not counted: {len(found) - len(survivors)} that are equivalent and {counts['broken']} that are no SQL"
    )
    return int(bool(survivors))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name has this text")
    parser.add_argument("--every", type=int, default=1, help="of these only every so many, for a look at them")
    parser.add_argument("--tests", nargs="*", default=[str(TESTS / path) for path in POOL])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verdicts", type=Path, help="a file for the verdict on every mutant")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if given.only in mutant.name][:: given.every]
    hunt = Hunt(chosen, given.workers)
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-m", QUICK, *given.tests], plugins=[hunt])
    if given.verdicts:
        given.verdicts.write_text("".join(f"{verdict}\t{name}\n" for name, verdict in hunt.verdicts.items()))
    return report(hunt.verdicts, reasons(EQUIVALENT.read_text()))


if __name__ == "__main__":
    sys.exit(main())

"""Processes of the command line for tests that kill them: real ones, forked from one that has imported everything, so that a start costs next to nothing.

The server that forks them has no threads and no JVM: whatever a process needs of those it starts itself, or finds on a Spark Connect server.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psutil

_IMPORTED = (
    "rejoin.cli",
    "rejoin.steps.run.job",
    "rejoin.steps.deliver.step",
    "rejoin.steps.deliver.catch_up",
    "rejoin.steps.run.placed_step",
    "rejoin.sinks.connect",
    "duckdb",
    "pandas",
    "pyiceberg.catalog.sql",
    "pyspark.sql.connect.session",
)
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(_IMPORTED))


class Forked:
    """A started process.

    Args:
        program: a file, or the name of a module with a ``__main__``.
        arguments: after the program's name.
        environment: all that it sees of the environment.
    """

    def __init__(self, program: str, arguments: Sequence[str], environment: dict[str, str]) -> None:
        self._program, self._said = program, tempfile.TemporaryDirectory()
        files = (self._file("stdout"), self._file("stderr"))
        self._process = _context.Process(target=_run, args=(program, list(arguments), environment, str(Path.cwd()), files))
        self._process.start()

    def wait(self, seconds: float) -> subprocess.CompletedProcess[str]:
        """What became of it; a negative code is the signal that killed it."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            self._process.kill()
            raise subprocess.TimeoutExpired(self._program, seconds)
        stdout, stderr = (Path(self._file(name)).read_text() for name in ("stdout", "stderr"))
        self._said.cleanup()
        return subprocess.CompletedProcess(self._program, self._process.exitcode, stdout, stderr)

    @property
    def ended(self) -> bool:
        return self._process.exitcode is not None

    def signal(self, how: signal.Signals) -> None:
        """Sends it a signal, if it is still there."""
        if not self.ended:
            assert self._process.pid is not None
            os.kill(self._process.pid, how)

    def stands_still(self) -> bool:
        """Whether a signal has stopped it."""
        try:
            return psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def _file(self, name: str) -> str:
        return str(Path(self._said.name, name))


def batched(items: list[str], size: int) -> list[list[str]]:
    """Crash points in groups, each for one history."""
    return [items[i : i + size] for i in range(0, len(items), size)]


def _run(program: str, arguments: list[str], environment: dict[str, str], directory: str, files: tuple[str, str]) -> None:
    """In the new process: becomes the program."""
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = [program, *arguments]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)

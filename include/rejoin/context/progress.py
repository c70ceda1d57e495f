"""Who is told how far a piece of work is. Whoever drives a run, a comparison or a compaction tells it; ``report.progress`` shows it to people."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

START = "start of Spark"
"""What the wait for a session is called."""

Ask = Callable[[], "tuple[int, int] | None"]
"""Gives the tasks of Spark that have ended, and all of them; None: it cannot be told."""


class Progress(Protocol):
    """Told of steps as they begin and end, by several threads at once. Its methods raise nothing."""

    def planned(self, steps: Mapping[str, int], unit: str) -> None:
        """What is going to be done: every step with its share of the work, in ``unit``. The unit ``steps`` says that they differ in size, so that
        nothing can be said of the time that is left.
        """

    def began(self, step: str) -> None:
        """A step is under way."""

    def tasks(self, step: str, ask: Ask) -> None:
        """A step that is under way can be asked for its tasks, by any thread."""

    def ended(self, step: str, counts: Mapping[str, int], seconds: float) -> None:
        """A step is over: what it has counted, and how long it took."""


class Silent:
    """For nobody."""

    def planned(self, steps: Mapping[str, int], unit: str) -> None: ...
    def began(self, step: str) -> None: ...
    def tasks(self, step: str, ask: Ask) -> None: ...
    def ended(self, step: str, counts: Mapping[str, int], seconds: float) -> None: ...


SILENT = Silent()


@contextmanager
def telling(progress: Progress, step: str) -> Iterator[dict[str, int]]:
    """Tells of one step: that it begins, and that it is done, unless it fails, with the counts that were put into the dictionary."""
    progress.began(step)
    started, counts = monotonic(), dict[str, int]()
    yield counts
    progress.ended(step, counts, monotonic() - started)

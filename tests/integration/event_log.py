"""What Spark says of itself in an event log: which jobs a step started, and in which tasks on which executors they ran."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Task:
    """One try at one task. ``result``: bytes that it sent to the driver; ``why``: the reason of its end."""

    stage: int
    index: int
    executor: str
    why: str
    result: int


@dataclass
class Job:
    """One job of a step; times in milliseconds. ``stages`` are those that it ran or found done."""

    number: int
    step: str
    began: int
    ended: int
    succeeded: bool
    stages: list[int]
    tasks: list[Task] = field(default_factory=list)


@dataclass(frozen=True)
class Lost:
    """An executor that is gone."""

    executor: str
    at: int
    why: str


class EventLog:
    """The event log of the only application that writes into a directory, uncompressed; it may go on writing."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._events, self._read = directory, list[dict[str, Any]](), 0

    def listen(self) -> "EventLog":
        """The same, with what was written meanwhile."""
        for file in self._directory.iterdir():
            with file.open("rb") as log:
                log.seek(self._read)
                for line in log:
                    if not line.endswith(b"\n"):  # half written
                        break
                    self._read += len(line)
                    self._events.append(json.loads(line))
        return self

    @property
    def heard(self) -> int:
        """How many bytes it has."""
        return self._read

    @property
    def lost(self) -> list[Lost]:
        """The executors that are gone."""
        return [Lost(e["Executor ID"], e["Timestamp"], e["Removed Reason"]) for e in self._named("SparkListenerExecutorRemoved")]

    def jobs(self, since: int = 0) -> list[Job]:
        """The jobs from a time on that have ended, in their order."""
        ends = {e["Job ID"]: e for e in self._named("SparkListenerJobEnd")}
        made = []
        for event in self._named("SparkListenerJobStart"):
            end, step = ends.get(event["Job ID"]), event["Properties"].get("spark.jobGroup.id", "")
            if end is not None and event["Submission Time"] >= since:
                succeeded = end["Job Result"]["Result"] == "JobSucceeded"
                began, ended = event["Submission Time"], end["Completion Time"]
                made.append(Job(event["Job ID"], step.rpartition("-")[0], began, ended, succeeded, event["Stage IDs"]))
        of_stage = {stage: job for job in reversed(made) for stage in job.stages}
        for task in self._tasks():
            if task.stage in of_stage:
                of_stage[task.stage].tasks.append(task)
        return made

    def begun(self, step: str, since: int) -> int:
        """How many jobs of the step have begun."""
        jobs = [e for e in self._named("SparkListenerJobStart") if e["Submission Time"] >= since]
        return sum(e["Properties"].get("spark.jobGroup.id", "").startswith(f"{step}-") for e in jobs)

    def _tasks(self) -> Iterator[Task]:
        for event in self._named("SparkListenerTaskEnd"):
            metrics = event.get("Task Metrics") or {}
            info, why = event["Task Info"], event["Task End Reason"]["Reason"]
            yield Task(event["Stage ID"], info["Index"], info["Executor ID"], why, metrics.get("Result Size", 0))

    def _named(self, name: str) -> list[dict[str, Any]]:
        return [e for e in self._events if e["Event"] == name]

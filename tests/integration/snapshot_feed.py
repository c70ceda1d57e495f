"""A topology of one table whose feed has snapshots, and the one who writes its files."""

import os
import random
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from integration.conftest import Go, Sessions
from integration.forked import Forked
from integration.shop import rows

from rejoin.lake.config import lake_config
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

FILE = """
from rejoin import Topology, debezium, feed

t = Topology("feed")
t.table("notes", key="id", schema="id BIGINT, body STRING", source={source}).filter("id >= 0").named("published")
"""
DEBEZIUM = 'debezium("{path}"{options})'
MAXWELL = 'feed("{path}", "maxwell", only="shop.notes"{options})'


class Writer(Protocol):
    """Who captures the table."""

    rows: dict[int, str]
    lines: list[str]

    def take(self, count: int | None = None) -> list[str]: ...


W = TypeVar("W", bound=Writer)


class Feed(Generic[W]):
    """The topology, its lake and its files."""

    def __init__(self, root: Path, go: Go, writer: W, source: str = DEBEZIUM, options: str = ", max_delete_share=1") -> None:
        self.root, self._go, self.files, self.connector, self._source = root, go, 0, writer, source
        self.read("landing")
        self.declare(options)

    def read(self, path: str) -> None:
        """From now on, files are written and read there."""
        self.path = path
        (self.root / path).mkdir(exist_ok=True)

    def declare(self, options: str, file: str = FILE) -> None:
        (self.root / "feed.py").write_text(file.format(source=self._source.format(path=self.path, options=options)))

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "feed.py")), lake_config(str(self.root / "lake")), str(self.root))

    def write(self, lines: list[str]) -> None:
        self.files += 1
        (self.root / self.path / f"{self.files:03}.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def run(self, count: int | None = None) -> dict[str, int]:
        """One run with the oldest lines as its file; returns the counts of the ingest."""
        self.write(self.connector.take(count))
        done = self._go(self.topology)
        return self.topology.ledger.steps(done.number)["ingest.notes"].counts

    def lives_through(self, story: Iterable[bool], chance: random.Random, often: float) -> None:
        """Runs after some pieces of a history; whenever all that is told was read, and at its end, the output is the table. ``often``: how likely a run is."""
        reconciled = 0
        for told in story:
            if chance.random() < often:
                reconciled += self.run(None if told else chance.randrange(len(self.connector.lines) + 1))["reconciled"]
            if told and not self.connector.lines:
                assert self.published == self.connector.rows
        self.run()
        assert self.published == self.connector.rows and self.incomplete == {}
        print(f"{self.files} runs, {reconciled} rows reconciled")

    def killed(self, **environment: str) -> int:
        """What became of a run in a process of its own, which the environment may have killed."""
        words = ["run", str(self.root / "feed.py"), "--lake", str(self.root / "lake"), "--root", str(self.root)]
        return Forked("rejoin.cli", words, {**os.environ, "REJOIN_ENGINE": "local", **environment}).wait(300).returncode

    @property
    def published(self) -> dict[object, object]:
        return {r["id"]: r["body"] for r in rows(self.topology, "published")}

    @property
    def incomplete(self) -> dict[str, int]:
        found = self.topology.ledger.generations(self.topology.ledger.head()).get("notes")
        return {} if found is None else found.incomplete


def live(
    root: Path,
    count: int,
    seed: int,
    often: float,
    begun: Callable[[Path, random.Random], tuple[Feed[W], Iterable[bool]]],
    sessions: Sessions,
) -> None:
    """Feeds that live through histories, each under a folder of its own; `verify` finds nothing at their ends.

    Args:
        root: the folder of all.
        count: how many.
        seed: of all.
        often: how likely a run is after a piece of a history.
        begun: a feed, and what happens to it.
        sessions: for `verify`.
    """
    for number in range(count):
        chance, own = random.Random(f"{seed} {number}"), root / str(number)
        print(f"history {number} of seed {seed}")
        own.mkdir()
        feed, story = begun(own, chance)
        feed.lives_through(story, chance, often)
        assert sum(d.total for d in verify(feed.topology, partial(sessions, feed.topology), fast=False)) == 0

"""How far a sink is: pure, JSON both ways. Kept where the sink's data is, and moved in the same transaction.

A target may be ahead of its position: changes were delivered again from an earlier run, or at least once, or the guarantee was another one for a
while. What always holds while no snapshot is under way: each key is at its row after ``done`` or after some later run. So delivering the newest row
(or the absence) of every key that changed after ``done`` makes the target equal to the output, whatever was interrupted before. Nothing may be left
out of it because it is no change since ``done``.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from rejoin.errors import SinkCursorAhead
from rejoin.plan.model.sinks import CatchUp


class Content(StrEnum):
    """What is under way to a sink."""

    CHANGES = "changes"  # of later runs
    ROWS = "rows"  # all rows of a run, to a sink that has none yet
    REPLACEMENT = "replacement"  # all rows of a run, and deletes of the others


@dataclass(frozen=True)
class Position:
    """All changes up to run ``done`` are delivered; of what is under way towards run ``upto``, ``offset`` rows are.

    ``done == upto`` with changes as the content: nothing is under way.

    Attributes:
        columns: of the output when what is under way, or else what was delivered last, began. Empty: an older version of rejoin wrote
            the position.
        target: tells the target that was delivered to from a later one of its name: a topic's id, a table's oid. Empty as above.
    """

    done: int
    upto: int
    offset: int = 0
    content: Content = Content.CHANGES
    columns: tuple[str, ...] = ()
    target: str = ""

    @staticmethod
    def at(run: int) -> "Position":
        """Everything up to this run is delivered."""
        return Position(run, run)

    @staticmethod
    def from_json(text: str) -> "Position":
        found = json.loads(text)
        target = found.get("target", found.get("topic", ""))  # "topic" in markers of older versions
        under_way = found["done"], found["upto"], found["offset"], Content(found["content"])
        return Position(*under_way, tuple(found.get("columns", ())), target)

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def idle(self) -> bool:
        return self.done == self.upto and not self.snapshot

    @property
    def snapshot(self) -> bool:
        """Whether rows are under way, not changes."""
        return self.content is not Content.CHANGES

    @property
    def needs(self) -> int:
        """The oldest run whose data is still needed: the state of it for a snapshot, else its changes (it may be yet to come)."""
        return self.upto if self.snapshot else self.done + 1

    def moved(self, rows: int) -> "Position":
        """After so many more rows of what is under way."""
        return replace(self, offset=self.offset + rows)

    def finished(self) -> "Position":
        """After all rows of what is under way."""
        return replace(self, done=self.upto, offset=0, content=Content.CHANGES)

    def back(self, run: int) -> "Position":
        """Before this run, or where it is if that is earlier: no run is passed over. What is under way (changes) is part of what follows."""
        done = min(run - 1, self.done)
        return replace(self, done=done, upto=done, offset=0)

    def is_of(self, target: str) -> bool:
        """Whether it was written for this target, as far as can be told."""
        return self.target in ("", target)

    def next(self, runs: Sequence[int], catch_up: CatchUp, columns: Sequence[str]) -> "Position | None":
        """What to deliver now: what is under way, else the next run, or all later runs at once; None if there are none.

        Args:
            runs: the committed runs, ascending.
            catch_up: what a sink gets that is several runs behind.
            columns: the output's.
        """
        if not self.idle:
            return self
        later = [run for run in runs if run > self.done]
        if not later:
            return None
        return replace(self, upto=later[-1] if catch_up is CatchUp.NET else later[0], columns=tuple(columns))

    def check(self, sink: str, head: int) -> None:
        """Refuses a sink that is ahead of the lake.

        Raises:
            SinkCursorAhead: it has seen runs that the lake does not have.
        """
        if max(self.done, self.upto) > head:
            raise SinkCursorAhead(
                f"sink {sink!r} was delivered up to run {max(self.done, self.upto)}, and the lake's newest committed run is {head}",
                expected="the lake that this sink was delivered from: was an older copy restored?",
                next_step=f"bring the sink in line with this lake: `rejoin publish --sink {sink} --snapshot`",
            )

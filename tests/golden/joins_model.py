"""What the joins of streams, and of tables by their keys, have to give: from the events alone, by another way than rejoin does it.

A line of ``joins.jsonl`` is compared with this model; where Kafka gave something else, ``reason`` says why, from what the line holds.
"""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "joins.jsonl"
LINES = 560
"""A file that lost lines must not pass."""
CLOCK = "~clock"

Record = tuple[str | None, str, int]
"""Key, value, time."""


@dataclass(frozen=True)
class Line:
    """One scenario and what Kafka gave."""

    data: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def join(self) -> str:
        """Without the kind."""
        return str(self.data["join"]).rpartition("-")[0]

    @property
    def kind(self) -> str:
        return str(self.data["join"]).rpartition("-")[2]

    @property
    def of_streams(self) -> bool:
        return self.join != "table"

    def records(self, side: str) -> list[Record]:
        return [(e["key"], e["value"], e["ts"]) for e in self.data["events"] if e["side"] == side and e["value"] is not None]

    def kafka(self) -> list[Record] | dict[str, str]:
        """What Kafka's results come to; the right ones, where the line says that they are wrong."""
        if not self.of_streams:
            return dict(self.data.get("sql_table") or self.data["table"])
        if self.data.get("batch_results") is not None:
            return _sorted(tuple(r) for r in self.data["batch_results"])
        return _sorted(tuple(r) for step in self.data["emitted"] for r in step)

    def right(self) -> list[Record] | dict[str, str] | None:
        """What is right, by the model; None where arrival decides, which only Kafka's line knows."""
        if self.join == "table":
            return self._tables()
        if self.join == "stream-stream":
            return self._window()
        return self._as_of() if "versioned_ms" in self.data else None

    def reason(self) -> str | None:
        """Why Kafka gave something else; None if it did not."""
        if self.data.get("agrees_with_batch") is False:
            return "Kafka forgets a record, or says too early that it has no partner (golden/README, section 5)"
        right = self.right()
        if right is None or right == self.kafka():
            return None
        waiting = [r for r in right if r not in self.kafka()]
        alone = all("null" in value.split("+") for _, value, _ in waiting)
        if self.join == "stream-stream" and alone and len(waiting) + len(self.kafka()) == len(right):
            return (
                "Kafka lets a record without partner wait for the arm of the side that comes next; here the watermark has passed its window"
            )
        return None

    def _tables(self) -> dict[str, str]:
        left, right = self._table("left"), self._table("right")
        kept = {"inner": left.keys() & right.keys(), "left": left.keys(), "outer": left.keys() | right.keys()}[self.kind]
        return {key: f"{left.get(key, 'null')}+{right.get(key, 'null')}" for key in kept}

    def _table(self, side: str) -> dict[str, str]:
        events = [e for e in self.data["events"] if e["side"] == side and e["key"] is not None]
        if "versioned_ms" in self.data:
            events.sort(key=lambda e: e["ts"])  # stable: of one time the last arrival wins
        rows = {e["key"]: e["value"] for e in events}
        return {key: value for key, value in rows.items() if value is not None}

    def _window(self) -> list[Record]:
        before, after = (self.data.get(name, self.data["window_ms"]) for name in ("before_ms", "after_ms"))
        lefts, rights = self.records("left"), self.records("right")
        mark = max((t for _, _, t in lefts + rights), default=0) - self.data["grace_ms"]
        met = [
            (x, y)
            for x, y in product(range(len(lefts)), range(len(rights)))
            if lefts[x][0] is not None and lefts[x][0] == rights[y][0] and -before <= rights[y][2] - lefts[x][2] <= after
        ]
        results = [(lefts[x][0], f"{lefts[x][1]}+{rights[y][1]}", max(lefts[x][2], rights[y][2])) for x, y in met]
        for side, records, reach, kinds in ((0, lefts, after, ("left", "outer")), (1, rights, before, ("outer",))):
            for i, (key, value, time) in enumerate(records):
                if self.kind in kinds and i not in {pair[side] for pair in met} and (key is None or time + reach < mark):
                    results.append((key, f"null+{value}" if side else f"{value}+null", time))
        return _sorted(results)

    def _as_of(self) -> list[Record]:
        versions = [e for e in self.data["events"] if e["side"] == "right" and e["key"] is not None]
        results = []
        for key, value, time in self.records("left"):
            valid = [(e["ts"], i) for i, e in enumerate(versions) if e["key"] == key and e["ts"] <= time]
            found = versions[max(valid)[1]]["value"] if valid else None
            if found is not None or self.kind == "left":
                results.append((key, f"{value}+{'null' if found is None else found}", time))
        return _sorted(results)


def _sorted(records: Any) -> list[Record]:
    return sorted((r for r in records if r[0] != CLOCK), key=lambda r: (r[0] or "", *r[1:]))


def lines() -> list[Line]:
    return [Line(json.loads(text)) for text in FILE.read_text().splitlines()]

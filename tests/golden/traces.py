"""The golden traces, and what a batch engine has to answer to them."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILES = {"fk_join.jsonl": 520, "fk_join_exhaustive.jsonl.gz": 22_220, "chain.jsonl": 120}
"""File -> how many lines it has: a file that lost lines must not pass."""

Changes = list[list[list[str | None]]]
"""Per run: [key, new value or None], in byte order of the keys."""

Emitted = list[list[tuple[str, str | None, int]]]
"""Per event: (key, value, timestamp), as Kafka sent them."""

LOST_RETRACTION = "Kafka loses the retraction when one event changes the left row and removes its right row"
EMPTY_IS_MISSING = "Kafka takes an empty right value for a missing row"
KAFKA_IS_WRONG: dict[str, tuple[str, Changes]] = {
    "fk_self_filtered_inner__one_event_changes_the_left_payload_and_removes_the_right_row": (
        LOST_RETRACTION,
        [[["x", "x|one+x|one"]], [["x", None]]],
    ),
    "fk_diamond_left_inner__both_references_lose_their_row_at_once": (
        LOST_RETRACTION,
        [[], [["o1", "a1;a1|x+Oak 1+Oak 1"]], [["o1", None]]],
    ),
    "inner_join__empty_right_value_is_a_row_not_a_delete": (
        EMPTY_IS_MISSING,
        [[], [["k1", "x|p+"]], [["k1", None]], [["k1", "x|p+"]]],
    ),
    "left_join__empty_right_value_is_a_row_not_a_delete": (
        EMPTY_IS_MISSING,
        [[["k1", "x|p+null"]], [["k1", "x|p+"]], [["k1", "x|p+null"]], [["k1", "x|p+"]]],
    ),
}
"""Scenario -> why, and the changes that are right, one event a run."""


@dataclass(frozen=True)
class Trace:
    """One line of a golden file."""

    file: str
    name: str
    events: int
    emitted: Emitted
    table: dict[str, str]
    """The SQL join of the inputs, which is Kafka's table unless Kafka is wrong."""
    kafka_is_wrong: bool
    line: str
    """The scenario as it stands in the file."""
    shape: tuple[str, tuple[str, ...]]
    """Its join, and the kinds of its parts."""

    def changes(self) -> Changes:
        """What each event really changed."""
        return KAFKA_IS_WRONG[self.name][1] if self.kafka_is_wrong else net(self.emitted)

    def net(self) -> Changes:
        """What all events together changed."""
        return [[[key, self.table[key]] for key in sorted(self.table, key=str.encode)]]


def net(emitted: Emitted) -> Changes:
    """What Kafka emitted, less repeated values, needless tombstones and intermediate values of one key in one step."""
    table: dict[str, str | None] = {}
    steps: Changes = []
    for step in emitted:
        last = {key: value for key, value, _ in step}
        steps.append([[k, last[k]] for k in sorted(last, key=str.encode) if last[k] != table.get(k)])
        table |= last
    return steps


def traces(file: str) -> list[Trace]:
    path = HERE / file
    data = gzip.decompress(path.read_bytes()) if file.endswith(".gz") else path.read_bytes()
    return [_trace(file, line.decode()) for line in data.splitlines()]


FEW_EVENTS, ONE_IN = 4, 80


def some_traces(file: str) -> list[Trace]:
    """The scenarios of a file that are replayed event by event in every test run: of few events, of each join one mix of kinds, of all sequences one in eighty."""
    short = [trace for trace in traces(file) if trace.events <= FEW_EVENTS]
    mixes: dict[str, tuple[str, ...]] = {}
    for trace in sorted(short, key=lambda t: not t.kafka_is_wrong):  # where Kafka is wrong is always among them
        mixes.setdefault(*trace.shape)
    chosen = [trace for trace in short if mixes[trace.shape[0]] == trace.shape[1]]
    return chosen[:: ONE_IN if len(chosen) > 1000 else 1]


def one_in_a_hundred(file: str, seed: int) -> list[Trace]:
    """The scenarios of a file that are replayed in one run in every test run: another hundredth with every seed, and all where Kafka is wrong."""
    return [trace for number, trace in enumerate(traces(file)) if trace.kafka_is_wrong or number % 100 == seed % 100]


def _trace(file: str, text: str) -> Trace:
    line: dict[str, Any] = json.loads(text)
    wrong = line.get("agrees_with_batch") is False
    table = line["sql_table"] if wrong else line["table"]
    shape = (line["join"], tuple(line.get("how", ())))
    return Trace(file, line["name"], len(line["events"]), line["emitted"], table, wrong, text, shape)

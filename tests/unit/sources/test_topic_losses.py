"""A topic that loses records, and somebody who accepts it: a snapshot in it counts as whole only if none of its rows was lost, whatever was."""

import random
from dataclasses import dataclass, field
from functools import cache

import pytest

from rejoin import Topology, debezium, kafka
from rejoin.errors import SourceError
from rejoin.lake.ledger.generations import Generations
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.kafka import topic as kafka_topic
from rejoin.sources.transports.kafka.offsets import Held
from rejoin.sources.transports.kafka.topic import KafkaTopic
from rejoin.steps.ingest.generations import Mark, Reads, followed, torn


@dataclass
class Row:
    """A row of a snapshot. ``read``: whether a run has read it."""

    snapshot: int
    mark: str
    read: bool = False


@dataclass
class Log:
    """A topic whose connector is killed and takes snapshots again, and whose records go."""

    random: random.Random
    id: int = 1
    partitions: list[list[Row]] = field(default_factory=lambda: [[], [], []])
    earliest: list[int] = field(default_factory=lambda: [0, 0, 0])
    snapshots: int = 0
    left: list[Row] = field(default_factory=list)
    rows: dict[int, list[Row]] = field(default_factory=dict)

    def write(self) -> None:
        if not self.left or self.random.random() < 0.2:
            self.snapshots += 1
            count = self.random.choice([1, 2, 3, 8])
            marks = [")"] if count == 1 else ["(", *[""] * (count - 2), ")"]
            self.left = self.rows[self.snapshots] = [Row(self.snapshots, mark) for mark in marks]
        upto = self.random.randint(1, len(self.left))
        for row in self.left[:upto]:
            self.random.choice(self.partitions).append(row)
        self.left = self.left[upto:]

    def lose(self) -> None:
        p = self.random.randrange(3)
        self.earliest[p] = self.random.randint(self.earliest[p], len(self.partitions[p]))

    def replace(self) -> None:
        self.id, self.partitions, self.earliest = self.id + 1, [[], [], []], [0, 0, 0]

    @property
    def held(self) -> Held:
        return Held(
            "c", str(self.id), dict(enumerate(self.earliest)), ends := {p: len(rows) for p, rows in enumerate(self.partitions)}, ends
        )


def at(snapshot: int) -> str:
    return f"{snapshot:020}.0"


def cut(log: Log, pin: Pin) -> Reads:
    """What a run reads."""
    marks, rows = [], dict[str, int]()
    for part in pin.parts:
        for row in log.partitions[part.place["partition"]][part.place["from"] : part.place["to"]]:
            row.read = True
            rows[at(row.snapshot)] = rows.get(at(row.snapshot), 0) + 1
            if row.mark:
                marks.append(Mark(at(row.snapshot), "t", row.mark == ")", 0))
    known = {m.position for m in marks}
    return Reads(tuple(marks), rows, unmarked=max(rows.keys() - known, default=None), torn=pin.torn)


@cache
def notes() -> Table:
    shop = Topology("shop")
    shop.table("notes", key="id", schema="id BIGINT", source=debezium(kafka("notes"))).filter("id > 0").named("out")
    return compile(shop).table("notes")


def table_of(log: Log) -> KafkaTopic:
    made = KafkaTopic(notes(), SourceAccess(".", {"kafka": {"address": "nowhere:1", "records.per.run": "3"}}))
    made.__dict__["_held"] = log.held
    return made


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(40, 4_000))])
def test_a_snapshot_is_whole_only_if_all_of_its_rows_were_read(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topic, "tombstones_kept", lambda *_: None)
    made = random.Random(seed)
    log, last, known = Log(made), None, None
    for run in range(1, 30):
        if last is None and made.random() < 0.5:
            log.write()  # it begins with the oldest records that are there: what went before is nobody's loss
            continue
        for _ in range(made.randint(0, 3)):
            log.write()
        if last is not None and made.random() < 0.15:
            log.lose()
        if last is not None and made.random() < 0.04:
            log.replace()
        try:
            pin = table_of(log).waiting(last, dict).pin
        except SourceError:
            going = table_of(log).going_on(last)  # type: ignore[arg-type]
            assert going is not None and going.said
            last = going.pin
            known = torn(known or Generations({}))
            continue
        if pin is None:
            continue
        assert Pin.from_dict(pin.to_dict()) == pin, "as the ledger keeps it"
        before, last = known, pin
        known = followed(known, cut(log, pin), run, empty=before is None)
        floor = "" if known is None else known.floor
        if floor > ("" if before is None else before.floor):
            whole = next(n for n in log.rows if at(n) == floor)
            assert all(row.read for row in log.rows[whole]), f"rows of snapshot {whole} were lost, and it deletes what it did not bring"

"""Damaged snapshots: each is refused with a code and nothing has changed, or every line is accounted for and what is whole is read as it is."""

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
from careful import decode_csv, decode_json
from damage import DAMAGE, FORMATS, made, records, written
from engine import Engine
from limited import limited

from rejoin import Topology, snapshot
from rejoin.errors import BadRecords, SchemaDrift, SnapshotEmpty, SnapshotShrunk, SourceCorrupt
from rejoin.lake.config import lake_config
from rejoin.lake.query.quarantine_entries import Entry
from rejoin.lake.query.quarantine_reader import entries
from rejoin.lake.spark.session import session
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.sources.stored_files import lines
from rejoin.steps.run.schedule import run_topology

# Spark's Python client leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.timeout(600),
    *(pytest.mark.filterwarnings(f"ignore::{what}") for what in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")),
]
COLUMNS = (Column("id", "BIGINT"), Column("name", "STRING"), Column("n", "BIGINT"))
OF = Table("s", ("id",), COLUMNS, SnapshotSource("s", null="-"), ("id", "name", "n"))
REFUSED = (SourceCorrupt, SchemaDrift, SnapshotEmpty, SnapshotShrunk, BadRecords)
FATES = ("applied", "noop", "superseded", "duplicate", "stale", "quarantined", "skipped", "truncates")


@pytest.fixture
def rng(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> random.Random:
    """By the seed that the header of every test run shows."""
    return random.Random(f"{pytestconfig.option.hypothesis_seed} {request.node.name}")


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_every_line_of_a_damaged_file_is_accounted_for_or_the_file_is_refused(form: str, damage: str, rng: random.Random) -> None:
    decode, header = (decode_csv, 1) if form == "csv" else (decode_json, 0)
    for _ in range(60):
        data = DAMAGE[damage](rng, records(made(rng, rng.randint(1, 40), 1), form), form)
        text = list(lines(iter([data])))
        try:
            found = [row for batch in decode(OF, 1, "f", 0, iter(text)) for row in batch.to_pylist()]
        except SourceCorrupt:
            continue
        inside = {at for row in found for at in range(row["_line"], row["_line"] + row["_lines"])}
        assert len(inside) == sum(row["_lines"] for row in found), "no line is part of two records"
        outside = [raw for at, raw in text if at not in inside]
        assert not any(raw.strip() for raw in outside[header:]), "a line is part of a record, or it is blank"
        assert all((row["_kind"] == "upsert") == (row["_code"] is None) for row in found)
        assert all(row["_raw"] for row in found if row["_code"])


class Damaged:
    """A table of snapshots, each of which is written, damaged and read."""

    def __init__(self, root: Path) -> None:
        self.root, config = root, lake_config(str(root / "lake"))
        (root / "s").mkdir(parents=True)
        t = Topology("t")
        schema = ", ".join(f"{c.name} {c.type}" for c in COLUMNS)
        t.table("s", key="id", schema=schema, source=snapshot("s", null="-", max_bad_share=0.3)).filter("id > 0").named("out")
        spark = session(config)
        self.engine = Engine(compile(t), config, root, lambda: spark)

    @property
    def state(self) -> dict[int, tuple[Any, ...]]:
        """The rows of the table by key; none before the first run."""
        return {key[0]: row for key, row in self.engine.source("s")} if self.engine.topology.ledger.head() else {}

    def run(self, file: str, data: bytes) -> list[Entry]:
        """One run with this snapshot; what was refused of it."""
        (self.root / "s" / file).write_bytes(data)
        here = self.engine.topology  # whose next run cuts anew, also after one that was stopped: as of another process
        done = run_topology(here, self.engine.spark, f"run {len(here.ledger.runs())}")
        counts = self.engine.counts(done.number, "s")
        assert counts["read"] == sum(counts[fate] for fate in FATES)
        topology = self.engine.topology
        return [e for e in entries(topology.ledger, topology.refs, "s") if e.file == f"s/{file}"]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    return Damaged(tmp_path_factory.mktemp("damaged"))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_snapshot_changes_nothing_or_what_is_whole_is_read_as_it_is(
    damaged: Damaged, form: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert damaged.run(f"{FORMATS.index(form)}_000.{form}", written(records(made(rng, 150, 0), form), form)) == []
    for number, damage in enumerate(DAMAGE, 1):
        path = rng.choice(("driver", "workers"))
        limited(monkeypatch, fetched_bytes=32 << 20 if path == "driver" else 0)
        rows = made(rng, 150, number)
        file = f"{FORMATS.index(form)}_{number:03}.{form}"
        data, before = DAMAGE[damage](rng, records(rows, form), form), damaged.state
        what = f"{damage} of {form} by the {path}"
        try:
            refused = damaged.run(file, data)
        except REFUSED:  # any other error fails the test
            assert damaged.state == before, what
            (damaged.root / "s" / file).unlink()
            continue
        assert wrong(rows, form, data, refused, before, damaged.state) == [], what


def wrong(rows: dict[int, Any], form: str, data: bytes, refused: list[Entry], before: dict[int, Any], now: dict[int, Any]) -> list[str]:
    """Rows that are whole in the damaged file and were read as something else, and rows that are gone though nobody can tell."""
    whole = set(rows)  # of Parquet, which has checksums: it is read as it was, or not at all
    if form != "parquet":
        data = gzip.decompress(data) if form == "csv.gz" else data
        lost = {e.line + at for e in refused if e.line for at in range((e.raw or "").count("\n") + 1)}
        texts = zip(rows, records(rows, form)[form != "jsonl" :], strict=True)
        whole = {key for key, text in texts if (places := lines_of(text, data)) and lost.isdisjoint(places)}
    found = [f"key {k} is whole: {rows[k]}, found {now.get(k)}" for k in sorted(whole) if now.get(k) != tuple(rows[k].values())]
    if any(None in e.key.values() for e in refused):
        found += [f"key {k} is gone, though a record without key was refused" for k in before.keys() - now.keys()]
    return found


def lines_of(text: bytes, data: bytes) -> set[int]:
    """The lines of a file on which a record stands, wherever it does; none if it is not there as it was written."""
    found: set[int] = set()
    at = (b"\n" + data).find(b"\n" + text)
    while at >= 0:
        first = data[:at].count(b"\n") + 1
        found |= set(range(first, first + text.count(b"\n")))
        at = (b"\n" + data).find(b"\n" + text, at + 1)
    return found

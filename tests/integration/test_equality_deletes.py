"""Iceberg tables of which rows are deleted by values: Iceberg's own library writes them, Spark says what each snapshot holds."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from integration.equality_deleter import Deleter
from integration.shop import rows as published
from pyspark.sql import SparkSession
from sparkless import no_spark

from rejoin.errors import SourceCorrupt
from rejoin.lake.config import LakeConfig, lake_config
from rejoin.lake.spark.session import session
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.plan.pin import Pin
from rejoin.sources import SourceAccess, read_here, waiting
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

LEAKS = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.slow, *map(pytest.mark.filterwarnings, LEAKS)]

Row = dict[str, Any]
MADE = "USING iceberg {parts} TBLPROPERTIES('format-version'='{version}', 'write.delete.mode'='merge-on-read')"
SEEN = ("id", "p", "v")


class Lake:
    """A lake with Spark, which writes tables beside the deleter."""

    def __init__(self, root: Path) -> None:
        self.config: LakeConfig = lake_config(str(root / "lake"))
        self.spark: SparkSession = session(self.config)
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
        self.access = SourceAccess(".", catalog=self.config.pyiceberg_settings())
        self._made = 0

    def table(self, columns: str, parts: str = "", version: int = 2) -> "Source":
        self._made += 1
        name = f"shop.t{self._made}"
        self.spark.sql(f"CREATE TABLE lake.{name} ({columns}) {MADE.format(parts=parts, version=version)}")
        return Source(self, name)


class Source:
    """A table that others write, and what a reader knows of it who follows its changes."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.lake, self.name = lake, name
        self.deleter = Deleter(lake.spark, f"lake.{name}")
        columns = (Column("id", "BIGINT"), Column("p", "STRING"), Column("v", "BIGINT"))
        self.read_as = Table("t", ("id",), columns, SnapshotSource(f"iceberg://lake/{name}"), SEEN)
        self.last: Pin | None = None
        self.state: dict[int, Row] = {}
        self.doubled: set[int] = set()

    def sql(self, statement: str) -> Any:
        return self.lake.spark.sql(statement.format(t=f"lake.{self.name}"))

    def catch_up(self) -> list[Row]:
        """What a run is told."""
        if (pin := waiting(self.read_as, self.lake.access, self.last, tuple).pin) is None:
            return []
        found = read_here(self.read_as, pin, self.lake.access)
        assert found is not None
        events: list[Row] = found.to_pylist()
        if not pin.partial:
            self.state, self.doubled = {}, set()
        for event in events:
            key = event["id"]
            if event["_kind"] == "quarantined":
                self.doubled |= {key}
            else:
                self.doubled -= {key}
                self.state[key] = {name: event[name] for name in SEEN}
            if event["_kind"] == "delete":
                del self.state[key]
        self.last = pin
        return events

    def is_right(self) -> None:
        """What was read and what Spark reads are the same. Of a key with different rows nothing is known, but that."""
        self.sql("REFRESH TABLE {t}")
        stored = [row.asDict() for row in self.sql(f"SELECT DISTINCT {', '.join(SEEN)} FROM {{t}} WHERE id IS NOT NULL").collect()]
        twice = {row["id"] for row in stored if sum(row["id"] == other["id"] for other in stored) > 1}
        if self.last is not None and self.last.partial:
            assert twice <= self.doubled
        wanted = {row["id"]: row for row in stored if row["id"] not in twice}
        assert {key: row for key, row in self.state.items() if key not in twice} == wanted


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("equality"))


def test_what_is_deleted_by_values_is_gone_and_what_comes_with_it_is_there(lake: Lake) -> None:
    there = lake.table("id BIGINT, p STRING, v BIGINT")
    there.sql("INSERT INTO {t} SELECT id, 'a', id FROM range(1000)")
    assert len(there.catch_up()) == 1000
    there.deleter.commit(["id"], [{"id": 5}, {"id": 6}, {"id": 5000}], [{"id": 5, "p": "b", "v": -1}])
    assert [(event["_kind"], event["id"], event["v"]) for event in there.catch_up()] == [("upsert", 5, -1), ("delete", 6, None)]
    there.is_right()
    there.sql("CALL lake.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")
    assert there.catch_up() == []
    there.is_right()


def test_only_columns_of_the_key_are_read_of_files_that_a_delete_thins(lake: Lake) -> None:
    there = lake.table("id BIGINT, p STRING, v BIGINT")
    there.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, uuid(), id FROM range(100000)")
    there.catch_up()
    assert there.last is not None
    whole = sum(part.size for part in there.last.parts)
    there.deleter.commit(["id"], [{"id": 5}])
    assert [event["_kind"] for event in there.catch_up()] == ["delete"]
    assert 0 < there.last.parts[0].size < whole / 2


def test_a_delete_by_a_number_with_a_fraction_is_refused_with_a_way_out(lake: Lake) -> None:
    there = lake.table("id BIGINT, p STRING, v BIGINT, share DOUBLE")
    there.sql("INSERT INTO {t} VALUES (1, 'a', 1, 0.5)")
    there.deleter.commit(["share"], [{"share": 0.5}])
    with pytest.raises(SourceCorrupt, match="columns of floating numbers") as raised:
        there.catch_up()
    assert "rewrite_data_files" in raised.value.next_step


def test_an_avro_file_is_refused_with_a_way_out(lake: Lake) -> None:
    there = lake.table("id BIGINT, p STRING, v BIGINT")
    there.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.format.default' = 'avro')")
    there.sql("INSERT INTO {t} VALUES (1, 'a', 1)")
    with pytest.raises(SourceCorrupt, match="data in files of the format AVRO"):
        there.catch_up()


FILE = """
from rejoin import Topology, iceberg, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, p STRING, v BIGINT", source=snapshot(iceberg("{orders}"), max_delete_share=1.0))
customers = t.table("customers", key="id", schema="id BIGINT, p STRING", source=snapshot(iceberg("{customers}"), max_delete_share=1.0))
orders.left_join(customers, foreign_key="v", select=["left.id", "left.p", "right.p AS name"]).named("enriched")
"""


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.by_spark, pytest.mark.nightly])])
def test_a_topology_over_tables_that_are_upserted_by_values(lake: Lake, tmp_path: Path, engine: str) -> None:
    orders, customers = (lake.table("id BIGINT, p STRING, v BIGINT", "PARTITIONED BY (bucket(2, id))") for _ in "oc")
    (tmp_path / "t.py").write_text(FILE.format(orders=orders.name, customers=customers.name))
    topology = Topology(load(str(tmp_path / "t.py")), lake.config, str(tmp_path))
    for step in range(3):
        for source in (orders, customers):
            rows = [{"id": i, "p": f"{step} {i}", "v": i % 7 if i != 4 else None} for i in range(step, 20, step + 1)]
            source.deleter.commit(["id"], [*rows, {"id": step + 100}], rows)
        orders.deleter.commit(["v"], [{"v": step}, {"v": None}])
        run_topology(topology, no_spark if engine == "local" else lambda: lake.spark, f"test {engine}")
        for source in (orders, customers):
            source.sql("REFRESH TABLE {t}")
        text = "SELECT o.id, o.p, c.p AS name FROM lake.{} o LEFT JOIN lake.{} c ON o.v = c.id ORDER BY o.id"
        wanted = [row.asDict() for row in lake.spark.sql(text.format(orders.name, customers.name)).collect()]
        found = [{name: row[name] for name in ("id", "p", "name")} for row in published(topology, "enriched")]
        assert sorted(found, key=lambda row: row["id"]) == wanted


class History:
    """Random commits to a table of columns id, p, v, and k, which no reader declares and which does not stay as it is."""

    def __init__(self, source: Source, rng: random.Random) -> None:
        self.source, self.rng, self.beside, self.wide, self.parts = source, rng, "k", False, set[str]()

    def commit(self) -> None:
        actions = [self.append, self.upsert, self.upsert, self.by_values, self.by_values, self.by_position, self.compact]
        self.rng.choice([*actions, self.roll_back, self.reshape, self.partition, self.expire])()
        self.source.sql("REFRESH TABLE {t}")

    def rows(self, ids: Sequence[int | None]) -> list[Row]:
        rng = self.rng
        small = [
            {"id": i, "p": rng.choice(["", "a", "ü b", None]), "v": rng.choice([None, 0, 1, 2, *([3 << 40] if self.wide else [])])}
            for i in ids
        ]
        return [{**row, self.beside: rng.choice([None, "", "x", "y"])} for row in small]

    def some(self) -> list[Row]:
        return self.rows([self.rng.choice([None, *range(12)]) for _ in range(self.rng.randint(1, 5))])

    def append(self) -> None:
        """May give a key a second row."""
        there = {row["id"] for row in self.source.sql("SELECT id FROM {t}").collect()}
        fresh = self.rows([i for i in {self.rng.randrange(12), self.rng.randrange(40)} if i not in there or self.rng.random() < 0.1])
        if fresh:
            self.source.deleter.commit(["id"], [], fresh)

    def upsert(self) -> None:
        """As Flink does."""
        rows = list({row["id"]: row for row in self.some()}.values())
        self.source.deleter.commit(["id"], rows, rows, everywhere=self.rng.random() < 0.7)

    def by_values(self) -> None:
        by = self.rng.choice([["id"], ["v"], [self.beside], ["id", self.beside], ["p", "v"]])
        self.source.deleter.commit(
            by, self.some()[:2], self.some()[:1] if self.rng.random() < 0.3 else [], everywhere=self.rng.random() < 0.5
        )

    def by_position(self) -> None:
        self.source.sql(f"DELETE FROM {{t}} WHERE id % 3 = {self.rng.randrange(3)} AND coalesce(v, 0) < 2")

    def compact(self) -> None:
        rewrite = "'rewrite-all', 'true'" if self.rng.random() < 0.5 else "'delete-file-threshold', '2', 'remove-dangling-deletes', 'true'"
        self.source.sql(f"CALL lake.system.rewrite_data_files(table => '{{t}}', options => map({rewrite}))")

    def roll_back(self) -> None:
        known = [row.snapshot_id for row in self.source.sql("SELECT snapshot_id FROM {t}.history WHERE is_current_ancestor").collect()]
        if len(known) > 2:
            self.source.sql(f"CALL lake.system.rollback_to_snapshot('{{t}}', {known[-2]})")

    def expire(self) -> None:
        self.source.sql(
            "CALL lake.system.expire_snapshots(table => '{t}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 2)"
        )

    def reshape(self) -> None:
        match self.rng.choice(["rename", "drop", "widen"]):
            case "rename":
                self.source.sql(f"ALTER TABLE {{t}} RENAME COLUMN {self.beside} TO {self.beside}k")
                self.beside += "k"
            case "drop":  # what was deleted by it stays deleted; Iceberg cannot read on if another column gets its name
                self.source.sql(f"ALTER TABLE {{t}} DROP COLUMN {self.beside}")
                self.beside += "n"
                self.source.sql(f"ALTER TABLE {{t}} ADD COLUMN {self.beside} STRING")
            case "widen":
                self.source.sql("ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT")
                self.wide = True

    def partition(self) -> None:
        """A delete of the new spec reaches rows of its own partition only."""
        part = self.rng.choice(["p", "bucket(2, id)"])
        self.source.sql(f"ALTER TABLE {{t}} {'DROP' if part in self.parts else 'ADD'} PARTITION FIELD {part}")
        self.parts ^= {part}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 20))])
def test_random_histories(lake: Lake, seed: int, version: int) -> None:
    print("seed", seed, "version", version)
    rng = random.Random(seed)
    source = lake.table("id BIGINT, p STRING, v INT, k STRING", version=version)
    history = History(source, rng)
    history.upsert()
    for _ in range(8 if seed == 0 else 30):
        for _ in range(rng.randint(0, 3)):
            history.commit()
        source.catch_up()
        source.is_right()

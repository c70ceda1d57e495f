"""What a step comes to as a task of a Spark job where it fails."""

import pickle
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rejoin import limits
from rejoin.engines.relation import NeedsSpark
from rejoin.engines.task_engine import packed
from rejoin.errors import StoreDenied, StoreDown, StoreMissing
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import FilesOf
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.records import AttemptContext, Run
from rejoin.lake.source_access import source_access
from rejoin.plan.model.plan import Column, Plan, Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.plan.model.steps import Step, Verb
from rejoin.plan.pin import Pin
from rejoin.sources import SourceAccess, read_streams
from rejoin.steps.run import spark_task
from rejoin.steps.run.attempt import AttemptStart
from rejoin.steps.run.spark_task import SparkTasks

PLAN = Plan("t", (), ())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(OSError("AWS Error ACCESS_DENIED during HeadObject operation"), StoreDenied, id="refused"),
        pytest.param(OSError("AWS Error NETWORK_CONNECTION during HeadObject operation"), StoreDown, id="down"),
        pytest.param(OSError("AWS Error NO_SUCH_BUCKET during HeadObject operation"), StoreMissing, id="missing"),
        pytest.param(OSError("no space left on device"), NeedsSpark, id="another file"),
        pytest.param(MemoryError(), NeedsSpark, id="memory"),
    ],
)
def test_spark_is_not_asked_for_what_the_object_store_refuses(
    error: Exception, expected: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(spark_task, "Attempt", fails)
    monkeypatch.setattr(limits, "in_force", limits.in_force)  # a task sets it, and the variables of its driver
    # It would leave this process, later, with the memory of a worker that waits.
    monkeypatch.setattr(spark_task, "_working", lambda _: nullcontext())
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    run = Run("t", 1, "run", "open", "somebody", None, PLAN, (), 0.0, None, None)
    start = AttemptStart(lake_config(str(tmp_path)), run, AttemptContext({}, {}, {}, {}), SourceAccess("."))
    parcel = spark_task.TaskInput(start, Step(Verb.PUBLISH, "", ()), None, 0, limits.limits(), {})
    came = spark_task._came_to(pickle.loads(pickle.dumps(parcel)), 0)
    assert type(came) is expected


def test_a_worker_gives_memory_back_once_no_task_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    given = threading.Event()
    monkeypatch.setattr(spark_task, "shrunk", given.set)
    monkeypatch.setattr(spark_task, "sized", lambda *_: None)
    monkeypatch.setattr(spark_task, "WAITS", 0.2)
    for _ in range(2):
        with spark_task._working(0):
            assert not given.wait(0.3)  # though it waits longer than that since the one before
    assert given.wait(10)


def test_a_range_goes_to_a_task_without_the_address_and_the_secrets_of_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "lake.toml").write_text(
        f'catalog = "sqlite"\nuri = "sqlite:///{tmp_path}/catalog.db"\nwarehouse = "file://{tmp_path}/files"\n'
        '[properties]\ncredential = "a-secret"\n"s3.secret-access-key" = "of-the-store"\n'
    )
    refs, rows = Refs(lake_config(str(tmp_path / "lake.toml")), "t"), pa.table({"n": pa.array([1, 2], pa.int64())})
    refs.ensure_namespace()
    refs.create("rows", rows.schema, {})
    sent = pickle.dumps(FilesOf(refs.require("rows", refs.empty("rows"))))
    assert b"of-the-store" in sent, "it reads and writes files"
    assert b"a-secret" not in sent and b"catalog.db" not in sent
    (file,) = pickle.loads(sent)(iter(rows.to_batches()), 1)
    assert refs.table("rows").io.new_input(file.file_path).exists()  # type: ignore[union-attr]


class _Deaf:
    """A session that notes what would be sent to its tasks, and gives no answer."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def range(self, *_: int) -> "_Deaf":
        return self

    def mapInArrow(self, work: Any, _: str) -> "_Deaf":  # noqa: N802 -- Spark's name
        self.sent.append(pickle.dumps(work.args))
        return self

    def collect(self) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("whole", "known"),
    [pytest.param(True, True, id="a whole step needs the catalog and its sources"), pytest.param(False, False, id="a range")],
)
def test_what_a_task_is_told_of_catalog_and_sources(whole: bool, known: bool, tmp_path: Path) -> None:
    (tmp_path / "lake.toml").write_text(
        f'catalog = "sqlite"\nuri = "sqlite:///{tmp_path}/catalog.db"\nledger = "sqlite:///{tmp_path}/secret-ledger.db"\n'
        f'warehouse = "file://{tmp_path}/files"\n[sources.kafka]\n"sasl.password" = "of-the-broker"\n'
    )
    config = lake_config(str(tmp_path / "lake.toml"))
    run = Run("t", 1, "run", "open", "somebody", None, PLAN, (), 0.0, None, None)
    start = AttemptStart(config, run, AttemptContext({}, {}, {}, {}), source_access(config, str(tmp_path), {}))
    session = _Deaf()
    SparkTasks(session, start, Step(Verb.PUBLISH, "", ()), 1)._answered(None if whole else packed(abs), 1)  # type: ignore[arg-type]
    (sent,) = session.sent
    assert b"secret-ledger" not in sent
    assert (b"catalog.db" in sent) == (b"of-the-broker" in sent) == known


def test_who_decodes_is_told_of_the_system_of_its_source_only(tmp_path: Path) -> None:
    access = SourceAccess(str(tmp_path), {"kafka": {"password": "a"}, "Bronze": {"password": "b"}}, {"uri": "c"})
    assert access.to("kafka://kafka/shop.orders") == SourceAccess(str(tmp_path), {"kafka": {"password": "a"}})
    assert access.to("iceberg://bronze/shop.orders") == SourceAccess(str(tmp_path), {"Bronze": {"password": "b"}})
    assert access.to("iceberg://lake/shop.orders") == SourceAccess(str(tmp_path), {}, {"uri": "c"})
    assert access.to("landing/orders") == access.to("s3://bucket/orders") == SourceAccess(str(tmp_path))
    table = Table("orders", ("id",), (Column("id", "BIGINT"),), SnapshotSource("landing/orders"), ("id",))
    (stream,) = read_streams(table, Pin("snapshot", (), 1), access, 1)
    assert b"password" not in pickle.dumps(stream)

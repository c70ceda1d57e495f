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
from rejoin.errors import StoreDenied, StoreDown, StoreMissing
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import FilesOf
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.records import AttemptContext, Run
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import Step, Verb
from rejoin.sources import SourceAccess
from rejoin.steps.run import spark_task
from rejoin.steps.run.attempt import AttemptStart

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

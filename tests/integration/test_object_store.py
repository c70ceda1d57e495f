"""A lake in an object store, run by the process: S3 as moto's server answers it, on loopback. Spark and the process take turns on it, too."""

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from feeds import rolled_back
from file_bounds import stored_files
from golden.traces import FILES, some_traces
from integration.forked import Forked, batched
from integration.shop import Shop, check, folded, output, steps_of
from limited import limited
from object_store import BUCKET, KEY, SECRET, ObjectStore, object_store
from pyarrow.fs import FileSelector
from sparkless import no_spark
from worker_processes import by, workers

from rejoin.errors import RejoinError, StoreDenied, StoreDown, StoreMissing
from rejoin.lake.compact.expiry import free, free_exchange
from rejoin.lake.config import lake_config
from rejoin.lake.spark.setup_check import fetch_jars
from rejoin.notebook import Lake
from rejoin.replay.run import replay
from rejoin.steps.run.schedule import run_topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store")) as made:
        yield made


@pytest.fixture(autouse=True)
def _in_the_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    if not request.node.get_closest_marker("by_spark"):
        monkeypatch.setenv("REJOIN_ENGINE", "local")


@dataclass
class StoredShop(Shop):
    """The shop with its tables in the store."""

    @property
    def lake(self) -> Path:
        return self.root / "lake.toml"


@pytest.fixture
def shop(store: ObjectStore, tmp_path: Path) -> StoredShop:
    store.lake(tmp_path)
    return StoredShop(tmp_path)


def rejoin(shop: Shop, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command, as a process of its own."""
    lake = ["--lake", str(shop.lake)] + (["--root", str(shop.root)] if words[0] == "run" else [])
    return Forked("rejoin.cli", [*words, *lake], {**os.environ, **environment}).wait(300)


def run(shop: Shop) -> None:
    topology = shop.topology()
    run_topology(topology, no_spark, f"test {len(topology.ledger.runs())}")


@pytest.mark.invariant("I1")
def test_golden_traces_come_out_of_an_object_store_as_kafka_streams_says(store: ObjectStore, tmp_path: Path) -> None:
    # What every test run plays event by event on a disk, but for chains, one of whose expressions is Spark's work.
    chosen = [trace for file in FILES if file != "chain.jsonl" for trace in some_traces(file)]
    assert len(chosen) > 600
    events = tmp_path / "events.jsonl"
    events.write_text("".join(trace.line + "\n" for trace in chosen))
    answers = [json.loads(json.dumps(a)) for a in replay([str(events)], str(store.lake(tmp_path)), per_event=True)]
    wrong = [t.name for t, a in zip(chosen, answers, strict=True) if (a["changes"], a["table"]) != (t.changes(), t.table)]
    assert not wrong
    print(f"\n{len(chosen)} traces")


def test_ranges_that_other_processes_do_leave_each_other_rows_in_the_store(
    store: ObjectStore, shop: StoredShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, sparse=0, range_rows=8, fewest_range_rows=2)
    asked = len(store.asked())
    with workers() as some:
        by(some, lake_config(str(shop.lake)), monkeypatch)
        for _ in range(3):
            shop.next_batch()
            run(shop)
            check(shop)
    assert max(some.asked) > 2
    left = [one.method for one in store.asked(asked) if "/_exchange/" in one.path]
    assert {"PUT", "GET", "DELETE"} <= set(left)
    assert not free_exchange(lake_config(str(shop.lake)), shop.topology().plan.topology, datetime.now(UTC) + timedelta(days=1))


@pytest.mark.invariant("I2", "I9")
@pytest.mark.parametrize("every", [pytest.param(30, id="every 30th"), pytest.param(1, id="every one", marks=pytest.mark.nightly)])
def test_a_crash_at_a_boundary_and_a_second_run_end_like_an_undisturbed_run(shop: StoredShop, every: int) -> None:
    trace = shop.root / "trace"
    for _ in range(2):
        trace.unlink(missing_ok=True)
        shop.next_batch()
        done = rejoin(shop, "run", str(shop.file), REJOIN_CRASH_TRACE=str(trace))
        assert done.returncode == 0, done.stderr
    points = list(steps_of(trace.read_text().split()))
    assert len(points) >= 20
    for crashes in batched(points[::every], 3):
        for point in crashes:
            shop.next_batch()
            killed = rejoin(shop, "run", str(shop.file), REJOIN_CRASH=point)
            assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{killed.stderr}"
        again = rejoin(shop, "run", str(shop.file))
        assert again.returncode == 0, f"after crashes at {crashes}:\n{again.stderr}"
        check(shop)


@pytest.mark.invariant("I2", "I9")
def test_a_store_that_fails_at_any_request_ends_the_run_and_the_next_one_is_whole(store: ObjectStore, shop: StoredShop) -> None:
    shop.next_batch()
    run(shop)
    shop.next_batch()
    before = len(store.asked())
    run(shop)
    requests = len(store.asked()) - before
    for number in random.Random(5).sample(range(requests - 5), 2):
        shop.next_batch()
        before = output(shop.topology())
        store.failing("503 SlowDown", after=number)
        with pytest.raises(
            StoreDown, match=r"the object store does not answer as it should \((SLOW_DOWN|SERVICE_UNAVAILABLE|HTTP status 503)"
        ):
            run(shop)
        store.failing("")
        if shop.topology().ledger.head() == shop.batch - 1:
            assert output(shop.topology()) == before
        run(shop)
        check(shop)


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        ("403 AccessDenied", StoreDenied, 5),
        ("403 InvalidAccessKeyId", StoreDenied, 5),
        ("400 ExpiredToken", StoreDenied, 5),
        ("404 NoSuchBucket", StoreMissing, 5),
        ("500 InternalError", StoreDown, 75),
    ],
)
def test_what_a_store_answers_is_told_by_its_code_and_without_secrets(
    store: ObjectStore, shop: StoredShop, answer: str, error: type[RejoinError], code: int
) -> None:
    shop.next_batch()
    store.failing(answer)
    try:
        done = rejoin(shop, "run", str(shop.file))
    finally:
        store.failing("")
    assert (done.returncode, done.stderr.splitlines()[-3].split(" ", 1)[0]) == (code, error.code), done.stderr
    assert "nothing of it was committed" in done.stderr and "to go on: " in done.stderr
    assert not {SECRET, KEY} & set(found_in(done.stdout, done.stderr))
    run(shop)
    check(shop)


def found_in(*texts: str | bytes) -> list[str]:
    """The secrets that stand in some texts."""
    return [word for word in (SECRET, KEY) for text in texts if (word in text if isinstance(text, str) else word.encode() in text)]


def test_a_bucket_that_is_not_there_and_a_store_that_is_not_there_are_told_apart(store: ObjectStore, tmp_path: Path) -> None:
    shop = StoredShop(tmp_path)
    shop.next_batch()
    for lake, error in (({"bucket": "nobody"}, StoreMissing), ({"s3.endpoint": "http://127.0.0.1:1"}, StoreDown)):
        store.lake(tmp_path, **lake)
        with pytest.raises(error):
            run(shop)
    store.lake(tmp_path)
    run(shop)
    check(shop)


def test_every_reader_reads_the_store_and_a_compaction_rewrites_it_without_spark(store: ObjectStore, shop: StoredShop) -> None:
    for _ in range(5):
        shop.next_batch()
        run(shop)
    done = rejoin(shop, "compact")
    assert done.returncode == 0, done.stderr
    check(shop)
    topology = shop.topology()
    table = topology.refs.table("enriched")
    assert table is not None and not table.inspect.delete_files().num_rows
    shop.next_batch()
    run(shop)
    check(shop)
    [key, *_] = shop.orders
    got = rejoin(shop, "get", "enriched", str(key))
    assert json.loads(got.stdout) == shop.expected()[key], got.stderr
    assert rejoin(shop, "changes", "enriched").stdout.count('"op"') > 0
    assert Lake(shop.lake).sql("SELECT count(*) FROM enriched").to_arrow().to_pylist() == [{"count_star()": len(shop.orders)}]
    kept = [path.read_bytes() for path in shop.root.glob("*.db*")]
    said = [
        rejoin(shop, *words).stdout
        for words in (("history", "--run", "1"), ("explain", str(shop.file), "--run", "1"), ("explain", str(shop.file), "--sql"))
    ]
    assert all(said) and not found_in(*kept, *said, repr(topology.config))


@pytest.mark.nightly
@pytest.mark.by_spark
@pytest.mark.parametrize("engines", [("local", "local"), ("local", "spark", "local")], ids=["the process alone", "in turn"])
def test_spark_verifies_what_the_process_made_and_goes_on_with_it(shop: StoredShop, engines: tuple[str, ...]) -> None:
    fetch_jars(s3=True)
    for engine in engines:
        shop.next_batch()
        done = rejoin(shop, "run", str(shop.file), "--engine", engine)
        assert done.returncode == 0, done.stderr
    check(shop)
    done = rejoin(shop, "verify")
    assert "0 differences" in done.stdout, done.stdout + done.stderr


def test_an_expiry_leaves_in_the_store_what_is_needed_and_nothing_else(store: ObjectStore, shop: StoredShop) -> None:
    for _ in range(3):
        shop.next_batch()
        run(shop)
    assert rejoin(shop, "compact").returncode == 0
    table = shop.topology().refs.table("enriched")
    assert table is not None
    stray = f"{table.location()}/data/stray.parquet"
    with table.io.new_output(stray).create() as stream:
        stream.write(b"left by a crash")
    done = rejoin(shop, "expire", "--keep-days", "0")
    assert "6 tables looked at" in done.stdout and "files deleted" in done.stdout, done.stdout + done.stderr
    assert there(store, shop) - {stray} == needed(shop) and stray in there(store, shop), "it is young"
    assert output(shop.topology()) == shop.expected()
    counts = free(shop.topology().refs, "enriched", (), datetime.now(UTC) + timedelta(hours=1), lambda: None)
    assert counts == {"snapshots": 0, "files": 0, "orphans": 1}
    assert there(store, shop) == needed(shop)
    shop.next_batch()
    run(shop)
    assert output(shop.topology()) == folded(shop.topology(), changes=rolled_back) == shop.expected()


def there(store: ObjectStore, shop: StoredShop) -> set[str]:
    """The objects of the lake, but metadata, of which some versions are kept."""
    found = store._filesystem().get_file_info(FileSelector(f"{BUCKET}/{shop.root.name}", recursive=True))
    return {f"s3://{f.path}" for f in found if f.is_file and f.size and not f.path.endswith(".metadata.json")}


def needed(shop: StoredShop) -> set[str]:
    """What the snapshots of all tables need, as PyIceberg reads them."""
    topology, found = shop.topology(), set[str]()
    for table in filter(None, map(topology.refs.table, topology.refs.tables())):
        for snapshot in table.metadata.snapshots:
            found |= {snapshot.manifest_list, *(m.manifest_path for m in snapshot.manifests(table.io))}
            found |= {file.file_path for file in stored_files(table, snapshot.snapshot_id)}
    return found

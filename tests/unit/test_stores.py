"""Files of a store as DuckDB sees them, and what a store's answers are told as. A disk is the store here: what is asked of it is counted."""

from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from pyarrow.fs import S3FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

from rejoin.engines import object_stores
from rejoin.engines.duckdb_connection import reading
from rejoin.errors import EngineFailed, RejoinError, StoreDenied, StoreDown, StoreMissing
from rejoin.failures.engine_errors import named
from rejoin.lake.iceberg.file_io import KEPT_FILE, StoreFileIO

SECRET = "nobody may see this"


class Counted:
    """A file that knows what was asked of it."""

    def __init__(self, path: Path) -> None:
        self._bytes, self.asked = path.read_bytes(), list[tuple[int, int]]()

    def seek(self, offset: int, whence: int = 0) -> int:
        return (0, 0, len(self._bytes))[whence] + offset

    def read(self, size: int = -1) -> bytes:
        raise AssertionError("there is a way to read at a place")

    def read_at(self, size: int, offset: int) -> bytes:
        self.asked.append((offset, size))
        return self._bytes[offset : offset + size]


def numbers(path: Path, count: int) -> Path:
    pq.write_table(pa.table({"n": pa.array(range(count), pa.int64())}), path, row_group_size=1_000)
    return path


def test_a_file_of_any_name_is_read_and_its_rows_say_the_name(tmp_path: Path) -> None:
    file = numbers(tmp_path / "a b*[x]?#%20é=1.parquet", 10)
    name = object_stores.name(PyArrowFileIO({"s3.secret-access-key": SECRET}), str(file))
    found = reading().sql(
        f"SELECT DISTINCT filename, sum(n) OVER () FROM read_parquet('{name}', filename = true, hive_partitioning = false)"
    )
    assert found.fetchall() == [(name, 45)]
    assert SECRET not in name and "*" not in name


def test_names_tell_stores_apart_and_are_the_same_for_the_same() -> None:
    one, other = (object_stores.name(PyArrowFileIO({"s3.endpoint": f"http://{where}"}), "s3://b/x") for where in ("a", "b"))
    assert one != other
    assert one == object_stores.name(PyArrowFileIO({"s3.endpoint": "http://a"}), "s3://b/x")


def test_no_file_of_a_store_is_written_by_a_query(tmp_path: Path) -> None:
    name = object_stores.name(PyArrowFileIO(), str(tmp_path / "made.parquet"))
    with pytest.raises(Exception, match="PermissionError"):
        reading().execute(f"COPY (SELECT 1) TO '{name}'")
    assert not (tmp_path / "made.parquet").exists()


def test_the_end_of_a_file_is_asked_for_once_also_in_parts(tmp_path: Path) -> None:
    source = Counted(numbers(tmp_path / "x.parquet", 10_000))
    opened = object_stores.Opened(source)
    size = opened.size
    whole = (tmp_path / "x.parquet").read_bytes()
    assert opened.at(size - 100, 100) == whole[-100:]
    assert opened.at(size - 300, 200) == whole[-300:-100]
    assert opened.at(size - 250, 240) == whole[-250:-10] and opened.at(size - 8, 100) == whole[-8:]
    assert source.asked == [(size - 100, 100), (size - 300, 200)]
    assert opened.at(0, 50) == opened.at(0, 50) == whole[:50]
    assert len(source.asked) == 4, "what is not the end is not kept"


def test_threads_that_share_a_file_read_each_at_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)) * 40)
    handle, found = object_stores.Stores().open(object_stores.name(PyArrowFileIO(), str(tmp_path / "x"))), dict[int, list[bytes]]()

    def read(start: int) -> None:
        handle.seek(start)
        found[start] = [handle.read(2) for _ in range(200)]

    threads = [Thread(target=read, args=(start,)) for start in (0, 1_024, 2_048)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for start, parts in found.items():
        assert b"".join(parts) == (bytes(range(256)) * 40)[start : start + 400]


def test_what_this_process_wrote_is_known_and_what_failed_is_not(tmp_path: Path) -> None:
    io = StoreFileIO({"s3.endpoint": str(tmp_path)})
    small, large = str(tmp_path / "small"), str(tmp_path / "large")
    for path, size in ((small, 10), (large, KEPT_FILE + 1)):
        with io.new_output(path).create() as stream:
            stream.write(b"x" * size)
        Path(path).unlink()
    again = StoreFileIO({"s3.endpoint": str(tmp_path)})
    assert len(again.new_input(small)) == 10 and again.new_input(small).open().read() == b"x" * 10
    assert len(again.new_input(large)) == KEPT_FILE + 1
    with pytest.raises(FileNotFoundError):
        again.new_input(large).open()
    with pytest.raises(FileNotFoundError):
        StoreFileIO({"s3.endpoint": "another"}).new_input(small).open()


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("When reading key 'k': AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 7", StoreDown),
        ("AWS Error SLOW_DOWN during PutObject operation", StoreDown),
        ("AWS Error UNKNOWN (HTTP status 503) during PutObject operation", StoreDown),
        ("AWS Error UNKNOWN (HTTP status 400) during PutObject operation: ExpiredToken", StoreDenied),
        ("AWS Error ACCESS_DENIED during HeadObject operation", StoreDenied),
        ("AWS Error NO_SUCH_BUCKET during PutObject operation", StoreMissing),
        ("AWS Error NO_SUCH_KEY during GetObject operation", StoreMissing),
        ("AWS Error RESOURCE_NOT_FOUND during HeadObject operation", StoreMissing),
        ("AWS Error UNKNOWN (HTTP status 404) during GetObject operation", StoreMissing),
        ("[Errno 2] Path does not exist 'bucket/key'", StoreMissing),
        ("Cannot open file, does not exist: s3://bucket/key", StoreMissing),
    ],
)
def test_fault_what_a_store_says_is_told_by_its_code(said: str, kind: type[RejoinError]) -> None:
    words = OSError(f"{said} {SECRET}")
    wrapped = PermissionError("Cannot create file")
    wrapped.__cause__ = words
    for error in (words, wrapped):
        told = named(error, "step resolve.o")
        assert type(told) is kind
        assert SECRET not in str(told) and "step resolve.o" in str(told)


@pytest.mark.parametrize("said", ["AWS Error SLOW_DOWN", "AWS Error ACCESS_DENIED during PutObject", "Path does not exist 'x"])
def test_fault_what_a_row_says_is_not_what_a_store_says(said: str) -> None:
    def by_duckdb() -> None:
        reading().execute("SELECT CAST(? AS BIGINT)", [said]).fetchall()

    for work in (by_duckdb, lambda: pa.array([said]).cast(pa.int64())):
        with pytest.raises(Exception, match=said) as raised:
            work()
        told = named(raised.value, "step resolve.o")
        assert type(told) is EngineFailed and said not in str(told)


def test_fault_a_deleted_file_is_missing_also_where_it_was_open(tmp_path: Path) -> None:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        where = {"s3.endpoint": "http://127.0.0.1:{1}".format(*server.get_host_and_port()), "s3.path-style-access": "true"}
        io = StoreFileIO({**where, "client.region": "us-east-1", "s3.access-key-id": "a", "s3.secret-access-key": "b"})
        keys = {"endpoint_override": where["s3.endpoint"], "region": "us-east-1", "access_key": "a", "secret_key": "b"}
        store, path = S3FileSystem(**keys, allow_bucket_creation=True), "s3://bucket/x.parquet"
        store.create_dir("bucket")
        content = numbers(tmp_path / "x", 10_000).read_bytes()
        for way in ("read", "query"):
            with store.open_output_stream("bucket/x.parquet") as out:
                out.write(content)
            name = object_stores.name(io, path)
            assert object_stores.Stores().open(name).read(4) == b"PAR1"
            store.delete_file("bucket/x.parquet")
            with pytest.raises(Exception) as raised:  # noqa: PT011 -- DuckDB has no class for it
                object_stores.Stores().open(name).read(4) if way == "read" else reading().sql(
                    f"SELECT sum(n) FROM read_parquet('{name}')"
                ).fetchall()
            assert type(named(raised.value, "rejoin get")) is StoreMissing, way
    finally:
        server.stop()

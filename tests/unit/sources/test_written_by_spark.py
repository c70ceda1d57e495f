"""Files that Spark, Hadoop and libraries of the JVM write, as they write them; read in this process and by Spark's workers."""

import json
from pathlib import Path
from typing import Any

import pytest
from limited import limited
from packings import NAMED, PACK
from pinning import DDL, EVENTS, SNAPSHOTS, decode_pin, pinned, put, there
from source_cases import event, rows, table
from test_sources_read import exactly
from test_sources_read import spark as of_spark

from rejoin.errors import SourceCorrupt
from rejoin.plan.model.sources import RecordsSource
from rejoin.sources import SourceAccess, coded_errors, read, read_here
from rejoin.sources.compression import unpacked

LEAKS = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.slow, *map(pytest.mark.filterwarnings, LEAKS)]
spark = of_spark
LINES = b"".join(b'{"id": %d, "name": "%x"}\n' % (i, i * 77_777_777_777) for i in range(30_000))


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.range(3000).selectExpr("id", "concat('n', id) AS name", "CAST(id % 2 AS INT) AS hour", "'eu' AS region")


@pytest.mark.parametrize("codec", ["none", "gzip", "bzip2", "snappy"])
@pytest.mark.parametrize("format_", ["json", "csv"])
def test_what_spark_writes_is_read_as_a_snapshot_and_partitioned_as_records(frame: Any, tmp_path: Path, format_: str, codec: str) -> None:
    writer = frame.write.format(format_).option("header", "true").option("compression", codec)
    writer.save(str(tmp_path / "src/1"))
    names = [(i, f"n{i}") for i in range(3000)]
    found = rows(decode_pin(SNAPSHOTS, pinned(SNAPSHOTS, tmp_path), str(tmp_path)))
    assert sorted((row["id"], row["name"]) for row in found) == names
    writer.partitionBy("hour", "region").save(str(tmp_path / "parts"))
    of = table(DDL, source=RecordsSource("parts"))
    found = rows(decode_pin(of, pinned(of, tmp_path), str(tmp_path)))
    assert sorted((row["id"], row["name"]) for row in found) == names and not there(of, str(tmp_path)).ignored


def test_fault_blocks_of_lz4_as_hadoop_writes_them_are_refused(frame: Any, tmp_path: Path) -> None:
    frame.write.option("compression", "lz4").json(str(tmp_path / "src/1"))
    with pytest.raises(SourceCorrupt, match="its name says lz4"):
        pinned(SNAPSHOTS, tmp_path)


@pytest.mark.parametrize(
    "stream",
    [
        "org.xerial.snappy.SnappyOutputStream",
        "org.xerial.snappy.SnappyFramedOutputStream",
        "com.github.luben.zstd.ZstdOutputStream",
        "net.jpountz.lz4.LZ4FrameOutputStream",
        "java.util.zip.GZIPOutputStream",
        "org.apache.commons.compress.compressors.bzip2.BZip2CompressorOutputStream",
        "org.apache.commons.compress.compressors.snappy.FramedSnappyCompressorOutputStream",
    ],
)
def test_what_libraries_of_the_jvm_pack_is_told_by_its_bytes(spark: Any, stream: str) -> None:
    jvm = spark._jvm
    sink = jvm.java.io.ByteArrayOutputStream()
    packing = jvm
    for part in stream.split("."):
        packing = getattr(packing, part)
    out = packing(sink)
    out.write(bytearray(LINES))
    out.close()
    packed = bytes(sink.toByteArray())
    assert len(packed) < len(LINES) and b"".join(unpacked(iter([packed]), "landing/orders")) == LINES


def test_workers_read_packed_documents_as_the_driver_does(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = "".join(json.dumps(event(after={"id": i, "name": "a"}, key={"id": i}, lsn=i)) for i in range(50)).encode()
    names = {kind: f"src/partition={at}/{NAMED.get(kind, 'orders+0+0000000001.json')}" for at, kind in enumerate(PACK)}
    put(tmp_path, **{names[kind]: pack(documents) for kind, pack in PACK.items()})
    pin, access = pinned(EVENTS, tmp_path), SourceAccess(str(tmp_path))
    here = read_here(EVENTS, pin, access)
    assert here is not None and here.num_rows == 50 * len(PACK)
    limited(monkeypatch, fetched_bytes=0)
    assert exactly(read(spark, EVENTS, pin, access).toArrow()) == exactly(here)
    put(tmp_path / "cut", **{"src/1.json": PACK["zstd"](documents)[:-3]})
    with pytest.raises(SourceCorrupt, match="zstd data is cut"), coded_errors():
        read(spark, EVENTS, pinned(EVENTS, tmp_path / "cut"), SourceAccess(str(tmp_path / "cut"))).collect()

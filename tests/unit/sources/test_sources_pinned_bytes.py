"""Paths of sources, and the bytes of what is pinned, with real files."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
from pinning import DDL, EVENTS, SNAPSHOTS, cut, decode_pin, paths, pinned, put
from source_cases import rows, table

from rejoin.errors import (
    RejoinError,
    SourceCorrupt,
    SourceFileChanged,
    SourceFileMissing,
    SourceOutsideRoot,
)
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import SnapshotSource
from rejoin.plan.pin import Pin
from rejoin.sources.stored_files import PinnedFile, open_pinned
from rejoin.sources.transports.files import pinned as as_file


def pinned_files(of: Table, root: Path) -> list[PinnedFile]:
    return [as_file(part) for part in pinned(of, root).parts]


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc", "link"])
def test_a_path_may_not_leave_the_root(tmp_path: Path, path: str) -> None:
    (tmp_path / "root").mkdir()
    put(tmp_path, **{"out/1.csv": "id"})
    (tmp_path / "root/link").symlink_to(tmp_path / "out")
    with pytest.raises(SourceOutsideRoot):
        cut(table(DDL, source=SnapshotSource(path)), tmp_path / "root")


def test_a_link_among_the_files_may_not_leave_the_root_either(tmp_path: Path) -> None:
    put(tmp_path, **{"out.jsonl": "x", "root/src/a.jsonl": "x"})
    (tmp_path / "root/src/b.jsonl").symlink_to(tmp_path / "out.jsonl")
    with pytest.raises(SourceOutsideRoot):
        cut(EVENTS, tmp_path / "root")


def test_a_uri_is_taken_as_given(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv": "id,name\n1,a"})
    of = table(DDL, source=SnapshotSource(f"file://{tmp_path}/src"))
    pin = pinned(of, tmp_path / "elsewhere")
    assert paths(pin) == [f"file://{tmp_path}/src/1.csv"] and [r["name"] for r in rows(decode_pin(of, pin, "/"))] == ["a"]
    assert cut(of, tmp_path / "elsewhere", pin) is None


def test_a_pin_survives_json(tmp_path: Path) -> None:
    put(tmp_path, **{"src/1.csv": "id,name"})
    pin = pinned(SNAPSHOTS, tmp_path)
    assert Pin.from_dict(json.loads(json.dumps(pin.to_dict()))) == pin


@pytest.mark.parametrize(
    ("name", "before", "after", "error"),
    [
        ("a", b"x", None, SourceFileMissing),
        ("a", b"x", b"y", SourceFileChanged),
        ("a.gz", gzip.compress(b"x" * 99), gzip.compress(b"x" * 99)[:-5], SourceFileChanged),
        ("a.gz", gzip.compress(b"x" * 99)[:-5], gzip.compress(b"x" * 99)[:-5], SourceCorrupt),
        ("a.gz", b"no gzip", b"no gzip", SourceCorrupt),
    ],
    ids=["gone", "changed", "changed gzip", "cut gzip", "no gzip"],
)
def test_pinned_bytes_are_verified_while_reading(
    tmp_path: Path, name: str, before: bytes, after: bytes | None, error: type[RejoinError]
) -> None:
    put(tmp_path, **{f"src/{name}": before})
    (file,) = pinned_files(EVENTS, tmp_path)
    (tmp_path / "src" / name).unlink()
    if after is not None:
        put(tmp_path, **{f"src/{name}": after})
    with pytest.raises(error, match="src/a"):
        list(open_pinned(str(tmp_path), file))


def test_gzip_of_several_members_is_read_whole(tmp_path: Path) -> None:
    put(tmp_path, **{"src/a.gz": gzip.compress(b"x" * 50_000_000) + gzip.compress(b"y")})
    (file,) = pinned_files(EVENTS, tmp_path)
    assert sum(map(len, open_pinned(str(tmp_path), file))) == 50_000_001


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd"),
        (gzip.compress(b"{}"), "gzip"),
        (bz2.compress(b"{}"), "bzip2"),
        (lzma.compress(b"{}"), "xz"),
        (b"PAR1\x15\x04\x15", "Parquet"),
        (b"Obj\x01\x04\x14avro", "Avro"),
    ],
    ids=["zstd", "gzip", "bzip2", "xz", "Parquet", "Avro"],
)
def test_fault_a_packed_or_binary_file_of_a_feed_is_not_read_as_lines(tmp_path: Path, data: bytes, kind: str) -> None:
    put(tmp_path, **{"src/1": data})
    with pytest.raises(SourceCorrupt, match=f"'src/1'.*{kind}"):
        rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))
    (tmp_path / "src/1").unlink()
    put(tmp_path, **{"src/2.gz": gzip.compress(data)})
    with pytest.raises(SourceCorrupt, match=rf"'src/2\.gz'.*{kind}"):
        rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))


@pytest.mark.parametrize("text", [b"", b"x", b"PAR1,PAR2\n", b"BZh1,Obj\n", b"Object\n", b"PK,id\n", "(\u00b5\n".encode()])
def test_text_that_begins_nearly_like_other_files_is_text(tmp_path: Path, text: bytes) -> None:
    put(tmp_path, **{"src/1": text})
    assert b"".join(open_pinned(str(tmp_path), pinned_files(EVENTS, tmp_path)[0])) == text

"""Paths of sources, and the bytes of what is pinned, with real files."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from packings import NAMED, PACK, zstd
from pinning import DDL, EVENTS, SNAPSHOTS, cut, decode_pin, paths, pinned, put
from source_cases import event, rows, table

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
        ("a.gz", b"\x00no gzip", b"\x00no gzip", SourceCorrupt),
        ("a.gz", b"", b"", SourceCorrupt),
        ("a", zstd(b"x" * 99), zstd(b"x" * 99)[:-5], SourceFileChanged),
        ("a", zstd(b"x" * 99)[:-5], zstd(b"x" * 99)[:-5], SourceCorrupt),
    ],
    ids=["gone", "changed", "changed gzip", "cut gzip", "no gzip", "no bytes", "changed zstd", "cut zstd"],
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


@pytest.mark.parametrize("kind", PACK)
def test_a_packed_feed_gives_the_same_events_whatever_its_name_says(tmp_path: Path, kind: str) -> None:
    lines = b"".join(json.dumps(event(after={"id": i, "name": "a"}, lsn=i)).encode() + b"\n" for i in range(3))
    put(tmp_path, **{f"src/{NAMED.get(kind, '1.csv')}": PACK[kind](lines), "plain/src/1": lines})
    found, expected = (rows(decode_pin(EVENTS, pinned(EVENTS, root), str(root))) for root in (tmp_path, tmp_path / "plain"))
    assert [r | {"_file": ""} for r in found] == [r | {"_file": ""} for r in expected] and len(found) == 3


def test_gzip_of_several_members_is_read_whole(tmp_path: Path) -> None:
    put(tmp_path, **{"src/a.gz": gzip.compress(b"x" * 50_000_000) + gzip.compress(b"y")})
    (file,) = pinned_files(EVENTS, tmp_path)
    assert sum(map(len, open_pinned(str(tmp_path), file))) == 50_000_001


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"PAR1\x15\x04\x15", "Parquet"), (b"Obj\x01\x04\x14avro", "Avro"), (b"PK\x03\x04\x14", "zip"), (b"ORC\x08\x03", "ORC")],
    ids=["Parquet", "Avro", "zip", "ORC"],
)
def test_fault_a_binary_file_of_a_feed_is_not_read_as_lines(tmp_path: Path, data: bytes, kind: str) -> None:
    put(tmp_path, **{"src/1": data})
    with pytest.raises(SourceCorrupt, match=f"'src/1'.*{kind}"):
        rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))
    (tmp_path / "src/1").unlink()
    put(tmp_path, **{"src/2.gz": gzip.compress(data)})
    with pytest.raises(SourceCorrupt, match=rf"'src/2\.gz'.*{kind}"):
        rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))


@pytest.mark.parametrize("twice", [gzip.compress, zstd, bz2.compress, lzma.compress])
def test_fault_a_file_that_is_packed_twice_is_refused(tmp_path: Path, twice: Callable[[bytes], bytes]) -> None:
    put(tmp_path, **{"src/1": gzip.compress(twice(b"{}"))})
    with pytest.raises(SourceCorrupt, match=r"'src/1'.* data, not lines"):
        rows(decode_pin(EVENTS, pinned(EVENTS, tmp_path), str(tmp_path)))


@pytest.mark.parametrize("text", [b"", b"x", b"PAR1,PAR2\n", b"BZh1,Obj\n", b"Object\n", b"PK,id\n", "(\u00b5\n".encode()])
def test_text_that_begins_nearly_like_other_files_is_text(tmp_path: Path, text: bytes) -> None:
    put(tmp_path, **{"src/1": text})
    assert b"".join(open_pinned(str(tmp_path), pinned_files(EVENTS, tmp_path)[0])) == text

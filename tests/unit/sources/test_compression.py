"""Packed files are told by their bytes, read whole however often they were put together, and refused if they are cut or damaged."""

import random
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packings import CHECKED, NAMED, PACK, by_arrow

from rejoin.sources.compression import PACKED, Damaged, packing, unpacked

LINES = b"".join(b'{"id": %d, "name": "%x"}\n' % (i, random.Random(i).getrandbits(64)) for i in range(12_000))
KINDS = pytest.mark.parametrize("kind", PACK)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def read(data: bytes, name: str, size: int = 1 << 20) -> bytes:
    return b"".join(unpacked(pieces(data, size), name))


@KINDS
@pytest.mark.parametrize("size", [1 << 20, 4_099, 3])
def test_every_packing_is_told_by_its_bytes_however_these_come(kind: str, size: int) -> None:
    data = LINES if size > 3 else LINES[:70_000]
    assert read(PACK[kind](data), NAMED.get(kind, "landing/orders"), size) == data


@KINDS
def test_several_members_or_frames_are_one_file(kind: str) -> None:
    packed = PACK[kind](LINES) + PACK[kind](b"") + PACK[kind](b"last\n")
    assert read(packed, NAMED.get(kind, "a.jsonl.gz")) == LINES + b"last\n"


@KINDS
def test_a_name_that_says_something_else_does_not_matter(kind: str) -> None:
    if kind not in NAMED:
        assert {read(PACK[kind](b"x\n"), f"a.jsonl{end}") for end in PACKED} == {b"x\n"}


def test_text_under_the_name_of_a_packed_file_is_text() -> None:
    assert {read("{}\né\n".encode(), f"a{end}") for end in PACKED} == {"{}\né\n".encode()}


@pytest.mark.parametrize("end", PACKED)
def test_fault_a_file_of_a_packed_name_that_is_empty_or_begins_like_neither_is_refused(end: str) -> None:
    for data in (b"", b"\x1e\x8b\x08\x00" + b"x" * 20, b"\x00\x00\x00\x05hello"):
        with pytest.raises(Damaged):
            read(data, f"a{end}")


def test_an_empty_file_of_another_name_is_empty() -> None:
    assert read(b"", "a.jsonl") == b""


def test_zstd_frames_without_a_size_and_skippable_ones_are_read() -> None:
    packed = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + by_arrow(LINES, "zstd")
    assert read(packed, "a") == LINES


@KINDS
def test_a_file_that_unpacks_to_very_much_comes_in_pieces(kind: str) -> None:
    if "snappy" in kind:
        return  # packs each 64 KiB by itself
    packed = PACK[kind](bytes(60_000_000))
    assert max(map(len, islice(unpacked(pieces(packed, 1 << 20), "a"), 5))) <= 16 << 20


# --- damage -----------------------------------------------------------------------------------------------------------


@KINDS
def test_fault_packed_data_that_is_cut_anywhere_is_refused(kind: str) -> None:
    packed = PACK[kind](LINES[:200_000])
    rng = random.Random(kind)
    for at in [1, 2, 3, *rng.sample(range(4, len(packed)), 40), len(packed) - 1]:
        try:
            found = read(packed[:at], NAMED.get(kind, "a.gz"))
        except Damaged:
            continue
        if "snappy" in kind:  # it has no end: a cut between two blocks leaves whole ones, and nothing tells
            assert LINES.startswith(found) and len(found) % 65_536 == 0
        else:  # their marks begin as text does, which is a line that is refused
            assert (kind, found) in (("zstd", b"("), ("bzip2", packed[:at])) and at < 10


@given(data=st.data())
@pytest.mark.parametrize("kind", sorted(CHECKED))
def test_fault_a_flipped_bit_is_refused_or_changes_nothing(kind: str, data: st.DataObject) -> None:
    packed = bytearray(PACK[kind](LINES[:3_000]))
    at, bit = data.draw(st.integers(0, len(packed) - 1)), data.draw(st.integers(0, 7))
    packed[at] ^= 1 << bit
    try:
        found = read(bytes(packed), "a.gz")
    except Damaged:
        return
    assert found == LINES[:3_000]


@given(data=st.data())
@pytest.mark.parametrize("kind", sorted(PACK))
def test_fault_any_damage_of_packed_data_is_refused_or_read_and_never_crashes(kind: str, data: st.DataObject) -> None:
    packed = PACK[kind](LINES[:3_000])
    at, length = data.draw(st.integers(0, len(packed) - 1)), data.draw(st.integers(0, 40))
    damaged = packed[:at] + data.draw(st.binary(max_size=40)) + packed[at + length :]
    try:
        read(damaged, NAMED.get(kind, "a.gz"), data.draw(st.sampled_from([7, 1 << 20])))
    except Damaged:
        return


def test_an_error_of_who_reads_the_bytes_stays_what_it_is() -> None:
    def gone(data: bytes) -> Iterator[bytes]:
        yield data
        raise LookupError("gone")

    for kind, pack in PACK.items():
        with pytest.raises(LookupError, match="gone"):
            list(unpacked(gone(pack(LINES)[:2_000]), NAMED.get(kind, "a")))


def test_the_end_of_a_name_tells_of_packings() -> None:
    assert [packing(name) for name in ("a.jsonl.gz", "a.csv", "a.json.zst", "a.snappy.parquet", ".gz")] == [".gz", "", ".zst", "", ".gz"]

"""Snapshots with rows that are hard to write, and ways to damage their files."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

NAMES: Final = ["plain", "", 'a,"b"', ",y", "\nx", "two\nlines", 'ends in "', "Zoë", "  ", "'"]
FORMATS: Final = ("csv", "csv.gz", "jsonl", "parquet")


def made(rng: random.Random, count: int, number: int) -> dict[int, dict[str, Any]]:
    """Rows by key; all of them say which snapshot they are of."""
    return {i: {"id": i, "name": rng.choice(NAMES), "n": number} for i in range(1, count + 1)}


def records(rows: Mapping[int, dict[str, Any]], form: str) -> list[bytes]:
    """The header, if there is one, and every row as the text of the file has it; of Parquet only the file as a whole."""
    if form == "parquet":
        target = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(list(rows.values())), target, write_page_checksum=True, row_group_size=64)
        return [target.getvalue()]
    if form == "jsonl":
        return [json.dumps(row).encode() + b"\n" for row in rows.values()]
    return [_csv_row(row) for row in (["id", "name", "n"], *(row.values() for row in rows.values()))]


def _csv_row(row: Iterable[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue().encode()


def written(parts: list[bytes], form: str) -> bytes:
    """The file of these parts."""
    data = b"".join(parts)
    return gzip.compress(data) if form == "csv.gz" else data


# --- damage: the parts of a file to the bytes of the damaged one ------------------------------------------------------


def cut(rng: random.Random, parts: list[bytes], form: str) -> bytes:
    """The end is missing."""
    data = written(parts, form)
    return data[: rng.randrange(len(data) * 3 // 4, len(data))]


def unclosed(rng: random.Random, parts: list[bytes], form: str) -> bytes:
    """A quote too many, or one too few."""
    data = b"".join(parts)
    there = [i for i, byte in enumerate(data) if byte == ord('"')]
    if there and rng.random() < 0.5:
        at = rng.choice(there)
        return written([data[:at], data[at + 1 :]], form)
    at = rng.randrange(len(data))
    return written([data[:at], b'"', data[at:]], form)


def headless(_: random.Random, parts: list[bytes], form: str) -> bytes:
    """What a file begins with is missing."""
    return written([parts[0].partition(b"\n")[2], *parts[1:]], form)


def repeated(rng: random.Random, parts: list[bytes], form: str) -> bytes:
    """Some records stand twice."""
    return written([*parts, *rng.sample(parts[1:], min(5, len(parts) - 1))], form)


def flipped(rng: random.Random, parts: list[bytes], form: str) -> bytes:
    """Some bytes are others."""
    data = bytearray(written(parts, form))
    for _ in range(rng.choice([1, 3, 10])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


DAMAGE: Final[dict[str, Callable[[random.Random, list[bytes], str], bytes]]] = {
    "cut": cut,
    "unclosed quote": unclosed,
    "no header": headless,
    "repeated lines": repeated,
    "flipped bytes": flipped,
}

"""Damaged files of ``changes(...)``: each is refused with a code, or every record has one fate, by columns the same as one by one."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mapped import decoded, lines, pinned, table
from source_fuzz import seeds

from rejoin import csv
from rejoin.errors import SchemaDrift, SourceCorrupt

SCHEMA = "id BIGINT, total DECIMAL(10,2), at TIMESTAMP, note STRING"
COLUMNS = {"total": "CAST(amount AS DECIMAL(10,2))", "note": "concat(note, '!')"}
ROWS = [
    {"id": i % 7, "amount": f"{i}.50", "at": f"2026-01-01T00:00:{i % 60:02d}Z", "note": 'é "q", \\' if i % 5 == 0 else "n", "lsn": 100 + i, "op": "D" if i % 6 == 0 else "U"}
    for i in range(60)
]  # fmt: skip
BYTES = [b'"', b",", b"\n", b"\r\n", b"\\", b"\xff", b"{", b"}", b"\x00", b"9", b"", b"null", b";", b"\xef\xbb\xbf"]


def written(form: str, root: Path) -> bytes:
    if form == "jsonl":
        return lines(ROWS)
    if form == "csv":
        header = ",".join(ROWS[0])
        cells = ("," .join(json.dumps(v, ensure_ascii=False).replace('\\"', '""').replace("\\\\", "\\") for v in row.values()) for row in ROWS)  # fmt: skip
        return "\n".join([header, *cells, ""]).encode()
    pq.write_table(pa.Table.from_pylist(ROWS), root / "x", write_page_checksum=True, compression=None)
    return (root / "x").read_bytes()


def damaged(data: bytes, random_: random.Random) -> bytes:
    for _ in range(random_.randrange(1, 4)):
        at = random_.randrange(max(1, len(data)))
        instead = random_.choice(BYTES) + data[at + random_.randrange(3) :]
        data = data[:at] + (instead if at == 0 or random_.random() < 0.8 else b"")
    return data


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("seed", seeds(200))
def test_fault_a_damaged_file_has_a_code_or_each_of_its_records_one_fate(tmp_path: Path, seed: int, form: str) -> None:
    random_ = random.Random(seed)
    good = written(form, tmp_path)
    of = table(SCHEMA, deleted="op = 'D'", columns=COLUMNS, optional=["at"], format=csv() if form == "csv" else None)
    for n in range(5):
        file = pinned(tmp_path, f"{n}.{form}", damaged(good, random_))
        found = []
        for fast in (True, False):
            try:
                found.append([repr(event) for event in decoded(of, tmp_path, file, fast=fast)])
            except (SourceCorrupt, SchemaDrift) as error:
                found.append([error.code])
        assert found[0] == found[1]

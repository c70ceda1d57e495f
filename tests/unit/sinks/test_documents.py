"""What a document is: its id, its version, its body; and a bulk request of it."""

import datetime as dt
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.sinks.opensearch import bulk
from rejoin.sinks.opensearch.documents import ID_BYTES, Change, Documents, document_id, next_epoch, version

TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("paid", pa.decimal128(20, 8)),
        ("share", pa.float64()),
        ("born", pa.date32()),
        ("seen", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("photo", pa.binary()),
        ("active", pa.bool_()),
        ("name", pa.string()),
    ]
)
ROW = {
    "id": 7,
    "paid": decimal.Decimal("0.00000000"),
    "share": math.inf,
    "born": dt.date(1, 2, 3),
    "seen": dt.datetime(2024, 5, 1, 1, 2, 3, 4, tzinfo=dt.UTC),
    "local": dt.datetime(2024, 5, 1, tzinfo=dt.UTC).replace(tzinfo=None),
    "photo": b"\x00\x01",
    "active": False,
    "name": None,
}
SAID = {
    "id": 7,
    "paid": "0.00000000",
    "share": "Infinity",
    "born": "0001-02-03",
    "seen": "2024-05-01T01:02:03.000004Z",
    "local": "2024-05-01T00:00:00",
    "photo": "AAE=",
    "active": False,
}

IDS: dict[str, tuple[list[Any], str]] = {
    "a number": ([7], "7"),
    "a text": (["a/b #c"], "a/b #c"),
    "a date": ([dt.date(2024, 5, 1)], "2024-05-01"),
    "a truth value": ([True], "true"),
    "several": (["a", 1, None], '["a",1,null]'),
    "a null": ([None], "[null]"),
    "an empty text": ([""], '[""]'),
    "a text like an array": (["[null]"], '["[null]"]'),
    "512 bytes": (["é" * 256], "é" * 256),
    "514 bytes": (["é" * 257], "[#db33c4ce9e8a72562c8f24aa67b7abbabdb848426e8ddfff4ee08f6ae04d1b17"),
}


@pytest.mark.parametrize(("key", "expected"), IDS.values(), ids=IDS.keys())
def test_an_id_is_the_key(key: list[Any], expected: str) -> None:
    assert document_id(key) == expected


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.text(st.sampled_from('[]"#,n\\é'), max_size=4)), min_size=1, max_size=1), min_size=2, max_size=2
    )
)
def test_two_keys_never_have_one_id(keys: list[list[str | None]]) -> None:
    first, second = keys
    assert (document_id(first) == document_id(second)) == (first == second)
    assert document_id(first) and len(document_id(first).encode()) <= ID_BYTES


def test_a_document_is_the_row_without_its_nulls_and_a_delete_has_none() -> None:
    rows = [{"_run": 3, "_op": "U", "id": 7, "_after": ROW}, {"_run": 4, "_op": "D", "id": 8, "_after": None}]
    types = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("id", pa.int64()), ("_after", pa.struct(list(TYPES)))])
    batch = pa.RecordBatch.from_pylist(rows, types)
    changed, deleted = Documents(["id"], TYPES).of(batch, 5)
    assert changed.body is not None and json.loads(changed.body) == SAID
    assert deleted == Change("8", version(5, 4), 4, None)
    head = {"_id": "7", "version": version(5, 3), "version_type": "external"}
    assert [json.loads(line) for line in changed.lines.splitlines()] == [{"index": head}, SAID]
    assert [json.loads(line) for line in deleted.lines.splitlines()] == [{"delete": {**head, "_id": "8", "version": version(5, 4)}}]


def test_a_version_grows_with_the_run_and_more_so_with_the_epoch_and_fits() -> None:
    runs = [version(5, 1), version(5, 2), version(5, 2**24 - 1), version(6, 0), version(next_epoch(0), 1), version(2**32 - 1, 2**24 - 1)]
    assert runs == sorted(set(runs)) and runs[-1] < 2**63
    assert version(5, 1) + 127 < version(5, 2), "others have written it so often"
    assert next_epoch(2**31) == 2**31 + 1


def test_a_request_has_so_many_changes_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [Change(str(n), 1, 1, b"x" * 100) for n in range(10)]
    monkeypatch.setattr(bulk, "REQUEST_CHANGES", 4)
    assert [len(r) for r in bulk.requests(changes)] == [4, 4, 2]
    monkeypatch.setattr(bulk, "REQUEST_BYTES", 3 * len(changes[0].lines))
    assert [len(r) for r in bulk.requests(changes)] == [3, 3, 3, 1]
    monkeypatch.setattr(bulk, "REQUEST_BYTES", 1)
    assert [c for r in bulk.requests(changes) for c in r] == changes

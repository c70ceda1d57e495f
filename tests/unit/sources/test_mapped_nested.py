"""Nested columns of ``changes(...)`` and ``columns=``: arrays and objects, texts of JSON, columns of Parquet. A snapshot of the same JSON says what they hold."""

import csv
import io
import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mapped import both_ways, decoded, lines, pinned, table
from source_fuzz import VALUES, seeds
from test_mapped_messages import ORDERS, told
from test_mapped_messages import both_ways as both_ways_of_messages
from test_mapped_messages import table as table_of

from rejoin import arrival, changes, records, snapshot
from rejoin.errors import SchemaDrift
from rejoin.sources import read_again_here
from rejoin.sources.decode.record_runs import NO_UNICODE

NESTED = {
    "tags": "ARRAY<STRING>",
    "lines": "ARRAY<STRUCT<price: DECIMAL(10,2), at: TIMESTAMP, octets: BINARY>>",
    "place": "STRUCT<city: STRING, day: DATE>",
    "m": "MAP<STRING, BIGINT>",
}
COLUMNS = "id BIGINT, " + ", ".join(f"{name} {of}" for name, of in NESTED.items())
GOOD: dict[str, list[Any]] = {
    "tags": [None, [], ["b", None, "é"], '["a"]'],
    "lines": [None, [None, {"price": 1.50, "at": "2026-01-02T12:00:00Z", "octets": "AAE="}], [{"price": "7.25", "more": {"x": [1, 1.50]}}]],
    "place": [None, {"city": "Ulm", "day": "2026-01-02"}, {}, {"day": None, "more": [1]}],
    "m": [None, {}, {"z": None, "a": 9_007_199_254_740_993}, {"b": 1, "a": 2}],
}
"""Values as JSON writes them."""
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def rows(random_: random.Random, count: int, odd: float) -> list[str]:
    """Objects of JSON, some of them with other values than their columns hold."""
    made = []
    for i in range(count):
        texts = {name: json.dumps(random_.choice(values), ensure_ascii=False) for name, values in GOOD.items()}
        if random_.random() < odd:
            name, value = random_.choice(list(texts)), random_.choice(VALUES)
            texts[name] = random_.choice(
                [value, f"[{value}]", f'{{"a":{value}}}', f'[{{"price":{value}}}]', f'{{"day":{value}}}', "[" * 2_000 + "]" * 2_000]
            )
        made.append("{" + ",".join(f'"{name}":{text}' for name, text in {"id": i, "lsn": i, **texts}.items()) + "}")
    return made


def fates(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(e["_kind"], e["_code"], e["_reason"], *(repr(e[name]) for name in NESTED)) for e in events]


@pytest.mark.parametrize("seed", seeds(60))
def test_arrays_and_objects_are_what_a_snapshot_reads_of_them(tmp_path: Path, seed: int) -> None:
    some = rows(random.Random(seed), 60, odd=0.3)
    data = "\n".join(some).encode("utf-8", "surrogatepass")
    wanted = fates(decoded(table_of(snapshot("landing"), COLUMNS), tmp_path, pinned(tmp_path, "s.jsonl", data), fast=False))
    found = fates(both_ways(table(COLUMNS), tmp_path, "1.jsonl", data))
    assert {kind for kind, *_ in wanted} == {"upsert", "quarantined"}
    assert [(kind, code, *values) for kind, code, _, *values in found] == [(kind, code, *values) for kind, code, _, *values in wanted]
    # A field is a text, and half a surrogate is none: that is seen before what else is wrong.
    reasons = [(of_rows[2], of_snapshot[2]) for of_rows, of_snapshot in zip(found, wanted, strict=True) if of_rows[2] != NO_UNICODE.reason]
    assert {one for one, _ in reasons} - {None} and all(one == other for one, other in reasons)


def in_csv(texts: list[str]) -> bytes:
    """The same objects as lines of CSV, each of their members as its text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "lsn", *NESTED])
    for row in map(json.loads, texts):
        cells = [v if v is None or type(v) in (str, int) else json.dumps(v, ensure_ascii=False) for v in row.values()]
        writer.writerow(["" if cell is None else cell for cell in cells])
    return out.getvalue().encode()


def test_texts_of_csv_and_messages_hold_the_same(tmp_path: Path) -> None:
    some = rows(random.Random(1), 60, odd=0)
    wanted = fates(both_ways(table(COLUMNS), tmp_path, "1.jsonl", "\n".join(some).encode()))
    assert fates(both_ways(table(COLUMNS), tmp_path, "1.csv", in_csv(some))) == wanted
    messages = [(json.loads(text)["id"], text.encode()) for text in some]
    assert fates(both_ways_of_messages(table_of(changes(ORDERS), COLUMNS), messages)) == wanted


def test_an_expression_gives_the_text_of_a_nested_column(tmp_path: Path) -> None:
    of = table(
        "id BIGINT, tags ARRAY<INT>, size INT",
        columns={"tags": "coalesce(new, old)", "size": "length(new)"},
        deleted="coalesce(old, '') = '[0]'",
    )
    data = lines([{"id": 1, "lsn": 1, "new": [1, 2]}, {"id": 2, "lsn": 2, "old": [3]}, {"id": 3, "lsn": 3, "old": [0]}])
    assert [(e["_kind"], e["tags"], e["size"]) for e in both_ways(of, tmp_path, "1.jsonl", data)] == [
        ("upsert", [1, 2], 5),
        ("upsert", [3], None),
        ("delete", None, None),
    ]


def test_fault_only_nested_columns_are_made_of_objects_and_arrays(tmp_path: Path) -> None:
    of = table("id BIGINT, note STRING, tags ARRAY<STRING>")
    found = both_ways(of, tmp_path, "1.jsonl", lines([{"id": 1, "lsn": 1, "note": {"a": 1}, "tags": []}]))
    assert [(e["_code"], e["_reason"]) for e in found] == [("VALUE_TYPE", "field 'note' holds an object, where a single value is read")]


def test_fault_half_a_surrogate_within_a_text_of_json_is_refused_alone(tmp_path: Path) -> None:
    data = rb"""id,lsn,tags
1,1,"[""\ud800""]"
2,2,"[""a""]"
"""
    refused, fine = both_ways(table("id BIGINT, tags ARRAY<STRING>"), tmp_path, "1.csv", data)
    assert (refused["_code"], refused["id"], refused["_raw"], fine["tags"]) == ("VALUE_TYPE", 1, r'1,1,"[""\ud800""]"', ["a"])


# --- schemas of Connect ---------------------------------------------------------------------------------------------------

DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
INSTANT = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}
DAY = {"type": "int32", "name": "io.debezium.time.Date"}
FREE = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": [{"field": "scale"}, {"field": "value"}]}


def test_what_a_schema_says_of_parts_is_read() -> None:
    columns = "id BIGINT, lines ARRAY<STRUCT<price: DECIMAL(10,2), at: TIMESTAMP, free: STRING, open: BOOLEAN>>, days MAP<STRING, DATE>"
    parts = [("price", DECIMAL), ("at", INSTANT), ("free", FREE), ("open", {"type": "boolean", "name": "mine"})]
    line = {"type": "struct", "fields": [{"field": name, **of} for name, of in parts]}
    fields = [{"field": "lines", "type": "array", "items": line}, {"field": "days", "type": "map", "values": DAY}]
    schema = {"type": "struct", "fields": fields}

    def value(**said: Any) -> dict[str, Any]:
        return {"schema": schema, "payload": {"lines": None, "days": None, **said}}

    whole = {"price": "BNI=", "at": 1_767_355_200_000, "free": {"scale": 1, "value": "BNI="}, "open": True}
    given = [value(lines=[whole, None, {}]), value(days={"b": 20_000, "a": None}), value(lines=[{"at": "x"}]), value(days={"a": "b"})]
    found = both_ways_of_messages(table_of(changes(ORDERS), columns), list(enumerate(given)))
    nothing = dict.fromkeys(("price", "at", "free", "open"))
    assert told(found, "lines", "days") == [
        ("upsert", [{"price": Decimal("12.34"), "at": NOON, "free": "123.4", "open": True}, None, nothing], None),
        ("upsert", None, [("a", None), ("b", date(2024, 10, 4))]),
        ("VALUE_TYPE", None, None),
        ("VALUE_TYPE", None, None),
    ]
    assert [e["_reason"] for e in found[2:]] == [
        f"field '{of}' is not the whole number that its schema says" for of in ("lines[].at", "days.a")
    ]


def test_keys_headers_and_records_have_nested_values_too() -> None:
    of = table_of(changes(ORDERS, columns={"tags": "_key.tags", "m": "_header.m"}), "id BIGINT, tags ARRAY<STRING>, m MAP<STRING, INT>")
    [event] = both_ways_of_messages(of, [({"id": 1, "tags": ["a"]}, {"id": 1}, [("m", b'{"b":2,"a":1}')])])
    assert (event["tags"], event["m"]) == (["a"], [("a", 1), ("b", 2)])
    stream = table_of(records(ORDERS, columns={"id": "_key"}), "id BIGINT, at TIMESTAMP, tags ARRAY<STRING>")
    good, bad = both_ways_of_messages(stream, [(n, {"at": "2026-01-02T12:00:00Z", "tags": tags}) for n, tags in ((1, ["a"]), (2, [1]))])
    assert (good["tags"], bad["_code"], bad["_reason"]) == (["a"], "VALUE_TYPE", "column 'tags[]': a number does not fit STRING")


def test_fault_a_message_that_is_too_deep_is_refused() -> None:
    deep = f'{{"schema":{{"type":"struct","fields":[]}},"payload":{{"id":1,"tags":{"[" * 400}{"]" * 400}}}}}'
    [event] = both_ways_of_messages(table_of(changes(ORDERS), "id BIGINT, tags ARRAY<STRING>"), [(1, deep.encode())])
    assert event["_kind"] == "quarantined"


# --- Parquet --------------------------------------------------------------------------------------------------------------

ARROW: dict[str, pa.DataType] = {
    "tags": pa.large_list(pa.string()),
    "lines": pa.list_(pa.struct([("octets", pa.binary()), ("price", pa.decimal128(8, 2)), ("at", pa.timestamp("ms", "UTC"))])),
    "place": pa.struct([("day", pa.date32()), ("more", pa.int8()), ("city", pa.string())]),
    "m": pa.map_(pa.string(), pa.int32()),
}
VALUE: dict[str, Any] = {
    "tags": ["b", None],
    "lines": [{"octets": b"\0", "price": Decimal("1.50"), "at": NOON}, None],
    "place": {"day": date(2026, 1, 2), "city": "Ulm", "more": 1},
    "m": [("z", None), ("a", 1)],
}


def parquet(**columns: pa.Array) -> bytes:
    out = io.BytesIO()
    count = len(next(iter(columns.values())))
    pq.write_table(pa.table({"id": list(range(count)), "lsn": list(range(count)), **columns}), out)
    return out.getvalue()


def test_columns_of_parquet_are_nested_as_they_are(tmp_path: Path) -> None:
    data = parquet(**{name: pa.array([VALUE[name], None], of) for name, of in ARROW.items()})
    whole, empty = both_ways(table(COLUMNS, deleted="id = 'x'"), tmp_path, "1.parquet", data)
    assert [whole[name] for name in NESTED] == [
        ["b", None],
        [{"price": Decimal("1.50"), "at": NOON, "octets": b"\0"}, None],
        {"city": "Ulm", "day": date(2026, 1, 2)},
        [("a", 1), ("z", None)],
    ]
    assert [empty[name] for name in NESTED] == [None] * 4
    of = table("id BIGINT, all ARRAY<STRING>, lines ARRAY<STRUCT<at: TIMESTAMP>>", columns={"all": "tags"}, order_by=arrival())
    renamed, _ = both_ways(of, tmp_path, "2.parquet", data)
    assert (renamed["all"], renamed["lines"]) == (["b", None], [{"at": NOON}, None])


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("id BIGINT, tags ARRAY<INT>", {}),
        ("id BIGINT, tags STRUCT<a: INT>", {}),
        ("id BIGINT, tags STRING", {}),
        ("id BIGINT, tags ARRAY<STRING>", {"deleted": "tags IS NULL"}),
        ("id BIGINT, tags ARRAY<STRING>, other ARRAY<INT>", {"columns": {"other": "tags"}}),
    ],
)
def test_fault_a_nested_field_of_another_type_is_drift(tmp_path: Path, schema: str, options: dict[str, Any]) -> None:
    file = pinned(tmp_path, "1.parquet", parquet(tags=pa.array([["a"]])))
    with pytest.raises(SchemaDrift, match="field 'tags' has the type list"):
        decoded(table(schema, **options), tmp_path, file)


def test_fault_parts_that_no_column_holds_are_refused_row_by_row(tmp_path: Path) -> None:
    bad = pa.array([b"\xff", b"ok", b"x"]).view(pa.string())
    tags = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), bad)
    days = pa.array([1, 1, 9_000_000], pa.int32()).view(pa.date32())
    data = parquet(tags=tags, place=pa.StructArray.from_arrays([days], names=["day"]))
    of = table("id BIGINT, tags ARRAY<STRING>, place STRUCT<day: DATE>")
    found = both_ways(of, tmp_path, "1.parquet", data)
    assert [(e["_code"], e["_reason"], e["id"]) for e in found] == [
        ("VALUE_TYPE", "column 'tags[]': no UTF-8", None),
        (None, None, 1),
        ("VALUE_RANGE", "column 'place.day': the date lies outside the years 0001 to 9999", None),
    ]
    assert found[0]["_raw"] == '{"id":"0","tags":"\ufffd","place":{"day":"1970-01-02"},"lsn":"0"}'
    assert not read_again_here(of, [{**e, "_arrival": -2} for e in (found[0], found[2])]).num_rows, "what it holds is not known any more"


def test_a_refused_record_with_nested_values_is_the_same_event_when_it_can_be_read(tmp_path: Path) -> None:
    narrow, wide = (table(f"{COLUMNS}, n {of}") for of in ("INT", "BIGINT"))
    one = {name: pa.array([VALUE[name]], of) for name, of in ARROW.items()}
    written = rows(random.Random(3), 1, odd=0)[0][:-1] + f', "n": {2**40}}}'
    for name, data in (("1.parquet", parquet(**one, n=pa.array([2**40]))), ("1.jsonl", written.encode())):
        [refused], [event] = (both_ways(of, tmp_path, name, data) for of in (narrow, wide))
        [again] = read_again_here(wide, [{**refused, "_arrival": -2}]).to_pylist()
        assert (refused["_code"], event["_kind"]) == ("VALUE_RANGE", "upsert")
        assert {**again, "_arrival": 0} == {**event, "_arrival": 0}

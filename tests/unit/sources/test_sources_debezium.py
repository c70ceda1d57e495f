"""Single events: what each kind becomes, what is refused and under which code, and how positions sort."""

import base64
import json
from typing import Any

import pytest
from source_cases import decode, event, table

from rejoin.plan.model.added_columns import versions
from rejoin.plan.model.sources import DebeziumSource

ONE = table("id BIGINT; name STRING")
NAMED = {"id": 1, "name": "a"}


def line_of(**members: Any) -> dict[str, Any]:
    return {"key": {"id": 1}, "value": members}


REFUSED: list[tuple[str, Any, str, int | None]] = [
    ("a truncated line", b'{"key": "{\\"id\\": 1}", "val', "BAD_JSON", None),
    ("a line that is not UTF-8", b'{"key": "\xff"}', "BAD_JSON", None),
    ("a line without value", {"key": {"id": 1}}, "BAD_JSON", None),
    ("a truncated value", {"key": '{"id": 1}', "value": '{"op": "u", "aft'}, "BAD_JSON", 1),
    ("an empty value", {"key": '{"id": 1}', "value": ""}, "BAD_JSON", 1),
    ("a NaN token", {"key": '{"id": 1}', "value": '{"op": "u", "after": {"id": 1, "name": NaN}}'}, "BAD_JSON", 1),
    ("an exponent beyond any number", {"key": '{"id": 1}', "value": '{"op": 1e99999999999999999999}'}, "BAD_JSON", 1),
    ("text after the value", {"key": '{"id": 1}', "value": '{"op":"u"} x'}, "BAD_JSON", 1),
    ("a duplicate key in after", {"key": '{"id":1}', "value": '{"op":"u","after":{"id":1,"name":"a","name":"b"}}'}, "AMBIGUOUS_JSON", 1),
    ("a duplicate key with spaces", {"key": '{"id":1}', "value": '{"op":"u","after":{"x":"\\":","id" :1,"id":2}}'}, "AMBIGUOUS_JSON", 1),
    ("a duplicate in the Kafka key", {"key": '{"id":1,"id":2}', "value": event(after=NAMED)["value"]}, "AMBIGUOUS_JSON", None),
    ("an unknown operation", event("x", after=NAMED), "UNKNOWN_OP", 1),
    ("a flattened row", line_of(id=1, name="a"), "UNKNOWN_OP", 1),
    ("a flattened row like a transaction", line_of(id=1, status="END"), "UNKNOWN_OP", 1),
    ("a scalar value", {"key": {"id": 1}, "value": 5}, "UNKNOWN_OP", 1),
    ("no key at all", event(key={}, after={"name": "a"}), "MISSING_KEY", None),
    ("a null key column", event(key={"id": None}, after=NAMED), "MISSING_KEY", None),
    ("a tombstone without key", {"key": None, "value": None}, "MISSING_KEY", None),
    ("a changed key without Kafka key", event(before={"id": 2}, after=NAMED) | {"key": None}, "MISSING_KEY", None),
    ("an upsert without row", event("c"), "MISSING_AFTER", 1),
    ("a key that is the placeholder", event(key={"id": "__debezium_unavailable_value"}, after={}), "TOAST_KEY", None),
    ("a value of another type", event(after={"id": 1, "name": 5}), "VALUE_TYPE", 1),
    ("a key out of range", event(key={"id": 2**63}, after={}), "VALUE_RANGE", None),
    ("a text that is no Unicode", event(after={"id": 1, "name": "\ud800"}), "VALUE_TYPE", None),
    ("no source", event(after=NAMED, source=None), "UNKNOWN_POSITION", 1),
    ("no LSN", event(after=NAMED, source={"connector": "postgresql"}), "UNKNOWN_POSITION", 1),
    ("another connector", event(after=NAMED, source={"connector": "mongodb"}), "UNKNOWN_POSITION", 1),
    ("a binlog file without number", event(after=NAMED, source={"connector": "mysql", "file": "x", "pos": 1}), "UNKNOWN_POSITION", 1),
]


@pytest.mark.parametrize(("line", "code", "key"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_record_that_cannot_be_applied_is_quarantined(line: Any, code: str, key: int | None) -> None:
    (row,) = decode(ONE, line)
    assert (row["_kind"], row["_code"], row["id"], row["name"]) == ("quarantined", code, key, None)
    assert row["_raw"] and row["_reason"] and row["_line"] == 1 and row["_file"] == "f.jsonl"


def test_a_raw_record_of_more_than_a_mebibyte_is_cut() -> None:
    assert len(decode(ONE, b"x" * 2_000_000)[0]["_raw"]) == 1 << 20


def test_a_bad_record_does_not_hide_its_neighbours() -> None:
    rows = decode(ONE, event(after={"id": 1, "name": "\ud800"}), event(key={"id": 2}, after={"id": 2, "name": "b"}))
    assert [(r["_kind"], r["name"]) for r in rows] == [("quarantined", None), ("upsert", "b")]


@pytest.mark.parametrize(
    "line",
    [
        line_of(op="m", message={}),
        {"topic": "__debezium-heartbeat.e6", "key": {"serverName": "e6"}, "value": {"ts_ms": 1}},
        line_of(status="BEGIN", id="1", event_count=None, data_collections=None, ts_ms=1),
        line_of(source={}, ddl="CREATE TABLE x", databaseName="d", tableChanges=[], ts_ms=1),
    ],
    ids=["logical message", "heartbeat", "transaction", "schema change"],
)
def test_bookkeeping_records_are_skipped_and_counted(line: Any) -> None:
    assert [row["_kind"] for row in decode(ONE, line)] == ["skipped"]


def test_only_lines_of_the_wanted_topic_are_read_and_a_line_without_topic_is() -> None:
    wanted = table("id BIGINT; name STRING", source=DebeziumSource("x", topic="a"))
    rows = decode(wanted, event(after=NAMED, topic="b"), event(after=NAMED, topic="a"), event(after=NAMED))
    assert [row["_kind"] for row in rows] == ["skipped", "upsert", "upsert"]


def test_a_blank_line_is_no_record() -> None:
    assert decode(ONE, b"", b"  \r") == []


def test_arrival_orders_files_and_lines() -> None:
    rows = decode(ONE, event(after=NAMED), event(after=NAMED), index=3)
    assert [row["_arrival"] for row in rows] == [(3 << 43) + (1 << 13), (3 << 43) + (2 << 13)]


def test_the_key_comes_from_the_row_if_there_is_no_kafka_key() -> None:
    lines = [event(after=NAMED) | {"key": None}, event("d", before={"id": 2}) | {"key": None}]
    assert [(r["_kind"], r["id"]) for r in decode(ONE, *lines)] == [("upsert", 1), ("delete", 2)]


def test_a_column_that_is_not_in_after_is_null_and_not_missing_and_an_unknown_one_is_ignored() -> None:
    (row,) = decode(ONE, event(after={"id": 1, "other": 2}))
    assert (row["name"], row["_missing"], "other" in row) == (None, [], False)


TOAST = "__debezium_unavailable_value"


@pytest.mark.parametrize(
    ("type_", "placeholder", "value"),
    [
        ("STRING", TOAST, TOAST),
        ("BINARY", TOAST, base64.b64encode(TOAST.encode()).decode()),
        ("BINARY", TOAST, TOAST.encode().hex()),
        ("DECIMAL(10,2)", TOAST, TOAST),
        ("STRING", "custom", "custom"),
        ("BINARY", "hex:00ff10", "AP8Q"),
        ("STRING", "hex:4142", "AB"),
    ],
)
def test_every_form_of_the_placeholder_is_a_missing_value(type_: str, placeholder: str, value: str) -> None:
    of = table(f"id BIGINT; v {type_}", source=DebeziumSource("x", placeholder=placeholder))
    assert [(r["_missing"], r["v"]) for r in decode(of, event(after={"id": 1, "v": value}))] == [(["v"], None)]


TOMB = {"key": '{"id":1}', "value": None}


@pytest.mark.parametrize(
    ("lines", "same"),
    [
        ([event("d", lsn=5), TOMB], True),
        ([event("d", lsn=5), event(key={"id": 2}, after={}), TOMB], True),
        ([TOMB], False),
        ([event("d", lsn=5), event(after=NAMED, lsn=6), TOMB], False),
        ([event("d", lsn=5), event(after={"id": 1, "name": 5}, lsn=6), TOMB], False),
    ],
    ids=["after its delete", "with another key between", "alone", "after an upsert", "after a refused upsert"],
)
def test_a_tombstone_takes_the_position_of_the_delete_before_it(lines: list[Any], same: bool) -> None:
    *_, last = decode(ONE, *lines)
    assert last["_kind"] == "delete" and last["_position"] == ("00000000000000000005.1.00000000000000000000" if same else None)


def test_a_stream_event_wins_over_a_snapshot_row_at_the_same_position() -> None:
    read, change, later = decode(ONE, event("r", after=NAMED), event("u", after=NAMED), event("r", after=NAMED, lsn=101))
    assert read["_position"] < change["_position"] < later["_position"]


def test_all_rows_with_one_lsn_are_kept_and_ordered_within_their_transaction() -> None:
    rows = decode(ONE, *[event(key={"id": i}, after={}, transaction={"total_order": i}) for i in (9, 10, 11)])
    assert sorted(r["_position"] for r in rows) == [r["_position"] for r in rows]
    assert [r["id"] for r in rows] == [9, 10, 11]


@pytest.mark.parametrize(
    "sources",
    [
        [{"lsn": 9}, {"lsn": 10}, {"lsn": 2**64 - 1}],
        [
            {"lsn": lsn, "sequence": f'["{committed}","{lsn}"]'}
            for committed, lsn in ((1, 6), (1, 8), (10, 5), (10, 9), (10, 10), (10, 12), (12, 11), (12, 13))
        ],
        [
            {"connector": "mysql", "file": f, "pos": p, "row": r}
            for f, p, r in (("b.000009", 9, 0), ("b.000009", 9, 1), ("b.000009", 10, 0), ("b.1000000", 4, 0))
        ],
        [
            {"connector": "sqlserver", "commit_lsn": c, "change_lsn": h, "event_serial_no": s}
            for c, h, s in (
                ("00000027:00000758:0003", None, None),
                ("00000027:00000758:0005", "00000027:00000758:0003", 1),
                ("00000027:00000758:0005", "00000027:00000758:0003", 2),
                ("00000027:00000AC0:0002", "00000027:00000758:0001", 1),
            )
        ],
    ],
    ids=["postgresql", "postgresql, transactions that overlap", "mysql", "sqlserver"],
)
def test_positions_sort_as_text_like_the_log(sources: list[dict[str, Any]]) -> None:
    rows = decode(ONE, *[event(after={}, source={"connector": "postgresql", **source}) for source in sources])
    found = [r["_position"] for r in rows]
    assert None not in found and found == sorted(set(found)) and len({len(p) for p in found}) == 1


def test_a_new_schema_in_the_middle_of_a_file_is_used_from_there_on() -> None:
    def with_schema(scale: str) -> dict[str, Any]:
        field = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": scale}, "field": "v"}
        schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [field]}]}
        payload = json.loads(event(after={"id": 1, "v": "BNI="})["value"])
        return {"key": '{"id":1}', "value": json.dumps({"schema": schema, "payload": payload}, separators=(",", ":"))}

    rows = decode(table("id BIGINT; v DECIMAL(10,3)"), with_schema("2"), with_schema("2"), with_schema("3"), with_schema("2"))
    assert [str(r["v"]) for r in rows] == ["12.340", "12.340", "1.234", "12.340"]


def test_fault_a_text_with_schema_and_white_space_is_a_record_like_any_other() -> None:
    value = {"schema": {"type": "struct", "fields": []}, "payload": json.loads(event(after=NAMED)["value"])}
    lines = [{"key": {"id": 1}, "value": json.dumps(value, indent=indent)} for indent in (None, 1)]
    assert [(r["_line"], r["_kind"], r["name"]) for r in decode(ONE, *lines)] == [(1, "upsert", "a"), (2, "upsert", "a")]


def test_a_version_without_a_commit_time_is_refused_and_only_where_versions_are_kept() -> None:
    timeless, timed = (
        event(after={"id": 1, "v": 2}),
        event(after={"id": 1, "v": 3}, source={"connector": "postgresql", "lsn": 5, "ts_ms": 7}),
    )
    of = table("id BIGINT; v BIGINT")
    assert [e["_code"] for e in decode(versions(of), timeless, timed)] == ["UNKNOWN_TIME", None]
    assert [e["_code"] for e in decode(of, timeless, timed)] == [None, None]


def test_text_that_is_a_number_and_base64_is_read_like_the_rest_of_its_column_or_refused() -> None:
    of = table("id BIGINT; v DECIMAL(10,0)")
    lines = [event(after={"id": 1, "v": v}) for v in ("1234", "12345")]
    assert [str(r["v"]) for r in decode(of, *lines)] == ["1234", "12345"]
    lines = [event(after={"id": 1, "v": v}) for v in ("1234", "BNI=")]
    assert [str(r["v"]) for r in decode(of, *lines)] == [str(int.from_bytes(base64.b64decode("1234"), "big", signed=True)), "1234"]
    assert [r["_code"] for r in decode(of, lines[0])] == ["VALUE_AMBIGUOUS"]

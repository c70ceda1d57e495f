"""Lines that are the value of a Kafka message alone, as sinks of files and object stores write it: what each is, and where its key stands."""

import json
from pathlib import Path
from typing import Any

import pytest
from source_cases import CAPTURES, decode, event, table
from test_sources_captures import CUSTOMERS, ITEMS, ORDERS
from test_sources_debezium import line_of

from rejoin.plan.model.added_columns import versions
from rejoin.plan.model.sources import DebeziumSource
from rejoin.sources.raw_records import row_columns

ONE = table("id BIGINT; name STRING")
ODD = table("key BIGINT; value STRING; op STRING; payload STRING; schema STRING; source STRING; before STRING; after STRING", "key")
SOURCE = {"connector": "postgresql", "lsn": 100}
SCHEMA = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [{"type": "int64", "field": "id"}]}]}
TOMBSTONE = b"null"
Kind = tuple[str, int | None, str | None]


def bare(op: str | None = "u", after: Any = None, **parts: Any) -> dict[str, Any]:
    """The value of a message as a line."""
    value: dict[str, Any] = json.loads(event(op, after=after, **parts)["value"])
    return value


def with_schema(value: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "payload": value}


def kind(of: Any, line: Any) -> tuple[str, Any, str | None]:
    (row,) = decode(of, line)
    return row["_kind"], row[of.key[0]], row["_code"]


ROW = {"id": 1, "name": "a"}
CASES: list[tuple[str, Any, Kind]] = [
    ("an insert", bare("c", ROW), ("upsert", 1, None)),
    ("a read", bare("r", ROW), ("upsert", 1, None)),
    ("an update", bare("u", ROW), ("upsert", 1, None)),
    ("an update with its row before", bare("u", ROW, before={"id": 1, "name": "b"}), ("upsert", 1, None)),
    ("an update whose row before lacks the key", bare("u", ROW, before={"name": "b"}), ("upsert", 1, None)),
    ("an update of another key", bare("u", ROW, before={"id": 2, "name": "b"}), ("quarantined", None, "MISSING_KEY")),
    ("an insert without its key", bare("c", {"name": "a"}), ("quarantined", None, "MISSING_KEY")),
    ("an insert whose key is null", bare("c", {"id": None}), ("quarantined", None, "MISSING_KEY")),
    ("an insert with a key before only", bare("c", {"name": "a"}, before={"id": 1}), ("quarantined", None, "MISSING_KEY")),
    ("an insert with an empty row", bare("c", {}, before={"id": 1}), ("quarantined", None, "MISSING_KEY")),
    ("an insert without row", bare("c"), ("quarantined", None, "MISSING_KEY")),
    ("a delete", bare("d", before={"id": 1, "name": ""}), ("delete", 1, None)),
    ("a delete without row before", bare("d"), ("quarantined", None, "MISSING_KEY")),
    ("a delete that lacks its key", bare("d", before={"name": "a"}), ("quarantined", None, "MISSING_KEY")),
    ("a delete that has its key after", bare("d", ROW), ("quarantined", None, "MISSING_KEY")),
    ("a delete with a row of another key after", bare("d", {"id": 2}, before={"id": 1}), ("delete", 1, None)),
    ("a truncate", {"source": SOURCE, "op": "t", "ts_ms": 1}, ("truncate", None, None)),
    ("a logical message", {"op": "m", "ts_ms": 1, "source": SOURCE, "message": {"prefix": "x"}}, ("skipped", None, None)),
    ("a tombstone", TOMBSTONE, ("skipped", None, None)),
    ("a tombstone with schema", with_schema(None), ("skipped", None, None)),
    ("a tombstone with spaces", b" null ", ("skipped", None, None)),
    ("an insert with schema", with_schema(bare("c", ROW)), ("upsert", 1, None)),
    ("an insert with a schema of null", {"schema": None, "payload": bare("c", ROW)}, ("upsert", 1, None)),
    ("a delete with schema", with_schema(bare("d", before={"id": 1})), ("delete", 1, None)),
    ("payload before schema", {"payload": bare("c", ROW), "schema": SCHEMA}, ("upsert", 1, None)),
    ("a heartbeat", {"ts_ms": 1}, ("skipped", None, None)),
    ("a heartbeat with schema", with_schema({"ts_ms": 1}), ("skipped", None, None)),
    ("a transaction", {"status": "BEGIN", "id": "1", "event_count": None, "data_collections": None, "ts_ms": 1}, ("skipped", None, None)),
    ("a schema change", {"source": {}, "ddl": "CREATE TABLE x", "databaseName": "d", "tableChanges": [], "ts_ms": 1}, ("skipped", None, None)),
    ("an empty object", {}, ("quarantined", None, "BAD_JSON")),
    ("a row", ROW, ("quarantined", None, "BAD_JSON")),
    ("a row like a transaction", {"id": 1, "status": "END"}, ("quarantined", None, "BAD_JSON")),
    ("a flattened row", ROW | {"__op": "c", "__lsn": 5}, ("quarantined", None, "BAD_JSON")),
    ("a row with schema", with_schema(ROW), ("quarantined", None, "UNKNOWN_OP")),
    ("a row with columns schema and payload", {"schema": "s", "payload": "p"}, ("quarantined", None, "BAD_JSON")),
    ("a row with columns op and source", {"op": "c", "source": "web", "id": 1}, ("quarantined", None, "MISSING_KEY")),
    ("an envelope without source", {"op": "c", "after": ROW, "before": None}, ("quarantined", None, "BAD_JSON")),
    ("an envelope without op", {"source": SOURCE, "after": ROW, "before": None}, ("quarantined", None, "BAD_JSON")),
    ("an envelope with an unknown op", bare("x", ROW), ("quarantined", 1, "UNKNOWN_OP")),
    ("an envelope with a null op", bare(None, ROW), ("quarantined", 1, "UNKNOWN_OP")),
    ("an envelope with a value, too", bare("c", ROW) | {"value": 5}, ("quarantined", None, "BAD_JSON")),
    ("a message with op, too", line_of(**bare("c", ROW)) | {"op": "c"}, ("upsert", 1, None)),
    ("a message with source, too", line_of(**bare("c", ROW)) | {"source": "s"}, ("upsert", 1, None)),
    ("a message that is only a value", {"value": bare("c", ROW)}, ("upsert", 1, None)),
    ("a message with schema around it", with_schema({"key": {"id": 1}, "value": bare("c", ROW)}), ("quarantined", None, "UNKNOWN_OP")),
    ("an array", [bare("c", ROW)], ("quarantined", None, "BAD_JSON")),
    ("a text", json.dumps(bare("c", ROW)), ("quarantined", None, "BAD_JSON")),
    ("a number", 5, ("quarantined", None, "BAD_JSON")),
    ("a member twice", b'{"op":"c","op":"d","source":{},"before":{"id":1}}', ("quarantined", None, "AMBIGUOUS_JSON")),
    ("a line that is cut", json.dumps(bare("c", ROW)).encode()[:-1], ("quarantined", None, "BAD_JSON")),
    ("two lines in one", json.dumps(bare("c", ROW)).encode() * 2, ("quarantined", None, "BAD_JSON")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_line_is_told_by_its_members(line: Any, expected: Kind) -> None:
    assert kind(ONE, line) == expected


@pytest.mark.parametrize("before", [None, {"name": "a"}])
def test_a_delete_without_key_says_so(before: Any) -> None:
    (row,) = decode(ONE, bare("d", before=before))
    assert row["_reason"].startswith("the key is not in the record: no Kafka key has it, and 'before' ") and row["_raw"]


@pytest.mark.parametrize("schema", [False, True])
@pytest.mark.parametrize("op", ["c", "d"])
def test_columns_are_never_taken_for_members_of_the_line(op: str, schema: bool) -> None:
    row = {"key": 1, "value": "v", "op": "d", "payload": '{"op":"t"}', "schema": "s", "source": "web", "before": "b", "after": "a"}
    line = bare(op, row if op == "c" else None, before=row if op == "d" else None)
    (found,) = decode(ODD, with_schema(line) if schema else line)
    assert (found["_kind"], found["key"]) == ("upsert" if op == "c" else "delete", 1)
    assert op == "d" or {name: found[name] for name in row} == row


def test_a_delete_takes_its_key_from_before_and_no_other_column() -> None:
    (found,) = decode(table("a BIGINT; b STRING; c STRING; n INT", "a,b"), bare("d", before={"a": 1, "b": "x", "c": "", "n": 0}))
    assert (found["_kind"], found["a"], found["b"], found["c"], found["n"]) == ("delete", 1, "x", None, None)


def test_a_changed_key_is_a_delete_and_an_insert() -> None:
    gone, made = decode(ONE, bare("d", before={"id": 7}, lsn=5), bare("c", {"id": 8, "name": "a"}, lsn=5))
    assert [(r["_kind"], r["id"], r["_position"]) for r in (gone, made)] == [
        ("delete", 7, "00000000000000000005.1.00000000000000000000"), ("upsert", 8, "00000000000000000005.1.00000000000000000000"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "topic"),
    [
        ({"connector": "postgresql", "name": "shop", "db": "d", "schema": "public", "table": "orders"}, "shop.public.orders"),
        ({"connector": "mysql", "name": "shop", "db": "d", "table": "orders", "file": "b.1", "pos": 4}, "shop.d.orders"),
        ({"connector": "sqlserver", "name": "shop", "db": "d", "schema": "dbo", "table": "orders"}, "shop.d.dbo.orders"),
    ],
)
def test_a_bare_envelope_belongs_to_the_topic_that_its_source_names(source: dict[str, Any], topic: str) -> None:
    of = table("id BIGINT; name STRING", source=DebeziumSource("x", topic=topic))
    full = {"lsn": 1, "commit_lsn": "00000027:00000758:0003", **source}
    lines = [bare("c", ROW, source=full), bare("c", ROW, source=full | {"table": "items"}), bare("c", ROW)]
    assert [r["_kind"] for r in decode(of, *lines)] == ["upsert", "skipped", "upsert"]
    assert [r["_kind"] for r in decode(of, *map(with_schema, lines))] == ["upsert", "skipped", "upsert"]


@pytest.mark.parametrize("name", ["debezium_capture.jsonl", "debezium_capture_schemas.jsonl", "debezium_capture_string.jsonl"])
@pytest.mark.parametrize(
    ("topic", "ddl", "key"),
    [
        ("e6.shop.orders", ORDERS + "; d DATE; ts TIMESTAMP_NTZ; tz TIMESTAMP; free DECIMAL(38,9)", "id"),
        ("e6.shop.items", ITEMS, "order_id,line"),
        ("e6.shop.customers", CUSTOMERS, "id"),
        ("e6.shop.full_ri", "id BIGINT; big STRING; v INT", "id"),
    ],
)
@pytest.mark.parametrize("versioned", [False, True])
def test_what_a_connector_wrote_means_the_same_without_its_messages(name: str, topic: str, ddl: str, key: str, versioned: bool) -> None:
    of = table(ddl, key, DebeziumSource("x", topic=topic, units=(("ts3", "ms"),)))
    of = versions(of) if versioned else of
    wrapped = (CAPTURES / name).read_bytes().splitlines()
    values = [json.loads(line)["value"] for line in wrapped]
    found = [decode(of, *lines) for lines in (wrapped, [b"null" if value is None else value.encode() for value in values])]
    seen = [[(r["_line"], r["_kind"], *(r[c.name] for c in of.columns), r["_position"], r["_code"]) for r in rows] for rows in found]
    # Without message key a tombstone says nothing: it follows its delete, which does.
    for n, value in enumerate(values):
        if value is None:
            assert seen[1][n][1] == "skipped"
            seen[0][n] = seen[1][n]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("schema", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_columns_of_a_row_are_found_in_any_form(wrapped: bool, schema: bool, text: bool) -> None:
    value: Any = with_schema(bare("c", ROW)) if schema else bare("c", ROW)
    line = {"key": None, "value": json.dumps(value) if text else value} if wrapped else value
    assert row_columns(json.dumps(line)) == ["id", "name"]


def test_what_has_no_row_has_no_columns() -> None:
    assert [row_columns(text) for text in ("null", "{", "5", json.dumps(bare("d")), json.dumps(with_schema(None)))] == [[]] * 5


def test_the_lines_of_the_documentation_are_read_as_it_says() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sources.md").read_text()
    lines = page.partition("## Debezium")[2].partition("```json\n")[2].partition("```")[0].splitlines()
    found = decode(table("id BIGINT; total DECIMAL(10,2)"), *(line.encode() for line in lines))
    assert [(r["_kind"], r["id"], r["total"] and str(r["total"])) for r in found] == [
        ("upsert", 7, "12.50"), ("upsert", 7, "13.00"), ("delete", 7, None), ("skipped", None, None),
    ]  # fmt: skip

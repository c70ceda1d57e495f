"""Messages of a log become lines of a feed, and nothing else: whatever their bytes are, each has the fate of such a line, and the place of its message."""

import json
from typing import Any

import pyarrow as pa
import pytest
import source_cases
from hypothesis import given
from hypothesis import strategies as st
from kept_messages import Kept, keeping

from rejoin.errors import SchemaDrift
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, RecordsSource, Source
from rejoin.plan.pin import Part, Pin
from rejoin.sources.shapes import registry
from rejoin.sources.transports.messages import Line, Message, Messages, Offsets, Value, document

PATH = "kafka://shop/orders"


def table(source: Source | None = None) -> Table:
    return source_cases.table("id BIGINT; name STRING", source=source or DebeziumSource(PATH))


def kept(messages: list[Message], source: Source | None = None, at_once: int = 700) -> Kept:
    return keeping(table(source), messages, at_once)


def pin(source: Source | None = None) -> Pin:
    return Pin(table(source).source.kind, (Part(f"{PATH}/0", 1), Part(f"{PATH}/3", 1)), 7, transport="kafka")


def events(messages: list[Message], source: Source | None = None) -> pa.Table:
    return pa.Table.from_batches(kept(messages, source).events(pin(source), 1))


def change(key: int, lsn: int, name: str = "a", op: str = "u") -> tuple[bytes, bytes]:
    origin = {"connector": "postgresql", "lsn": lsn}
    after = None if op == "d" else {"id": key, "name": name}
    return json.dumps({"id": key}).encode(), json.dumps({"before": None, "after": after, "source": origin, "op": op}).encode()


def test_events_of_messages_are_those_of_the_same_lines_in_a_file_at_their_offsets() -> None:
    rows: list[tuple[bytes | None, bytes | None]] = [change(i % 97, 100 + i, f"n{i}") for i in range(3_000)]
    rows[40] = change(5, 5_000, op="d")
    rows[41] = (change(5, 0)[0], None)
    rows[2_200] = (None, change(7, 9_000)[1])
    rows[2_500] = (b"{", change(7, 9_001)[1])
    messages = [Message(10 + 3 * i + (i > 1_000), k, v) for i, (k, v) in enumerate(rows)]
    lines = [Line("orders").one(m) for m in messages]
    plain = pa.Table.from_batches(registry.decode_pieces(table(), 7, f"{PATH}/3", 1, iter([b"\n".join([*lines, b""])])))
    found = events(messages)
    assert found["_line"].to_pylist() == [m.offset for m in messages]
    assert found.drop_columns("_line").equals(plain.drop_columns("_line"))
    assert set(found["_file"].to_pylist()) == {f"{PATH}/3"} and found["_position"].null_count == 1
    assert found["_code"].to_pylist()[2_500] == "BAD_JSON" and found["_raw"].to_pylist()[2_500] == lines[2_500].decode()


def test_raw_text_is_the_line_that_was_decoded() -> None:
    messages = [Message(i * 5, *change(i, i)) for i in range(1_000)] + [Message(9_999, b"{x", b"\xff", [("other", b"1")])]
    found = dict(kept(messages).raw(pin().parts[1], {10, 9_999}))
    assert found[10] == Line("orders").one(messages[2]).decode()
    assert found[9_999] == '{"key":"{x","value":"\ufffd","topic":"orders"}'


BROKEN = {
    "cut": b'{"op":"u"',
    "two documents": b'{"a":1} {"b":2}',
    "members of the line": b'{"id":1},"value":{"op":"d"',
    "the end of one": b'1},"key":{"id":9}',
    "an open text": b'{"id":1,"x":"',
    "nothing": b"",
    "blank": b" \n ",
    "NaN": b"NaN",
    "a control character": b'"a\nb"',
    "no UTF-8 outside of a text": b'{"id":\xff}',
    "a byte order mark": b'\xef\xbb\xbf{"id":1}',
    "too deep": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.parametrize("bad", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("where", ["key", "value"])
def test_what_is_no_json_is_refused_and_never_part_of_a_line(bad: bytes, where: str) -> None:
    key, value = change(1, 5)
    message = Message(3, bad, value) if where == "key" else Message(3, key, bad)
    [event] = events([message]).to_pylist()
    assert (event["_kind"], event["_code"], event["_line"]) == ("quarantined", "BAD_JSON", 3)
    assert "\n" not in Line("t").one(message).decode(errors="replace")


def test_no_utf8_inside_of_a_text_is_refused_with_its_reason() -> None:
    key, value = change(1, 5, "x")
    [event] = events([Message(3, key, value.replace(b'"x"', b'"\xff"'))]).to_pylist()
    assert (event["_code"], event["_reason"]) == ("BAD_JSON", "the line is not UTF-8")


def test_line_feeds_between_members_are_blanks() -> None:
    key, value = change(1, 5)
    pretty = json.dumps(json.loads(value), indent=1).replace("\n", "\r\n").encode()
    [event] = events([Message(3, key, pretty)]).to_pylist()
    assert (event["_kind"], event["name"]) == ("upsert", "a")


def test_a_json_text_is_no_envelope_though_it_holds_one() -> None:
    key, value = change(1, 5)
    [event] = events([Message(3, key, json.dumps(value.decode()).encode())]).to_pylist()
    assert (event["_kind"], event["_code"]) == ("quarantined", "UNKNOWN_OP")
    [event] = events([Message(3, key, b'"null"')]).to_pylist()
    assert event["_kind"] == "quarantined", "a tombstone has no value, and not the text of one"


def test_headers_tell_of_a_changed_key() -> None:
    key, value = change(2, 5)
    [event] = events([Message(3, key, value, [("trace", b"\xff"), ("__debezium.oldkey", b'{"id":1}')])]).to_pylist()
    assert event["_old_key"] == {"id": 1}
    [event] = events([Message(3, key, value, [("__debezium.oldkey", b"Struct{id=1}")])]).to_pylist()
    assert event["_code"] == "BAD_JSON", "not the old row left as it is"


def test_records_of_a_stream_are_values() -> None:
    rows = [
        Message(4, None, b'{"id":1,"name":"a"}'),
        Message(5, b"k", b'{"id":2,\n"name":null}'),
        Message(9, b"k", None),
        Message(10, b"k", b"x"),
    ]
    found = events(rows, RecordsSource(PATH)).to_pylist()
    assert [(e["_kind"], e["_line"], e["id"]) for e in found] == [
        ("upsert", 4, 1),
        ("upsert", 5, 2),
        ("quarantined", 9, None),
        ("quarantined", 10, None),
    ]


def test_records_that_lack_a_column_stop_the_run() -> None:
    with pytest.raises(SchemaDrift, match=r"lacks: name; it has, not declared .renamed.*: Name"):
        events([Message(4, None, b'{"id":1,"Name":"a"}')], RecordsSource(PATH))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_a_document_says_in_a_line_what_it_says(value: Any, indent: int | None, ascii_: bool) -> None:
    try:
        written = json.dumps(value, indent=indent, ensure_ascii=ascii_).encode()
    except UnicodeEncodeError:
        return
    found = json.loads(b'{"x":%b}' % document(written))["x"]
    assert (json.loads(found) if isinstance(value, str) else found) == value
    assert b"\n" not in document(written)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_bytes_of_others_are_two_members_whatever_they_are(key: bytes, value: bytes) -> None:
    line = Line("t").one(Message(0, key, value))
    found = json.loads(line.decode(errors="replace"), object_pairs_hook=list)
    assert [name for name, _ in found] == ["key", "value", "topic"]


@given(
    st.lists(st.tuples(*[st.none() | st.binary(max_size=9) | st.sampled_from([b"{}", b'{"a":1}', b"[1]", b'"x"', b"7"])] * 2), max_size=4)
)
def test_lines_by_columns_are_those_one_by_one(written: list[tuple[bytes | None, bytes | None]]) -> None:
    messages = [Message(i, *both, headers=[("__debezium.oldkey", both[0])] if i % 3 == 2 else None) for i, both in enumerate(written)]
    for line in (Line("t%b"), Value()):
        assert line.all(Messages.of(messages)) == b"".join(line.one(m) + b"\n" for m in messages)


def test_offsets_follow_their_lines_and_are_forgotten() -> None:
    offsets = Offsets()
    offsets.add([5, 9])
    offsets.add([20, 21, 40])

    def at(*lines: int) -> list[int]:
        batch = pa.RecordBatch.from_arrays([pa.array(lines, pa.int64())], names=["_line"])
        return list(offsets.of_lines(batch)["_line"].to_pylist())

    assert at(1, 2, 3) == [5, 9, 20]
    offsets.add([41])
    assert at(4, 5, 6) == [21, 40, 41]

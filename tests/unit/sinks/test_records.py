"""Changes as records: bytes that are always the same, nothing rounded, nothing that JSON cannot say."""

import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.plan.model.sinks import KafkaSink, Key, Value
from rejoin.sinks.kafka.records import EVENT, OP, RUN, Record, Records, json_encoding

ROW = pa.struct(
    [("id", pa.int64()), ("total", pa.decimal128(20, 4)), ("share", pa.float64()), ("at", pa.timestamp("us", "UTC")), ("raw", pa.binary())]
)
SCHEMA = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("id", pa.int64()), ("_before", ROW), ("_after", ROW)])


def row(key: int = 1, **values: object) -> dict[str, object]:
    return {"id": key, "total": None, "share": None, "at": None, "raw": None, **values}


def records(sink: KafkaSink, *changes: dict[str, object]) -> list[Record]:
    made = Records("shop", "orders", ("id",), sink, json_encoding(sink, pa.schema(ROW)))
    return list(made.of(pa.RecordBatch.from_pylist(list(changes), SCHEMA)))


def change(op: str, before: object, after: object, run: int = 3) -> dict[str, object]:
    return {"_run": run, "_op": op, "id": 1, "_before": before, "_after": after}


def test_an_envelope_has_op_before_after_and_source() -> None:
    [made] = records(KafkaSink("kafka", "t"), change("U", row(share=1.5), row(share=2.5)))
    assert made.key == b'{"id":1}'
    value = json.loads(made.value or b"")
    assert (value["op"], value["before"]["share"], value["after"]["share"]) == ("u", 1.5, 2.5)
    assert value["source"] == {"connector": "rejoin", "topology": "shop", "table": "orders", "run": 3, "snapshot": False}


@pytest.mark.parametrize("value", Value)
def test_a_delete_is_a_tombstone_in_every_form(value: Value) -> None:
    [made] = records(KafkaSink("kafka", "t", value=value), change("D", row(), None))
    assert made.value is None and dict(made.headers)[OP] == b"d"


def test_a_plain_row_and_a_key_alone() -> None:
    assert json.loads(records(KafkaSink("k", "t", value=Value.ROW), change("I", None, row()))[0].value or b"") == row()
    assert records(KafkaSink("k", "t", value=Value.KEY), change("I", None, row()))[0].value == b""


def test_a_key_of_one_column_as_text() -> None:
    assert records(KafkaSink("k", "t", key=Key.TEXT), change("I", None, row()))[0].key == b"1"
    encode = json_encoding(KafkaSink("k", "t", key=Key.TEXT), pa.schema(ROW)).key
    assert [encode({"k": v}) for v in ('a"b', dt.date(2024, 5, 1), Decimal("1.50"), True)] == [b'a"b', b"2024-05-01", b"1.50", b"true"]


def test_values_that_json_lacks_are_texts_and_decimals_keep_their_digits() -> None:
    at = dt.datetime(2024, 5, 1, 12, 30, 0, 7, dt.UTC)
    [made] = records(
        KafkaSink("k", "t", value=Value.ROW), change("I", None, row(total=Decimal("0.1000"), share=math.nan, at=at, raw=b"\x00\xff"))
    )
    assert json.loads(made.value or b"") == {"id": 1, "total": "0.1000", "share": "NaN", "at": "2024-05-01T12:30:00.000007Z", "raw": "AP8="}
    for number, text in ((math.inf, "Infinity"), (-math.inf, "-Infinity")):
        [made] = records(KafkaSink("k", "t", value=Value.ROW), change("I", None, row(share=number)))
        assert json.loads(made.value or b"")["share"] == text


def test_nested_values_are_json_with_the_same_texts_inside() -> None:
    kind = pa.struct(
        [("m", pa.map_(pa.string(), pa.decimal128(10, 8))), ("l", pa.list_(pa.struct([("f", pa.float64()), ("d", pa.date32())])))]
    )
    sink, types = KafkaSink("k", "t", value=Value.ROW), pa.schema([("id", pa.int64()), ("n", kind)])
    schema = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("id", pa.int64()), ("_after", pa.struct(list(types)))])
    after = {"id": 1, "n": {"m": [("b", Decimal(0)), ("a", None)], "l": [{"f": math.nan, "d": dt.date(2024, 5, 1)}, None]}}
    changes = pa.RecordBatch.from_pylist([{"_run": 1, "_op": "I", "id": 1, "_after": after}], schema)
    [made] = Records("shop", "orders", ("id",), sink, json_encoding(sink, types)).of(changes)
    shown = {"m": {"b": "0.00000000", "a": None}, "l": [{"f": "NaN", "d": "2024-05-01"}, None]}
    assert json.loads(made.value or b"") == {"id": 1, "n": shown}


def test_an_event_has_the_same_id_in_every_form_and_another_one_a_key_output_and_run() -> None:
    def ids(sink: KafkaSink) -> list[bytes]:
        return [dict(r.headers)[EVENT] for r in records(sink, change("I", None, row()), change("U", row(), row(share=1.0), run=4))]

    assert ids(KafkaSink("a", "t")) == ids(KafkaSink("b", "u", value=Value.KEY, key=Key.TEXT))
    assert len(set(ids(KafkaSink("a", "t")))) == 2
    assert [dict(r.headers)[RUN] for r in records(KafkaSink("a", "t"), change("I", None, row(), run=12))] == [b"12"]


@given(st.integers(-(2**63), 2**63 - 1), st.decimals(-(10**15), 10**15, places=4), st.floats())
def test_what_is_written_reads_back_as_the_same_values(key: int, total: Decimal, share: float) -> None:
    [made] = records(KafkaSink("k", "t", value=Value.ROW), {**change("I", None, row(key, total=total, share=share)), "id": key})
    value = json.loads(made.value or b"")
    assert (value["id"], Decimal(value["total"])) == (key, total)
    back = float(value["share"].replace("Infinity", "inf")) if isinstance(value["share"], str) else value["share"]
    assert back == share or (math.isnan(back) and math.isnan(share))


@pytest.mark.parametrize("form", [Value.ROW, Value.ENVELOPE])
@given(st.one_of(st.none(), st.decimals(-1000, 1000, places=10), st.decimals(-1, 1, places=10), st.just(Decimal(0))))
def test_a_small_decimal_has_all_its_digits_in_keys_and_values(form: Value, number: Decimal | None) -> None:
    exact = None if number is None else number.quantize(Decimal(1).scaleb(-10))
    fields = pa.struct([("d", pa.decimal128(20, 10)), ("n", pa.int64())])
    schema = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("d", pa.decimal128(20, 10)), ("_before", fields), ("_after", fields)])
    image = {"d": exact, "n": 1}
    batch = pa.RecordBatch.from_pylist([{"_run": 1, "_op": "U", "d": exact, "_before": image, "_after": image}], schema)
    text = None if exact is None else f"{exact:.10f}"
    assert exact is None or Decimal(str(text)) == exact
    for key in Key if exact is not None else (Key.OBJECT,):
        sink = KafkaSink("k", "t", value=form, key=key)
        [made] = Records("shop", "o", ("d",), sink, json_encoding(sink, pa.schema(fields))).of(batch)
        assert made.key.decode() == (text if key is Key.TEXT else json.dumps({"d": text}, separators=(",", ":")))
        value = json.loads(made.value or b"")
        images = [value] if form is Value.ROW else [value["before"], value["after"]]
        assert images == [{"d": text, "n": 1}] * len(images)
        assert made.row == image  # a partitioner or interceptor gets numbers

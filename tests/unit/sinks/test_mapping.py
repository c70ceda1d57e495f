"""Which field of an index takes which column."""

from typing import Any

import pyarrow as pa
import pytest

from rejoin.sinks.opensearch.mapping import TEXT, field_of, lacking, misfits, new_mapping

KINDS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "binary": pa.binary(),
    "text": pa.string(),
}


@pytest.mark.parametrize(("expected", "kind"), KINDS.items())
def test_a_new_field(expected: str, kind: pa.DataType) -> None:
    assert field_of(kind)["type"] == expected


ADDRESS = pa.struct([("city", pa.string()), ("at", pa.struct([("x", pa.float64())]))])
OF_ADDRESS = {"properties": {"city": dict(TEXT), "at": {"properties": {"x": {"type": "double"}}}}}


def test_an_array_is_its_elements_and_a_struct_its_fields_and_a_map_is_only_kept() -> None:
    assert field_of(pa.list_(pa.list_(pa.int64()))) == {"type": "long"}
    assert field_of(ADDRESS) == field_of(pa.large_list(ADDRESS)) == OF_ADDRESS
    assert field_of(pa.map_(pa.string(), ADDRESS)) == {"type": "object", "enabled": False}


def test_fields_of_structs_are_compared_and_added_each_by_itself_where_the_index_has_them() -> None:
    types = pa.schema([("a", pa.list_(ADDRESS))])
    wrong = {"type": "nested", "properties": {"city": {"type": "long"}, "at": {"properties": {"x": {"type": "float"}}}}}
    assert misfits(types, {"properties": {"a": wrong}}) == ["field 'a.city' is long, not text", "field 'a.at.x' is float, not double"]
    some = {"type": "nested", "properties": {"city": dict(TEXT)}}
    assert misfits(types, {"properties": {"a": some}}) == []
    assert lacking(types, {"properties": {"a": some}}) == {"a": {"type": "nested", "properties": {"at": OF_ADDRESS["properties"]["at"]}}}
    assert lacking(types, {"properties": {"a": {"properties": {"at": {"properties": {}}}}}}) == {
        "a": {"properties": {"city": dict(TEXT), "at": {"properties": {"x": {"type": "double"}}}}}
    }
    for whole in ({"type": "flattened"}, {"type": "object", "enabled": False}, {"dynamic": "false", "properties": {}}):
        assert (misfits(types, {"properties": {"a": whole}}), lacking(types, {"properties": {"a": whole}})) == ([], {})


def test_a_decimal_is_a_long_where_that_is_exact() -> None:
    assert [field_of(pa.decimal128(*d))["type"] for d in ((18, 0), (19, 0), (10, 2))] == ["long", "double", "double"]
    assert field_of(pa.timestamp("us"))["type"] == field_of(pa.timestamp("us", "UTC"))["type"] == "date"


def test_what_no_index_has_is_told() -> None:
    with pytest.raises(TypeError, match="no field of an index is known for"):
        field_of(pa.duration("s"))


FOUND: dict[str, tuple[pa.DataType, dict[str, Any], str]] = {
    "the same": (pa.int64(), {"type": "long"}, ""),
    "a wider one": (pa.int32(), {"type": "long"}, ""),
    "a narrower one": (pa.int64(), {"type": "integer"}, "integer, not long"),
    "a number for a text": (pa.string(), {"type": "long"}, "long, not text"),
    "a text of one term": (pa.string(), {"type": "keyword"}, ""),
    "an object": (pa.string(), {"properties": {"a": {"type": "text"}}}, "object, not text"),
    "a decimal as a scaled float": (pa.decimal128(10, 2), {"type": "scaled_float", "scaling_factor": 100}, ""),
    "a decimal cut to a long": (pa.decimal128(10, 2), {"type": "long"}, "long, not double"),
    "a decimal without coerce": (
        pa.decimal128(10, 2),
        {"type": "double", "coerce": False},
        "double without coerce, and decimals are texts",
    ),
    "a decimal as a term": (pa.decimal128(10, 2), {"type": "keyword", "coerce": False}, ""),
    "nanoseconds": (pa.timestamp("us", "UTC"), {"type": "date_nanos"}, ""),
    "a format that has ISO": (pa.timestamp("us"), {"type": "date", "format": "epoch_millis||strict_date_optional_time"}, ""),
    "a format of days": (pa.date32(), {"type": "date", "format": "yyyy-MM-dd"}, ""),
    "days for a time": (
        pa.timestamp("us"),
        {"type": "date", "format": "yyyy-MM-dd"},
        "date with a format other than strict_date_optional_time",
    ),
}


@pytest.mark.parametrize(("kind", "found", "said"), FOUND.values(), ids=FOUND.keys())
def test_a_field_that_is_there(kind: pa.DataType, found: dict[str, Any], said: str) -> None:
    assert misfits(pa.schema([("a", kind)]), {"properties": {"a": found, "b": {"type": "text"}}}) == (
        [f"field 'a' is {said}"] if said else []
    )


def test_what_is_lacking_is_added_unless_the_index_looks_at_nothing_that_it_does_not_know() -> None:
    types = pa.schema([("a", pa.int64()), ("b", pa.bool_())])
    assert new_mapping(types) == {"dynamic": "strict", "properties": {"a": {"type": "long"}, "b": {"type": "boolean"}}}
    assert lacking(types, new_mapping(types)) == {}
    assert (
        lacking(types, {"dynamic": "strict", "properties": {"a": {}}})
        == lacking(types, {"properties": {"a": {}}})
        == {"b": {"type": "boolean"}}
    )
    assert lacking(types, {"dynamic": "false"}) == lacking(types, {"dynamic": False}) == {}

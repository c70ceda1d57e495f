"""One JSON or CSV value against one declared type: exactly the value, or a code."""

import math
from decimal import Decimal
from typing import Any

import pytest

from rejoin.errors import BadRecord
from rejoin.sources.decode.values import CONNECT_DECIMAL, Field, converter, csv_converter

MILLIS, NANOS = Field("int64", "io.debezium.time.Timestamp"), Field("int64", "io.debezium.time.NanoTimestamp")
EXACT: list[tuple[str, Any, Field | None, Any]] = [
    ("BOOLEAN", True, None, True),
    ("BOOLEAN", 0, None, False),
    ("INT", -(2**31), None, -(2**31)),
    ("INT", Decimal("7.0"), None, 7),
    ("BIGINT", 2**63 - 1, None, 2**63 - 1),
    ("BIGINT", "BNI=", Field("bytes", CONNECT_DECIMAL, 0), 1234),
    ("DOUBLE", Decimal("0.1"), None, 0.1),
    ("DOUBLE", Decimal("5e-324"), None, 5e-324),
    ("FLOAT", Decimal("1.100000023841858"), None, 1.100000023841858),
    ("STRING", "", None, ""),
    ("STRING", "a\u0000b", None, "a\u0000b"),
    ("BINARY", "AP8Q", None, b"\x00\xff\x10"),
    ("BINARY", "_-8=", None, b"\xff\xef"),
    ("DECIMAL(10,2)", "BNI=", None, Decimal("12.34")),
    ("DECIMAL(10,2)", "BNI=", Field("bytes", CONNECT_DECIMAL, 1), Decimal("123.40")),
    ("DECIMAL(10,2)", {"scale": 1, "value": "BNI="}, None, Decimal("123.40")),
    ("DECIMAL(10,2)", "1.1", None, Decimal("1.10")),
    ("DECIMAL(10,2)", "1234", Field("string"), Decimal("1234.00")),
    ("DECIMAL(20,0)", 9007199254740993, None, Decimal(9007199254740993)),
    ("DECIMAL(38,8)", Decimal("123456789012345678901234567890.12345678"), None, Decimal("123456789012345678901234567890.12345678")),
    ("DECIMAL(10,8)", Decimal("1E-8"), None, Decimal("0.00000001")),
    ("DECIMAL(2,0)", Decimal("0E+999"), None, Decimal(0)),
    ("DATE", 2932896, None, 2932896),
    ("DATE", "1970-01-02Z", None, 1),
    ("DATE", "0001-01-01", None, -719162),
    ("DATE", 86_400_000, MILLIS, 1),
    ("TIMESTAMP", 5, None, 5),
    ("TIMESTAMP", 5, MILLIS, 5000),
    ("TIMESTAMP", 5000, NANOS, 5),
    ("TIMESTAMP", -1, Field("int32", "io.debezium.time.Date"), -86_400_000_000),
    ("TIMESTAMP", "1970-01-01T01:00:00.5+01:00", None, 500_000),
    ("TIMESTAMP", "1970-01-01 00:00:00", None, 0),
    ("TIMESTAMP", "1969-12-31T23:59:59.999999Z", None, -1),
    ("TIMESTAMP", "1970-01-01T00:00:00.000001000Z", None, 1),
    ("TIMESTAMP_NTZ", "1970-01-01T00:00:01Z", None, 1_000_000),
]


@pytest.mark.parametrize(("type_", "value", "field", "expected"), EXACT)
def test_a_value_is_taken_exactly(type_: str, value: Any, field: Field | None, expected: Any) -> None:
    found = converter("c", type_, field=field)(value)
    assert found == expected and type(found) is type(expected)


REFUSED: list[tuple[str, Any, Field | None, str]] = [
    ("BOOLEAN", 2, None, "VALUE_TYPE"),
    ("INT", True, None, "VALUE_TYPE"),
    ("INT", "5", None, "VALUE_TYPE"),
    ("INT", 2**31, None, "VALUE_RANGE"),
    ("INT", Decimal("1.5"), None, "VALUE_ROUNDED"),
    ("INT", Decimal("1e999999999"), None, "VALUE_RANGE"),
    ("INT", Decimal("1e-999999999"), None, "VALUE_ROUNDED"),
    ("BIGINT", 2**63, None, "VALUE_RANGE"),
    ("DOUBLE", "1.5", None, "VALUE_TYPE"),
    ("DOUBLE", Decimal("1e400"), None, "VALUE_RANGE"),
    ("DOUBLE", Decimal("1e-400"), None, "VALUE_RANGE"),
    ("DOUBLE", 2**53 + 1, None, "VALUE_ROUNDED"),
    ("DOUBLE", Decimal("0.1234567890123456789"), None, "VALUE_ROUNDED"),
    ("FLOAT", Decimal("1e39"), None, "VALUE_RANGE"),
    ("FLOAT", Decimal("1.23456789012"), None, "VALUE_ROUNDED"),
    ("STRING", 5, None, "VALUE_TYPE"),
    ("STRING", {"a": 1}, None, "VALUE_TYPE"),
    ("BINARY", "AP8", None, "VALUE_TYPE"),
    ("BINARY", "é", None, "VALUE_TYPE"),
    ("BINARY", "00ff", Field("string"), "VALUE_TYPE"),
    ("DECIMAL(10,2)", Decimal("1.239"), None, "VALUE_ROUNDED"),
    ("DECIMAL(10,2)", {"scale": 3, "value": "BNI="}, None, "VALUE_ROUNDED"),
    ("DECIMAL(3,2)", 10, None, "VALUE_RANGE"),
    ("DECIMAL(38,2)", Decimal("1e999999"), None, "VALUE_RANGE"),
    ("DECIMAL(10,2)", "NAN", None, "VALUE_INFINITE"),
    ("DECIMAL(10,2)", "Infinity", None, "VALUE_INFINITE"),
    ("DECIMAL(10,2)", True, None, "VALUE_TYPE"),
    ("DECIMAL(10,2)", "12,3", None, "VALUE_TYPE"),
    ("DECIMAL(10,0)", "1234", None, "VALUE_AMBIGUOUS"),
    ("DATE", -2147472692, None, "VALUE_INFINITE"),
    ("DATE", 2147483647, None, "VALUE_INFINITE"),
    ("DATE", 2932897, None, "VALUE_RANGE"),
    ("DATE", "0000-00-00", None, "VALUE_RANGE"),
    ("DATE", "2023-02-29", None, "VALUE_RANGE"),
    ("DATE", "-0044-03-15", None, "VALUE_RANGE"),
    ("DATE", "2024-01-01T00:00:01", None, "VALUE_ROUNDED"),
    ("DATE", "yesterday", None, "VALUE_TYPE"),
    ("DATE", True, None, "VALUE_TYPE"),
    ("TIMESTAMP", 9223372036825200000, None, "VALUE_INFINITE"),
    ("TIMESTAMP", -9223372036832400000, None, "VALUE_INFINITE"),
    ("TIMESTAMP", 9223372036825200, MILLIS, "VALUE_INFINITE"),
    ("TIMESTAMP", 2**63 - 1, NANOS, "VALUE_INFINITE"),
    ("TIMESTAMP", "-infinity", None, "VALUE_INFINITE"),
    ("TIMESTAMP", 253402300800000000, None, "VALUE_RANGE"),
    ("TIMESTAMP", "0001-01-01T00:00:00+01:00", None, "VALUE_RANGE"),
    ("TIMESTAMP", "2024-01-01T24:00:00.000000Z", None, "VALUE_RANGE"),
    ("TIMESTAMP", 1, NANOS, "VALUE_ROUNDED"),
    ("TIMESTAMP", "2024-01-01T00:00:00.0000001Z", None, "VALUE_ROUNDED"),
    ("TIMESTAMP_NTZ", "2024-01-01T00:00:00+02:00", None, "VALUE_TYPE"),
    ("TIMESTAMP", Decimal("1.5"), None, "VALUE_TYPE"),
]


@pytest.mark.parametrize(("type_", "value", "field", "code"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_without_showing_it(type_: str, value: Any, field: Field | None, code: str) -> None:
    with pytest.raises(BadRecord) as refused:
        converter("the_column", type_, field=field)(value)
    assert refused.value.code == code and "the_column" in refused.value.reason and str(value) not in refused.value.reason


@pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE"])
def test_nan_infinity_and_negative_zero_are_floating_values(type_: str) -> None:
    convert = converter("c", type_)
    assert math.isnan(convert("NaN")) and convert("-Infinity") == -math.inf
    assert math.copysign(1, convert(Decimal("-0.0"))) == -1 and math.copysign(1, csv_converter("c", type_)("-0")) == -1


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("BOOLEAN", "TRUE", True),
        ("INT", "-5", -5),
        ("INT", "", "VALUE_TYPE"),
        ("INT", " 5", "VALUE_TYPE"),
        ("INT", "5.5", "VALUE_ROUNDED"),
        ("INT", "\u0665", "VALUE_TYPE"),
        ("DOUBLE", "1e3", 1000.0),
        ("DECIMAL(10,2)", "1234", Decimal("1234.00")),
        ("DECIMAL(10,2)", "EtaA", "VALUE_TYPE"),
        ("DATE", "1970-01-02", 1),
        ("DATE", "5", "VALUE_TYPE"),
        ("STRING", " a ", " a "),
    ],
)
def test_a_csv_text_is_taken_exactly_or_refused(type_: str, text: str, expected: Any) -> None:
    try:
        found = csv_converter("c", type_)(text)
    except BadRecord as bad:
        found = bad.code
    assert found == expected

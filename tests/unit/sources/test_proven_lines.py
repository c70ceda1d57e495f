"""Lines of one shape, decoded by DuckDB, become the events that the careful decoder makes of them, coordinates, codes and all."""

import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from both_ways import FORMS, ONE, STYLES, as_texts, check, created, line, of_form, plain
from source_cases import table
from source_fuzz import PLAIN, RAW_NUMBERS, VALUES

from rejoin.plan.model.sources import DebeziumSource, RecordsSource, SnapshotSource
from rejoin.sources.decode import proven_lines

TYPES = (
    "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
    "DECIMAL(10,2)", "DECIMAL(38,9)", "DECIMAL(2,2)", "DECIMAL(12,0)",
)  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("ending", [b"\n", b"", b"\n\n"])
def test_all_lines_of_a_plain_feed_are_proven(style: tuple[str, str], ending: bytes) -> None:
    after = {"id": 1, "name": "ä 😀 '", "n": -5, "price": "-0.50", "at": None}
    lines = [line("cur"[i % 3], {"id": i}, after | {"id": i}, i, style, topic="t") for i in range(100)]
    assert check(ONE, b"\xef\xbb\xbf" * (style == STYLES[0]) + b"\n".join(lines) + ending) == (100, 100)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("form", ["objects", "texts"])
def test_lines_with_characters_that_json_escapes_are_proven(form: str, style: tuple[str, str]) -> None:
    odd = [
        'say "hi"',
        "back\\slash",
        'both \\" and \\\\"',
        "two\nlines\r\n",
        "a\ttab",
        '{"k": [1, 2.50], "t": "\\\\"}',
        "",
        "\\",
        '"',
        "plain",
    ]
    made = []
    for i in range(100):
        one = json.loads(plain(i, name=odd[i % len(odd)]))
        one["value"]["source"] |= {"sequence": json.dumps([None if i % 3 else str(i), str(i + 9)]), "txId": i, "xmin": None}
        text = json.dumps(one, separators=style, ensure_ascii=False).encode()
        made.append(as_texts(text, style) if form == "texts" else text)
    assert check(ONE, b"\n".join(made)) == (100, 100)
    rare = [
        as_texts(plain(0, name="\b")) if form == "texts" else plain(0, name="\b"),
        made[0].replace(b"say", b"\\u0073ay"),
        made[3].replace(b"\\\\", b"/"),
    ]
    check(ONE, b"\n".join([*made, *rare, *made]))


@pytest.mark.parametrize(
    "odd",
    ['{"id":}', "{}", '{"id":1', "1", "", "null", '"a"', '{"id":1,"id":2}', '{"id": 1}', '{"id":1.0}', '{"id":"1"}', " {}", '{"Id":1}'],
)
@pytest.mark.parametrize("member", ["key", "value"])
def test_a_text_that_is_no_such_object_is_not_proven(odd: str, member: str) -> None:
    made = [as_texts(plain(i)) for i in range(25)]
    one = json.loads(made[3]) | {member: odd}
    proved, _ = check(ONE, b"\n".join([*made, json.dumps(one, separators=STYLES[0]).encode(), *made[:4]]))
    assert proved == 29


@pytest.mark.parametrize(
    "placeholder", ["hex:ff00fb", *(pytest.param(p, marks=pytest.mark.slow) for p in ("hex:00", "__debezium_unavailable_value"))]
)
def test_lines_keep_their_values_whatever_stands_for_no_value(placeholder: str) -> None:
    of = table(PLAIN, "id", DebeziumSource("f", placeholder=placeholder))
    lines = [plain(i, name="__debezium_unavailable_value" if i % 50 == 0 else f"n {i}") for i in range(6_000)]
    assert check(of, b"\n".join(lines), chunk=3_000)[0] > 5_000


def test_rows_stay_with_their_lines_though_duckdb_gives_them_in_another_order() -> None:
    lines = pa.array([f"{i % 9}" for i in range(40_000)])
    listed = ", ".join(f"'{i}'" for i in range(6))
    query = f"SELECT _at, line, line IN ({listed}) AS _proven FROM (SELECT _at, line FROM lines)"
    found = proven_lines.computed(pa.record_batch([lines], names=["line"]), query)
    assert found["line"].combine_chunks().equals(lines)
    assert found["_proven"].to_pylist() == [i % 9 < 6 for i in range(40_000)]


@pytest.mark.parametrize("name", ["customer's name", "a'); SELECT error('run'); --", "semi;colon", "''"])
@pytest.mark.parametrize("is_feed", [False, True])
def test_names_of_members_are_never_a_part_of_the_statement(name: str, is_feed: bool) -> None:
    source = DebeziumSource("f/") if is_feed else SnapshotSource("f/")
    of, rows_ = table("id BIGINT; a STRING", source=source), [{"id": n, "a": "x", name: "y"} for n in range(40)]
    if is_feed:
        data = b"\n".join(line("c", {"id": r["id"]}, r, n + 1) for n, r in enumerate(rows_))
    else:
        data = "".join(json.dumps(r) + "\n" for r in rows_).encode()
    proved, read = check(of, data)
    assert (proved, read) == (40, 40)


def test_a_broken_line_without_values_is_no_record() -> None:
    of = replace(table("v BIGINT", "v", RecordsSource("r/", places=True)), key=())
    data = b"".join(b'{"v":%d}\n' % n for n in range(20)) + b'{"v":}\n'
    check(of, data)


def test_records_without_a_key_are_proven() -> None:
    of = replace(table("ad STRING; at TIMESTAMP", "ad", RecordsSource("f")), key=())
    made = [f'{{"ad":{ad},"at":"2024-02-29T11:14:{i % 60:02}Z"}}' for i, ad in enumerate(['"a"', '"b"', "null", "7"] * 50)]
    assert check(of, "\n".join(made).encode(), chunk=30) == (150, 200)


@pytest.mark.parametrize("form", ["objects", pytest.param("texts", marks=pytest.mark.slow), pytest.param("rows", marks=pytest.mark.slow)])
@pytest.mark.parametrize("type_", TYPES)
def test_every_value_of_every_type_is_read_alike(type_: str, form: str) -> None:
    of = table(f"id BIGINT; v {type_}", "id", of_form(form))
    kinds = {"text": '"', "number": "-0123456789", "other": "tfn{["}
    for first in kinds.values():
        values = [v for v in VALUES if v[0] in first and "\n" not in v]
        plain_ones = [
            v for v in values if v in ("1", '"1.5"', '"2024-02-29"', '"2024-02-29T11:14:15.5Z"', "true", "1.5", "12.50", '"x"')
        ] or values[:1]
        for known in plain_ones:
            made = []
            for i, value in enumerate([known] * 6 + values):
                row = f'{{"id":{i},"v":{value}}}'
                made.append(created(i, row, form))
            check(of, "\n".join(made).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("written", ["1.5", "12.50", "12345.6789", "-0.0", "0.1", "3.0"])
@pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE", "DECIMAL(10,2)"])
def test_numbers_with_a_point_are_proven_as_they_are_written(type_: str, written: str) -> None:
    of = table(f"id BIGINT; v {type_}", "id", SnapshotSource("f"))
    made = [f'{{"id":{i},"v":{value}}}' for i, value in enumerate([*["0.5", "1", "2.25"] * 5, *RAW_NUMBERS, written])]
    assert check(of, "\n".join(made).encode())[0] >= 15


def _as_java(value: float) -> str:
    """As Java writes a double, and so Debezium: with an exponent below a thousandth and from ten millions on."""
    digits = repr(value) if value == 0 or 1e-3 <= abs(value) < 1e7 else f"{Decimal(repr(value)):E}".replace("E+", "E")
    return digits if "." in digits else digits.replace("E", ".0E")


WRITERS = {"shortest": repr, "java": _as_java, "17": lambda value: f"{value:.17g}", "money": lambda value: f"{value:.2f}"}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("form", FORMS)
def test_binary_numbers_are_proven_in_the_letters_of_any_writer(write: Callable[[float], str], form: str) -> None:
    random_ = random.Random(form)
    kinds = (
        lambda: random_.uniform(-1, 1),
        lambda: random_.lognormvariate(0, 12),
        lambda: random_.gauss(0, 1e5),
        lambda: random_.randrange(99) / 7,
    )
    of = table("id BIGINT; v DOUBLE; f FLOAT", "id", of_form(form))
    made = []
    for i in range(600):
        value = random_.choice(kinds)()
        row = f'{{"id":{i},"v":{write(value)},"f":{write(struct.unpack("<f", struct.pack("<f", value))[0])}}}'
        made.append(created(i, row, form))
    proved, records = check(of, "\n".join(made).encode())
    assert records == 600 and proved > (300 if write is WRITERS["money"] else 590), "cents of a FLOAT may be more digits than it has"


@pytest.mark.parametrize(
    "odd",
    [
        '{"id":1,"id":1,"v":1}', '{"v":1,"id":1}', '{"id":1}', '{"id":1,"v":1,"w":2}', '{"id":1,"v":1} ', '{"id":1,"v":1.0}', '{"id":1,"v":"1"}',
        '{"id":1,"v":true}', '{"id":1,"v":01}', '{"id":1,"v":1,}', '{"id":1,"v":NaN}', '{"ID":1,"v":1}', '{"id":1,"v":{"a":1,"a":2}}', '{"id":null,"v":1}',
        '{"id":1,"v":9223372036854775808}', '{"id":1,"v":1e0}', "[1]", "1", '{"id":1,"v":-0}', '{"id":1,"v":1}\r', '{"id":1,\t"v":1}', '{"\\u0069d":1,"v":1}',
    ],
)  # fmt: skip
def test_a_line_of_another_shape_is_not_proven(odd: str) -> None:
    of = table("id BIGINT; v BIGINT", "id", SnapshotSource("f"))
    made = [f'{{"id":{i},"v":{i}}}' for i in range(30)]
    found, records = check(of, "\n".join([*made, odd, *made[:10]]).encode(), chunk=30)
    assert (found, records) == (30 if "\r" in odd or "\t" in odd else 40, 41)

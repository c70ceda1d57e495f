"""``changes(...)``: rows of JSON lines and Parquet become events as declared; by columns the same as one by one."""

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mapped import SCHEMA, both_ways, decoded, lines, pinned, table
from source_fuzz import VALUES, seeds

from rejoin import arrival
from rejoin.errors import SchemaDrift, SourceCorrupt
from rejoin.plan.model.plan import Table
from rejoin.sources import read_again_here
from rejoin.sources.events import RAW_BYTES

GONE = "__deleted = 'true'"


def one(of: Table, root: Path, **row: Any) -> dict[str, Any]:
    [event] = both_ways(of, root, "1.jsonl", lines([{"id": 1, "lsn": 5, **row}]))
    return event


PEOPLE = "id BIGINT, name STRING"


def test_a_record_is_a_row_as_it_is_now_or_one_that_is_gone(tmp_path: Path) -> None:
    of = table(PEOPLE, deleted=GONE)
    rows = [{"id": 1, "name": "Ann", "lsn": 7, "__deleted": "false"}, {"id": 2, "name": "lost", "lsn": 8, "__deleted": True}]
    first, second = both_ways(of, tmp_path, "1.jsonl", lines(rows))
    assert (first["_kind"], first["id"], first["name"], first["_position"]) == ("upsert", 1, "Ann", f"{7:020d}")
    assert (second["_kind"], second["id"], second["name"], second["_position"]) == ("delete", 2, None, f"{8:020d}")


def test_of_a_row_that_is_gone_only_the_key_is_read(tmp_path: Path) -> None:
    of = table(SCHEMA, deleted=GONE, columns={"total": "CAST(amount AS DECIMAL(10,2))"})
    assert one(of, tmp_path, __deleted="true", amount="none", n="many")["_kind"] == "delete"


@pytest.mark.parametrize(
    ("column", "sql", "field", "value"),
    [
        ("total", "amount", "12.50", Decimal("12.50")),
        ("total", "amount", 12.5, Decimal("12.50")),
        ("total", "CAST(replace(amount, ',', '') AS DECIMAL(10,2))", "1,234.50", Decimal("1234.50")),
        ("total", "replace(amount, ',', '')", "1,234.5", Decimal("1234.50")),
        ("open", "CAST(amount AS BOOLEAN)", "Y", True),
        ("open", "CASE amount WHEN 'J' THEN 'true' WHEN 'N' THEN 'false' ELSE amount END", "N", False),
        ("day", "CAST(concat(split_part(amount, '/', 3), '-', split_part(amount, '/', 2), '-', split_part(amount, '/', 1)) AS DATE)", "25/07/2013", date(2013, 7, 25)),
        ("at", "timestamp_millis(CAST(amount AS BIGINT))", 1_700_000_000_123, datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)),
        ("note", "upper(amount)", 7, "7"),
        ("note", "amount", 1.50, "1.5"),
        ("n", "CAST(amount AS INT) + 1", "41", 42),
        ("n", "amount", None, None),
        ("f", "amount", 1e300, 1e300),
    ],
)  # fmt: skip
def test_a_column_is_what_its_field_or_its_sql_says(tmp_path: Path, column: str, sql: str, field: object, value: object) -> None:
    event = one(table(optional=["total", "at", "open", "note", "n", "day", "f"], columns={column: sql}), tmp_path, amount=field)
    assert (event["_kind"], event[column], event["_reason"]) == ("upsert", value, None)


def test_numbers_keep_the_digits_that_are_written(tmp_path: Path) -> None:
    of = table("id BIGINT, total DECIMAL(38,20), note STRING", columns={"note": "concat(total, '')"})
    data = b'{"id": 9223372036854775807, "lsn": 1, "total": 123456789012345678.12345678901234567890}\n' * 40
    [event] = {repr(e) for e in ({k: e[k] for k in ("id", "total", "note")} for e in both_ways(of, tmp_path, "1.jsonl", data))}
    assert event == repr(
        {"id": 2**63 - 1, "total": Decimal("123456789012345678.12345678901234567890"), "note": "123456789012345678.12345678901234567890"}
    )


@pytest.mark.parametrize(
    ("options", "row", "code"),
    [
        ({"columns": {"total": "CAST(amount AS DECIMAL(10,2))"}}, {"amount": "many"}, "VALUE_EXPRESSION"),
        ({"columns": {"n": "CAST(amount AS INT)"}}, {"amount": "3000000000"}, "VALUE_EXPRESSION"),
        ({"columns": {"n": "CAST(amount AS INT)"}}, {"amount": 1.5}, "VALUE_EXPRESSION"),
        ({"columns": {"total": "amount"}}, {"amount": "12.345"}, "VALUE_ROUNDED"),
        ({"columns": {"total": "replace(amount, ',', '')"}}, {"amount": "12,345.678"}, "VALUE_ROUNDED"),
        ({}, {"n": 2**40}, "VALUE_RANGE"),
        ({}, {"at": "yesterday"}, "VALUE_TYPE"),
        ({}, {"note": {"a": 1}}, "VALUE_TYPE"),
        ({"columns": {"day": "CAST(amount AS DATE)"}}, {"amount": "0000-01-01"}, "VALUE_RANGE"),
        ({}, {"id": None}, "MISSING_KEY"),
        ({"columns": {"id": "CAST(amount AS BIGINT)"}}, {"amount": "x"}, "VALUE_EXPRESSION"),
        ({"deleted": GONE}, {}, "UNKNOWN_OP"),
        ({"deleted": "CAST(gone AS BOOLEAN)"}, {"gone": "perhaps"}, "UNKNOWN_OP"),
        ({}, {"lsn": None}, "UNKNOWN_POSITION"),
        ({}, {"lsn": "0/16B3748"}, "UNKNOWN_POSITION"),
        ({"order_by": "CAST(lsn AS BIGINT)"}, {"lsn": "x"}, "UNKNOWN_POSITION"),
        ({"order_by": "CAST(lsn AS STRING)"}, {"lsn": ""}, "UNKNOWN_POSITION"),
        ({"order_by": ["at", "lsn"]}, {"at": None}, "UNKNOWN_POSITION"),
    ],
)  # fmt: skip
def test_fault_a_record_that_is_not_what_the_declaration_says_is_refused_and_never_null(
    tmp_path: Path, options: dict[str, Any], row: dict[str, Any], code: str
) -> None:
    of = table(optional=["total", "at", "open", "note", "n", "day", "f"], **options)
    written = {"id": 1, "lsn": 5, **row}
    [event] = both_ways(of, tmp_path, "1.jsonl", lines([written]))
    assert (event["_kind"], event["_code"], event["_raw"]) == ("quarantined", code, json.dumps(written))
    assert event["id"] == (None if "id" in row or "id" in options.get("columns", {}) or (code == "VALUE_TYPE" and "note" in row) else 1)
    assert not any(
        str(value) in event["_reason"] for value in row.values() if isinstance(value, int | float) or (isinstance(value, str) and value)
    )


# --- order ----------------------------------------------------------------------------------------------------------------

NUMBERS = ["-100000000000000000000.5", "-100000000000000000000", "-12", "-1.5", "-1.05", "-1", "-0.001", "0", "0.5", "1", "1.05", "1.5", "2", "9", "10", "99999999999999999999", "100000000000000000000", "12345678901234567890123456789012345", "99999999999999999999999999999999999999"]  # fmt: skip
TIMES = ["1969-12-31T23:59:59Z", "1970-01-01 00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01", "2026-01-01T02:00:02+01:00"]  # fmt: skip


@pytest.mark.parametrize("written", [NUMBERS, TIMES])
@pytest.mark.parametrize("sql", ["lsn", "CAST(lsn AS DECIMAL(38,3))", "CAST(lsn AS TIMESTAMP)"])
def test_positions_of_numbers_and_times_sort_as_these_do(tmp_path: Path, written: list[str], sql: str) -> None:
    if sql != "lsn" and (written is TIMES) != ("TIMESTAMP" in sql):
        return
    kept = written if "DECIMAL" not in sql else [n for n in written if len(n.strip("-").partition(".")[0]) < 36]
    shuffled = [*kept, *kept, *kept]
    random.Random(5).shuffle(shuffled)
    events = both_ways(table(PEOPLE, order_by=sql), tmp_path, "1.jsonl", lines({"id": 1, "name": "a", "lsn": text} for text in shuffled))
    assert {e["_code"] for e in events} == {None}
    found = {text: e["_position"] for text, e in zip(shuffled, events, strict=True)}
    assert sorted(kept, key=lambda text: found[text]) == kept
    assert len(set(found.values())) == len(kept)


def test_one_number_has_one_position_however_it_is_written(tmp_path: Path) -> None:
    rows = [{"id": 1, "name": "a", "lsn": lsn} for lsn in (42, "42", "0042", "42.0", 42.0, "+42", "4.2e1")]
    assert {e["_position"] for e in both_ways(table(PEOPLE), tmp_path, "1.jsonl", lines(rows))} == {f"{42:020d}"}


def test_several_fields_say_the_order_the_first_one_most(tmp_path: Path) -> None:
    pairs = [(1, -2), (1, 0), (1, 10), (1.5, 0), (2, -1), (10**25, 3)]
    rows = [{"id": 1, "name": "a", "file": a, "pos": b} for a, b in pairs]
    positions = [e["_position"] for e in both_ways(table(PEOPLE, order_by=["file", "pos"]), tmp_path, "1.jsonl", lines(rows))]
    assert sorted(positions) == positions


def test_texts_sort_as_they_are_where_that_is_said(tmp_path: Path) -> None:
    rows = [{"id": 1, "name": "a", "lsn": lsn} for lsn in ("00000027:00000ac0:0002", "00000027:00000ac1:0001", "0000002a:00000000:0001")]
    positions = [e["_position"] for e in both_ways(table(PEOPLE, order_by="CAST(lsn AS STRING)"), tmp_path, "1.jsonl", lines(rows))]
    assert positions == [row["lsn"] for row in rows]


def test_the_order_of_arrival_is_that_of_names_with_numbers_by_value_and_of_lines(tmp_path: Path) -> None:
    of, found = table(PEOPLE, order_by=arrival()), list[str]()
    for name in ("9.jsonl", "10.jsonl", "2026/11/21/1.jsonl"):
        found += [e["_position"] for e in both_ways(of, tmp_path, name, lines([{"id": 1, "name": "a"}] * 12))]
    assert sorted(found) == found
    assert len(set(found)) == 36


# --- columns that are not there -----------------------------------------------------------------------------------------


def test_a_column_is_lacking_if_a_field_that_it_is_made_of_is(tmp_path: Path) -> None:
    of = table("id BIGINT, name STRING, n INT", optional=["n"], columns={"name": "concat(first, last)"})
    rows = [{"id": 1, "lsn": 1, "first": "A", "last": "B"}, {"id": 1, "lsn": 2, "first": "A", "n": 3}]
    assert [e["_absent"] for e in both_ways(of, tmp_path, "1.jsonl", lines(rows * 20))] == [[], ["name"]] * 20


def test_of_names_that_a_field_had_one_is_enough(tmp_path: Path) -> None:
    of = table("id BIGINT, name STRING", columns={"name": "upper(coalesce(full_name, name))"})
    rows = [{"id": 1, "lsn": 1, "name": "a"}, {"id": 1, "lsn": 2, "full_name": "b"}, {"id": 1, "lsn": 3}]
    found = both_ways(of, tmp_path, "1.jsonl", lines(rows * 20))
    assert [(e["name"], e["_absent"]) for e in found] == [("A", []), ("B", []), (None, ["name"])] * 20


# --- both ways ------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "total": "CAST(amount AS DECIMAL(10,2))",
    "n": "CAST(m AS INT)",
    "day": "to_date(d)",
    "note": "concat(upper(left(note, 1)), note)",
}


@pytest.mark.parametrize("seed", seeds(60))
def test_records_of_random_values_are_the_same_events_both_ways(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    good = {
        "id": "1",
        "amount": '"12.50"',
        "at": '"2026-01-01T00:00:00Z"',
        "open": "true",
        "note": '"n"',
        "m": "4",
        "d": '"2026-01-01"',
        "f": "1.5",
    }
    of = table(
        columns=COLUMNS, deleted=random_.choice([None, GONE]), order_by=random_.choice(["lsn", "CAST(lsn AS DECIMAL(20,2))", ["at", "lsn"]])
    )
    rows = []
    for i in range(120):
        row = {**good, "lsn": str(i), "__deleted": random_.choice(['"false"', '"false"', '"true"'])}
        if random_.random() < 0.3:
            name = random_.choice(list(row))
            row[name] = random_.choice(VALUES)
        if random_.random() < 0.05:
            del row[random_.choice(list(row))]
        text = "{" + ",".join(f'"{k}":{v}' for k, v in row.items()) + "}"
        rows.append(text[: random_.randrange(len(text))] if random_.random() < 0.02 else text)
    data = "\n".join(rows).encode("utf-8", "surrogatepass")
    events = both_ways(of, tmp_path, "1.jsonl", data)
    assert len(events) == sum(bool(row.strip()) for row in rows)
    assert {"upsert", "quarantined"} <= {e["_kind"] for e in events}


# --- Parquet --------------------------------------------------------------------------------------------------------------

ROWS = {
    "id": pa.array([1, 2, 3], pa.int32()),
    "total": pa.array([Decimal("1.50"), None, Decimal("-3.25")], pa.decimal128(8, 2)),
    "at": pa.array([datetime(2026, 1, 1, 12, 30, 0, 5, UTC)] * 3, pa.timestamp("us", "Europe/Berlin")),
    "open": pa.array([True, False, None]),
    "note": pa.array(["é", None, ""]),
    "n": pa.array([1, 2, -3], pa.int64()),
    "day": pa.array([date(2026, 1, 1)] * 3),
    "f": pa.array([0.1, -0.0, 1e300]),
    "lsn": pa.array([2**63 - 1, 5, 6], pa.uint64()),
}


def parquet(root: Path, columns: dict[str, pa.Array], name: str = "1.parquet", **options: Any) -> bytes:
    path = root / name
    pq.write_table(pa.table(columns), path, **options)
    return path.read_bytes()


def test_rows_of_parquet_and_of_json_with_the_same_values_are_the_same_events(tmp_path: Path) -> None:
    of = table(columns={"note": "concat(note, total)", "n": "CAST(n AS INT) * 2"}, deleted="open IS NULL")
    found = both_ways(of, tmp_path, "1.parquet", parquet(tmp_path, ROWS))
    as_texts = [
        {"id": 1, "total": 1.50, "at": "2026-01-01T12:30:00.000005Z", "open": True, "note": "é", "n": 1, "day": "2026-01-01", "f": 0.1, "lsn": 2**63 - 1},
        {"id": 2, "total": None, "at": "2026-01-01T12:30:00.000005Z", "open": False, "note": None, "n": 2, "day": "2026-01-01", "f": -0.0, "lsn": 5},
        {"id": 3, "total": -3.25, "at": "2026-01-01T12:30:00.000005Z", "open": None, "note": "", "n": -3, "day": "2026-01-01", "f": 1e300, "lsn": 6},
    ]  # fmt: skip
    written = lines(as_texts).replace(b'"total": 1.5,', b'"total": 1.50,')
    same = both_ways(of, tmp_path, "1.jsonl", written)
    assert [repr({**e, "_file": ""}) for e in found] == [repr({**e, "_file": ""}) for e in same]
    assert [e["_kind"] for e in found] == ["upsert", "upsert", "delete"]


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s"), pa.string(), pa.date32()])
def test_a_time_of_any_type_and_an_int96_is_the_same_instant(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2).cast(pa.timestamp("us")).cast(kind)
    for int96 in (False, *([True] if pa.types.is_timestamp(kind) else [])):
        data = parquet(tmp_path, {"id": pa.array([1, 2]), "at": values, "lsn": values}, use_deprecated_int96_timestamps=int96)
        events = both_ways(table("id BIGINT, at TIMESTAMP"), tmp_path, "1.parquet", data)
        assert {(e["at"], e["_position"]) for e in events} == {(datetime(2026, 1, 1, tzinfo=UTC), f"{1_767_225_600_000_000:020d}")}


def test_a_narrower_column_takes_the_values_that_fit_and_refuses_others_one_by_one(tmp_path: Path) -> None:
    data = parquet(tmp_path, {"id": pa.array([1, 2]), "n": pa.array([5, 2**40]), "lsn": pa.array([1, 2])})
    first, second = both_ways(table("id BIGINT, n INT"), tmp_path, "1.parquet", data)
    assert (first["n"], second["_code"], second["_raw"]) == (5, "VALUE_RANGE", '{"id":"2","n":"1099511627776","lsn":"2"}')


def test_fault_values_of_parquet_that_no_column_holds_are_refused_row_by_row(tmp_path: Path) -> None:
    bad = pa.array([b"\xff", b"ok"]).view(pa.string())
    days = pa.array([2_932_897, 1], pa.int32()).cast(pa.date32())
    data = parquet(tmp_path, {"id": pa.array([1, 2]), "name": bad, "day": days, "lsn": pa.array([1, 2])})
    refused, fine = both_ways(table("id BIGINT, name STRING, day DATE"), tmp_path, "1.parquet", data)
    assert (refused["_code"], fine["_kind"], fine["name"]) == ("VALUE_TYPE", "upsert", "ok")
    refused, fine = both_ways(table("id BIGINT, day DATE"), tmp_path, "1.parquet", data)
    assert (refused["_code"], fine["_kind"]) == ("VALUE_RANGE", "upsert")


def test_fault_a_field_without_single_values_is_drift_and_a_broken_file_corrupt(tmp_path: Path) -> None:
    data = parquet(tmp_path, {"id": pa.array([1]), "name": pa.array([["a"]]), "lsn": pa.array([1])})
    file = pinned(tmp_path, "1.parquet", data)
    with pytest.raises(SchemaDrift, match="field 'name' has the type list"):
        decoded(table(PEOPLE), tmp_path, file)
    with pytest.raises(SourceCorrupt):
        decoded(table(PEOPLE), tmp_path, pinned(tmp_path, "2.parquet", data[:-20]))


def test_columns_of_rarer_types_are_texts_too(tmp_path: Path) -> None:
    rows = {"id": pa.array([1, 2], pa.uint16()), "lsn": pa.array([Decimal("1.5"), Decimal(2)], pa.decimal128(38, 3)), "none": pa.nulls(2)}
    rows |= {
        "name": pa.array(["a", "a"]).dictionary_encode(),
        "big": pa.array(["b", None], pa.large_string()),
        "bytes": pa.array([b"\x00", b""]),
    }
    rows["clock"] = pa.array([3_600_000_000, 0], pa.time64("us"))
    made = {"name": "concat(name, '!')", "clock": "clock", "bytes": "bytes", "text": "bytes"}
    of = table("id BIGINT, name STRING, big STRING, none INT, clock STRING, bytes BINARY, text STRING", columns=made)
    first, second = both_ways(of, tmp_path, "1.parquet", parquet(tmp_path, rows))
    assert [first[c] for c in ("id", "name", "big", "none", "clock", "bytes", "text")] == [1, "a!", "b", None, "01:00:00", b"\x00", "AA=="]
    assert (second["big"], second["bytes"], second["text"], first["_position"] < second["_position"]) == (None, b"", "", True)


def test_fault_two_columns_with_one_name_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 3, names=["id", "name", "name"]), tmp_path / "x.parquet")
    with pytest.raises(SourceCorrupt, match="several columns named 'name'"):
        decoded(table(PEOPLE), tmp_path, pinned(tmp_path, "1.parquet", (tmp_path / "x.parquet").read_bytes()))


def test_files_that_duckdb_writes_are_read(tmp_path: Path) -> None:
    of = table("id BIGINT, total DECIMAL(10,2), at TIMESTAMP", deleted="op = 'D'", columns={"at": "ts"})
    query = "SELECT i AS id, CAST(i AS DECIMAL(10,2)) / 4 AS total, TIMESTAMP '2026-01-01' + to_seconds(i) AS ts, i AS lsn, CASE i % 3 WHEN 0 THEN 'D' ELSE 'U' END AS op FROM range(100) AS r(i)"
    found = []
    for name, options in (("1.json", ""), ("1.parquet", ""), ("2.parquet", ", COMPRESSION zstd")):
        duckdb.sql(f"COPY ({query}) TO '{tmp_path / name}' (FORMAT {name.partition('.')[2]}{options})")
        events = both_ways(of, tmp_path, name, (tmp_path / name).read_bytes())
        assert {e["_code"] for e in events} == {None}
        found.append([(e["id"], e["total"], e["at"], e["_kind"], e["_position"]) for e in events])
    assert found[0] == found[1] == found[2]
    assert found[0][4] == (4, Decimal("1.00"), datetime(2026, 1, 1, 0, 0, 4, tzinfo=UTC), "upsert", f"{4:020d}")


# --- again ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["lsn", None])
def test_a_refused_record_is_the_same_event_when_it_can_be_read(tmp_path: Path, order: str | None) -> None:
    given = order or arrival()
    narrow, wide = table("id BIGINT, name STRING, n INT", order_by=given), table("id BIGINT, name STRING, n BIGINT", order_by=given)
    json_ = lines([{"id": 1, "name": "M\ufffd", "n": 2**40, "lsn": 7}])
    rows = parquet(tmp_path, {"id": pa.array([1]), "name": ["M\ufffd"], "n": pa.array([2**40]), "lsn": pa.array([7])})
    for name, data in (("1.jsonl", json_), ("1.parquet", rows)):
        [refused] = both_ways(narrow, tmp_path, name, data)
        [event] = both_ways(wide, tmp_path, name, data)
        [again] = read_again_here(wide, [{**refused, "_arrival": -2}]).to_pylist()
        assert (refused["_code"], event["_kind"]) == ("VALUE_RANGE", "upsert")
        assert {**again, "_arrival": 0} == {**event, "_arrival": 0}


def test_fault_what_was_not_utf8_or_was_cut_is_not_read_again(tmp_path: Path) -> None:
    of = table(PEOPLE)
    data = b'{"id":1,"lsn":5,"name":"M\xfcller"}\n' + lines([{"id": "x", "lsn": 1, "name": "n" * RAW_BYTES}])
    refused = both_ways(of, tmp_path, "1.jsonl", data)
    assert [e["_code"] for e in refused] == ["BAD_JSON", "VALUE_TYPE"]
    assert read_again_here(of, [{**e, "_arrival": -2 - i} for i, e in enumerate(refused)]).num_rows == 0


def test_an_array_of_rows_and_rows_one_after_the_other_are_read_as_lines_are(tmp_path: Path) -> None:
    rows = [{"id": n, "name": "a", "lsn": n} for n in (1, 2, 3)]
    whole, glued = json.dumps(rows, indent=1).encode(), b"".join(json.dumps(row, indent=1).encode() for row in rows)
    for name, data in (("array.json", whole), ("glued.json", glued)):
        events = both_ways(table(PEOPLE), tmp_path, name, data)
        assert [(e["_line"], e["_kind"], e["id"]) for e in events] == [(1, "upsert", 1), (2, "upsert", 2), (3, "upsert", 3)]

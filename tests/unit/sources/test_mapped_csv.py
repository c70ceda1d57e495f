"""CSV as declared: what the csv module, DuckDB and others write comes back field by field; by columns the same as one by one."""

import csv as writing
import io
import random
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from mapped import both_ways, decoded, pinned, table
from source_fuzz import seeds

from rejoin import csv
from rejoin.errors import SchemaDrift, SourceCorrupt
from rejoin.sources import read_again_here

SCHEMA = "id BIGINT, name STRING, note STRING, total DECIMAL(10,2)"
FIELDS = ["id", "name", "note", "total", "lsn"]


def written(rows: list[list[Any]], header: list[str] | None = FIELDS, encoding: str = "utf-8", **how: Any) -> bytes:
    text = io.StringIO()
    writing.writer(text, **{"lineterminator": "\n", **how}).writerows([*([header] if header else []), *rows])
    return text.getvalue().encode(encoding)


DIALECTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "usual": ({}, {}),
    "semicolons": ({"delimiter": ";"}, {"delimiter": ";"}),
    "tabs": ({"delimiter": "\t"}, {"delimiter": "\t"}),
    "bars and single quotes": ({"delimiter": "|", "quote": "'"}, {"delimiter": "|", "quotechar": "'"}),
    "escapes": ({"escape": "\\"}, {"escapechar": "\\", "doublequote": False}),
    "all in quotes": ({}, {"quoting": writing.QUOTE_ALL}),
    "line ends of Windows": ({}, {"lineterminator": "\r\n"}),
    "line ends of Windows, all in quotes": ({}, {"lineterminator": "\r\n", "quoting": writing.QUOTE_ALL}),
    "escapes, all in quotes": ({"escape": "\\"}, {"escapechar": "\\", "doublequote": False, "quoting": writing.QUOTE_ALL}),
    "no header": ({"header": False, "names": FIELDS}, {"header": None}),
    "other names": ({"names": FIELDS}, {"header": ["a", "b", "c", "d", "e"]}),
    "nulls": ({"null": "NULL"}, {}),
}
TEXTS = [
    "plain",
    "é",
    "two words",
    'qu"ote',
    "it's",
    "a,b;c|d\te",
    "line\nfeed",
    "\\",
    "\\N",
    "back\\slash",
    " spaces ",
    "NULL",
    "-",
    "\u20ac",
]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("seed", seeds(12))
def test_what_is_written_in_a_dialect_is_read_as_declared(tmp_path: Path, name: str, seed: int) -> None:
    declared, how = DIALECTS[name]
    random_, null = random.Random(seed), declared.get("null", "")
    rows = []
    for i in range(100):
        texts = random_.choices(TEXTS if random_.random() < 0.4 else TEXTS[:3], k=2)
        rows.append([str(i), *texts, random_.choice(["12.50", "-3", null]), str(1000 + i)])
    of = table(SCHEMA, format=csv(**declared))
    events = both_ways(of, tmp_path, "1.txt", written(rows, **how))
    known = [[None if text == null else text for text in row[:3]] for row in rows]
    assert [[str(e["id"]), e["name"], e["note"]] for e in events] == known
    assert [e["total"] is None for e in events] == [row[3] == null for row in rows]
    assert {e["_code"] for e in events} == {None}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig", "iso8859-15", "utf-32", "cp037"])
def test_text_in_any_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    euro = "" if encoding in ("latin-1", "cp037") else "\u20ac"
    rows = [[i, f"é{euro}", "line\nfeed" if i % 9 == 4 else "x", "1.50", i] for i in range(70)]
    events = both_ways(table(SCHEMA, format=csv(encoding=encoding)), tmp_path, "1.csv", written(rows, encoding=encoding))
    assert [(e["id"], e["name"], e["note"]) for e in events] == [(r[0], r[1], r[2]) for r in rows]


def test_white_space_does_not_count_where_that_is_declared(tmp_path: Path) -> None:
    of = table(SCHEMA, format=csv(trim=True, null="-"))
    data = b"id, name ,note,total,lsn\n" + b' 1 , "Ann, A" , - , 2.50 ,7\n 2, Bob\t,n o t e, -,8 \n' * 20
    first, second = both_ways(of, tmp_path, "1.csv", data.replace(b'"Ann, A" ,', b'"Ann, A",'))[:2]
    assert (first["id"], first["name"], first["note"], str(first["total"])) == (1, "Ann, A", None, "2.50")
    assert (second["id"], second["name"], second["note"], second["total"]) == (2, "Bob", "n o t e", None)


def test_without_quotes_a_quote_is_a_character(tmp_path: Path) -> None:
    of = table(SCHEMA, format=csv(quote=None, delimiter="\t"))
    data = b"id\tname\tnote\ttotal\tlsn\n" + b'1\t"Ann\t5"\t2\t7\n' * 40
    assert {(e["name"], e["note"]) for e in both_ways(of, tmp_path, "1.tsv", data)} == {('"Ann', '5"')}


def test_columns_are_made_of_fields_of_csv(tmp_path: Path) -> None:
    of = table(
        "id BIGINT, total DECIMAL(10,2), day DATE, open BOOLEAN",
        key="id",
        order_by="CAST(`Seq No` AS BIGINT)",
        deleted="Op = 'D'",
        columns={"id": "`Order No`", "total": "replace(replace(Amount, '.', ''), ',', '.')", "open": "CAST(Open AS BOOLEAN)"}
        | {"day": "concat(split_part(Day, '/', 3), '-', split_part(Day, '/', 2), '-', split_part(Day, '/', 1))"},
        format=csv(delimiter=";"),
    )
    data = b"Op;Order No;Amount;Day;Open;Seq No\nI;7;1.234,50;25/07/2013;Y;5\nD;8;;;;6\nU;9;1,5;31/02/2013;N;7\n"
    made, gone, bad = both_ways(of, tmp_path, "1.csv", data)
    assert (made["id"], str(made["total"]), str(made["day"]), made["open"]) == (7, "1234.50", "2013-07-25", True)
    assert (gone["_kind"], gone["id"]) == ("delete", 8)
    assert (bad["_code"], bad["_raw"], bad["id"]) == ("VALUE_RANGE", "U;9;1,5;31/02/2013;N;7", 9)


@pytest.mark.parametrize("how", ["", ", DELIMITER ';', NULLSTR 'NULL'", ", HEADER false, FORCE_QUOTE *", ", QUOTE '''', ESCAPE '\\'"])
def test_files_that_duckdb_writes_are_read(tmp_path: Path, how: str) -> None:
    query = """SELECT i AS id, CASE i % 3 WHEN 0 THEN 'a;b,c''"' || chr(10) WHEN 1 THEN 'plain' END AS name, 'n' || i AS note, CAST(i AS DECIMAL(10,2)) AS total, i AS lsn
    FROM range(90) AS r(i)"""
    duckdb.sql(f"COPY ({query}) TO '{tmp_path / 'x.csv'}' (FORMAT csv{how})")
    declared: dict[str, Any] = {"delimiter": ";", "null": "NULL"} if "NULLSTR" in how else {}
    declared |= {"header": False, "names": FIELDS} if "HEADER" in how else {}
    declared |= {"quote": "'", "escape": "\\"} if "ESCAPE" in how else {}
    events = both_ways(table(SCHEMA, format=csv(**declared)), tmp_path, "1.csv", (tmp_path / "x.csv").read_bytes())
    expected = duckdb.sql(query).fetchall()
    assert [(e["id"], e["name"], e["note"], e["total"]) for e in events] == [row[:4] for row in expected]


HEADER = b"id,name,note,total,lsn\n"


@pytest.mark.parametrize(
    ("declared", "data", "code"),
    [
        ({}, HEADER + b"1,Ann,x,1,5,6\n", "BAD_CSV"),
        ({}, HEADER + b"1,Ann,x\n", "BAD_CSV"),
        ({}, HEADER + b"1,M\xfcller,x,1,5\n", "BAD_CSV"),
        ({"encoding": "cp1252"}, HEADER + b"1,M\x81,x,1,5\n", "BAD_CSV"),
        ({}, HEADER + b'1,"A"nn,x,1,5\n', "BAD_CSV"),
        ({}, HEADER + b'1,"An\nn"",x,1,5\n2,"b",c"d,1,6\n', "BAD_CSV"),
        ({"escape": "\\"}, HEADER + b'1,"A""b",x,1,5\n', "BAD_CSV"),
        ({}, HEADER + b"x,Ann,x,1,5\n", "VALUE_TYPE"),
        ({}, HEADER + b"1,Ann,x,1,\n", "UNKNOWN_POSITION"),
        ({}, HEADER + b"1,Ann,x,1,\r\n", "UNKNOWN_POSITION"),
    ],
)  # fmt: skip
def test_fault_a_record_that_is_not_as_declared_is_refused(tmp_path: Path, declared: dict[str, Any], data: bytes, code: str) -> None:
    good = b"9,fine,x,1,9\n" * 40
    events = both_ways(table(SCHEMA, format=csv(**declared)), tmp_path, "1.csv", data + good)
    assert [e["_code"] for e in events if e["_code"]] == [code]
    assert sum(e["_kind"] == "upsert" for e in events) == 40


@pytest.mark.parametrize(
    ("declared", "data", "message"),
    [
        ({}, HEADER + b'1,"Ann,x,1,5\n' * 3, "it ends inside a quoted field"),
        ({"names": ["a", "b"]}, HEADER + b"1,2,3,4,5\n", "its header has 5 fields, declared are 2 names"),
        ({"encoding": "utf-16"}, HEADER + b"1,A,x,1,5\n", "it is no text in utf-16"),
        ({}, b'"id\n",name\n1,2\n', "its header"),
        ({}, b"id,name,name,lsn\n1,2,3,4\n", "its header names a field twice"),
    ],
)  # fmt: skip
def test_fault_a_file_that_is_not_as_declared_is_refused_as_a_whole(
    tmp_path: Path, declared: dict[str, Any], data: bytes, message: str
) -> None:
    of, file = table(SCHEMA, format=csv(**declared)), pinned(tmp_path, "1.csv", data)
    for fast in (True, False):
        with pytest.raises(SourceCorrupt, match=re.escape(message)):
            decoded(of, tmp_path, file, fast=fast)


def test_a_field_that_the_header_lacks_is_null_and_its_column_absent(tmp_path: Path) -> None:
    of = table(SCHEMA, optional=["note"])
    events = both_ways(of, tmp_path, "1.csv", b"id,name,lsn\n" + b"1,Ann,5\n" * 40)
    assert {(e["name"], e["note"], e["total"], tuple(e["_absent"])) for e in events} == {("Ann", None, None, ("total",))}
    assert both_ways(of, tmp_path, "0.csv", b"") == []


def test_fault_a_file_of_one_line_is_refused_if_that_is_no_header_of_the_table(tmp_path: Path) -> None:
    with pytest.raises(SchemaDrift, match="lacks: id, name, note, total; it has, not declared"):
        both_ways(table(SCHEMA), tmp_path, "1.csv", b"U,1,Ann,2.50,7\n")
    assert both_ways(table(SCHEMA), tmp_path, "2.csv", HEADER) == both_ways(table(SCHEMA), tmp_path, "3.csv", b"\n\n") == []


def test_a_refused_record_is_read_again_if_the_declaration_names_its_fields(tmp_path: Path) -> None:
    declared: dict[str, Any] = {"header": False, "names": FIELDS, "encoding": "latin-1"}
    narrow, wide = (table(f"id BIGINT, name STRING, total {type_}", format=csv(**declared)) for type_ in ("INT", "BIGINT"))
    data = '1,"M\xfc\nller",n,3000000000,5\n'.encode("latin-1")
    [refused], [event] = both_ways(narrow, tmp_path, "1.csv", data), both_ways(wide, tmp_path, "1.csv", data)
    [again] = read_again_here(wide, [{**refused, "_arrival": -2}]).to_pylist()
    assert (refused["_code"], event["name"]) == ("VALUE_RANGE", "M\xfc\nller")
    assert {**again, "_arrival": 0} == {**event, "_arrival": 0}
    [refused] = both_ways(table("id INT, name STRING"), tmp_path, "1.csv", b"id,name,lsn\n3000000000,Ann,5\n")
    assert read_again_here(table("id BIGINT, name STRING"), [{**refused, "_arrival": -2}]).num_rows == 0

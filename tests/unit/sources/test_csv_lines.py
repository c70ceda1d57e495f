"""Plain lines of CSV, decoded by DuckDB, become the events that the careful decoder makes of them, coordinates, codes and all."""

import csv
import io
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from careful import decode_csv
from source_cases import table
from source_fuzz import NUMBERS, RAW_NUMBERS, TEXTS, seeds

from rejoin.errors import InvariantBroken, SourceCorrupt
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import RecordsSource, SnapshotSource
from rejoin.sources.decode import record_runs
from rejoin.sources.decode.proven_lines import together
from rejoin.sources.events import MISSING_KEY
from rejoin.sources.formats import line_chunks
from rejoin.sources.formats.csv_text import BAD_CSV
from rejoin.sources.shapes import csv_lines, snapshot
from rejoin.sources.stored_files import lines as numbered

TYPES = (
    "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
    "DECIMAL(10,2)", "DECIMAL(38,9)", "DECIMAL(38,0)", "DECIMAL(2,2)", "DECIMAL(12,0)",
)  # fmt: skip
WORDS = (
    "True", "TRUE", "tRuE", "f", "False", "FALSE", "fal\u017fe", "yes", "2", "00", "01", "-1", "+1", "1.0", "+0", "-00", "--1", "0x1", "1_000", "1 000", "½",
    "\u0663", "\uff11", "1e0", "1e-0", "10e-1", "1E+5", ".", "-", "+", "1.", "-.5", "01.50", "nan", "NAN", "-NaN", "inf", "Infinity", "+Infinity", "-infinity",
    " ", "  ", "\u00a0", "\u2028", "\x85", "\ufeff", "\ufeff1", "1\ufeff", "null", "NULL", "None", "\\N", "-", "é", "e\u0301", "ß", "😀", "x" * 300, "0" * 60,
    "1" * 40, "9" * 38, "-" + "9" * 38, "0." + "9" * 9, "0.0000000001", "99999999.995", "-99999999.99", "2147483648", "-2147483648", "-2147483649",
    "9223372036854775807", "-9223372036854775808", "999999999999999999", "000000000000000000001", "16777217", "0.1000000015", "123456789.12345678",
    "2024-02-30", "2024-13-01", "2024-2-29", "24-02-29", "02024-02-29", "-2024-02-29", "0001-01-01", "9999-12-31", "10000-01-01", "0000-01-01", "2024-02-29 ",
    "2024-02-29 00:00:00", "2024-02-29 11:14", "2024-02-29T11:14:15", "2024-02-29 11:14:15", "2024-02-29 11:14:15.5", "2024-02-29 11:14:15+00", "1969-12-31 23:59:59.999999",
    "2024-02-29 11:14:15+00:00", "2024-02-29T11:14:15+0000", "2024-02-29T11:14:15-00", "2024-02-29 11:14:15 Z", "2024-02-29 11:14:15+02", "2024-02-29T11:14:15z",
    "2024-02-29  11:14:15", "2024-02-29t11:14:15Z", "2024-02-29T24:00:00Z", "2024-02-29T11:60:15Z", "2024-02-29T11:14:60", "2024-02-29T11:14:15.", "2024-02-29T11:14:15.1234560Z",
    "2024-02-29T11:14:15,5Z", "1582-10-10", "1582-10-10 01:02:03", "epoch", "today", "today()", "2024-02-29 (BC)", "2024-02-29 UTC", "2024-02-29 11:14:15 UTC", "infinity",
    "a'b", "a''b", "a\\b", "%s", "$1", "{0}", "(x)", ";", "|", "a;b",
)  # fmt: skip
FIELDS = [*dict.fromkeys([*TEXTS, *RAW_NUMBERS, *map(str, NUMBERS), *WORDS])]
BARE = [text for text in FIELDS if not set(text) & set('",\n\r')]
PLAIN = "id BIGINT; name STRING; n INT; price DECIMAL(10,2); at TIMESTAMP; ok BOOLEAN"
OF = table(PLAIN, source=SnapshotSource("f"))


def seen(read: Callable[[], Iterator[pa.RecordBatch]]) -> list[str]:
    """As text, since NaN is not equal to itself and -0.0 is equal to 0.0. Or why the file is refused."""
    try:
        found = list(read())
    except SourceCorrupt as error:
        return [str(error)]
    return [f"{batch.schema}" for batch in found[:1]] + [repr(row) for batch in found for row in batch.to_pylist()]


def check(of: Table, data: bytes, length: int = 60, fewest: int = 0) -> tuple[int, list[str]]:
    """Reads a file both ways, in small chunks and batches. How many lines were proven, and what was read."""
    judged, proven = csv_lines._judged, list[int]()

    def counted(*args: Any) -> Any:
        made = judged(*args)
        proven.append(0 if made is None else sum(made.rows["_proven"].to_pylist()))  # of two threads
        return made

    with ExitStack() as patches:
        patches.enter_context(patch.object(record_runs, "BATCH_ROWS", 10))
        careful = seen(lambda: decode_csv(of, 7, "f.csv", 3, numbered(iter([data]))))
        for name, value in (("LINES", length), ("FEWEST", fewest)):
            patches.enter_context(patch.object(line_chunks, name, value))
        patches.enter_context(patch.object(csv_lines, "_judged", counted))
        pieces = [data[i : i + 1000] for i in range(0, len(data), 1000)]
        fast = seen(lambda: snapshot.decode_csv_pieces(of, 7, "f.csv", 3, iter(pieces)))
    assert fast == careful
    return sum(proven), careful


def plain(i: int) -> list[str]:
    return [str(i), f"n {i}", str(-i), f"{i}.5", f"2024-02-29 11:14:{i % 60:02d}", "tf"[i % 2]]


def text_of(rows: Sequence[Sequence[str]], end: str = "\n", header: str = "id,name,n,price,at,ok") -> bytes:
    return end.join([header, *(",".join(row) for row in rows)]).encode()


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("last", ["", "end", "blank"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2], ids=["no mark", "mark", "two marks"])
def test_all_lines_of_a_plain_file_are_proven(end: str, last: str, mark: bytes) -> None:
    data = mark + text_of([plain(i) for i in range(100)], end) + {"": "", "end": end, "blank": end * 3}[last].encode()
    proven, found = check(OF, data)
    assert (proven, len(found)) == (100 if len(mark) < 6 else 0, 101)
    assert check(OF, data, fewest=2_000) == (min(proven, 59), found), "the last lines are too few"
    assert check(OF, data, length=101)[1] == found


@pytest.mark.parametrize(
    "header",
    ['"id","name","n","price","at","ok"', "id,name,n,price,at,ok\r", "ok,n,id,at,name,price", "id,x,name,y", "id,id,name,n,n", "name,n"],
)
def test_a_header_of_any_order_says_what_fields_are(header: str) -> None:
    rows = [plain(i)[: header.count(",") + 1] for i in range(60)]
    proven, found = check(OF, text_of(rows, header=header))
    assert len(found) == 61
    assert (proven > 0) == header.startswith(('"id"', "id,n", "id,x"))


@pytest.mark.parametrize("header", ["", '"id', 'i"d,name', 'id,"na"me', "id\x00,name", "\r", "i\rd,name", '""', " ", "name"])
def test_an_odd_header_is_read_alike(header: str) -> None:
    check(OF, text_of([plain(i)[:2] for i in range(50)], header=header))
    check(OF, text_of([["x"], [""], ["", "y"], ['"'], ['a"']] * 10, header=header))


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"\n\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\xff,id\n1,2", b"id", b"id\n", b"id\n1", b"id\n\n1\n \n\n", b"\nid\n1"],
)
def test_hardly_any_bytes_are_read_alike(data: bytes) -> None:
    check(table("id STRING", source=SnapshotSource("f")), data)
    check(table("id STRING", source=SnapshotSource("f", null="\\N")), data + b"\n\r\n \n" * 20)
    check(table("id BIGINT", source=SnapshotSource("f")), data + b"\n" * 40 + b"5\n" * 40)


@pytest.mark.parametrize("null", ["", "\\N", "1", "'", *(pytest.param(null, marks=pytest.mark.slow) for null in ("x\x00", "é", "NULL"))])
@pytest.mark.parametrize("type_", TYPES)
def test_every_value_of_every_type_is_read_alike(type_: str, null: str) -> None:
    of = table(f"id BIGINT; v {type_}", source=SnapshotSource("f", null=null))
    proven, found = check(of, text_of([[str(i), text] for i, text in enumerate(BARE)], header="id,v"), len(BARE))
    assert 3 <= proven < len(found) == len(BARE) + 1 or (type_ == "STRING" and proven > 200)
    as_key = table(f"id {type_}; v STRING", source=SnapshotSource("f", null=null))
    twice = text_of([[text, text] for text in BARE], header="id,v")
    assert check(as_key, twice, len(BARE))[0] >= 3
    without = replace(as_key, key=(), source=RecordsSource("f", null=null))
    assert check(without, twice, len(BARE))[0] >= 3


def test_a_column_of_bytes_is_read_alike() -> None:
    assert (
        check(table("id BIGINT; v BINARY", source=SnapshotSource("f")), text_of([[str(i), "AP8Q"] for i in range(50)], header="id,v"))[0]
        == 0
    )


@pytest.mark.parametrize("header", ["id", "id,v", "v,id"])
def test_values_that_only_quotes_can_hold_are_read_alike(header: str) -> None:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows([text, str(i)][: header.count(",") + 1] for i, text in enumerate(FIELDS * 2))
    proven, _ = check(table("id STRING; v STRING", source=SnapshotSource("f")), f"{header}\n{made.getvalue()}".encode())
    assert proven > 200


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        ("7,a,1", BAD_CSV), ("7,a,1,1.5,2024-02-29,t,x", BAD_CSV), ('7,"a"b,1,1.5,2024-02-29,t', BAD_CSV), ("7,a\rb,1,1.5,2024-02-29,t", BAD_CSV), ("7,\udcff,1,1.5,2024-02-29,t", BAD_CSV),
        ('7,"a\n7,",b",1,1.5,2024-02-29,t', BAD_CSV), (",a,1,1.5,2024-02-29,t", MISSING_KEY), ("x,a,1,1.5,2024-02-29,t", "VALUE_TYPE"), ("7,a,x,1.5,2024-02-29,t", "VALUE_TYPE"),
        ("7,a,1,1.5,2024-02-29,yes", "VALUE_TYPE"), ("7,a,2147483648,1.5,2024-02-29,t", "VALUE_RANGE"), ("7,a,1,100000000,2024-02-29,t", "VALUE_RANGE"),
        ("7,a,1,1.5,2023-02-29,t", "VALUE_RANGE"), ("7,a,1,1.5,infinity,t", "VALUE_INFINITE"), ("7,a,1,NaN,2024-02-29,t", "VALUE_INFINITE"), ("7,a,1,1.505,2024-02-29,t", "VALUE_ROUNDED"),
        ("7,a,1.5,1.5,2024-02-29,t", "VALUE_ROUNDED"), ("7,a,1,1.5,2024-02-29T11:14:15.1234567,t", "VALUE_ROUNDED"),
    ],
)  # fmt: skip
def test_every_code_among_plain_lines_is_that_of_the_careful_decoder(odd: str, code: str) -> None:
    good = [plain(i) for i in range(45)]
    data = b"\n".join([text_of(good), odd.encode("utf-8", "surrogateescape"), text_of(good).split(b"\n", 1)[1]])
    proven, found = check(OF, data, 30)
    assert (len(found), sum(f"'_code': '{code}'" in row for row in found)) == (92, 1)
    assert proven >= 45


SPANS = [
    '1,"a\nb",2',
    '1,"\n\n\n",2',
    '1,"' + "\n3,c,4" * 70 + '",2',
    '1,"a""\n"",",2',
    '"1\n",a,2',
    '1,a,"2\n"',
    '1,"a\n2,"b",3',
    '1,a"b,2',
    '1,"a\r\n",2\r',
    '"1","a","2"',
]


@pytest.mark.parametrize("at", [0, 1, 27, 28, 29, 30, *(pytest.param(at, marks=pytest.mark.slow) for at in (57, 58, 59, 87))])
@pytest.mark.parametrize("span", SPANS)
def test_a_record_over_lines_ends_where_the_careful_reader_says_even_in_a_later_chunk(span: str, at: int) -> None:
    rows = [f"{i},n{i},{i}" for i in range(100)]
    data = "\n".join(["id,name,n", *rows[:at], span, *rows[at:]]).encode()
    proven, found = check(table("id STRING; name STRING; n STRING", source=SnapshotSource("f")), data, 30)
    assert proven >= 100 or "n" in span
    assert 100 < len(found) <= 102


@pytest.mark.parametrize("at", [0, 28, 29, 30, 99, 100])
@pytest.mark.parametrize("bad", ['1,"a,2', '1,a,"', '"'])
def test_fault_a4_a_quote_that_is_not_closed_makes_the_file_corrupt(bad: str, at: int) -> None:
    rows = [f"{i},n{i},{i}" for i in range(100)]
    _, found = check(OF, "\n".join(["id,name,n", *rows[:at], bad, *rows[at:]]).encode(), 30)
    assert len(found) == 1
    assert f"ends inside a quoted field; the record begins on line {at + 2}" in found[0]


PIECES = (
    b'"', b'""', b",", b",,", b"\r", b"\r\n", b"\n", b"\n\n", b"\x00", b"\t", b"\x1a", b"\x7f", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xc2\x85",
    b"\xe2\x80\xa8", b"\xef\xbb\xbf", b" ", b"+", b"-", b"0", b"e5", b".", b'","', b'"\n"', b"'", b"\\", b"9" * 25,
)  # fmt: skip


def damaged(random_: random.Random, data: bytes, times: int, pieces: Sequence[bytes]) -> bytes:
    for _ in range(times):
        at = random_.randrange(len(data) + 1)
        to = min(len(data), at + random_.choice([0, 0, 1, 2, 40]))
        data = data[:at] + random_.choice([*pieces, b""]) + data[to:]
    return data


@pytest.mark.parametrize("seed", seeds(60))
def test_random_damage_is_read_alike(seed: int) -> None:
    random_ = random.Random(f"{seed} damage")
    print(f"seed: {seed}")
    head, body = text_of([plain(i) for i in range(200)], random_.choice(["\n", "\n", "\r\n"])).split(b"\n", 1)
    pieces = PIECES if seed % 3 else [piece for piece in PIECES if b'"' not in piece]
    body = damaged(random_, body, random_.choice([1, 5, 40]), pieces)
    head = damaged(random_, head, 1, PIECES) if seed % 5 == 0 else head
    proven, found = check(OF, head + b"\n" + body, random_.choice([7, 30, 90]))
    assert proven > 0 or seed % 5 == 0 or len(found) == 1 or set(body) & set(b'"\xff\xed\xc0\xf4')


@pytest.mark.parametrize("seed", seeds(40))
def test_random_files_are_read_alike(seed: int) -> None:
    random_ = random.Random(f"{seed} files")
    print(f"seed: {seed}")
    types = random_.choices([t for t in TYPES if t != "BINARY"], k=random_.randint(1, 8))
    columns = [("id", random_.choice(["BIGINT", "STRING", "DATE"])), *((f"c{i}", type_) for i, type_ in enumerate(types))]
    null = random_.choice(["", "\\N", "0"])
    of = table(
        "; ".join(f"{name} {type_}" for name, type_ in columns), source=random_.choice([SnapshotSource, RecordsSource])("f", null=null)
    )
    header = random_.sample(
        [name for name, _ in columns] + random_.choice([[], ["more"], ["id"], ["c0", "x y"]]), k=random_.randint(1, len(columns))
    )
    header = header if "id" in header else [*header, "id"]
    kinds = dict(columns)
    made = io.StringIO()
    quoting = random_.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(made, lineterminator=random_.choice(["\n", "\r\n"]), quoting=quoting)
    for i in range(random_.choice([30, 150, 400])):
        row = [str(i) if name == "id" and kinds[name] != "DATE" else good(random_, kinds.get(name, "STRING")) for name in header]
        if random_.random() < 0.15:
            row[random_.randrange(len(row))] = random_.choice(FIELDS + [null] * 40)
        writer.writerow(row[: random_.choice([len(row)] * 60 + [len(row) - 1])])
        made.write("\n" * (random_.random() < 0.01))
    check(of, (",".join(header) + "\n" + made.getvalue()).encode(), random_.choice([5, 30, 1000]))


def good(random_: random.Random, type_: str) -> str:
    if type_.startswith("DECIMAL"):
        return random_.choice(["0", "0.0", "-0"]) if type_ == "DECIMAL(2,2)" else str(random_.randint(-99, 99))
    day = f"{random_.randint(1000, 2999)}-{random_.randint(1, 12):02d}-{random_.randint(1, 28):02d}"
    clock = f"{day}{random_.choice('T ')}{random_.randrange(24):02d}:{random_.randrange(60):02d}:{random_.randrange(60):02d}{random_.choice(['', 'Z', '.5', '.000001Z'])}"
    return {
        "BOOLEAN": random_.choice(["t", "false", "1"]),
        "STRING": "".join(random_.choices("ab ,;'é😀", k=random_.randrange(12))),
        "DATE": day,
        "TIMESTAMP": clock,
        "TIMESTAMP_NTZ": clock,
        "FLOAT": f"{random_.uniform(-99, 99):.3f}",
        "DOUBLE": f"{random_.uniform(-1e6, 1e6):.7f}",
    }.get(type_, str(random_.randint(-(2**31), 2**31 - 1)))


def test_fault_a4_a_reader_that_loses_a_record_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_chunks, "FEWEST", 0)
    monkeypatch.setattr(csv_lines, "together", lambda *args: (batch.slice(1) for batch in together(*args)))
    with pytest.raises(InvariantBroken, match="101 lines read, 100 accounted for"):
        list(snapshot.decode_csv_pieces(OF, 7, "f.csv", 3, iter([text_of([plain(i) for i in range(100)]) + b"\n"])))


def test_rows_of_whole_chunks_stay_in_the_order_of_their_lines() -> None:
    rows = [plain(i) for i in range(100_000)]
    rows[50_000][1] = '"a\nb"'
    data = text_of(rows)
    read = snapshot.decode_csv_pieces(OF, 7, "f.csv", 3, iter([data[i : i + (1 << 20)] for i in range(0, len(data), 1 << 20)]))
    found = pa.Table.from_batches(list(read))
    assert found["id"].to_pylist() == list(range(100_000))
    assert found["_line"].to_pylist() == [*range(2, 50_003), *range(50_004, 100_003)]

"""Messages of topics and rows of Parquet of ``changes(...)`` that are changed at random, as ``test_every_dialect_damaged`` changes lines of files."""

import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_every_dialect_damaged import FILES, NESTED, PLAIN, Row, both, check_fates, damaged, nested, rows, table
from test_mapped_messages import ORDERS, both_ways

from rejoin import arrival, changes, flattened
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import SchemaUnknown
from rejoin.sources.transports.kafka.wire_format import WireFormat

# --- messages -------------------------------------------------------------------------------------------------------------

TOTAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
PLACE = [{"field": "city", "type": "string"}, {"field": "day", "type": "int32", "name": "io.debezium.time.Date"}]
CONNECT = {"type": "struct", "fields": [
    {"field": "name", "type": "string"}, {"field": "total", **TOTAL}, {"field": "tags", "type": "array", "items": {"type": "string"}},
    {"field": "place", "type": "struct", "fields": PLACE}, {"field": "m", "type": "map", "values": {"type": "int32"}},
]}  # fmt: skip


def connect(row: Row, n: int) -> Row:
    """As the JSON converter writes it with its schema."""
    said = {**nested(row, n), "total": "BNI="}
    return {"schema": CONNECT, "payload": {**said, "place": said["place"] and {"city": "é", "day": n}}}


MESSAGES: dict[str, tuple[SourceDeclaration, Callable[[Row, int], Any]]] = {
    "upserts": (changes(ORDERS), lambda row, _: row),
    "upserts by a version": (changes(ORDERS, order_by="v", columns={"name": "concat(name, _key.id)"}), lambda row, n: {**row, "v": n}),
    "nested columns with schemas": (changes(ORDERS), connect),
    "flattened": (flattened(ORDERS, order_by="__lsn"), lambda row, n: {**row, "__lsn": n, "__deleted": str(n % 5 == 0).lower()}),
}


@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("form", MESSAGES)
def test_fault_every_message_of_rows_has_one_fate(form: str, files: int, pytestconfig: pytest.Config) -> None:
    source, make = MESSAGES[form]
    of, kinds = table(source, NESTED if "nested" in form else PLAIN), set[str]()
    for number in range(files):
        chance, given = random.Random(f"{pytestconfig.option.hypothesis_seed} {number}"), []
        for n, row in rows(200):
            key, value = (json.dumps(said, ensure_ascii=chance.random() < 0.5).encode() for said in ({"id": n % 7}, make(row, n)))
            given.append((damaged(chance, key) if chance.random() < 0.1 else key, None if n % 11 == 0 else damaged(chance, value)))
        found = both_ways(of, given)
        check_fates(found, {event["_line"] for event in found})
        kinds |= {event["_kind"] for event in found}
    assert kinds == {"upsert", "delete", "quarantined"}


AVRO_ROW: Row = {"type": "record", "name": "Row", "fields": [
    {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]},
    {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [
        {"name": "city", "type": "string"}, {"name": "day", "type": {"type": "int", "logicalType": "date"}}]}]},
    {"name": "m", "type": ["null", {"type": "map", "values": ["null", "int"]}]},
]}  # fmt: skip
FLAT_ROW = {**AVRO_ROW, "fields": AVRO_ROW["fields"][:3]}


class Schemas:
    """A registry with two schemas."""

    def schema(self, id_: int) -> Any:
        if id_ in (1, 2):
            return (FLAT_ROW, AVRO_ROW)[id_ - 1]
        raise SchemaUnknown(f"no schema {id_}")


def wire(id_: int, row: Row) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(Schemas().schema(id_)), row)
    return b"\0" + id_.to_bytes(4, "big") + out.getvalue()


def flipped(chance: random.Random, data: bytes, start: int = 0) -> bytes:
    """Some bytes are others, are gone, or come twice."""
    for _ in range(chance.randint(1, 3)):
        at, size = chance.randrange(start, len(data) + 1), chance.choice([0, 1, 1, 4])
        data = data[:at] + chance.choice([chance.randbytes(size), b"", data[at : at + size] * 2]) + data[at + size :]
    return data


@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("id_", [1, 2])
def test_fault_every_message_of_rows_in_avro_has_one_fate_or_its_schema_is_unknown(
    id_: int, files: int, pytestconfig: pytest.Config
) -> None:
    of, kinds = table(changes(ORDERS), (PLAIN, NESTED)[id_ - 1]), set[str]()
    for number in range(files):
        chance, given = random.Random(f"{pytestconfig.option.hypothesis_seed} {number}"), []
        document = WireFormat(Schemas()).document  # type: ignore[arg-type]
        for n, row in rows(200):
            of_row = nested(row, n)
            place = of_row["place"] and {"city": "é", "day": n}
            value = wire(id_, {**of_row, "total": Decimal(row["total"]), "place": place})
            if chance.random() < 0.66:
                value = flipped(chance, value, chance.choice([0, 5]))
            try:
                given.append((str(n % 7).encode(), document(value)))
            except SchemaUnknown:
                assert value[1:5] != id_.to_bytes(4, "big")
        found = both_ways(of, given)
        check_fates(found, {event["_line"] for event in found})
        kinds |= {event["_kind"] for event in found}
    assert {"upsert", "quarantined"} <= kinds


# --- Parquet --------------------------------------------------------------------------------------------------------------

TEXTS: list[Any] = [None, b"", b"\xff", b"\xed\xa0\x80", "é".encode(), b"x" * 300, b"1e400", b"\x00"]
NUMBERS: list[Any] = [None, 0, -1, 2**31, -(2**63), 2**63 - 1]
DAYS: list[Any] = [None, 0, 2_932_896, 2_932_897, -719_163, 2**31 - 1]


def texts(chance: random.Random, usual: list[bytes]) -> pa.Array:
    values = pa.array([chance.choice(TEXTS) if chance.random() < 0.2 else one for one in usual], pa.binary()).view(pa.string())
    return chance.choice([values, values, values.cast(pa.large_binary()).view(pa.large_string())])


def numbers(chance: random.Random, usual: list[int], odd: list[Any], share: float = 0.2) -> pa.Array:
    return pa.array([chance.choice(odd) if chance.random() < share else one for one in usual])


def columns(chance: random.Random, count: int) -> dict[str, pa.Array]:
    """Columns of rows, of which two thirds have something odd. Types are those of the table, wider ones, or texts."""
    usual = list(range(1, count + 1))
    parts = texts(chance, [b"t%d" % n for n in usual for _ in range(2)])
    ends = pa.array(range(0, 2 * count + 1, 2), pa.int32() if parts.type == pa.string() else pa.int64())
    of_list = pa.ListArray if parts.type == pa.string() else pa.LargeListArray
    days = numbers(chance, usual, DAYS, 0.1).cast(pa.int32()).view(pa.date32())
    absent = pa.array([chance.random() < 0.1 for _ in usual])
    total = [None if chance.random() < 0.1 else Decimal(chance.choice([n, 10**9, 1])).scaleb(-chance.choice([0, 2, 3])) for n in usual]
    keys = [[(key, chance.choice([n, None, -(2**31)])) for key in chance.sample("abc", chance.randrange(3))] for n in usual]
    return {
        "id": chance.choice([numbers(chance, usual, NUMBERS, 0.1), texts(chance, [str(n % 7).encode() for n in usual])]),
        "name": texts(chance, [b"n%d" % n for n in usual]),
        "total": pa.array(total).cast(chance.choice([pa.decimal128(20, 4), pa.string(), pa.decimal256(50, 3)])),
        "at": chance.choice([numbers(chance, usual, NUMBERS), texts(chance, [str(n).encode() for n in usual])]),
        "tags": of_list.from_arrays(ends, parts),
        "place": pa.StructArray.from_arrays([days, texts(chance, [b"c"] * count)], names=["day", "city"], mask=absent),
        "m": pa.array(keys, pa.map_(pa.string(), chance.choice([pa.int32(), pa.int32(), pa.int64()]))),
    }


@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("schema", [PLAIN, NESTED], ids=["plain", "nested"])
def test_fault_every_row_of_parquet_has_one_fate_or_its_file_a_code(
    tmp_path: Path, schema: str, files: int, pytestconfig: pytest.Config
) -> None:
    kinds, read = set[str](), {"upsert", "delete", "quarantined"}
    for number in range(files + 100):
        if number >= files + 8 and read <= kinds:  # two files of three do not fit the table or are corrupt
            break
        chance, out = random.Random(f"{pytestconfig.option.hypothesis_seed} {number}"), io.BytesIO()
        pq.write_table(
            pa.table(columns(chance, 200)), out, write_page_checksum=chance.random() < 0.5, row_group_size=chance.choice([30, 200])
        )
        whole = chance.random() < 0.7
        data = out.getvalue() if whole else flipped(chance, out.getvalue())
        order = chance.choice(["at", "CAST(at AS BIGINT)", arrival()])
        found = both(
            table(changes("landing", order_by=order, deleted="coalesce(id = '3', false)"), schema), tmp_path, f"{number}.parquet", data
        )
        if isinstance(found, list):
            check_fates(found, set(range(1, (200 if whole else len(found)) + 1)))
        kinds |= {found} if isinstance(found, str) else {event["_kind"] for event in found}
    assert read <= kinds <= {*read, "SOURCE_CORRUPT", "SCHEMA_DRIFT"}

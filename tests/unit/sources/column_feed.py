"""Change events in columns that are read both ways, by the statement and one by one; random ones with odd values, as Avro and as Parquet."""

import io
import random
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pinning import pinned, put
from source_cases import table

from rejoin.errors import SourceCorrupt
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource
from rejoin.plan.pin import Pin
from rejoin.sources import SourceAccess, read_along
from rejoin.sources.formats.binary_documents import binary_documents
from rejoin.sources.shapes import registry
from rejoin.sources.shapes.debezium import columns
from rejoin.sources.stored_files import lines
from rejoin.sources.transports.files import pinned as file_of
from rejoin.sources.transports.kafka.wire_columns import WireColumns
from rejoin.sources.transports.kafka.wire_format import WireFormat
from rejoin.sources.transports.messages import Line, Message

DDL = "id BIGINT; price DECIMAL(10,2); at TIMESTAMP; late TIMESTAMP_NTZ; fine TIMESTAMP; seen TIMESTAMP; day DATE; paid BOOLEAN; tiny BOOLEAN; data BINARY; x DOUBLE; y FLOAT; n INT; note STRING"
OF = table(DDL, source=DebeziumSource("src"))
UNCHANGED = "__debezium_unavailable_value"


def named(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "connect.name": name}


DECIMAL = {"type": "bytes", "scale": 2, "precision": 30, "connect.name": "org.apache.kafka.connect.data.Decimal", "logicalType": "decimal"}
FIELDS: dict[str, Any] = {
    "id": "long", "price": DECIMAL, "at": named("long", "io.debezium.time.MicroTimestamp"), "late": named("long", "io.debezium.time.Timestamp"),
    "fine": named("long", "io.debezium.time.NanoTimestamp"), "seen": named("string", "io.debezium.time.ZonedTimestamp"), "day": named("int", "io.debezium.time.Date"),
    "paid": "boolean", "tiny": "int", "data": "bytes", "x": "double", "y": "float", "n": "long", "note": "string", "other": "string",
}  # fmt: skip
ROW = {"type": "record", "name": "Value", "fields": [{"name": name, "type": ["null", kind]} for name, kind in FIELDS.items()]}
SOURCE = {"type": "record", "name": "Source", "fields": [
    {"name": "connector", "type": "string"}, {"name": "name", "type": ["null", "string"]}, {"name": "lsn", "type": ["null", "long"]}, {"name": "snapshot", "type": ["null", "string"]}, {"name": "sequence", "type": ["null", "string"]},
]}  # fmt: skip
BLOCK = {"type": "record", "name": "Block", "fields": [{"name": "total_order", "type": "long"}]}
ENVELOPE = {"type": "record", "name": "Envelope", "namespace": "shop.orders", "fields": [
    {"name": "before", "type": ["null", ROW]}, {"name": "after", "type": ["null", "Value"]}, {"name": "source", "type": ["null", SOURCE]},
    {"name": "transaction", "type": ["null", BLOCK]}, {"name": "op", "type": "string"},
]}  # fmt: skip
KEY = {"type": "record", "name": "Key", "namespace": "shop.orders", "fields": [{"name": "id", "type": ["null", "long"]}]}
# As a table has it after a column was added; and one whose rows have values of several types, which columns do not tell.
LATER = {
    **ENVELOPE,
    "fields": [
        {**ENVELOPE["fields"][0], "type": ["null", {**ROW, "fields": [*ROW["fields"], {"name": "new", "type": "int", "default": 0}]}]},
        *ENVELOPE["fields"][1:],
    ],
}  # type: ignore[index, dict-item, list-item]
SCHEMAS = {1: KEY, 2: ENVELOPE, 3: LATER, 4: {**KEY, "fields": [{"name": "id", "type": ["null", "long", "string"]}]}}

BIG = 2**63 - 1
VALUES: dict[str, tuple[Callable[[random.Random], Any], list[Any]]] = {
    "price": (lambda r: r.randrange(-(10**9), 10**9), [0, -1, 127, 128, -128, -129, 10**10 - 1, 10**10, 2**63, -(2**63), 2**120, 10**30, None]),
    "at": (lambda r: r.randrange(10**15, 2 * 10**15), [0, -1, BIG, -BIG - 1, 253402300799999999, 253402300800000000, -62135596800000000, -62135596800000001, None]),
    "late": (lambda r: r.randrange(10**12, 2 * 10**12), [0, -1, BIG, 253402300799999, 253402300800000, -62135596800001, None]),
    "fine": (lambda r: 1000 * r.randrange(10**15, 2 * 10**15), [1, -1, 999, -1000, BIG, -BIG - 1, None]),
    "seen": (lambda r: f"2024-02-{r.randrange(10, 29)}T11:12:13.{r.randrange(10**6):06d}Z", ["", "2024-02-30T00:00:00Z", "2024-01-01T00:00:00+01:00", "infinity", UNCHANGED, None]),
    "day": (lambda r: r.randrange(-1000, 30_000), [0, -719162, -719163, 2932896, 2932897, -2147472692, 2**31 - 1, None]),
    "paid": (lambda r: r.random() < 0.5, [None]),
    "tiny": (lambda r: r.randrange(2), [2, -1, None]),
    "data": (lambda r: r.randbytes(r.randrange(30)), [b"", UNCHANGED.encode(), b"\xff" * 300, None]),
    "x": (lambda r: r.random() * 10 ** r.randrange(-20, 20), [0.0, -0.0, 1e22, 1e-320, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, None]),
    "y": (lambda r: struct.unpack("<f", struct.pack("<f", r.random()))[0], [0.0, -0.0, float("nan"), float("-inf"), 1.401298464324817e-45, None]),
    "n": (lambda r: r.randrange(-1000, 10**6), [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, BIG, None]),
    "note": (lambda r: "n" * r.randrange(80), ["", 'é\u2028\\"\n\x00', UNCHANGED, "a" * 5000, None]),
    "other": (lambda r: "o", ["", UNCHANGED, None]),
}  # fmt: skip
"""Column -> what it holds, and what it holds that is odd."""


def row(rng: random.Random, id_: int | None, odd: float) -> dict[str, Any]:
    found = {name: rng.choice(odds) if rng.random() < odd else usual(rng) for name, (usual, odds) in VALUES.items()}
    return {"id": id_, **found}


def event(rng: random.Random, lsn: int, odd: float) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Key and envelope; no envelope of a tombstone."""
    op, id_ = rng.choice("ccuuurd"), rng.randrange(9)
    after = None if op == "d" else row(rng, id_, odd)
    before = {**row(rng, id_, 0), "id": id_} if op == "d" or rng.random() < 0.3 else None
    sequence = rng.choice([None, "", f'["{lsn - 3}","{lsn}"]', f'["{lsn + 9}","{lsn}"]', f'[null,"{lsn}"]'])
    said = rng.choice(["false", "true", "first", "last", "incremental", None])
    source = {"connector": "postgresql", "name": "shop", "lsn": lsn, "snapshot": said, "sequence": sequence}
    found: dict[str, Any] = {
        "before": before,
        "after": after,
        "source": source,
        "transaction": rng.choice([None, {"total_order": lsn % 7}]),
        "op": op,
    }
    key: dict[str, Any] = {"id": id_}
    if rng.random() < odd:
        strange: list[Callable[[], object]] = [
            lambda: found.update(op=rng.choice(["t", "m", "x", "", "d", "c"])), lambda: found.update(after=None), lambda: found.update(before=row(rng, 77, 0)),
            lambda: source.update(lsn=rng.choice([None, -1, BIG])), lambda: source.update(connector=rng.choice(["mysql", ""])), lambda: found.update(source=None),
            lambda: key.update(id=None), lambda: after and after.update(id=None), lambda: found.update(transaction={"total_order": -1}),
        ]  # fmt: skip
        rng.choice(strange)()
    return key, None if rng.random() < 0.08 else found


def octets(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def in_avro(found: dict[str, Any]) -> dict[str, Any]:
    """An envelope with decimals as their octets."""

    def of(values: dict[str, Any] | None) -> dict[str, Any] | None:
        return values and {**values, "price": None if values["price"] is None else octets(values["price"])}

    return {**found, "before": of(found["before"]), "after": of(found["after"])}


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    return (
        {k: _bare(v) if k in ("type", "fields") else v for k, v in schema.items() if k != "logicalType"}
        if isinstance(schema, dict)
        else schema
    )


WRITERS = {id_: fastavro.parse_schema(_bare(schema)) for id_, schema in SCHEMAS.items()}


def wire(id_: int, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    out.write(struct.pack(">bI", 0, id_))
    fastavro.schemaless_writer(out, WRITERS[id_], value)
    return out.getvalue()


class Schemas:
    """A registry."""

    def schema(self, id_: int) -> Any:
        return SCHEMAS[id_]


def shown(batches: Iterator[pa.RecordBatch]) -> list[str]:
    """As text, since NaN is not equal to itself and -0.0 is equal to 0.0."""
    return [repr(found) for batch in batches for found in batch.to_pylist()]


def both_ways(messages: list[Message], of: Table = OF, chunk: int = 50) -> tuple[int, int]:
    """Reads messages both ways. How many records were read one by one by the fast way, and how many there are."""
    format_, line = WireFormat(Schemas()), Line("t")  # type: ignore[arg-type]
    written = [line.one(m._replace(key=format_.document(m.key), value=format_.document(m.value))) for m in messages]
    careful = shown(registry.decode(of, "t/0", 2, iter(enumerate(written, 1))))
    reader = columns.Columns(of, "t/0", 2)
    with counted() as slow, patch("rejoin.sources.transports.kafka.wire_columns.LINES", chunk):
        fast = shown(batch for part in WireColumns(format_, line).chunks(messages) for batch in reader.events(part))
    assert fast == careful
    return len(slow), len(careful)


def file_both_ways(root: Path, data: bytes, end: str, whole: bytes = b"", chunk: int = 50) -> tuple[int, int] | None:
    """The same of a file; None if it is refused. ``whole``: the file before it was damaged, as the fast way does not look at pages of Parquet of columns
    that nothing reads, and finds then what stands there.
    """
    with counted() as slow, patch("rejoin.sources.formats.binary_documents.LINES", chunk):
        fast = _events(root, data, end, lambda pin: read_along(OF, pin, SourceAccess(str(root))))
    careful = _events(root, data, end, lambda pin: _one_by_one(root, pin))
    if fast is not None and careful is None and end == ".parquet":
        careful = _events(root, whole, end, lambda pin: _one_by_one(root, pin))
    assert fast == careful
    return None if careful is None else (len(slow), len(careful))


def _one_by_one(root: Path, pin: Pin) -> Iterator[pa.RecordBatch]:
    part = pin.parts[0]
    return registry.decode(OF, part.id, 0, lines(binary_documents(str(root), file_of(part))))


def _events(root: Path, data: bytes, end: str, read: Callable[[Pin], Iterator[pa.RecordBatch]]) -> list[str] | None:
    put(root, **{f"src/1{end}": data})
    try:
        return shown(read(pinned(OF, root)))
    except SourceCorrupt:
        return None


class counted:  # noqa: N801 -- used as a function
    """What is read one by one meanwhile."""

    def __enter__(self) -> list[int]:
        found: list[int] = []
        numbered = columns.Columns._numbered

        def noted(self: columns.Columns, chunk: columns.Chunk, rows: Any) -> Iterator[tuple[int, bytes]]:
            found.extend(rows)
            return numbered(self, chunk, rows)

        self._patch = patch.object(columns.Columns, "_numbered", noted)
        self._patch.start()
        return found

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


def avro_file(events: list[dict[str, Any]], codec: str = "null", interval: int = 3_000, schema: Any = ENVELOPE) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), [{**e, **_decimals(e)} for e in events], codec=codec, sync_interval=interval)
    return sink.getvalue()


def _decimals(found: dict[str, Any]) -> dict[str, Any]:
    def of(values: dict[str, Any] | None) -> dict[str, Any] | None:
        if values is None or values["price"] is None:
            return values
        return {**values, "price": octets(values["price"])}

    return {"before": of(found["before"]), "after": of(found["after"])}


def parquet_file(events: list[dict[str, Any]], group: int = 70) -> bytes:
    of_row = pa.struct([("id", pa.int64()), ("price", pa.decimal128(38, 2)), ("at", pa.timestamp("us", "UTC")), ("late", pa.timestamp("ms")), ("fine", pa.timestamp("ns")),
                        ("seen", pa.string()), ("day", pa.date32()), ("paid", pa.bool_()), ("tiny", pa.int16()), ("data", pa.binary()), ("x", pa.float64()), ("y", pa.float32()),
                        ("n", pa.int64()), ("note", pa.string()), ("other", pa.dictionary(pa.int32(), pa.string()))])  # fmt: skip
    source = pa.struct(
        [("connector", pa.string()), ("name", pa.string()), ("lsn", pa.int64()), ("snapshot", pa.string()), ("sequence", pa.string())]
    )
    schema = pa.schema(
        [
            ("before", of_row),
            ("after", of_row),
            ("source", source),
            ("transaction", pa.struct([("total_order", pa.int64())])),
            ("op", pa.string()),
        ]
    )

    def of(values: dict[str, Any] | None) -> dict[str, Any] | None:
        if values is None or values["price"] is None:
            return values
        price = values["price"] if abs(values["price"]) < 10**38 else 0
        return {**values, "price": Decimal(price).scaleb(-2)}

    sink = io.BytesIO()
    found = pa.Table.from_pylist([{**e, "before": of(e["before"]), "after": of(e["after"])} for e in events], schema)
    pq.write_table(found, sink, row_group_size=group, write_page_checksum=True)
    return sink.getvalue()

"""``changes(...)`` and ``records(...)`` of a topic: messages become events as declared; by columns the same as one by one."""

import json
import random
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kept_messages import keeping
from source_fuzz import VALUES, seeds

from rejoin import Topology, changes, flattened, kafka, records
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import SchemaDrift
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Part, Pin
from rejoin.sources import read_again_here
from rejoin.sources.decode import proven_lines
from rejoin.sources.decode.proven_rows import Proven
from rejoin.sources.formats import line_chunks
from rejoin.sources.shapes.mapped import records as rows
from rejoin.sources.transports.messages import Headers, Message

SCHEMA = "id BIGINT, name STRING, total DECIMAL(10,2)"
ORDERS = kafka("orders")
Given = tuple[Any, ...]
"""Key, value, and perhaps headers: bytes, None, or what JSON says."""


def table(source: SourceDeclaration, schema: str = SCHEMA, key: str | list[str] = "id", **options: Any) -> Table:
    topology = Topology("t")
    if source.kind == "records":
        topology.stream("orders", id=key, schema=schema, source=source, event_time="at").named("out")
    else:
        topology.table("orders", key=key, schema=schema, source=source, **options).named("out")
    return compile(topology).table("orders")


def written(said: Any) -> bytes | None:
    return said if said is None or type(said) is bytes else json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()


def messages(given: list[Given]) -> list[Message]:
    return [Message(100 + 3 * i, written(k), written(v), *more) for i, (k, v, *more) in enumerate(given)]


def read(of: Table, given: list[Message], ordinal: int = 7, *, fast: bool) -> tuple[list[dict[str, Any]], int]:
    """The events, and how many lines were proven."""
    judged, run, proven = proven_lines._judged, rows.run, list[int]()

    def counted(chunk: line_chunks.Chunk, queries: Sequence[str]) -> Proven | None:
        made = judged(chunk, queries)
        proven.append(0 if made is None else len(chunk.ends) - len(made.others))
        return made

    def unproven(query: str, some: pa.Table) -> pa.Table:
        made = run(query, some)
        at = made.schema.get_field_index("_proven")
        return made if at < 0 else made.set_column(at, "_proven", pc.and_(made["_proven"], pa.scalar(False)))

    pin = Pin(of.source.kind, (Part("kafka://kafka/orders/2", 1),), ordinal, transport="kafka")
    with ExitStack() as patches:
        for name, value in (("FEWEST", 0), ("LINES", 30)) if fast else ():
            patches.enter_context(patch.object(line_chunks, name, value))
        if not fast:
            patches.enter_context(patch.object(rows, "run", unproven))
        patches.enter_context(patch.object(proven_lines, "_judged", counted))
        found = [row for batch in keeping(of, given).events(pin, 0) for row in batch.to_pylist()]
    return found, sum(proven)


def both_ways(of: Table, given: list[Given], proven: int | None = None) -> list[dict[str, Any]]:
    """The events, which are the same by columns and one by one. ``proven``: so many lines are read by columns."""
    some = messages(given)
    fast, found = read(of, some, fast=True)
    slow, none = read(of, some, fast=False)
    assert [repr(row) for row in fast] == [repr(row) for row in slow]
    assert (proven in (None, found), none) == (True, 0), found
    assert [row["_line"] for row in fast] == [m.offset for m in some]
    return fast


def told(events: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [(e["_code"] or e["_kind"], *(e[c] for c in columns)) for e in events]


ROW = {"name": "Ann", "total": "1.50"}

UPSERTS: list[tuple[str, Any, Any, tuple[Any, ...]]] = [
    ("a key with its field", {"id": 7}, ROW, ("upsert", 7, "Ann")),
    ("a number", 7, ROW, ("upsert", 7, "Ann")),
    ("a text of JSON", "7", ROW, ("upsert", 7, "Ann")),
    ("a text that is no JSON", b"007", ROW, ("upsert", 7, "Ann")),
    ("the same in both", {"id": 7}, {"id": 7, **ROW}, ("upsert", 7, "Ann")),
    ("a number and a text", 7, {"id": "7", **ROW}, ("upsert", 7, "Ann")),
    ("only in the value", None, {"id": 7, **ROW}, ("upsert", 7, "Ann")),
    ("an object without it", {"customer": 1}, {"id": 7, **ROW}, ("upsert", 7, "Ann")),
    ("different ones", 8, {"id": 7, **ROW}, ("MISSING_KEY", None, None)),
    ("none", None, ROW, ("MISSING_KEY", None, None)),
    ("no such number", b"x7", ROW, ("VALUE_TYPE", None, None)),
    ("a broken object", b'{"id":7', ROW, ("BAD_JSON", None, None)),
    ("an array", [7], ROW, ("VALUE_TYPE", None, None)),
    ("no text", b"\xff", ROW, ("BAD_JSON", None, None)),
    ("gone", {"id": 7}, None, ("delete", 7, None)),
    ("gone by a number", 7, None, ("delete", 7, None)),
    ("gone by null", 7, b"null", ("delete", 7, None)),
    ("gone with schemas", 7, {"schema": None, "payload": None}, ("delete", 7, None)),
    ("gone without a key", None, None, ("MISSING_KEY", None, None)),
    ("a broken value", 7, b"{", ("BAD_JSON", None, None)),
    ("no object", 7, 5, ("BAD_JSON", None, None)),
    ("a text that holds one", 7, json.dumps(ROW), ("BAD_JSON", None, None)),
    ("a value that does not fit", 7, {**ROW, "total": "1.505"}, ("VALUE_ROUNDED", 7, None)),
]


@pytest.mark.parametrize(("key", "value", "event"), [case[1:] for case in UPSERTS], ids=[case[0] for case in UPSERTS])
def test_plain_upserts_need_no_word(key: Any, value: Any, event: tuple[Any, ...]) -> None:
    of = table(changes(ORDERS))
    assert told(both_ways(of, [(key, value)]), "id", "name") == [event]
    assert told(both_ways(of, [(key, value)] * 40), "id", "name") == [event] * 40
    assert told(both_ways(of, [*[({"id": 1}, ROW)] * 60, (key, value)]), "id", "name")[-1] == event


KEYS: list[Any] = [{"id": 7}, 7, "7", b"k7", None]


@pytest.mark.parametrize("key", KEYS)
def test_rows_are_read_by_columns_whatever_their_key_is(key: Any) -> None:
    text = "k7" if key == b"k7" else "7"
    events = both_ways(table(changes(ORDERS), "id STRING, name STRING"), [(key, {"id": text, "name": "Ann"})] * 40, 40)
    assert {(e["_kind"], e["id"]) for e in events} == {("upsert", text)}


def test_a_key_of_several_columns_is_an_object() -> None:
    of = table(changes(ORDERS), "id BIGINT, line INT, name STRING", ["id", "line"])
    given: list[Given] = [({"id": 1, "line": i}, {"name": f"n{i}"}) for i in range(40)]
    given += [({"id": 1, "line": 2}, None), ({"id": 1}, {"line": 3, "name": "x"}), (7, {"line": 3, "name": "x"})]
    events = both_ways(of, given, 40)
    assert told(events, "id", "line", "name")[38:] == [
        ("upsert", 1, 38, "n38"),
        ("upsert", 1, 39, "n39"),
        ("delete", 1, 2, None),
        ("upsert", 1, 3, "x"),
        ("MISSING_KEY", None, None, None),
    ]


def test_order_is_arrival_unless_it_is_declared() -> None:
    given: list[Given] = [(i % 3, {"name": f"n{i}", "total": i, "v": 90 - i}) for i in range(40)] + [(1, None)]
    first, second = (read(table(changes(ORDERS)), messages(given), ordinal, fast=True)[0] for ordinal in (9, 10))
    positions = [e["_position"] for e in first + second]
    assert positions == sorted(positions) and len(set(positions)) == 82
    events = both_ways(table(changes(ORDERS, order_by="v")), given, 40)
    assert [e["_position"] for e in events[:2]] == [f"{90:020d}", f"{89:020d}"]
    assert told(events, "id", "_position")[-1] == ("delete", 1, None), "it comes behind what came before it"


def test_keys_and_headers_have_names_in_sql() -> None:
    made = {"name": "concat(_key.region, '-', upper(name))", "total": "_header.total"}
    of = table(changes(ORDERS, columns=made, order_by="_header.at", deleted="coalesce(_header.op = 'D', false)"))

    def headers(i: int, **more: bytes) -> Headers:
        return [("at", b"2026-01-01T00:00:%02dZ" % i), ("total", b'"1.%02d"' % i), ("other", b"\xff"), *more.items()]

    given: list[Given] = [({"id": i, "region": "eu"}, ROW, headers(i)) for i in range(40)]
    given += [({"id": 9, "region": "eu"}, ROW, headers(41, op=b"D")), ({"id": 9, "region": "eu"}, ROW), ({"id": 9}, ROW, headers(43))]
    events = both_ways(of, given, 40)
    assert told(events, "id", "name", "total")[39:] == [
        ("upsert", 39, "eu-ANN", Decimal("1.39")),
        ("delete", 9, None, None),
        ("UNKNOWN_POSITION", 9, None, None),
        ("upsert", 9, None, Decimal("1.43")),
    ]
    assert events[-1]["_absent"] == ["name"], "the key lacks it: it may have another name now"


def test_what_a_key_column_is_made_of_is_what_is_written() -> None:
    of = table(changes(ORDERS, columns={"id": "id"}))
    given: list[Given] = [(i % 3, {"id": i, **ROW}) for i in range(40)] + [(3, None)]
    assert told(both_ways(of, given, 40), "id")[38:] == [("upsert", 38), ("upsert", 39), ("MISSING_KEY", None)]


def schema(*fields: tuple[str, str, str | None], **parameters: dict[str, str]) -> dict[str, Any]:
    made = [{"type": t, "optional": True, "field": f, **({"name": n} if n else {}), **({"parameters": parameters[f]} if f in parameters else {})} for f, t, n in fields]  # fmt: skip
    return {"type": "struct", "fields": made, "optional": False, "name": "v"}


CONNECT = "org.apache.kafka.connect.data."


def test_what_a_schema_says_of_decimals_and_times_is_read() -> None:
    columns = "id BIGINT, total DECIMAL(10,2), day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, free STRING, n INT"
    of = table(changes(ORDERS), columns)
    fields = schema(
        ("total", "bytes", f"{CONNECT}Decimal"),
        ("day", "int32", "io.debezium.time.Date"),
        ("at", "int64", f"{CONNECT}Timestamp"),
        ("wall", "int64", "io.debezium.time.MicroTimestamp"),
        ("free", "bytes", f"{CONNECT}Decimal"),
        ("n", "int32", None),
        total={"scale": "2"},
        free={"scale": "0"},
    )
    key = {"type": "int64", "optional": False}

    def row(i: int, **values: Any) -> Given:
        said = {"total": "BNI=", "day": 20_000, "at": 1_700_000_000_120, "wall": 1_700_000_000_000_001, "free": "BNI=", "n": 5, **values}
        return {"schema": key, "payload": i}, {"schema": fields, "payload": said}

    empty = dict.fromkeys(("total", "day", "at", "wall", "free", "n"))
    given = [row(0, **empty), *(row(i) for i in range(1, 41)), row(41, total="x"), row(42, day=2**40), row(43, at="x"), ({"schema": key, "payload": 3}, None)]  # fmt: skip
    events = both_ways(of, given, 41)
    assert told(events, "total", "day", "wall", "free", "n")[1] == (
        "upsert", Decimal("12.34"), date(2024, 10, 4), datetime.fromisoformat("2023-11-14T22:13:20.000001"), "1234", 5,
    )  # fmt: skip
    assert events[1]["at"].isoformat() == "2023-11-14T22:13:20.120000+00:00"
    assert told(events, "id", "total", "day", "at")[0] == ("upsert", 0, None, None, None)
    assert told(events, "id")[40:] == [("upsert", 40), ("VALUE_TYPE", None), ("VALUE_INFINITE", None), ("VALUE_TYPE", None), ("delete", 3)]
    assert json.loads(events[41]["_raw"])["value"]["schema"] == fields, "as it came"


def test_a_decimal_that_says_its_scale_is_a_number() -> None:
    of = table(changes(ORDERS, columns={"name": "concat(total, '!')"}))
    fields = schema(("total", "struct", "io.debezium.data.VariableScaleDecimal"))
    value = {"schema": fields, "payload": {"total": {"scale": 1, "value": "BNI="}}}
    [event] = both_ways(of, [(1, value)])
    assert (event["total"], event["name"]) == (Decimal("123.40"), "123.4!")


def test_flattened_events_of_debezium_on_a_topic() -> None:
    of = table(flattened(ORDERS, order_by="__lsn"))
    given: list[Given] = [({"id": i}, {"id": i, **ROW, "__lsn": i, "__deleted": "false"}) for i in range(40)]
    given += [({"id": 3}, {"id": 3, "name": None, "total": None, "__lsn": 50, "__deleted": "true"}), ({"id": 3}, None), ({"id": 4}, ROW)]
    assert told(both_ways(of, given, 40), "id", "_position")[39:] == [
        ("upsert", 39, f"{39:020d}"),
        ("delete", 3, f"{50:020d}"),
        ("delete", 3, None),
        ("UNKNOWN_OP", 4, None),
    ]


def test_records_of_a_topic_are_fields_too() -> None:
    of = table(records(ORDERS, columns={"page": "lower(url)", "id": "_key"}), "id STRING, page STRING, at TIMESTAMP")
    row = {"url": "A/B", "at": "2026-01-01T00:00:00Z"}
    events = both_ways(of, [*((f"k{i}", row) for i in range(40)), (b"k", None), (b"k", {**row, "at": "x"})], 41)
    assert told(events, "id", "page")[39:] == [("upsert", "k39", "a/b"), ("BAD_JSON", None, None), ("VALUE_TYPE", "k", None)]
    assert {e["_position"] for e in events[:40]} == {f"{7:020d}"}
    with pytest.raises(SchemaDrift, match=r"lacks: page; it has, not declared .renamed.*: uri"):
        both_ways(of, [(b"k", {"uri": "a", "at": "2026-01-01T00:00:00Z"})])


def test_a_refused_message_is_the_same_event_when_it_can_be_read() -> None:
    row = {"name": "M\ufffd", "total": "123.456", "v": 3}
    narrow, wide = (table(changes(ORDERS, order_by="v"), f"id BIGINT, name STRING, total DECIMAL(10,{n})") for n in (2, 3))
    [refused], [event] = (both_ways(of, [({"id": 1}, row)]) for of in (narrow, wide))
    [again] = read_again_here(wide, [{**refused, "_arrival": -2}]).to_pylist()
    assert (refused["_code"], event["_kind"]) == ("VALUE_ROUNDED", "upsert")
    assert {**again, "_arrival": 0} == {**event, "_arrival": 0}
    by_arrival = table(changes(ORDERS), "id BIGINT, name STRING, total DECIMAL(10,3)")
    assert not read_again_here(by_arrival, [{**refused, "_arrival": -2}]).num_rows, "where it would stand among later ones, nothing tells"


@pytest.mark.parametrize("seed", seeds(24))
def test_random_messages_are_the_same_events_by_columns_and_one_by_one(seed: int) -> None:
    random_ = random.Random(seed)
    sql = {"name": "coalesce(name, _key.name, _key)", "n": "CAST(n AS INT) + 1"}
    of = table(
        changes(
            ORDERS,
            columns=sql if seed % 2 else None,
            order_by="v" if seed % 3 else None,
            deleted="gone = 'true'" if seed % 4 == 1 else None,
        ),
        f"{SCHEMA}, n INT, at TIMESTAMP",
    )

    def some(i: int) -> Given:
        value = {"id": i % 5, "name": f"n{i}", "total": f"{i}.50", "n": i, "at": f"2024-02-29T11:14:{i % 60:02d}Z", "v": i, "gone": "false"}
        key: Any = ({"id": i % 5}, i % 5, {"id": i % 5})[seed % 3]
        kind = random_.randrange(12)
        if kind == 0:
            return key, None
        text = json.dumps(value)
        if kind < 4:
            name = random_.choice(list(value))
            text = json.dumps({**value, name: "\ue000"}).replace('"\\ue000"', random_.choice(VALUES))
        if kind == 4:
            del value[random_.choice(list(value))]
            text = json.dumps(value)
        if kind == 5:
            key = random_.choice(VALUES).encode("utf-8", "surrogatepass")
        return key, text.encode("utf-8", "surrogatepass") if kind != 6 else text[: random_.randrange(len(text))].encode()

    both_ways(of, [some(i) for i in range(90)])


@pytest.mark.parametrize("seed", seeds(12))
def test_a_random_history_leaves_the_rows_that_sql_says(seed: int) -> None:
    random_ = random.Random(seed)
    said: list[tuple[int, str | None, int]] = [(random_.randrange(20), None if random_.random() < 0.2 else f"n{i}", i) for i in range(400)]
    given: list[Given] = [(key, None if name is None else {"name": name, "total": i}) for key, name, i in said]
    cut = random_.randrange(400)
    of, some = table(changes(ORDERS)), messages(given)
    events = [*read(of, some[:cut], 3, fast=True)[0], *read(of, some[cut:], 4, fast=True)[0]]
    with duckdb.connect() as db:
        db.register("h", pa.table(dict(zip(("id", "name", "i"), map(list, zip(*said, strict=True)), strict=True))))
        db.register("e", pa.Table.from_pylist([{k: e[k] for k in ("id", "name", "_kind", "_position")} for e in events]))
        wanted = db.sql("SELECT id, arg_max_null(name, i) AS name FROM h GROUP BY id HAVING name IS NOT NULL ORDER BY id").fetchall()
        found = db.sql(
            "SELECT id, arg_max_null(name, _position) AS name FROM e GROUP BY id HAVING arg_max(_kind, _position) = 'upsert' ORDER BY id"
        )
        assert found.fetchall() == wanted != []

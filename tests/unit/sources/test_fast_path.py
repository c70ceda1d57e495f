"""The fast way of reading gives what the careful way gives, row for row and byte for byte; the careful way is the definition."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from careful import decode_csv, decode_json
from source_cases import CAPTURES, event, table
from source_fuzz import NUMBERS, PLAIN, RAW_NUMBERS, TEXTS, VALUES, feed, mutated, seeds, with_schemas
from test_sources_captures import CUSTOMERS, ITEMS, ORDERS
from test_sources_debezium import NAMED, ONE, REFUSED

from rejoin.errors import BadRecord, SourceCorrupt
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, SnapshotSource
from rejoin.sources.decode import record_runs
from rejoin.sources.formats import json_text
from rejoin.sources.shapes import registry, snapshot
from rejoin.sources.shapes.debezium import plain
from rejoin.sources.stored_files import lines as numbered

TYPES = (
    "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
    "DECIMAL(10,2)", "DECIMAL(38,9)", "DECIMAL(2,2)", "DECIMAL(12,0)",
)  # fmt: skip


@contextmanager
def short_runs(length: int) -> Iterator[None]:
    with patch.object(record_runs, "_SHORT", length), patch.object(record_runs, "_PARTS", 3):
        yield


def _refuse(*_: Any) -> None:
    raise json_text.Unsure


def seen(read: Any) -> list[str]:
    """Everything that can be seen of batches; as text, since NaN is not equal to itself and -0.0 is equal to 0.0. Or why there are none."""
    try:
        return [f"{batch.schema} {batch.num_rows}\n" + "\n".join(map(repr, batch.to_pylist())) for batch in read]
    except SourceCorrupt as error:
        return [str(error)]


def check(of: Table, data: bytes, how: str = "debezium", length: int = 2) -> int:
    """Reads ``data`` both ways; the number of records that the fast way took, -1 if both refused the file."""

    def read() -> Iterator[pa.RecordBatch]:
        lines = numbered(iter([data]))
        if how == "debezium":
            return registry.decode(of, "f.jsonl", 3, lines)
        return (decode_csv if how == "csv" else decode_json)(of, 7, "f", 3, lines)

    with patch.object(plain.PlainEvents, "plain", _refuse), patch.object(snapshot._Rows, "plain", _refuse):
        careful = seen(read())
    fast_rows = 0
    columns = {kind: kind.columns for kind in (plain.PlainEvents, snapshot._Rows)}

    def counted(self: Any, run: Any) -> Any:
        nonlocal fast_rows
        found = columns[plain.PlainEvents if how == "debezium" else snapshot._Rows](self, run)
        fast_rows += len(run)
        return found

    with (
        short_runs(length),
        patch.object(plain.PlainEvents, "columns", counted),
        patch.object(snapshot._Rows, "columns", counted),
    ):
        fast = seen(read())
    assert fast == careful
    return -1 if fast[0].startswith("SOURCE_CORRUPT") else fast_rows


def joined(lines: list[Any]) -> bytes:
    return b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)


@pytest.mark.parametrize("name", ["debezium_capture.jsonl", "debezium_capture_schemas.jsonl", "debezium_capture_string.jsonl"])
@pytest.mark.parametrize(
    ("topic", "ddl", "key"),
    [
        ("shop.orders", ORDERS + "; d DATE; ts TIMESTAMP_NTZ; tz TIMESTAMP; free DECIMAL(38,9)", "id"),
        ("shop.orders", "id BIGINT; st STRING; big STRING; ok BOOLEAN; rate FLOAT; dbl DOUBLE", "id"),
        ("shop.items", ITEMS, "order_id,line"),
        ("shop.customers", CUSTOMERS, "id"),
        ("shop.full_ri", "id BIGINT; big STRING; v INT", "id"),
        (None, "id BIGINT; st STRING", "id"),
    ],
)
def test_captures_are_read_alike(name: str, topic: str | None, ddl: str, key: str) -> None:
    of = table(ddl, key, DebeziumSource("x", topic=topic and f"e6.{topic}", units=(("ts3", "ms"),)))
    lines = (CAPTURES / name).read_bytes().splitlines()
    opened = [json.loads(line) for line in lines]
    objects = [{k: json.loads(v) if k in ("key", "value") and isinstance(v, str) else v for k, v in line.items()} for line in opened]
    assert topic is None or check(of, joined(lines * 3)) > 0
    assert topic is None or check(of, joined(objects * 3)) > 0
    check(of, joined(lines * 3), length=24)


@pytest.mark.parametrize("case", REFUSED, ids=[case[0] for case in REFUSED])
def test_refused_records_among_plain_ones_are_read_alike(case: Any) -> None:
    good = [event(key={"id": i}, after={"id": i, "name": "a"}) for i in range(10)]
    assert check(ONE, joined([*good, case[1], *good])) >= 10


def valued(how: str, type_: str) -> Table:
    return table(f"id BIGINT; v {type_}", source=None if how == "debezium" else SnapshotSource("x"))


def each_value(how: str) -> list[str]:
    """A line of JSON for each of the odd values."""
    if how == "json":
        return [f'{{"id": {i}, "v": {value}}}' for i, value in enumerate(VALUES)]
    source = '{"connector": "postgresql", "lsn": 5}'
    return [
        f'{{"key": {{"id": {i}}}, "value": {{"op": "u", "source": {source}, "after": {{"id": {i}, "v": {value}}}}}}}'
        for i, value in enumerate(VALUES)
    ]


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("how", ["debezium", "json", "csv"])
def test_every_value_of_every_type_is_read_alike(how: str, type_: str) -> None:
    if how == "csv":
        of = table(f"id BIGINT; v {type_}", source=SnapshotSource("x"))
        texts = [*TEXTS, *RAW_NUMBERS, *map(str, NUMBERS)]
        quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
        assert check(of, "\n".join(["id,v", *(f"{i},{text}" for i, text in enumerate(quoted))]).encode(), "csv") > 0
        return
    assert check(valued(how, type_), "\n".join(each_value(how)).encode(), how) > 0


@pytest.mark.slow
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("how", ["debezium", "json"])
def test_every_value_of_every_type_is_read_alike_alone(how: str, type_: str, pytestconfig: pytest.Config) -> None:
    """So that no other value decides how it is read. Another third of them with every seed of a test run."""
    of = valued(how, type_)
    for line in each_value(how)[int(pytestconfig.option.hypothesis_seed) % 3 :: 3]:
        check(of, "\n".join([line] * 2).encode(), how)


@pytest.mark.parametrize("key", ["BIGINT", "STRING", "DATE", "TIMESTAMP", "DOUBLE", "BOOLEAN", "BINARY", "DECIMAL(10,2)"])
def test_every_value_as_a_key_is_read_alike(key: str) -> None:
    of = table(f"id {key}; name STRING")
    source = '"source": {"connector": "postgresql", "lsn": 5}'
    parts = [f'"op": "d", {source}', None, f'"op": "c", {source}, "after": {{"name": "a"}}']
    lines = [f'{{"key": {{"id": {value}}}, "value": {"null" if part is None else f"{{{part}}}"}}}' for value in VALUES for part in parts]
    check(of, "\n".join(lines).encode())
    random.Random(7).shuffle(lines)
    check(of, "\n".join(lines).encode())


@pytest.mark.parametrize("seed", seeds(20))
def test_random_feeds_are_read_alike(seed: int) -> None:
    random_ = random.Random(seed)
    assert check(table(PLAIN), joined(feed(random_, 200))) > 0
    assert check(table(PLAIN), joined(feed(random_, 400, odd=150)), length=24) > 100


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("text", [True, False], ids=["text", "objects"])
def test_random_feeds_with_schemas_are_read_alike(text: bool, seed: int) -> None:
    random_ = random.Random(seed)
    between = random_.choice([(",", ":"), (",", ":"), (", ", ": ")])
    lines = with_schemas(random_, feed(random_, 200))
    if text:
        lines = [line | {n: line[n] and json.dumps(line[n], separators=(",", ":")) for n in ("key", "value")} for line in lines]
    raw = [json.dumps(line, separators=between).encode() for line in lines]
    assert check(table(PLAIN), joined(raw)) > 0
    damaged = [mutated(random_, line) if random_.random() < 0.2 and i > 20 else line for i, line in enumerate(raw)]
    check(table(PLAIN), joined(damaged))


SCHEMA = '{"type":"struct","fields":[{"type":"int64","field":"id"}]}'
DOCUMENT = f'{{"schema":{SCHEMA},"payload":{{"op":"u","source":{{"connector":"postgresql","lsn":5}},"after":{{"id":1,"name":null}}}}}}'
NUMBER = "918273645546372828"


@pytest.mark.parametrize(
    "line",
    [
        f'{{"key":{{"id":1}},"headers":{{"value":{DOCUMENT}}},"value":{NUMBER}}}',
        f'{{"key":{{"id":1}},"headers":{{"value":{DOCUMENT}}}}}',
        f'{{"key":{{"id":1}},"value":{DOCUMENT},"value":{DOCUMENT}}}',
        f'{{"key":{{"id":1}},"value":{NUMBER},"value":{DOCUMENT}}}',
        f'{{"key":{{"id":1}},"x\\"value":{DOCUMENT}}}',
        f'{{"key":{{"id":1}},"x":"a"value":{DOCUMENT}}}',
        f'{{"key":{{"id":1}},"x":"value":{DOCUMENT}}}',
        f'{{"key":{{"id":{NUMBER}}},"value":{DOCUMENT}}}',
        f'{{"key":{{"id":1}},"value":{DOCUMENT[:-1]},"x":1}}}}',
        f'{{"key":{{"id":1}},"value":{DOCUMENT[:-1]} }}}}',
        f'{{"key":{{"id":1}},"value":{DOCUMENT}}}}}',
        f'[{{"key":{{"id":1}},"value":{DOCUMENT}}}]',
    ],
)
def test_a_schema_is_cut_out_of_its_own_place_only(line: str) -> None:
    good = f'{{"key":{{"id":1}},"value":{DOCUMENT}}}'
    assert check(ONE, "\n".join([good] * 4 + [line] * 2 + [good] * 4).encode()) >= 6


@pytest.mark.parametrize("seed", seeds(30))
@pytest.mark.parametrize("how", ["debezium", "json", "csv"])
def test_random_damage_is_read_alike(how: str, seed: int) -> None:
    random_ = random.Random(seed)
    lines: list[Any] = feed(random_, 200)
    if how != "debezium":
        rows = [{"id": i, "name": f"a{i}", "n": i, "price": f"{i}.5", "at": "2024-02-29T11:14:15Z"} for i in range(200)]
        lines = rows if how == "json" else [",".join(rows[0]).encode(), *(",".join(map(str, row.values())).encode() for row in rows)]
    raw = [
        line if isinstance(line, bytes) else json.dumps(line, separators=random_.choice([(",", ":"), (", ", ": ")])).encode()
        for line in lines
    ]
    damaged = [mutated(random_, line) if random_.random() < 0.3 and i else line for i, line in enumerate(raw)]
    taken = check(table(PLAIN, source=None if how == "debezium" else SnapshotSource("x")), joined(damaged), how, random_.choice([2, 5]))
    assert taken > 0 or (taken < 0 and how == "csv" and joined(damaged).count(b'"') > 0)


@pytest.mark.parametrize("seed", seeds(20))
def test_a_quick_value_is_the_value(seed: int) -> None:
    random_ = random.Random(seed)
    base = [json.dumps(line).encode() for line in feed(random_, 20)] + [value.encode() for value in VALUES]
    sure = 0
    for _ in range(3000):
        try:
            text = mutated(random_, random_.choice(base)).decode()
            found = repr(json_text.quick(text))
        except (UnicodeDecodeError, json_text.Unsure):
            continue
        sure += 1
        assert found == repr(json_text.loads(text)) == repr(json_text.loads_shallow(text))
    assert sure > 100


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 2}}', '{"a": [{"b": 1, "b": 2}]}', '{"a": {"b": {"c": {"d": 1, "d": 2}}}}',
        '{"a": "\\u0022", "a": "x"}', '{"a": "x:", "a" : 1}', '{"a":"\\":","a":1}', '{"a":"x\\\\","a":1}', '{"a":"\\u0022\\u0022","b":1,"b":2}',
        '{"a\\"":1,"a\\"":2}', '{"a":1,"\\u0061":2}', '{"a":"b","a":"{\\"c\\":1}"}',
    ],
)  # fmt: skip
def test_a_text_with_a_duplicate_key_is_never_quick(text: str) -> None:
    with pytest.raises(json_text.Unsure):
        json_text.quick(text)
    with pytest.raises(BadRecord, match="AMBIGUOUS_JSON"):
        json_text.loads(text)


def test_deep_arrays_are_never_quick() -> None:
    with pytest.raises(json_text.Unsure):
        json_text.quick('{"a": ' + "[" * 500 + "]" * 500 + "}")


def test_batches_have_the_same_borders() -> None:
    lines = [event(key={"id": i}, after=NAMED) for i in range(25)]
    with patch.object(record_runs, "BATCH_ROWS", 10):
        assert check(ONE, joined(lines)) == 25

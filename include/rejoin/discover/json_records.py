"""Records of JSON -> the tables that they are about: whose format, which call reads it, with which rows and keys. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rejoin.discover.columns import key_of, named_as_key, of_connect, of_rows
from rejoin.discover.landed_rows import landed
from rejoin.discover.table import FoundTable
from rejoin.errors import BadRecord
from rejoin.sources.formats.json_text import loads
from rejoin.sources.recognition import dialect_of
from rejoin.sources.shapes.debezium.message import has_schema, is_bookkeeping, message, named_by

Row = Mapping[str, Any]
_NUMBERS = "events without schema: whole numbers can be dates and times, see units= of debezium(...)"


def tables_of(name: str, path: str, records: Sequence[bytes], newest: Sequence[bytes]) -> list[FoundTable]:
    """The tables of a source.

    Args:
        name: of the directory or file.
        path: of the source, as a topology file has it: a text, or ``kafka(...)``.
        records: of the oldest and the newest file.
        newest: of the newest file alone, which as a snapshot has each row once.
    """
    return changes_of(name, path, records, newest) or [_of_rows(name, path, rows) for rows in (_rows(newest),) if rows]


def changes_of(name: str, path: str, records: Sequence[bytes], newest: Sequence[bytes]) -> list[FoundTable]:
    """The same of records in a dialect that says what each of them does."""
    return _of_debezium(name, path, records) or _of_dialect(path, _rows(newest))


def _rows(records: Sequence[bytes]) -> list[Row]:
    return [row for raw in records if isinstance(row := opened(_document(raw))[0], dict) and not is_bookkeeping(row, None)]


def _document(raw: bytes) -> Any:
    with suppress(BadRecord, UnicodeDecodeError):
        return loads(raw.decode())
    return None


def opened(document: Any) -> tuple[Any, list[Row] | None]:
    """A key or value, or its text -> what it says, and the fields of its Connect schema."""
    if isinstance(document, str):
        document = _document(document.encode())
    if isinstance(document, dict) and has_schema(document):
        schema = document["schema"]
        return document["payload"], None if schema is None else schema.get("fields")
    return document, None


def _of_debezium(name: str, path: str, records: Sequence[bytes]) -> list[FoundTable]:
    events: dict[tuple[str, str], list[tuple[Row, Any, Any]]] = defaultdict(list)
    for raw in records:
        with suppress(BadRecord):
            one = message(raw)
            payload, fields = opened(one.value)
            if isinstance(payload, dict) and payload.get("op") in ("c", "u", "r", "d") and isinstance(payload.get("source"), dict):
                source = payload["source"]
                topic = one.topic or ".".join(str(source[part]) for part in named_by(source.get("connector")) if part in source)
                events[str(topic), str(source.get("table") or name)].append((payload, fields, one.key))
    several = len(events) > 1
    return [
        _of_events(table, f"debezium({path}" + (f', topic="{topic}")' if several else ")"), of) for (topic, table), of in events.items()
    ]


def _of_events(table: str, source: str, events: Sequence[tuple[Row, Any, Any]]) -> FoundTable:
    rows = [row for payload, _, _ in events if isinstance(row := payload.get("after") or payload.get("before"), dict)]
    schema = next((part.get("fields") for _, fields, _ in events for part in fields or () if part.get("field") == "after"), None)
    columns = of_rows(rows) if schema is None else of_connect(schema)
    said = next((tuple(key) for _, _, document in events if isinstance(key := opened(document)[0], dict) and key), ())
    key = said or _of_deletes(events) or key_of(table, columns, rows) or named_as_key(columns)
    notes = ["change events of Debezium"] + ([] if schema is not None else [_NUMBERS])
    notes += [] if said else ["the key is a guess: these events do not say it"]
    return FoundTable(table, columns, key, source, rows, notes, ["debezium"])


def _of_deletes(events: Sequence[tuple[Row, Any, Any]]) -> tuple[str, ...]:
    """What deletes say of the rows that are gone: by default their primary key and nothing else."""
    gone = [payload["before"] for payload, _, _ in events if payload["op"] == "d" and isinstance(payload.get("before"), dict)]
    told = [tuple(name for name, value in row.items() if value not in (None, "", 0, False)) for row in gone]
    return told[0] if told and 0 < len(told[0]) < len(gone[0]) and set(told) == {told[0]} else ()


def _of_dialect(path: str, records: Sequence[Row]) -> list[FoundTable]:
    """Of Maxwell, Canal and GoldenGate: a table each that the records name."""
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    keys: dict[tuple[str, str], tuple[str, ...]] = {}
    for record in records:
        dialect, data = dialect_of(record), record.get("data")
        if dialect == "canal" and isinstance(data, list):
            of = dialect, f"{record['database']}.{record['table']}"
            rows[of] += [row for row in data if isinstance(row, dict)]
            keys[of] = tuple(record.get("pkNames") or ())
        elif dialect == "maxwell" and isinstance(data, dict):
            rows[dialect, f"{record['database']}.{record['table']}"].append(data)
        elif dialect == "goldengate" and isinstance(row := record.get("after") or record.get("before"), dict):
            of = dialect, str(record["table"])
            rows[of].append(row)
            keys[of] = tuple(record.get("primary_keys") or ())
    made = []
    for (dialect, only), some in rows.items():
        name, columns = only.rsplit(".", 1)[-1], of_rows(some, texts=dialect != "maxwell")
        key = keys.get((dialect, only)) or key_of(name, columns, some) or named_as_key(columns)
        made.append(FoundTable(name, columns, key, f'feed({path}, "{dialect}", only="{only}")', some, [f"changes of {dialect}"], ["feed"]))
    return made


def _of_rows(name: str, path: str, rows: Sequence[Row]) -> FoundTable:
    """Rows as tools land them, or plain ones."""
    columns = of_rows(rows)
    return landed([column.name for column in columns]).table(name, path, columns, rows)

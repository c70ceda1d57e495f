"""Rows on a topic: each message is how the row of its key is now, or, without value, that it is gone. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rejoin.discover.columns import key_of, named_as_key, of_connect, of_rows
from rejoin.discover.json_records import opened
from rejoin.discover.landed_rows import position
from rejoin.discover.table import FoundTable
from rejoin.sources.shapes.debezium.message import is_bookkeeping

_PARTITION = "the order is that of each partition: all messages of a key have to be on one"


def table_of(name: str, path: str, messages: Sequence[tuple[Any, Any]]) -> FoundTable | None:
    """The table that messages without any other shape say; None if their values are no objects.

    Args:
        name: of the table.
        path: of the topic, as a topology file has it.
        messages: their keys and values as documents of JSON, with or without schema.
    """
    said = [(_document(key)[0], *_document(value)) for key, value in messages]
    keyed = [(key, row) for key, row, _ in said if isinstance(row, dict) and not is_bookkeeping(row, None)]
    if not keyed:
        return None
    marks = {field for _, row in keyed for field in row if field.startswith("__")}
    keys = _keys(keyed)
    rows = [{name: value for name, value in {**key, **row}.items() if name not in marks} for key, (_, row) in zip(keys, keyed, strict=True)]
    typed = {column.name: column for column in of_connect(next((fields for _, _, fields in said if fields), []))}
    columns = [typed.get(column.name, column) for column in of_rows(rows)]
    key = tuple(dict.fromkeys(name for key in keys for name in key))
    notes = [] if key else ["the key is a guess: messages have none, so none of them can say that a row is gone"]
    source, word, what = _source(path, marks)
    return FoundTable(name, columns, key or key_of(name, columns, rows) or named_as_key(columns), source, rows, [what, *notes], [word])


def _document(said: Any) -> Any:
    return opened(said) if isinstance(said, dict) else (said, None)


def _keys(messages: Sequence[tuple[Any, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """The key of each message by columns; empty where it has none."""
    single = _single(messages)
    return [key if isinstance(key, dict) else {} if key is None else {single: key} for key, _ in messages]


def _single(messages: Sequence[tuple[Any, Mapping[str, Any]]]) -> str:
    """What a key that is a single value is called: as the first field that always has it."""
    fields = dict.fromkeys(field for _, row in messages for field in row)
    return next((f for f in fields if all(str(row.get(f)) == str(key) for key, row in messages)), "id")


def _source(path: str, marks: set[str]) -> tuple[str, str, str]:
    """The call that reads them, its name, and what it takes them for."""
    if not marks:
        return f"changes({path})", "changes", f"each message is how a row is now, or without value that it is gone; {_PARTITION}"
    found = position(marks)
    order = f", order_by={json.dumps(found)}" if found else ""
    deleted = "" if "__deleted" in marks else ", deleted=None"
    said = "events of Debezium that ExtractNewRecordState has flattened" + ("" if order else f"; {_PARTITION}")
    return f"flattened({path}{order}{deleted})", "flattened", said

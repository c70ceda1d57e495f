"""Rows on a topic: each message is how the row of its key is now, or, without value, that it is gone. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from rejoin.discover.columns import Column, key_of, of_connect, of_rows
from rejoin.discover.json_records import called, opened
from rejoin.discover.table import FoundTable
from rejoin.sources.shapes.debezium.message import is_bookkeeping

_POSITIONS = ("__lsn", "__source_lsn", "__pos", "__change_lsn")
_PARTITION = "the order is that of each partition: all messages of a key have to be on one"


def table_of(name: str, path: str, messages: Sequence[tuple[Any, Any]]) -> FoundTable | None:
    """The table that messages without any other shape say; None if their values are no objects.

    Args:
        name: of the table.
        path: of the topic, as a topology file has it.
        messages: their keys and values as documents of JSON, with or without schema.
    """
    keyed = [(_document(key)[0], *_document(value)) for key, value in messages]
    keyed = [(key, row, fields) for key, row, fields in keyed if isinstance(row, dict) and not is_bookkeeping(row, None)]
    rows = [row for _, row, _ in keyed]
    if not rows:
        return None
    marks = {field for row in rows for field in row if field.startswith("__")}
    plain = [{field: value for field, value in row.items() if field not in marks} for row in rows]
    schema = next((fields for _, _, fields in keyed if fields), None)
    columns = [c for c in (of_rows(plain) if schema is None else of_connect(schema)) if c.name not in marks]
    key, more = _key([(key, row) for key, row, _ in keyed], columns)
    notes = [] if key else ["the key is a guess: messages have none, so none of them can say that a row is gone"]
    key = key or key_of(name, columns, plain) or called(columns)
    source, word, said = _source(path, marks)
    return FoundTable(name, [*more, *columns], key, source, plain, [said, *notes], [word])


def _document(said: Any) -> Any:
    return opened(said) if isinstance(said, dict) else (said, None)


def _key(messages: Sequence[tuple[Any, Mapping[str, Any]]], columns: Sequence[Column]) -> tuple[tuple[str, ...], list[Column]]:
    """The key that messages say, and those of its columns that no value has."""
    keys = [key if isinstance(key, dict) else {_single(messages): key} for key, _ in messages if key is not None and key != {}]
    names = tuple(dict.fromkeys(name for key in keys for name in key))
    known = {column.name for column in columns}
    return names, [column for column in of_rows(keys) if column.name not in known]


def _single(messages: Sequence[tuple[Any, Mapping[str, Any]]]) -> str:
    """What a key that is a single value is called: as the first field that always has it."""
    fields = dict.fromkeys(field for _, row in messages for field in row)
    return next((f for f in fields if all(str(row.get(f)) == str(key) for key, row in messages)), "id")


def _source(path: str, marks: set[str]) -> tuple[str, str, str]:
    """The call that reads them, its name, and what it takes them for."""
    if not marks:
        return f"changes({path})", "changes", f"each message is how a row is now, or without value that it is gone; {_PARTITION}"
    order = next((f', order_by="{field}"' for field in _POSITIONS if field in marks), "")
    deleted = "" if "__deleted" in marks else ", deleted=None"
    said = "events of Debezium that ExtractNewRecordState has flattened" + ("" if order else f"; {_PARTITION}")
    return f"flattened({path}{order}{deleted})", "flattened", said

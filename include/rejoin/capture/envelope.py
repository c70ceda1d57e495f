"""How a row and its change are written: JSON of Debezium's envelope, so that the decoder of that reads it. Pure.

PostgreSQL says every value as text. What becomes of it depends on the column's type there, and on the declared one: a column that is declared as STRING keeps
its text, whatever its type; so do types that rejoin has none for (arrays, JSON, UUID, enumerations).

| type | written as |
|---|---|
| whole numbers, numeric, real, double precision | a number with the same digits; NaN and infinities as texts |
| boolean | true, false |
| bytea | base64 |
| all others, dates and times too | the text |

``text_of`` does it for the values of a change, ``sql_of`` for those of a table that DuckDB makes lines of; both say the same.

The position of an event (``source.lsn``) is that of its transaction's *commit*, and its place therein (``transaction.total_order``): a change may stand in the
log before the point of a snapshot that does not have it, its commit never does.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Final

import msgspec

from rejoin.capture.tables import CapturedTable
from rejoin.plan.sql.portable import quoted

Encode = Callable[[bytes], bytes]
MARK: Final = b'"snapshot":"true"'
"""Of a row that is neither first nor last of its snapshot."""
_JSON = msgspec.json.Encoder().encode


class Form(Enum):
    """How values of a column are written."""

    NUMBER = auto()
    FLOAT = auto()
    BOOLEAN = auto()
    BINARY = auto()
    TEXT = auto()


_FORMS: Final = {16: Form.BOOLEAN, 17: Form.BINARY, **dict.fromkeys((20, 21, 23, 26, 1700), Form.NUMBER), 700: Form.FLOAT, 701: Form.FLOAT}
"""By PostgreSQL's number of a type (pg_type.oid); those of its own types never change."""


def form_of(type_: int, declared: str | None) -> Form:
    """How a column is written: by its type's number (of a domain: of what it is made of), and the declared type, None of a column that is not declared."""
    return Form.TEXT if declared == "STRING" else _FORMS.get(type_, Form.TEXT)


def _number(text: bytes) -> bytes:
    return text if text[-1:].isdigit() else b'"' + text + b'"'  # NaN, Infinity


def _float(text: bytes) -> bytes:
    return b"-0.0" if text == b"-0" else _number(text)  # a whole number has no sign of zero


def text_of(form: Form) -> Encode:
    """What turns a value's text, as PostgreSQL prints it, into JSON."""
    return {
        Form.NUMBER: _number,
        Form.FLOAT: _float,
        Form.BOOLEAN: lambda text: b"true" if text == b"t" else b"false",
        Form.BINARY: lambda text: b'"' + base64.b64encode(bytes.fromhex(text[2:].decode())) + b'"',
        Form.TEXT: lambda text: _JSON(text.decode()),
    }[form]


def sql_of(form: Form, column: str) -> str:
    """The same as an expression of DuckDB over a text, of BINARY over a blob; never null."""
    minus = f"WHEN {column} = '-0' THEN '-0.0' " if form is Form.FLOAT else ""
    finite = f"""CASE {minus}WHEN {column} IN ('NaN', 'Infinity', '-Infinity') THEN concat('"', {column}, '"') ELSE {column} END"""
    value = {
        Form.NUMBER: finite,
        Form.FLOAT: finite,
        Form.BOOLEAN: f"CASE {column} WHEN 't' THEN 'true' WHEN 'f' THEN 'false' END",
        Form.BINARY: f"""'"' || to_base64({column}) || '"'""",
        Form.TEXT: f"CAST(to_json({column}) AS VARCHAR)",
    }[form]
    return f"CASE WHEN {column} IS NULL THEN 'null' ELSE {value} END"


def member(name: str) -> bytes:
    """The beginning of a member of an object."""
    return _JSON(name) + b":"


def source_of(table: CapturedTable, lsn: int, micros: int, transaction: int | None = None) -> bytes:
    """What an event says of where it comes from, without the last brace.

    Args:
        table: the table.
        lsn: where the transaction's commit, or the snapshot, is in the log.
        micros: when that was, since 1970.
        transaction: its number.
    """
    said = {"connector": "postgresql", "name": table.path.at, "schema": table.path.schema, "table": table.path.table}
    numbers = {"txId": transaction, "lsn": lsn, "ts_us": micros}
    return _JSON({**said, **{k: n for k, n in numbers.items() if n is not None}})[:-1]


def truncated(source: bytes, order: int) -> bytes:
    """The line of a truncate."""
    return b'{"key":null,"value":{"source":%b},"transaction":{"total_order":%d},"op":"t"}}\n' % (source, order)


def nothing(table: CapturedTable, lsn: int, micros: int) -> bytes:
    """The line of a snapshot without rows: it says nothing."""
    return b'{"key":null,"value":{"source":%b},"op":"m"}}\n' % source_of(table, lsn, micros)


def older_gone(table: CapturedTable, lsn: int, micros: int) -> bytes:
    """The line of a snapshot that is not the first of its table: rows that are older than it are gone, those that it has are newer than this."""
    return truncated(source_of(table, lsn - 1, micros), 0)


def marked(line: bytes, word: bytes) -> bytes:
    """A row of a snapshot that is its first or last."""
    before, _, after = line.rpartition(MARK)
    return before + b'"snapshot":"' + word + b'"' + after


def row_lines(table: CapturedTable, forms: Mapping[str, Form], lsn: int, micros: int) -> str:
    """A query of DuckDB over ``rows``, the values of a snapshot: a line of an event each, in ``line``."""
    written = {name: sql_of(form, f'"c{i}"') for i, (name, form) in enumerate(forms.items())}
    source = source_of(table, lsn, micros) + b"," + MARK + b"}"
    parts = [
        *(quoted('{"key":'), *_object(written, table.key), quoted(',"value":{"before":null,"after":')),
        *(*_object(written, list(forms)), quoted(f',"source":{source.decode()},"op":"r"}}}}')),
    ]
    return f"SELECT concat({', '.join(parts)}) AS line FROM rows"


def _object(written: Mapping[str, str], names: Sequence[str]) -> list[str]:
    parts: list[str] = []
    for i, name in enumerate(names):
        parts += [quoted(("," if i else "{") + member(name).decode()), written[name]]
    return [*parts, quoted("}")]

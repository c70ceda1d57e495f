"""How a change is written: JSON of Debezium's envelope, so that the decoder of that reads it. Pure. ``row_columns`` writes the rows of a snapshot.

PostgreSQL says every value as text. What becomes of it depends on the column's type there, and on the declared one: a column that is declared as STRING keeps
its text, whatever its type; so do types that rejoin has none for (JSON, UUID, enumerations).

| type | written as |
|---|---|
| whole numbers, numeric, real, double precision | a number with the same digits; NaN and infinities as texts |
| boolean | true, false |
| bytea | base64 |
| arrays, where one is declared | an array of what their elements are |
| all others, dates and times too | the text |

The position of an event (``source.lsn``) is that of its transaction's *commit*, and its place therein (``transaction.total_order``): a change may stand in the
log before the point of a snapshot that does not have it, its commit never does.
"""

import base64
import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

import msgspec

from rejoin.capture.tables import CapturedTable
from rejoin.plan.sql.nested import ARRAY, parts_of

Encode = Callable[[bytes], bytes]
_JSON = msgspec.json.Encoder().encode


class Form(Enum):
    """How values of a column are written."""

    WHOLE = auto()
    NUMBER = auto()
    FLOAT = auto()
    BOOLEAN = auto()
    BINARY = auto()
    ARRAY = auto()
    TEXT = auto()


_FORMS: Final = {
    16: Form.BOOLEAN,
    17: Form.BINARY,
    **dict.fromkeys((20, 21, 23, 26), Form.WHOLE),
    1700: Form.NUMBER,
    **dict.fromkeys((700, 701), Form.FLOAT),
}
"""By PostgreSQL's number of a type (pg_type.oid); those of its own types never change."""
_TEXTS: Final = (1003, 1009, 1014, 1015, 199, 2951, 3807, 1115, 1182, 1183, 1185, 1187, 1270)
ELEMENTS: Final = {
    1000: 16,
    1001: 17,
    1005: 21,
    1007: 23,
    1016: 20,
    1021: 700,
    1022: 701,
    1028: 26,
    1231: 1700,
    **dict.fromkeys(_TEXTS, 25),
}
"""Arrays -> the type of their elements, by numbers; of names, texts, JSON, UUID, dates and times they are texts."""
_TOKEN, _ESCAPED = re.compile(rb'"((?:[^"\\]|\\.)*)"|[^{},"]+|[{}]', re.DOTALL), re.compile(rb"\\(.)", re.DOTALL)
_BRACKETS: Final = {b"{": b"[", b"}": b"]", b"NULL": b"null"}


def form_of(type_: int, declared: str | None) -> Form:
    """How a column is written: by its type's number (of a domain: of what it is made of), and the declared type, None of a column that is not declared."""
    if type_ in ELEMENTS and parts_of(declared or "") is not None:
        return Form.ARRAY
    return Form.TEXT if declared == "STRING" else _FORMS.get(type_, Form.TEXT)


def _number(text: bytes) -> bytes:
    return text if text[-1:].isdigit() else b'"' + text + b'"'  # NaN, Infinity


def _float(text: bytes) -> bytes:
    return b"-0.0" if text == b"-0" else _number(text)  # a whole number has no sign of zero


def text_of(type_: int, declared: str | None) -> Encode:
    """What turns a value's text, as PostgreSQL prints it, into JSON. Takes what ``form_of`` takes."""
    form = form_of(type_, declared)
    if form is Form.ARRAY:
        while (made := parts_of(declared or "")) is not None and made.kind == ARRAY:  # all dimensions are one type
            declared = made.element
        return _array(text_of(ELEMENTS[type_], declared))
    return {
        Form.WHOLE: lambda text: text,
        Form.NUMBER: _number,
        Form.FLOAT: _float,
        Form.BOOLEAN: lambda text: b"true" if text == b"t" else b"false",
        Form.BINARY: lambda text: b'"' + base64.b64encode(bytes.fromhex(text[2:].decode())) + b'"',
        Form.TEXT: lambda text: _JSON(text.decode()),
    }[form]


def _array(element: Encode) -> Encode:
    """The same of an array: ``{1,NULL,"a b"}``, ``{{1},{2}}``, ``[0:1]={1,2}``."""

    def token(found: re.Match[bytes]) -> bytes:
        if (quoted := found[1]) is not None:
            return element(_ESCAPED.sub(rb"\1", quoted))
        return _BRACKETS.get(found[0]) or element(found[0])

    return lambda text: _TOKEN.sub(token, text[text.index(b"{") :])


def member(name: str) -> bytes:
    """The beginning of a member of an object."""
    return _JSON(name) + b":"


def origin(table: CapturedTable) -> dict[str, str]:
    """What every event of a table says of where it comes from."""
    return {"connector": "postgresql", "name": table.path.at, "schema": table.path.schema, "table": table.path.table}


def source_of(table: CapturedTable, lsn: int, micros: int, transaction: int | None = None) -> bytes:
    """What an event says of where it comes from, without the last brace.

    Args:
        table: the table.
        lsn: where the transaction's commit, or the snapshot, is in the log.
        micros: when that was, since 1970.
        transaction: its number.
    """
    numbers = {"txId": transaction, "lsn": lsn, "ts_us": micros}
    return _JSON({**origin(table), **{k: n for k, n in numbers.items() if n is not None}})[:-1]


def truncated(source: bytes, order: int) -> bytes:
    """The line of a truncate."""
    return b'{"key":null,"value":{"source":%b},"transaction":{"total_order":%d},"op":"t"}}\n' % (source, order)


def nothing(table: CapturedTable, lsn: int, micros: int) -> bytes:
    """The line of a snapshot without rows: it says nothing."""
    return b'{"key":null,"value":{"source":%b},"op":"m"}}\n' % source_of(table, lsn, micros)


def older_gone(table: CapturedTable, lsn: int, micros: int) -> bytes:
    """The line of a snapshot that is not the first of its table: rows that are older than it are gone, those that it has are newer than this."""
    return truncated(source_of(table, lsn - 1, micros), 0)

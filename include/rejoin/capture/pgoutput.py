"""Messages of PostgreSQL's plugin pgoutput, protocol version 1 -> lines of change events. Pure: bytes in, bytes out.

The server sends a transaction when it has committed, whole and in the order of commits (protocol.sgml, "Logical Replication Message Formats"). A message of a
kind that version 1 does not have stops the capture: what it says is not known, so nothing that follows can be trusted.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rejoin.capture.envelope import Encode, member, source_of, text_of, truncated
from rejoin.capture.tables import CapturedTable
from rejoin.errors import CaptureRefused

_EPOCH_MICROS: Final = 946_684_800_000_000
"""2000-01-01, from which PostgreSQL counts, since 1970."""
_SHORT, _LONG = struct.Struct(">H").unpack_from, struct.Struct(">I").unpack_from
_BEGIN, _COMMIT = struct.Struct(">QqI").unpack_from, struct.Struct(">BQQ").unpack_from
_NULL, _UNCHANGED, _TEXT = b"nut"
_NEW, _WHOLE = b"NO"
_OPS = {ord("I"): b"c", ord("U"): b"u", ord("D"): b"d"}
_UNSAID = frozenset(b"YOM")
"""Types, origins and messages of applications say nothing of rows."""
_NOTHING = b"null"

Row = list[bytes | None]
"""Values as JSON; None where the value is large and has not changed."""


@dataclass
class _Relation:
    """A table as its last description had it."""

    table: CapturedTable
    members: tuple[bytes, ...]
    encodes: tuple[Encode, ...]
    key: tuple[int, ...]
    placeholder: bytes
    source: bytes = b""
    skipped: bool = False
    """Whether its file has the transaction already."""


@dataclass
class Transactions:
    """The messages of a slot, one after the other.

    Args:
        tables: schema and table -> what is captured. Others are passed over.
        landed: schema and table -> up to where its changes have landed already; these are passed over.
        base_type: the number of a type -> that of the type that it is made of, if it is a domain.
        write: takes the lines of a table.
    """

    tables: Mapping[str, CapturedTable]
    landed: Mapping[str, int]
    base_type: Callable[[int], int]
    write: Callable[[str, bytes], None]
    open: bool = False
    """Whether a transaction has begun and not ended."""
    events: int = 0
    _relations: dict[int, _Relation] = field(default_factory=dict)
    _commit: int = 0
    _transaction: int = 0
    _micros: int = 0
    _order: int = 0

    def take(self, message: bytes) -> int | None:
        """Where in the log a transaction ends, if this message is its end.

        Raises:
            CaptureRefused: the message is of an unknown kind; or the table lacks a column of the declared key.
        """
        kind = message[0]
        if kind in _OPS:
            self._change(message, _OPS[kind])
        elif kind == ord("B"):
            self._commit, since, self._transaction = _BEGIN(message, 1)
            self._micros, self._order, self.open = since + _EPOCH_MICROS, 0, True
            for relation in self._relations.values():
                self._enter(relation)
        elif kind == ord("C"):
            self.open = False
            return int(_COMMIT(message, 1)[2])
        elif kind == ord("R"):
            self._describe(message)
        elif kind == ord("T"):
            self._truncate(message)
        elif kind not in _UNSAID:
            raise _unknown("message", kind)
        return None

    def _enter(self, relation: _Relation) -> None:
        relation.source = source_of(relation.table, self._commit, self._micros, self._transaction)
        relation.skipped = self._commit < self.landed.get(relation.table.name, 0)

    def _describe(self, message: bytes) -> None:
        number = _LONG(message, 1)[0]
        schema, at = _name(message, 5)
        name, at = _name(message, at)
        table = self.tables.get(f"{schema}.{name}")
        self._relations.pop(number, None)
        if table is None:
            return
        columns: list[tuple[str, int]] = []
        count, at = _SHORT(message, at + 1)[0], at + 3
        for _ in range(count):
            column, at = _name(message, at + 1)
            columns.append((column, self.base_type(_LONG(message, at)[0])))
            at += 8
        names = [column for column, _ in columns]
        if lacking := [k for k in table.key if k not in names]:
            raise CaptureRefused(
                f"{table.path} has no column {', '.join(map(repr, lacking))} any more, which is of the declared key",
                next_step="declare the key that the table has now; a table with another key needs `rejoin capture --resnapshot`",
            )
        encodes = tuple(text_of(type_, table.types.get(column)) for column, type_ in columns)
        placeholder = text_of(0, "STRING")(table.placeholder.encode())
        key = tuple(map(names.index, table.key))
        self._relations[number] = found = _Relation(table, tuple(map(member, names)), encodes, key, placeholder)
        self._enter(found)

    def _change(self, message: bytes, op: bytes) -> None:
        relation = self._relations.get(_LONG(message, 1)[0])
        self._order += 1
        if relation is None or relation.skipped:
            return
        at, old, new = 5, None, None
        if (first := message[at]) != _NEW:
            old, at = _row(message, at + 1, relation.encodes)
        if at < len(message):
            new, at = _row(message, at + 1, relation.encodes)
        if old is not None and new is not None:
            for i in range(len(new)) if first == _WHOLE else relation.key:
                new[i] = old[i] if new[i] is None else new[i]
        if old is None or new is None or all(old[k] == new[k] for k in relation.key):
            self._tell(relation, op, old if new is None else new, new)
            return
        was, now = _key(relation, old), _key(relation, new)
        self._tell(relation, b"d", old, None, b',"headers":{"__debezium.newkey":%b}' % now)
        self._order += 1
        self._tell(relation, b"c", new, new, b',"headers":{"__debezium.oldkey":%b}' % was)

    def _tell(self, relation: _Relation, op: bytes, keyed: Row | None, after: Row | None, headers: bytes = b"") -> None:
        assert keyed is not None
        self.events += 1
        row = _NOTHING if after is None else _object(relation.members, after, relation.placeholder)
        place = b'"transaction":{"id":"%d","total_order":%d}' % (self._transaction, self._order)
        value = b'{"before":null,"after":%b,"source":%b},%b,"op":"%b"}' % (row, relation.source, place, op)
        self.write(relation.table.name, b'{"key":%b,"value":%b%b}\n' % (_key(relation, keyed), value, headers))

    def _truncate(self, message: bytes) -> None:
        for i in range(_LONG(message, 1)[0]):
            relation = self._relations.get(_LONG(message, 6 + 4 * i)[0])
            self._order += 1
            if relation is not None and not relation.skipped:
                self.events += 1
                self.write(relation.table.name, truncated(relation.source, self._order))


def _name(message: bytes, at: int) -> tuple[str, int]:
    end = message.index(b"\0", at)
    return message[at:end].decode(), end + 1


def _row(message: bytes, at: int, encodes: tuple[Encode, ...]) -> tuple[Row, int]:
    """The row that is written from there, and where it ends."""
    row: Row = []
    at += 2
    for encode in encodes:
        kind = message[at]
        at += 1
        if kind == _TEXT:
            start = at + 4
            at = start + _LONG(message, at)[0]
            row.append(encode(message[start:at]))
        elif kind == _NULL:
            row.append(_NOTHING)
        elif kind == _UNCHANGED:
            row.append(None)
        else:
            raise _unknown("value", kind)
    return row, at


def _unknown(what: str, kind: int) -> CaptureRefused:
    return CaptureRefused(
        f"the server sends a {what} of the unknown kind {chr(kind)!r}",
        expected="pgoutput, protocol version 1",
        next_step="capture with a rejoin that knows this version of PostgreSQL",
    )


def _object(members: tuple[bytes, ...], row: Row, placeholder: bytes) -> bytes:
    return b"{" + b",".join([m + (placeholder if v is None else v) for m, v in zip(members, row, strict=True)]) + b"}"


def _key(relation: _Relation, row: Row) -> bytes:
    return b"{" + b",".join([relation.members[k] + (row[k] or relation.placeholder) for k in relation.key]) + b"}"

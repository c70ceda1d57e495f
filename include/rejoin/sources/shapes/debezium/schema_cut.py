"""Lines that repeat a schema of several kilobytes -> the same values as ``quick`` gives, without parsing the schema again.

A line is ``<head>"value":{"schema":S,"payload":P}<tail>``, or the same with the document as JSON text. If the schema and the tail are
those of an earlier line, only P is parsed, and the line with a number in the place of the document. This is exact:

* The number stands in that shorter line once, and it is what the line has as ``value``. So it is a value there and no part of a
  text, and the longer line has a document in its place, if what was cut out is one.
* It is one: S was parsed when it was learned, and P is parsed on its own, as a whole.
"""

import json
import re
from typing import Any

from rejoin.errors import BadRecord
from rejoin.sources.formats.json_text import Unsure, loads, quick, value_end
from rejoin.sources.shapes.debezium.envelope import Unwrapper

_OBJECT = re.compile(r'"\w+"[ \t\r\n]*:[ \t\r\n]*\{[ \t\r\n]*"schema"[ \t\r\n]*:[ \t\r\n]*')
_TEXT = re.compile(r'"\w+"[ \t\r\n]*:[ \t\r\n]*"')
_PAYLOAD = re.compile(r'[ \t\r\n]*,[ \t\r\n]*"payload"[ \t\r\n]*:[ \t\r\n]*')
# How many lines of a file may be tried, as long as no schema is known or when the tail is a new one.
_TRIES = 200


class SchemaCut:
    """Cuts the document of one member ("key" or "value") out of lines; follows the schema that ``unwrapper`` saw last."""

    def __init__(self, member: str, unwrapper: Unwrapper, number: int) -> None:
        self._member, self._unwrapper, self._number = member, unwrapper, number
        self._name, self._token = f'"{member}"', str(number)
        self._tries = _TRIES
        self._front = self._tail = ""
        self._prefix: str | None = None
        self._schema: Any = None

    def line(self, text: str, inner: "SchemaCut | None" = None) -> Any:
        """What ``quick(text)`` returns; ``inner`` is tried on the shorter line."""
        # The schema is looked at first: most feeds without schemas are read by this line.
        at = -1 if self._unwrapper.schema is None else text.find(self._name)
        if at < 0 or not self._fits(text, at):
            return inner.line(text) if inner else quick(text)
        piece = text[at + len(self._front) : len(text) - len(self._tail)]
        if self._prefix is None:
            document: Any = {"schema": self._schema, "payload": quick(piece)}
            rest = self._tail[1:]
        else:
            document = self._prefix + quick('"' + piece + '"') + "}"
            rest = self._tail[2:]
        short = f"{text[:at]}{self._name}:{self._token}{rest}"
        line = inner.line(short) if inner else quick(short)
        found = line.get(self._member) if type(line) is dict else None
        if type(found) is not int or found != self._number or short.count(self._token) != 1:
            raise Unsure
        line[self._member] = document
        return line

    def _fits(self, text: str, at: int) -> bool:
        """Whether the line has the schema of the unwrapper, and the tail that was learned with it or is learned now."""
        schema, prefix = self._unwrapper.schema, self._unwrapper.prefix
        if schema is self._schema and prefix is self._prefix:
            if not text.startswith(self._front, at):
                return False
            if text.endswith(self._tail) and at + len(self._front) + len(self._tail) <= len(text):
                return True
        return self._tries > 0 and self._learn(text, at, schema, prefix)

    def _learn(self, text: str, at: int, schema: Any, prefix: str | None) -> bool:
        """Learns front and tail from a line; False if it has another schema or none."""
        self._tries -= 1
        self._schema = None
        try:
            found = self._of_object(text, at, schema) if prefix is None else self._of_text(text, at, prefix)
        except (BadRecord, ValueError, ArithmeticError, StopIteration, RecursionError):
            return False
        if found:
            self._schema, self._prefix = schema, prefix
        return found

    def _of_object(self, text: str, at: int, schema: Any) -> bool:
        start = _OBJECT.match(text, at)
        if start is None:
            return False
        middle = _PAYLOAD.match(text, value_end(text, start.end()))
        if middle is None or loads(text[start.end() : middle.start()]) != schema:
            return False
        self._front, self._tail = text[at : middle.end()], text[value_end(text, middle.end()) :]
        return self._tail.startswith("}")

    def _of_text(self, text: str, at: int, prefix: str) -> bool:
        start = _TEXT.match(text, at)
        if start is None:
            return False
        self._front = start[0] + json.dumps(prefix)[1:-1]
        self._tail = text[value_end(text, start.end() - 1) - 2 :]
        return text.startswith(self._front, at) and self._tail.startswith('}"')

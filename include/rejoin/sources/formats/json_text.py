"""JSON text -> Python values, strictly: what another reader could understand differently is refused, not guessed.

Beyond ``json.loads``: numbers with a fraction or exponent become exact ``Decimal``; ``NaN`` and ``Infinity`` tokens, trailing
text and duplicate keys are refused.

Duplicate keys are found without a Python call per object. In text without white space before a colon every key ends in ``":``;
so the number of ``":`` that are not escaped equals the number of keys that were parsed if and only if no key was lost to a
duplicate. Only where the cheap count cannot decide (deep nesting, odd escapes, white space) the text is parsed a second time.
Measured on a Debezium value of 550 bytes: 1.2 microseconds against 2.7 for ``object_pairs_hook``, of 6 for the parsing itself.

``loads`` is the definition. ``quick`` is five times faster and gives the same value or raises ``Unsure``; it never decides that a
text is wrong. It rests on msgspec, which refuses all that ``loads`` refuses but duplicate keys (tests/unit/sources/test_fast_path.py).
"""

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any, NoReturn

import msgspec

from rejoin.errors import BadRecord

BAD_JSON = "BAD_JSON"
AMBIGUOUS_JSON = "AMBIGUOUS_JSON"
_BLANK = " \t\r\n"
# Arrays nested deeper than this are left to ``loads``: where it gives up depends on how deep the caller is.
_MANY_ARRAYS = 100


def _refuse_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is not JSON")


class _DuplicateKey(Exception):
    """Two members of one object have the same name."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateKey
    return found


# The scanners are built once: json.loads(parse_float=...) would build a decoder a call.
Scan = Callable[[str, int], tuple[Any, int]]
_scan: Scan = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant).scan_once  # type: ignore[attr-defined]
_unique_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_float=Decimal, parse_constant=_refuse_constant)
_scan_unique: Scan = _unique_decoder.scan_once  # type: ignore[attr-defined]


def loads(text: str) -> Any:
    """The value that ``text`` holds; raises ``BadRecord`` (BAD_JSON, AMBIGUOUS_JSON) without quoting the text."""
    value = _whole(_scan, text)
    if type(value) in (dict, list) and not _surely_unique(text, value):
        _whole(_scan_unique, text)
    return value


def json_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a line; ``BadRecord`` if it is none. Numbers with a point are ``Decimal``."""
    return _object(raw, loads)


_CONSTANTS = {None: "null", True: "true", False: "false"}


class Number(str):
    """A number as it is written."""

    __slots__ = ()


_as_written = json.JSONDecoder(object_pairs_hook=_unique, parse_float=Number, parse_int=Number, parse_constant=_refuse_constant)
_scan_as_written: Scan = _as_written.scan_once  # type: ignore[attr-defined]


def as_written(text: str) -> Any:
    """As ``loads``, with every number as it is written (``Number``)."""
    return _whole(_scan_as_written, text)


def written(value: Any) -> str:
    """The text of a value that ``as_written`` or ``json_members`` gave, every number as it was.

    Raises:
        BadRecord: it is too deep.
    """
    try:
        return _written(value)
    except RecursionError:
        return _bad("an object or array is too deep")


def _written(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is Number:
        return str(value)
    if kind is list:
        return f"[{','.join(map(_written, value))}]"
    if kind is dict:
        return f"{{{','.join([f'{encode_basestring(name)}:{_written(one)}' for name, one in value.items()])}}}"
    return _CONSTANTS[value]


def json_members(raw: bytes) -> dict[str, Any]:
    """As ``json_object``, with every number as it is written (``Number``)."""
    return _object(raw, as_written)


def _object(raw: bytes, read: Callable[[str], Any]) -> dict[str, Any]:
    try:
        found = read(raw.decode())
    except UnicodeDecodeError:
        raise BadRecord(BAD_JSON, "the line is not UTF-8") from None
    if type(found) is not dict:
        raise BadRecord(BAD_JSON, "the line is not a JSON object")
    return found


def loads_shallow(text: str) -> Any:
    """The same, faster for text of few objects and long strings: a line whose key and value are JSON text."""
    return _whole(_scan_unique, text)


whole_document: Callable[[bytes], msgspec.Raw] = msgspec.json.Decoder(msgspec.Raw).decode
"""The document in some bytes. Raises ``msgspec.MsgspecError`` or ``RecursionError`` if they are not one, whole and nothing else; does not look at the letters
of texts in it, nor for members that come twice.
"""


class Unsure(Exception):
    """Raised by a fast way that cannot be certain to give what the careful way gives; says nothing about the input."""


_quick = msgspec.json.Decoder(float_hook=Decimal).decode


def quick(text: str) -> Any:
    """The value that ``loads`` returns for ``text``, or ``Unsure``."""
    try:
        value = _quick(text)
    except (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError):
        raise Unsure from None
    # Every key has a colon outside of strings: with no more colons than different keys none of them came twice.
    if type(value) is dict:
        colons = text.count(":")
        sure = colons == _keys(value, colons) or _surely_unique_texts(text, value) or _surely_unique(text, value)
    else:
        sure = type(value) is not list
    if not sure or ("[" in text and text.count("[") > _MANY_ARRAYS):
        raise Unsure
    return value


def _whole(scan: Scan, text: str) -> Any:
    try:
        value, end = scan(text, 0)
        if end == len(text):
            return value
        if text[end:].strip(_BLANK):
            return _bad("there is text after the JSON value")
        return value
    except StopIteration:
        stripped = text.lstrip(_BLANK)
        return _whole(scan, stripped) if stripped and stripped != text else _bad("the text is cut or is no JSON")
    except _DuplicateKey:
        raise BadRecord(AMBIGUOUS_JSON, "a JSON object has the same key twice") from None
    except (ValueError, InvalidOperation, RecursionError):
        # ValueError also covers an integer of more than 4,300 digits, InvalidOperation an exponent beyond any type.
        return _bad("the text is cut or is no JSON")


def prefix_before_payload(text: str) -> str | None:
    """The part of ``{"schema":{...},"payload":...}`` before the payload, or None if ``text`` is laid out otherwise."""
    start, middle = '{"schema":', ',"payload":'
    if not text.startswith(start):
        return None
    try:
        end = value_end(text, len(start))
    except StopIteration:  # white space stands before the schema
        return None
    return text[: end + len(middle)] if text.startswith(middle, end) else None


def value_end(text: str, start: int) -> int:
    """Where the JSON value ends that begins at ``start``; any error of the scanner if there is none."""
    return _scan(text, start)[1]


def _bad(reason: str) -> NoReturn:
    raise BadRecord(BAD_JSON, reason)


def _surely_unique(text: str, value: Any) -> bool:
    """True only if no object in ``text`` has a duplicate key; False means: look closely."""
    if type(value) is not dict:
        return False
    found = text.count('":')
    if found != _keys(value, found):
        if '\\\\":' in text:
            return False  # a key that ends in a backslash, or JSON in JSON in JSON
        found -= text.count('\\":')
    # One character is searched ten times faster than two; tabs and line ends do not occur in what connectors write.
    return found == _keys(value, found) and "\t" not in text and "\n" not in text and "\r" not in text and " :" not in text


def _keys(value: dict[str, Any], enough: int) -> int:
    """The number of members of an object and of the objects in it, not counted further once there are ``enough``."""
    keys, level = len(value), [value]
    while keys != enough:
        level = [member for part in level for member in part.values() if type(member) is dict]
        if not level:
            break
        keys += sum(map(len, level))
    return keys


def _surely_unique_texts(text: str, value: dict[str, Any]) -> bool:
    """The same for an object of texts, whatever these hold: every quote is one around a key or a text, or one inside a text.

    A quote of a lost member would be one more, and only the escape of a quote by its number could make up for it.
    """
    quotes = 2 * len(value)
    for member in value.values():
        if type(member) is str:
            quotes += 2 + member.count('"')
        elif member and type(member) in (dict, list):  # could hold texts of its own
            return False
    return text.count('"') == quotes and "u0022" not in text

"""Scenario lines -> checked scenarios.

A line: ``{"name", "join", "how"?, "versioned_ms"?, "events": [{"side", "key", "value", "ts"}]}``; other members are ignored. ``value``
null deletes the row; an empty text is a row. A row with the key null is left out, as by Kafka. ``how`` is the kind of each join, where ``join`` does not say it.

The position of an event in its source is its order of arrival: the last one wins, whatever its ``ts``. With ``versioned_ms`` it is ``ts``,
then arrival: an older event is ignored, one of the same time replaces.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn, TypeGuard, cast

from rejoin.errors import ScenarioRefused
from rejoin.replay.stream_joins import Variant
from rejoin.replay.table_joins import SHAPES, SHORT, kinds, sides


@dataclass(frozen=True)
class Event:
    """One event of a scenario; ``lsn`` and ``order`` are its position in the source, ``time`` its time in milliseconds (0 where none is needed)."""

    side: str
    key: str | None
    value: str | None
    time: int
    lsn: int
    order: int


@dataclass(frozen=True)
class Scenario:
    """One line. ``number`` is its place among all lines of all files; an event is None where there is nothing to join."""

    number: int
    name: str
    join: str
    how: tuple[str, ...]
    events: tuple[Event | None, ...]
    variant: Variant = ()


def scenarios(files: Sequence[str]) -> Iterator[Scenario]:
    """All scenarios of the files, in order.

    Args:
        files: JSON lines, compressed if the name ends with ``.gz``.

    Raises:
        ScenarioRefused: names the file and line, and what would have been right.
    """
    number = 0
    for file in files:
        for line, raw in _lines(file):
            yield _scenario(number, raw, f"{file}:{line}")
            number += 1


def _lines(file: str) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 1."""
    number = 0
    try:
        with cast("BinaryIO", gzip.open(file)) if file.endswith(".gz") else open(file, "rb") as lines:  # noqa: PTH123
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line
    except (EOFError, OSError) as error:
        _refuse(f"{file}:{number + 1}", f"cannot be read: {error}", "a readable file of JSON lines")


def _scenario(number: int, raw: bytes, where: str) -> Scenario:
    try:
        line = json.loads(raw)
    except (UnicodeDecodeError, ValueError):
        line = None
    if not isinstance(line, dict) or not isinstance(line.get("name"), str) or not isinstance(line.get("events"), list):
        _refuse(where, "is no scenario", 'a JSON object {"name", "join", "events": [{"side", "key", "value", "ts"}]}')
    join, how = _shape(line, where)
    kinds_of, versioned = sides(join), line.get("versioned_ms") is not None
    events = tuple(_event(e, i, kinds_of, where, versioned=versioned) for i, e in enumerate(line["events"], start=1))
    return Scenario(number, line["name"], join, how, events, _variant(line, join, where))


def _variant(line: dict[str, Any], join: str, where: str) -> Variant:
    """What a line says beside its join."""
    if join == "stream-stream":
        window, grace = line.get("window_ms", 0), line.get("grace_ms", 0)
        said = {"before_ms": line.get("before_ms", window), "after_ms": line.get("after_ms", window), "grace_ms": grace}
        if any(type(value) is not int for value in said.values()):
            _refuse(where, "has no usable window", "window_ms, or before_ms and after_ms, and grace_ms: milliseconds, integers from 0")
        return tuple(said.items())
    if join == "stream-table" and line.get("versioned_ms") is not None:
        return (("versioned", 1),)
    return (("map_fk", 1),) if join == "stream-global" and line.get("map_fk") else ()


def _shape(line: dict[str, Any], where: str) -> tuple[str, tuple[str, ...]]:
    join, how = line.get("join"), line.get("how")
    if isinstance(join, str) and join in SHORT:
        return SHORT[join]
    if not isinstance(join, str) or join not in SHAPES or join == "fk":
        _refuse(where, f"has join {join!r}, which replay does not run", supported())
    if not isinstance(how, list) or tuple(how) not in kinds(join):
        _refuse(where, f"has how={how!r} for join {join!r}", f"a list of {SHAPES[join].joins} of 'inner', 'left'")
    return join, tuple(how)


def supported() -> str:
    """The names that ``join`` may have, as a text."""
    return ", ".join(sorted({*SHORT, *SHAPES} - {"fk"}))


def _event(event: Any, arrival: int, kinds_of: Mapping[str, str], where: str, *, versioned: bool) -> Event | None:
    """The event; None for what Kafka leaves out before any join: a record of a stream without value, and a row without key."""
    if not isinstance(event, dict) or event.get("side") not in kinds_of:
        _refuse(where, f"has an event {arrival} for no table of its shape", f"side: {', '.join(kinds_of)}")
    key, value, time = event.get("key"), event.get("value"), event.get("ts")
    if not all(_is_text(given) or (given is None and name in event) for name, given in (("key", key), ("value", value))):
        _refuse(where, f"has an event {arrival} without a usable key or value", "key and value: a text or null")
    if not (versioned or "stream" in kinds_of.values()):
        time = 0
    if type(time) is not int or time < 0:
        _refuse(where, f"needs times and has an event {arrival} without a usable one", "ts: milliseconds, an integer from 0")
    if (value if kinds_of[event["side"]] == "stream" else key) is None:
        return None
    position = (time, arrival) if versioned and kinds_of[event["side"]] == "table" else (arrival, 0)
    return Event(event["side"], key, value, time, *position)


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text that can be stored: JSON can escape what is no Unicode (half of a surrogate pair)."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _refuse(where: str, what: str, expected: str) -> NoReturn:
    raise ScenarioRefused(f"{where} {what}; nothing was run", expected=expected, next_step="mend the line, or leave it out")

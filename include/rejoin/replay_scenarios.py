"""Scenario lines -> checked scenarios.

A line: ``{"name", "join", "how"?, "versioned_ms"?, "events": [{"side", "key", "value", "ts"}]}``; other members are ignored. ``value``
null deletes the row; an empty text is a row. ``how`` is the kind of each join, where ``join`` does not say it.

The position of an event in its source is its order of arrival: the last one wins, whatever its ``ts``. With ``versioned_ms`` it is ``ts``,
then arrival: an older event is ignored, one of the same time replaces.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn, TypeGuard, cast

from rejoin.errors import ScenarioRefused
from rejoin.replay_shapes import SHAPES, SHORT, kinds


@dataclass(frozen=True)
class Event:
    """One event of a scenario; ``lsn`` and ``order`` are its position in the source."""

    side: str
    key: str
    value: str | None
    lsn: int
    order: int


@dataclass(frozen=True)
class Scenario:
    """One line. ``number`` is its place among all lines of all files."""

    number: int
    name: str
    join: str
    how: tuple[str, ...]
    events: tuple[Event, ...]


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
    sides, versioned = SHAPES[join].sides, line.get("versioned_ms") is not None
    events = tuple(_event(e, i, sides, versioned, where) for i, e in enumerate(line["events"], start=1))
    return Scenario(number, line["name"], join, how, events)


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


def _event(event: Any, arrival: int, sides: tuple[str, ...], versioned: bool, where: str) -> Event:
    if not isinstance(event, dict) or event.get("side") not in sides:
        _refuse(where, f"has an event {arrival} for no table of its shape", f"side: {', '.join(sides)}")
    key, value, time = event.get("key"), event.get("value"), event.get("ts")
    if not _is_text(key) or not (_is_text(value) or (value is None and "value" in event)):
        _refuse(where, f"has an event {arrival} without a usable key or value", "key: a text; value: a text or null")
    if not versioned:
        return Event(event["side"], key, value, arrival, 0)
    if type(time) is not int or time < 0:
        _refuse(where, f"is versioned and has an event {arrival} without a usable time", "ts: milliseconds, an integer from 0")
    return Event(event["side"], key, value, time, arrival)


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text that can be stored: JSON can escape what is no Unicode (half of a surrogate pair)."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _refuse(where: str, what: str, expected: str) -> NoReturn:
    raise ScenarioRefused(f"{where} {what}; nothing was run", expected=expected, next_step="mend the line, or leave it out")

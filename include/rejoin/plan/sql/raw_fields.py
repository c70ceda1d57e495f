"""What SQL over the fields of a record reads. It stands in a plan as SQL over ``t``, in which every field is a text."""

import re
from collections.abc import Iterator
from functools import cache

from rejoin.plan.sql.typing.cursor import Term
from rejoin.plan.sql.typing.grammar import parse

KEY, HEADER = "_key", "_header"
"""Of a message of a topic: its key, if that is a single value, and what stands before the names of its headers. A field of a key that is an object is
``_key.<name>``, a header ``_header.<name>``; all others are fields of its value.
"""
EITHER = "_either"
"""What stands before the name of a column of the key that no declaration makes of anything: its field in the value, and in the key of the message, which must
say the same, if both say it. A key that is a single value is that of the only column.
"""
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLAIN = re.compile(r"t\.`([^`]+)`")


def as_field(name: str) -> str:
    """A field by itself."""
    return f"t.`{name}`"


def unqualified(sql: str) -> str:
    """The text as a user writes it."""
    return re.sub(r"\bt\.`([^`]+)`", lambda name: name[1] if _WORD.fullmatch(name[1]) else f"`{name[1]}`", sql)


def plain(sql: str) -> str | None:
    """The field, if a text is nothing but one."""
    found = _PLAIN.fullmatch(sql)
    return found[1] if found else None


@cache
def fields(sql: str) -> tuple[str, ...]:
    """The fields that a text reads, in the order in which they are named."""
    name = plain(sql)
    return (name,) if name is not None else tuple(dict.fromkeys(_columns(parse(sql))))


@cache
def needed(sql: str) -> tuple[frozenset[str], ...]:
    """The fields that have to be there for a text to say something: of each of these sets one is enough. A field that was renamed at its source is
    ``coalesce(new, old)``.
    """
    return tuple(dict.fromkeys(_needed(parse(sql))))


def _needed(term: Term) -> Iterator[frozenset[str]]:
    if term.name == "column":
        yield frozenset({term.value})
    elif term.name == "coalesce" and all(arg.name == "column" for arg in term.args):
        yield frozenset(arg.value for arg in term.args)
    else:
        for arg in term.args:
            yield from _needed(arg)


def _columns(term: Term) -> Iterator[str]:
    if term.name == "column":
        yield term.value
    for arg in term.args:
        yield from _columns(arg)

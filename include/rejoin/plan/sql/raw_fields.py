"""What SQL over the fields of a record reads. It stands in a plan as SQL over ``t``, in which every field is a text."""

import re
from collections.abc import Iterator
from functools import cache

from rejoin.plan.sql.typing.cursor import Term
from rejoin.plan.sql.typing.grammar import parse

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


def _columns(term: Term) -> Iterator[str]:
    if term.name == "column":
        yield term.value
    for arg in term.args:
        yield from _columns(arg)

"""Keys as people type them and commands print them. In Python null is None."""

import re
from collections.abc import Iterable

NULL = r"\N"
"""A null part of a key, as in PostgreSQL's COPY. The text of that name, and those with more backslashes, are typed with one more."""
_NULL_TEXT = re.compile(r"\\+N")


def key_text(value: object) -> str:
    """A part of a key as it is typed: a value that is no text as Python writes it."""
    if value is None:
        return NULL
    return f"\\{value}" if _NULL_TEXT.fullmatch(str(value)) else str(value)


def typed(key: Iterable[str]) -> tuple[str | None, ...]:
    """The parts of a key that somebody has typed."""
    return tuple(None if part == NULL else part[1:] if _NULL_TEXT.fullmatch(part) else part for part in key)

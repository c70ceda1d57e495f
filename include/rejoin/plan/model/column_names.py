"""Names of columns are compared without regard to case, as the engines do that compute with them; everywhere by these functions.

A column keeps the spelling in which it was first stored (``compatible.refuse_respelled``): Iceberg would take another spelling for another column.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def folded(name: str) -> str:
    """What a name is compared by."""
    return name.lower()


def spelled(name: str, known: Iterable[str]) -> str | None:
    """How a name is spelled among those that are known; None if it is none of them."""
    return next((one for one in known if folded(one) == folded(name)), None)


def by_name(known: Mapping[str, T]) -> dict[str, T]:
    """What is known of names, by what they are compared by."""
    return {folded(name): value for name, value in known.items()}


def repeated(names: Iterable[str]) -> list[str]:
    """Names that come more than once."""
    seen, found = set[str](), list[str]()
    for name in names:
        if folded(name) in seen:
            found.append(name)
        seen.add(folded(name))
    return found

"""The stable codes of mistakes in a topology file, and the list that collects them."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rejoin.declare.declarations import Place
from rejoin.errors import Problem
from rejoin.plan.model.column_names import by_name, folded

AMBIGUOUS_COLUMN: Final = "AMBIGUOUS_COLUMN"  # both sides of a join have the column
BAD_EXPRESSION: Final = "BAD_EXPRESSION"  # not one SQL expression, or not one that fits here
BAD_OPTION: Final = "BAD_OPTION"  # an argument of the wrong type or outside its range
BAD_SCHEMA: Final = "BAD_SCHEMA"  # a declared schema or key that cannot be
BAD_TYPE: Final = "BAD_TYPE"  # types that an operator or function does not take, a constant that is no value of its type
CYCLE: Final = "CYCLE"  # a relation that needs itself
DUPLICATE_NAME: Final = "DUPLICATE_NAME"  # two tables, outputs or columns with one name
EMPTY_TOPOLOGY: Final = "EMPTY_TOPOLOGY"  # nothing is named, so nothing would be made
FK_COUNT: Final = "FK_COUNT"  # as many foreign key expressions as the right key has columns
FK_TYPE: Final = "FK_TYPE"  # a foreign key of another type than the right key
FORBIDDEN_FUNCTION: Final = "FORBIDDEN_FUNCTION"  # not a deterministic function of one row
KEY_LOST: Final = "KEY_LOST"  # a select that drops a key column
OTHER_TOPOLOGY: Final = "OTHER_TOPOLOGY"  # a join across two topologies
UNKNOWN_COLUMN: Final = "UNKNOWN_COLUMN"  # no such column
UNKNOWN_RELATION: Final = "UNKNOWN_RELATION"  # ``topology.relation(name)`` of a name that nothing has
UNSAFE_NAME: Final = "UNSAFE_NAME"  # a name that could not be a table or column name everywhere
UNUSED: Final = "UNUSED"  # a join, filter or select that nobody reads and nobody named


@dataclass
class Problems:
    """Collects every mistake, so that one error shows them all."""

    found: list[Problem] = field(default_factory=list)

    def add(self, code: str, message: str, place: Place) -> None:
        self.found.append(Problem(code, message, place.file, place.line))

    def in_order(self) -> tuple[Problem, ...]:
        """Without repetitions, by file and line; mistakes of one line in the order in which they were found."""
        return tuple(sorted(dict.fromkeys(self.found), key=lambda p: (p.file, p.line)))

    def at(self, place: Place, prefix: str = "") -> "Reporter":
        return Reporter(self, place, prefix)


@dataclass(frozen=True)
class Reporter:
    """Adds mistakes of one place, each message after the same prefix ("foreign_key 'x': ")."""

    problems: Problems
    place: Place
    prefix: str = ""

    def __call__(self, code: str, message: str) -> None:
        self.problems.add(code, self.prefix + message, self.place)

    def about(self, prefix: str) -> "Reporter":
        return Reporter(self.problems, self.place, self.prefix + prefix)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the nearest known word (case aside), else the empty string."""
    names = by_name({name: name for name in sorted(known)})
    near = difflib.get_close_matches(folded(word), list(names), n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""

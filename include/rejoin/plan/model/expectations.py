"""Expectations as data of the plan."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rejoin.plan.model import expectation_words


class Level(StrEnum):
    """What an expectation is about."""

    ROW = "row"  # each row passes or fails on its own
    TABLE = "table"  # the table as it would become


class Severity(StrEnum):
    """What happens when an expectation is not met."""

    FAIL = "fail"  # the run stops before anything is visible
    QUARANTINE = "quarantine"  # the row is held back, the last good version of its key stays (level ROW only)
    WARN = "warn"  # it is reported


class Which(StrEnum):
    """Which rows an expectation of level ROW looks at."""

    CHANGED = "changed"  # those that the run would change
    ALL = "all"  # every row of the table as it would become


@dataclass(frozen=True)
class Expectation:
    """One expectation on a table or output; no part of a node's definition.

    ``type``: a type of Great Expectations, or one of ``plan.check.expectations.OWN``. ``kwargs``: its arguments, as JSON has them;
    ``resolved`` among them is what Spark evaluates for it, a condition over ``t``.
    ``max_share``: severity QUARANTINE holds back at most this share of the rows that it looked at, else the run stops.
    """

    type: str
    kwargs: dict[str, Any] = field(hash=False)
    level: Level
    severity: Severity = Severity.FAIL
    rows: Which = Which.CHANGED
    max_share: float = 0.05

    @property
    def asked(self) -> bool:
        """Whether Great Expectations is asked: of what cannot be computed there is nothing to look at."""
        return self.type != "computable"

    @property
    def title(self) -> str:
        """One line for people, as the user wrote it: holds no value of a row."""
        return expectation_words.title(self.type, self.kwargs)


def expectations_of(data: dict[str, Any]) -> tuple[Expectation, ...]:
    """Those of a table or node in JSON; plans of earlier versions have none."""
    return tuple(
        Expectation(e["type"], e["kwargs"], Level(e["level"]), Severity(e["severity"]), Which(e["rows"]), e["max_share"])
        for e in data.get("expectations", ())
    )


def can_hold(expectations: Iterable[Expectation]) -> bool:
    """Whether one of them holds rows back."""
    return any(e.severity is Severity.QUARANTINE for e in expectations)


def of_level(expectations: Iterable[Expectation], level: Level, rows: Which | None = None) -> tuple[Expectation, ...]:
    """Those of a level, and of one choice of rows."""
    return tuple(e for e in expectations if e.level is level and rows in (None, e.rows))

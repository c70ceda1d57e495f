"""What expectations ask of Great Expectations, and what the answers mean for a run. Pure: no Spark, no files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoin.errors import ValidationFailed
from rejoin.limits import limits
from rejoin.plan.model.expectations import Expectation, Level, Severity

MEASURED = ("row_count", "matched", "fresh")
"""Expectations about a number that rejoin measures: no value of a row, so messages may show it."""


@dataclass(frozen=True)
class Question:
    """An expectation as Great Expectations is asked; ``number`` is its place among those of the table or node."""

    number: int
    title: str
    type: str
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What Great Expectations says. ``error``: why it could not tell, None if it could."""

    number: int
    met: bool
    checked: int
    unexpected: int
    observed: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Verdict:
    """An expectation and its answer."""

    expectation: Expectation
    answer: Answer

    @property
    def stops(self) -> bool:
        """Whether the run has to stop: not met with severity FAIL, could not be told, or more rows to hold back than stated."""
        severity, found = self.expectation.severity, self.answer
        if severity is Severity.WARN or found.met:
            return False
        if severity is Severity.FAIL or found.error is not None:
            return True
        return found.unexpected > max(limits().held_rows, self.expectation.max_share * found.checked)

    def to_dict(self) -> dict[str, Any]:
        found, of = self.answer, self.expectation
        counted = {"met": found.met, "checked": found.checked, "unexpected": found.unexpected}
        told = {k: v for k, v in (("observed", found.observed), ("error", found.error)) if v is not None}
        return {"expectation": of.title, "level": of.level, "rows": of.rows, "severity": of.severity, **counted, **told}


def condition_column(number: int) -> str:
    """The column that holds what a ``condition`` says of each row."""
    return f"_condition_{number}"


def row_questions(numbered: Sequence[tuple[int, Expectation]]) -> list[Question]:
    """Expectations of level ROW, over rows that have a ``condition_column`` for each of ``conditions``."""
    made = []
    for number, one in numbered:
        type_, kwargs = one.type, dict(one.kwargs)
        if "resolved" in one.kwargs:
            type_, kwargs = "expect_column_values_to_be_in_set", {"column": condition_column(number), "value_set": [True]}
        made.append(Question(number, one.title, type_, kwargs))
    return made


def conditions(numbered: Sequence[tuple[int, Expectation]]) -> dict[str, str]:
    """Condition column -> its SQL text over ``t``."""
    return {condition_column(number): one.kwargs["resolved"] for number, one in numbered if "resolved" in one.kwargs}


def measure_question(number: int, one: Expectation) -> Question:
    """An expectation about a measure of the table, over one row with the column ``measure_<number>``."""
    limits: dict[str, Any] = {}
    if one.type == "row_count":
        limits = {"min_value": -one.kwargs.get("max_drop", 1.0), "max_value": one.kwargs.get("max_growth")}
    elif one.type == "matched":
        limits = {"min_value": one.kwargs["at_least"]}
    elif one.type == "fresh":
        limits = {"max_value": one.kwargs["hours"]}
    kwargs = {k: v for k, v in limits.items() if v is not None}
    return Question(number, one.title, "expect_column_values_to_be_between", {"column": f"measure_{number}", **kwargs})


def reasons(expectations: Sequence[Expectation], broken: Mapping[int, Sequence[int]]) -> dict[int, str]:
    """Row -> why it is held back.

    Args:
        expectations: those of the table or node.
        broken: number of an expectation -> the rows that break it.
    """
    found: dict[int, list[str]] = {}
    for number, rows in sorted(broken.items()):
        for row in rows:
            found.setdefault(row, []).append(expectations[number].title)
    return {row: "; ".join(titles) for row, titles in found.items()}


def stop_if_needed(verdicts: Sequence[Verdict], what: str, run: int, report: str | None) -> None:
    """Ends the run where a verdict demands it.

    Args:
        verdicts: all of the table or node.
        what: ``output 'x'`` or ``table 'x'``.
        run: the run.
        report: where the results are kept.

    Raises:
        ValidationFailed: a verdict stops the run.
    """
    stopping = [v for v in verdicts if v.stops]
    if not stopping:
        return
    first = "; ".join(_told(v) for v in stopping[:5])
    where = f"; all results: {report}" if report else ""
    raise ValidationFailed(
        f"{what} does not meet {len(stopping)} of {len(verdicts)} expectations in run {run}; nothing was committed: {first}{where}",
        expected="every expectation of severity 'fail', and no more rows to hold back than max_share",
        next_step="correct the input or the expectation, and run again: the same input is read again",
    )


def _told(verdict: Verdict) -> str:
    found, title = verdict.answer, verdict.expectation.title
    if found.error is not None:
        return f"{title} could not be evaluated"
    if verdict.expectation.level is Level.ROW:
        return f"{title}: {found.unexpected:,} of {found.checked:,} rows"
    return f"{title}: found {found.observed}" if verdict.expectation.type in MEASURED else title

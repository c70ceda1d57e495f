"""Checks what was expected of a table or named output, and turns it into the plan's data. Never imports Great Expectations."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from rejoin.declare.declarations import ExpectDeclaration
from rejoin.declare.expectations import Expected
from rejoin.plan.check import expectation_arguments
from rejoin.plan.model import expectation_words
from rejoin.plan.model.expectations import Expectation, Level, Severity, Which
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.problems import BAD_OPTION, UNKNOWN_COLUMN, Reporter, did_you_mean
from rejoin.plan.sql.expressions import Expression, Scope, Side, column, expression

OWN: Final = dict.fromkeys(("computable", "condition", "not_empty"), Level.ROW) | dict.fromkeys(
    ("row_count", "matched", "fresh"), Level.TABLE
)
"""Types that Great Expectations does not have, or not as a share of the last run."""

_OF_ROWS: Final = frozenset({"ColumnMapExpectation", "ColumnPairMapExpectation", "MulticolumnMapExpectation"})
_OF_TABLES: Final = frozenset({"expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique"})
"""Map expectations whose verdict on one row depends on the others."""
_COLUMNS: Final[tuple[str, ...]] = ("column", "column_A", "column_B")

E = TypeVar("E", Severity, Which)


def check(declaration: ExpectDeclaration, side: Side, report: Reporter) -> tuple[Expectation, ...]:
    """The expectations of one ``expect(...)``; those with a mistake are reported and left out.

    Args:
        declaration: as written.
        side: the columns of the table or output.
        report: of the line of ``expect``.
    """
    severity = _choice("severity", declaration.severity, Severity, report)
    rows = _choice("rows", declaration.rows, Which, report)
    share = declaration.max_share
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        report(BAD_OPTION, f"max_share is {share!r}; expected a share from 0 to 1")
        share = 0.0
    made = [_one(given, side, report) for given in declaration.expectations]
    found = [replace(e, severity=severity, rows=rows, max_share=float(share)) for e in made if e is not None]
    for one in found:
        if one.severity is Severity.QUARANTINE:
            _check_quarantine(one, report)
        if one.type == "computable" and (one.severity is Severity.WARN or one.rows is Which.ALL):
            report(
                BAD_OPTION,
                "computable: a row without a value can be held back or stop the run; use 'quarantine' or 'fail', and rows='changed'",
            )
    return tuple(found)


def check_node(node: Node, report: Reporter) -> None:
    """What only the finished node can tell: the tables that it joins."""
    edges = [edge.name for edge in node.edges]
    for one in node.expectations:
        if one.type == "computable" and node.grouping is not None:
            report(
                BAD_OPTION,
                "computable: a member without a value belongs to no group that could be held back; correct it, or use try_cast and the like",
            )
        if one.type == "matched" and one.kwargs["table"] not in edges:
            hint = did_you_mean(one.kwargs["table"], edges)
            report(BAD_OPTION, f"matched: output {node.name!r} does not join {one.kwargs['table']!r} itself{hint}")


def changed(old: Plan, new: Plan) -> tuple[str, ...]:
    """Names of tables and nodes of ``new`` of which something else is expected than in ``old``."""
    return tuple(name for name in new.names if old.expectations(name) != new.expectations(name))


def _one(given: object, side: Side, report: Reporter) -> Expectation | None:
    if isinstance(given, Expected):
        level = OWN.get(given.type, Level.TABLE if given.type in _OF_TABLES else Level.ROW)
        name, type_, kwargs = expectation_words.word(given.type), given.type, dict(given.kwargs)
    elif type(given).__module__.partition(".")[0] == "great_expectations" and hasattr(given, "configuration"):
        name, type_, kwargs = type(given).__name__, str(given.configuration.type), dict(given.configuration.kwargs)
        of_rows = any(c.__name__ in _OF_ROWS for c in type(given).__mro__) and type_ not in _OF_TABLES
        level = Level.ROW if of_rows else Level.TABLE
    else:
        report(
            BAD_OPTION, f"expect: {type(given).__name__} is no expectation; pass not_null(...) and the like, or one of Great Expectations"
        )
        return None
    about = report.about(f"{name}: ")
    before = len(report.problems.found)
    kwargs = _resolved(type_, kwargs, side, about)
    if isinstance(given, Expected):
        kwargs |= _typed(type_, kwargs, side)
    return Expectation(type_, kwargs, level) if len(report.problems.found) == before else None


def _resolved(type_: str, kwargs: dict[str, Any], side: Side, report: Reporter) -> dict[str, Any]:
    """The arguments as JSON has them, columns in their declared spelling, conditions over ``t``."""
    if type_ == "condition":
        return {"sql": kwargs["sql"], **_condition(kwargs["sql"], side, report)}
    for name in [n for n in _COLUMNS if n in kwargs]:
        kwargs[name] = _column(kwargs[name], side, report)
    if "column_list" in kwargs:
        kwargs["column_list"] = [_column(c, side, report) for c in kwargs["column_list"]]
    if type_ == "fresh" and side.columns.get(kwargs["column"]) not in ("TIMESTAMP", None):
        report(BAD_OPTION, f"column {kwargs['column']!r} is {side.columns[kwargs['column']]}, not TIMESTAMP")
    expectation_arguments.check(type_, kwargs, side.type_of(str(kwargs.get("column"))), report)
    for name in kwargs.get("column_list", ()):
        expectation_arguments.check_single(name, side.type_of(name), report)
    try:
        plain: dict[str, Any] = json.loads(json.dumps(kwargs, default=str))
    except (TypeError, ValueError):
        report(BAD_OPTION, "its arguments cannot be written as JSON")
        return {}
    return plain


def _typed(expected: str, kwargs: Mapping[str, Any], side: Side) -> dict[str, str]:
    """What is a condition: of arrays and maps, and limits and sets of columns whose values JSON cannot hold."""
    name = str(kwargs.get("column"))
    type_ = side.columns.get(name) or ""
    if expected == "not_empty":
        return {"resolved": f"coalesce(size(t.`{name}`), 0) > 0"}
    if not type_.startswith(("DATE", "TIMESTAMP", "DECIMAL")):
        return {}

    def literal(value: object) -> str:
        text = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"CAST('{text}' AS {type_})"

    parts = [f"t.`{name}` {op} {literal(kwargs[limit])}" for limit, op in (("min_value", ">="), ("max_value", "<=")) if limit in kwargs]
    if "value_set" in kwargs:
        parts.append(f"t.`{name}` IN ({', '.join(map(literal, kwargs['value_set'])) or 'NULL'})")
    return {"resolved": " AND ".join(parts)} if parts else {}


def _condition(sql: object, side: Side, report: Reporter) -> Mapping[str, str]:
    made = expression(sql, Scope({"": side}), report)
    if made is None:
        return {}
    if made.known not in (None, "BOOLEAN"):
        report(BAD_OPTION, f"a condition must be BOOLEAN, this is {made.known}")
    resolved: Expression = made.replace(lambda ref: column("t", ref.column, None))
    return {"resolved": resolved.sql}


def _column(name: object, side: Side, report: Reporter) -> str:
    found = side.find(str(name))
    if found is None and side.complete:
        report(UNKNOWN_COLUMN, f"unknown column {name!r} of {side.label}{did_you_mean(str(name), side.columns)}")
    return found or str(name)


def _check_quarantine(one: Expectation, report: Reporter) -> None:
    if one.level is Level.TABLE:
        report(BAD_OPTION, f"{one.title}: severity 'quarantine' needs an expectation about single rows; use 'fail' or 'warn'")
    elif one.rows is Which.ALL:
        report(BAD_OPTION, f"{one.title}: what is published already cannot be held back; rows='all' needs severity 'fail' or 'warn'")
    elif one.kwargs.get("mostly", 1) != 1:
        report(BAD_OPTION, f"{one.title}: each bad row is held back, so 'mostly' has no meaning with severity 'quarantine'; see max_share")


def _choice(name: str, value: object, kind: type[E], report: Reporter) -> E:
    if value not in list(kind):
        report(BAD_OPTION, f"{name} is {value!r}; expected one of {', '.join(repr(str(k)) for k in kind)}")
        return next(iter(kind))
    return kind(str(value))

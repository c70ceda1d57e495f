"""Aggregates over the members of a group: how a user writes one, its type by Spark's rules, and its SQL in each dialect.

Every result is a function of the members and their keys, in whatever order they come: whole numbers and decimals are added exactly, floating point numbers in the order of the
members' keys, and of members that are equal the key decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rejoin.plan.model.grouping import Aggregate, Grouping
from rejoin.plan.model.problems import BAD_EXPRESSION, Reporter, did_you_mean
from rejoin.plan.sql.nested import is_nested
from rejoin.plan.sql.spelling import Spelling
from rejoin.plan.sql.typing.coercion import FRACTIONS, INTEGERS, MAX_DIGITS, digits, is_decimal

COUNT, COUNT_DISTINCT = "count", "count_distinct"
ARGUMENTS: Final = dict.fromkeys((COUNT, COUNT_DISTINCT, "sum", "avg", "min", "max", "bool_and", "bool_or"), 1) | {"min_by": 2, "max_by": 2}
"""The aggregates, and how many arguments each takes; ``count`` also takes a star."""


@dataclass(frozen=True)
class Call:
    """An aggregate as written. ``arguments``: their texts, none for ``count(*)``; ``where``: the text of its filter."""

    function: str
    arguments: tuple[str, ...]
    where: str | None


def call(text: object, report: Reporter) -> Call | None:
    """The aggregate that a text is. None after a report."""
    if not isinstance(text, str):
        report(BAD_EXPRESSION, "a text with one aggregate is expected, such as 'sum(amount)'")
        return None
    try:
        tokens = Spark().tokenize(text)
    except SqlglotError:
        report(BAD_EXPRESSION, "not valid SQL: a quote or comment is not closed")
        return None
    closing = _closing(tokens, 1)
    if closing is None:
        report(BAD_EXPRESSION, "one aggregate is expected, such as 'sum(amount)' or 'count(*) FILTER (WHERE paid)'")
        return None
    where = _filter(text, tokens[closing + 1 :])
    if closing + 1 < len(tokens) and where is None:
        report(
            BAD_EXPRESSION, "an aggregate stands alone, with FILTER (WHERE ...) behind it at most; compute with it in a select that follows"
        )
        return None
    return _checked(tokens[0].text.lower(), _arguments(text, tokens[2:closing], tokens[closing].start), where, report)


def _checked(function: str, arguments: tuple[str, ...], where: str | None, report: Reporter) -> Call | None:
    if function not in ARGUMENTS:
        report(
            BAD_EXPRESSION, f"{function}() is no aggregate of rejoin{did_you_mean(function, ARGUMENTS)}; there are {', '.join(ARGUMENTS)}"
        )
        return None
    if arguments == ("*",) and function == COUNT:
        return Call(COUNT, (), where)
    if len(arguments) == 1 and arguments[0].split(maxsplit=1)[0].lower() == "distinct":
        if function == COUNT:
            return Call(COUNT_DISTINCT, (arguments[0][len("distinct") :].strip(),), where)
        report(BAD_EXPRESSION, f"{function}() takes no DISTINCT; only count does")
        return None
    if len(arguments) != ARGUMENTS[function]:
        report(BAD_EXPRESSION, f"{function}() takes {ARGUMENTS[function]} argument(s), not {len(arguments)}")
        return None
    return Call(function, arguments, where)


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The position of the parenthesis that closes the one at ``opening``; None if there is none."""
    depth = 0
    for index, token in enumerate(tokens[opening:], start=opening):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            return index if index > opening else None
    return None


def _arguments(text: str, tokens: Sequence[Token], end: int) -> tuple[str, ...]:
    """The texts between commas. ``end``: where the closing parenthesis stands."""
    if not tokens:
        return ()
    ends, depth = [], 0
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}.get(token.token_type, 0)
        ends += [token.start] if token.token_type == TokenType.COMMA and depth == 0 else []
    starts = [tokens[0].start, *(at + 1 for at in ends)]
    return tuple(text[a:b].strip() for a, b in zip(starts, [*ends, end], strict=True))


def _filter(text: str, tokens: Sequence[Token]) -> str | None:
    """The condition of ``FILTER (WHERE condition)``; None if that is not what the tokens are."""
    words = [token.text.lower() for token in tokens[:3]]
    if words != ["filter", "(", "where"] or _closing(tokens, 1) != len(tokens) - 1 or len(tokens) < len("f(w)") + 1:
        return None
    return text[tokens[3].start : tokens[-1].start].strip()


def result(function: str, types: Sequence[str]) -> str | None:
    """The type of an aggregate over arguments of some types; None if it does not take these."""
    if function != COUNT and any(map(is_nested, types)):
        return None
    if function in (COUNT, COUNT_DISTINCT):
        return "BIGINT"
    of = types[0]
    match function:
        case "sum" | "avg" if is_decimal(of):
            (precision, scale), (more, finer) = digits(of), (10, 0) if function == "sum" else (4, 4)
            return f"DECIMAL({min(MAX_DIGITS, precision + more)},{min(MAX_DIGITS, scale + finer)})"
        case "sum":
            return "BIGINT" if of in INTEGERS else "DOUBLE" if of in FRACTIONS else None
        case "avg":
            return "DOUBLE" if of in (*INTEGERS, *FRACTIONS) else None
        case "bool_and" | "bool_or":
            return of if of == "BOOLEAN" else None
        case _:
            return of


def not_portable(grouping: Grouping) -> str | None:
    """Why groups are not computed by DuckDB as Spark does it, as the end of a sentence; None if they are."""
    of = next((a for a in grouping.aggregates if a.function == "avg" and is_decimal(a.type)), None)
    return None if of is None else f"column {of.name}: avg of decimals is not proven equal in DuckDB"


def aggregated(sql: Spelling, grouping: Grouping, member: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The name and the SQL text of every aggregate over the members of a group.

    Args:
        sql: whose SQL.
        grouping: the grouping.
        member: SQL texts of the parts of a member's key; what is taken of a member has the names of the grouping's values.
    """
    for made in grouping.aggregates:
        yield made.name, _text(sql, made, [grouping.type_of(name) for name in made.of], member)


def _text(sql: Spelling, made: Aggregate, types: Sequence[str], member: Sequence[str]) -> str:
    value, of = (made.of[0], types[0]) if made.of else ("*", "")
    match made.function:
        case "count":
            return f"count({value})"
        case "count_distinct":
            return f"count(DISTINCT {value})"
        case "sum" if of not in FRACTIONS:
            return f"CAST(sum({value}) AS {made.type})"
        case "sum":
            return sql.added(value, member)
        case "avg" if of in FRACTIONS:
            return f"{sql.added(value, member)} / nullif(count({value}), 0)"
        case "avg" if of in INTEGERS:  # the sum is exact
            return f"CAST(sum(CAST({value} AS DECIMAL(20,0))) AS DOUBLE) / nullif(count({value}), 0)"
        case "min_by" | "max_by":
            return sql.outermost(value, made.of[1], member, greatest=made.function == "max_by")
        case _:
            return f"{made.function}({value})"

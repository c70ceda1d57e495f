"""Aggregates over the members of a group: the type of each by Spark's rules, and its SQL in each dialect. ``calls`` says how a user writes one.

Every result is a function of the members and their keys, in whatever order they come: whole numbers and decimals are added exactly, floating point numbers in the order of the
members' keys, and of members that are equal the key decides.
"""

from collections.abc import Iterator, Sequence

from rejoin.plan.model.grouping import COLLECT, COUNT, COUNT_DISTINCT, Aggregate, Grouping
from rejoin.plan.sql.nested import is_nested
from rejoin.plan.sql.spelling import Spelling
from rejoin.plan.sql.typing.coercion import FRACTIONS, INTEGERS, MAX_DIGITS, digits, is_decimal


def result(function: str, types: Sequence[str]) -> str | None:
    """The type of an aggregate over arguments of some types; None if it does not take these."""
    if function == COLLECT:
        return f"ARRAY<{types[0]}>"
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
        case "collect":
            return _collected(sql, made, member)
        case "min_by" | "max_by":
            return sql.outermost(value, made.of[1], member, greatest=made.function == "max_by")
        case _:
            return f"{made.function}({value})"


def _collected(sql: Spelling, made: Aggregate, member: Sequence[str]) -> str:
    collect = made.collect
    assert collect is not None
    element = sql.struct(zip(collect.fields, made.of, strict=True)) if collect.fields else made.of[0]
    found = sql.collected(element, [*collect.order, *((part, False) for part in member)], collect.where)
    return found if collect.limit is None else sql.first(found, collect.limit)

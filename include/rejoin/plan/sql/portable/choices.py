"""Choices between values: CASE, coalesce, IN and their relatives."""

from collections.abc import Sequence

from rejoin.plan.sql.nested import is_nested
from rejoin.plan.sql.portable.casts import cast
from rejoin.plan.sql.portable.operators import compared, exact, joined
from rejoin.plan.sql.portable.printed import NULL, Made, duckdb_type, unproven
from rejoin.plan.sql.typing.coercion import FRACTIONS, common


def alike(values: Sequence[Made], what: str) -> list[Made]:
    """The values, each cast to the type that all have in common.

    Raises:
        NotPortable: they have none, or the way to it is not proven.
    """
    types = tuple(v.type for v in values)
    if "STRING" in types and set(types) - {"STRING", NULL}:
        raise unproven(f"{what} of {' and '.join(dict.fromkeys(types))}")
    shared = common(types)
    if shared is None:
        raise unproven(f"{what} of {' and '.join(dict.fromkeys(types))}")
    exact(types, shared)
    return [cast(v, shared) if shared != NULL else v for v in values]


def case(conditions: Sequence[Made], values: Sequence[Made]) -> Made:
    """CASE; the last value is that of ELSE, if there is one more than conditions."""
    for condition in conditions:
        if condition.type != "BOOLEAN":
            raise unproven(f"a condition of type {condition.type}")
    chosen = alike(values, "CASE")
    pairs = zip(conditions, chosen, strict=False)
    parts = [f"WHEN {condition.text} THEN {value.text}" for condition, value in pairs]
    if len(chosen) > len(conditions):
        parts.append(f"ELSE {chosen[-1].text}")
    raises = any(m.raises for m in (*conditions, *chosen))
    return Made(f"CASE {' '.join(parts)} END", chosen[0].type, raises)


def first_known(values: Sequence[Made]) -> Made:
    """``coalesce``."""
    chosen = alike(values, "coalesce")
    duckdb_type(chosen[0].type)
    if len(chosen) == 1:
        return chosen[0]
    return Made(f"coalesce({', '.join(c.text for c in chosen)})", chosen[0].type, any(c.raises for c in chosen))


def extreme(name: str, values: Sequence[Made]) -> Made:
    """``greatest`` and ``least``: both engines leave nulls out."""
    chosen = alike(values, name)
    if chosen[0].type in (*FRACTIONS, "BINARY", NULL) or is_nested(chosen[0].type) or len(chosen) < 2:
        raise unproven(f"{name} of {chosen[0].type}")
    return Made(f"{name}({', '.join(c.text for c in chosen)})", chosen[0].type, any(c.raises for c in chosen))


def among(values: Sequence[Made]) -> Made:
    """``values[0] IN (the others)``."""
    chosen = alike(values, "IN")
    if chosen[0].type in (*FRACTIONS, NULL) or is_nested(chosen[0].type):
        raise unproven(f"IN of {chosen[0].type}")
    if any(c.raises for c in chosen[1:]):
        raise unproven("IN a list with a value that may raise an error")
    value, *others = (c.text for c in chosen)
    return Made(f"({value} IN ({', '.join(others)}))", "BOOLEAN", chosen[0].raises)


def is_null(made: Made) -> Made:
    """DuckDB may know that no row is null, and then not look at the values: errors would be missed."""
    if made.raises:
        raise unproven("a test for null of what may raise an error")
    return Made(f"({made.text} IS NULL)", "BOOLEAN")


def is_truth(made: Made, word: str) -> Made:
    """``made IS TRUE``, ``IS FALSE``, ``IS UNKNOWN``."""
    if made.type != "BOOLEAN":
        raise unproven(f"IS {word} of {made.type}")
    if word == "UNKNOWN":
        return is_null(made)
    return Made(f"({made.text} IS NOT DISTINCT FROM {word.lower()})", "BOOLEAN", made.raises)


def negation(made: Made) -> Made:
    """NOT."""
    made = cast(made, "BOOLEAN") if made.type == NULL else made
    if made.type != "BOOLEAN":
        raise unproven(f"NOT of {made.type}")
    return Made(f"(NOT {made.text})", "BOOLEAN", made.raises)


def null_if(one: Made, other: Made) -> Made:
    """``nullif``: the type is that of the first value."""
    _evaluated_once("nullif", one)
    equal = compared("=", one, other)
    return Made(f"CASE WHEN {equal.text} THEN NULL ELSE {one.text} END", one.type, equal.raises)


def between(value: Made, low: Made, high: Made) -> Made:
    """BETWEEN."""
    _evaluated_once("BETWEEN", value)
    return joined("and", (compared(">=", value, low), compared("<=", value, high)))


def _evaluated_once(what: str, made: Made) -> None:
    """Nothing, if it cannot be seen that Spark looks at a value before all that stands around it: beside AND, for instance."""
    if made.raises:
        raise unproven(f"{what} of what may raise an error")

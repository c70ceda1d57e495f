"""Arithmetic and comparison with the types, and the errors, of Spark's ANSI mode."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from rejoin.plan.sql.nested import is_nested
from rejoin.plan.sql.portable.casts import cast
from rejoin.plan.sql.portable.printed import NULL, WHOLE, Made, NotPortable, as_type, quoted, unproven
from rejoin.plan.sql.typing import arithmetic
from rejoin.plan.sql.typing.coercion import FRACTIONS, MAX_DIGITS, Mismatch, common_of_two, digits, is_decimal

COMPARISONS: Final = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "!<": ">=",
    "!>": "<=",
    "<=>": "IS NOT DISTINCT FROM",
}
_NAMES: Final = {"+": "add", "-": "subtract", "*": "multiply"}
"""By these names DuckDB's optimizer does not know them: it would make ``i = 4`` of ``i + 1 = 5``, where no ``i`` overflows."""

_SIGNED_DIGITS: Final = 34
_BY_ZERO: Final = "division by zero"


def compared(sign: str, one: Made, other: Made) -> Made:
    """A comparison; both sides are cast to the type that Spark compares in."""
    first, second = _counted(one, other), _counted(other, one)
    shared = common_of_two(first, second)
    if shared is None or shared == NULL:
        raise unproven(f"comparing {one.type} with {other.type}")
    if is_nested(shared):
        raise unproven(f"comparing {shared}")
    exact((first, second), shared)
    if {_is_whole(one), _is_whole(other)} == {True, False} and (_is_beyond(one) or _is_beyond(other)):
        raise unproven("comparing a whole number with a constant that is longer than BIGINT")  # Spark makes true or false of a null
    if NULL in (one.type, other.type) and (one.raises or other.raises):
        raise unproven("comparing NULL with what may raise an error")
    left, right = cast(one, shared), cast(other, shared)
    return Made(f"({left.text} {COMPARISONS[sign]} {right.text})", "BOOLEAN", left.raises or right.raises)


def _is_whole(made: Made) -> bool:
    return made.type in WHOLE


def _is_beyond(made: Made) -> bool:
    return made.literal is not None and is_decimal(made.type) and abs(Decimal(made.literal.value)) >= 2**63 - 1


def exact(types: tuple[str, ...], shared: str) -> None:
    """Nothing, if values of these types keep all their digits in the type that they have in common.

    Raises:
        NotPortable: they may not.
    """
    decimals = [t for t in types if is_decimal(t)]
    if decimals and shared in FRACTIONS:
        raise unproven(f"a {decimals[0]} beside {shared}")
    if is_decimal(shared) and any(t in WHOLE or is_decimal(t) for t in types):
        parts = [digits(t) for t in types if t in WHOLE or is_decimal(t)]
        if digits(shared)[1] < max(scale for _, scale in parts):
            raise NotPortable(f"{' and '.join(dict.fromkeys(types))} have no type in common that holds all digits")


def _counted(made: Made, beside: Made) -> str:
    return made.type if made.literal is None else arithmetic.of_literal(made.literal, made.type, beside.type)


def calculated(sign: str, one: Made, other: Made) -> Made:
    """``one sign other`` of numbers."""
    sign = "%" if sign == "mod" else sign
    if any(m.type not in WHOLE and not is_decimal(m.type) for m in (one, other)):
        raise unproven(f"{sign} of {one.type} and {other.type}")
    first, second = _counted(one, other), _counted(other, one)
    try:
        kind = arithmetic.result(sign, first, second)
    except Mismatch as mismatch:
        raise NotPortable(str(mismatch)) from mismatch
    if kind is None:
        raise unproven(f"{sign} of {one.type} and {other.type}")
    if sign in _NAMES:
        of = _of_decimals if is_decimal(kind) else _of_whole
        return Made(of(sign, cast_to(one, first, kind), cast_to(other, second, kind), kind), kind, raises=True)
    if is_decimal(kind) and sign == "/":
        return Made(_not_by_zero(one, other, quotient(cast_to(one, first, kind), cast_to(other, second, kind), kind)), kind, raises=True)
    if is_decimal(first) or is_decimal(second):
        raise unproven(f"{sign} of {one.type} and {other.type}")
    return Made(_not_by_zero(one, other, _divided(sign, one, other, kind)), kind, raises=True)


def cast_to(made: Made, of: str, beside: str) -> Made:
    """An operand with the type that it counts with."""
    return cast(made, of) if is_decimal(beside) else made


def _of_whole(sign: str, one: Made, other: Made, kind: str) -> str:
    return f"{_NAMES[sign]}({cast(one, kind).text}, {cast(other, kind).text})"


def _of_decimals(sign: str, one: Made, other: Made, kind: str) -> str:
    """Exact in 38 digits, or an error. Spark rounds where the places of the result do not fit: that is not done here."""
    first, second = _as_decimal(one), _as_decimal(other)
    (_, s1), (_, s2), (_, scale) = digits(first.type), digits(second.type), digits(kind)
    if scale < (s1 + s2 if sign == "*" else max(s1, s2)):
        raise NotPortable(f"{one.type} {sign} {other.type} is rounded, which is not proven equal in DuckDB")
    first, second = (_wide(first), _wide(second)) if sign == "*" else (cast(first, kind), cast(second, kind))
    return as_type(f"{_NAMES[sign]}({first.text}, {second.text})", kind)


def _as_decimal(made: Made) -> Made:
    precision, scale = digits(made.type)
    return made if is_decimal(made.type) else cast(made, f"DECIMAL({precision},{scale})")


def _wide(made: Made) -> Made:
    """DuckDB keeps the product of numbers of up to 18 digits within 18 digits."""
    precision, scale = digits(made.type)
    return cast(made, f"DECIMAL({max(precision, 19)},{scale})")


def _divided(sign: str, one: Made, other: Made, kind: str) -> str:
    """Whole numbers by whole numbers."""
    within = "BIGINT" if sign == "div" else kind
    return f"{cast(one, within).text} {'//' if sign == 'div' else sign} {cast(other, within).text}"


def _not_by_zero(one: Made, other: Made, made: str) -> str:
    """Spark looks at the divisor first, and raises an error for zero, unless the other side is null."""
    if other.literal is not None and other.literal.of != NULL and float(other.literal.value):
        return f"({made})"
    refused = f"CASE WHEN {one.text} IS NOT NULL THEN error({quoted(_BY_ZERO)}) END"
    return f"CASE WHEN {other.text} = 0 THEN {refused} ELSE {made} END"


def quotient(one: Made, other: Made, kind: str) -> str:
    """DECIMAL by DECIMAL, rounded half up: DuckDB would give a DOUBLE, so it is done in whole numbers of 38 digits."""
    one, other = _as_decimal(one), _as_decimal(other)
    (p1, s1), (p2, s2), (precision, scale) = digits(one.type), digits(other.type), digits(kind)
    if scale < max(6, s1 + p2 + 1) or max(p1 + scale + s2 + 1, p2 + s2 + 1, precision + scale) > MAX_DIGITS:
        raise NotPortable(f"{one.type} / {other.type} needs more digits than DuckDB has")
    above, below = (f"abs({_shifted(m, places)})" for m, places in ((one, scale + s2), (other, s2)))
    whole = f"((2 * {above} + {below}) // (2 * {below}))"
    unit = as_type(quoted("0." + "1".rjust(scale, "0")), f"DECIMAL({scale},{scale})")
    size = as_type(f"multiply(CAST({whole} AS DECIMAL({max(precision, 19)},0)), {unit})", kind)
    return f"CASE WHEN ({one.text} < 0) = ({other.text} < 0) THEN {size} ELSE {as_type(f'subtract(0, {size})', kind)} END"


def _shifted(made: Made, places: int) -> str:
    """A decimal times a power of ten, as a whole number."""
    return f"CAST(multiply({_wide(made).text}, CAST({quoted('1' + '0' * places)} AS DECIMAL({places + 1},0))) AS HUGEINT)"


def _has_sign(made: Made) -> bool:
    """Whether the sign of a number can be changed: Spark rounds to 34 digits where it does that."""
    return made.type in WHOLE or (is_decimal(made.type) and digits(made.type)[0] <= _SIGNED_DIGITS)


def negated(made: Made) -> Made:
    """``-made``."""
    if not _has_sign(made):
        raise unproven(f"- before {made.type}")
    zero = as_type("0", made.type) if made.type in WHOLE else as_type("'0'", made.type)
    return Made(as_type(f"subtract({zero}, {made.text})", made.type), made.type, raises=True)


def absolute(made: Made) -> Made:
    if not _has_sign(made):
        raise unproven(f"abs of {made.type}")
    return Made(as_type(f"abs({made.text})", made.type), made.type, raises=True)


def rounded(name: str, made: Made, places: int) -> Made:
    """``round``, ``floor`` and ``ceil``."""
    kind = arithmetic.rounded(name, made.type, places) if made.type in WHOLE or is_decimal(made.type) else None
    if kind is None or places < 0:
        raise unproven(f"{name} of {made.type}{f' to {places} places' if places else ''}")
    if not is_decimal(made.type) or name == "round":
        return cast(made, kind)
    if digits(made.type)[0] == MAX_DIGITS:
        raise unproven(f"{name} of {made.type}")
    return Made(as_type(f"{'floor' if name == 'floor' else 'ceil'}({made.text})", kind), kind, made.raises)


def joined(name: str, parts: Sequence[Made]) -> Made:
    """AND and OR of two or more. DuckDB may look at any of them first; where that can be seen, the order is Spark's."""
    found = [cast(part, "BOOLEAN") for part in parts]
    together = f"({f' {name.upper()} '.join(part.text for part in found)})"
    if not any(part.raises for part in found):
        return Made(together, "BOOLEAN")
    if not all(map(_has_column, found)):
        raise unproven(f"{name.upper()} of a constant and what may raise an error")
    early = "false" if name == "and" else "true"
    return Made(f"CASE {' '.join(f'WHEN {p.text} = {early} THEN {early}' for p in found[:-1])} ELSE {together} END", "BOOLEAN", raises=True)


def _has_column(made: Made) -> bool:
    """False if it certainly is a constant: an optimizer may know what it makes of the other side."""
    return '."' in made.text

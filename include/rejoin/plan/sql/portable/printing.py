"""A Spark SQL expression of a plan as DuckDB SQL, from its tree."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from rejoin.plan.sql import types
from rejoin.plan.sql.portable import choices, operators, parts, texts, times
from rejoin.plan.sql.portable.casts import cast
from rejoin.plan.sql.portable.literals import literal
from rejoin.plan.sql.portable.printed import Made, NotPortable, Printed, duckdb_type, unproven
from rejoin.plan.sql.typing.check import check
from rejoin.plan.sql.typing.coercion import EMPTY_ARRAY
from rejoin.plan.sql.typing.cursor import SyntaxMistake, Term
from rejoin.plan.sql.typing.grammar import parse
from rejoin.plan.sql.typing.lexer import UnknownSyntax

LONGEST: Final = 50_000
"""Characters of a printed expression: parts that are needed twice are printed twice, and may hold such parts."""

_CALCULATED: Final = ("+", "-", "*", "/", "%", "div", "mod")
_ROUNDED: Final = {"round": "round", "floor": "floor", "ceil": "ceil", "ceiling": "ceil"}
_CHOICES: Final = ("if", "nvl", "ifnull", "nvl2", "nullif", "isnull", "isnotnull")
_CASTS: Final = ("bigint", "boolean", "date", "int", "string", "timestamp")

Call = Callable[[Sequence[Made]], Made]


def _calls() -> dict[str, Call]:
    """Function -> what prints its call from the printed arguments."""
    return {
        "coalesce": choices.first_known,
        **{name: partial(choices.extreme, name) for name in ("greatest", "least")},
        "concat": texts.joined,
        "||": texts.joined,
        "concat_ws": texts.joined_by,
        **{name: partial(texts.trimmed, name) for name in ("ltrim", "rtrim")},
        **{
            name: partial(texts.in_case, own)
            for name, own in zip(("upper", "ucase", "lower", "lcase"), ("upper",) * 2 + ("lower",) * 2, strict=True)
        },
        **dict.fromkeys(("substring", "substr"), texts.part),
        **{name: partial(texts.end, name) for name in ("left", "right")},
        "replace": texts.replaced,
        "split_part": texts.split,
        "instr": texts.position,
        **dict.fromkeys(("length", "len", "char_length", "character_length"), partial(texts.measured, "length")),
        "octet_length": partial(texts.measured, "octet_length"),
        **{name: partial(texts.found, name) for name in ("startswith", "endswith", "contains")},
        **{name: partial(times.date_part, name) for name in times.DATE_PARTS},
        **{name: partial(times.clock_part, name) for name in times.CLOCK_PARTS},
        **{name: partial(times.moved, name) for name in ("date_add", "dateadd", "date_sub")},
        **dict.fromkeys(("datediff", "date_diff"), partial(times.days_between, "datediff")),
        "add_months": times.months_added,
        "last_day": times.month_end,
        "trunc": times.truncated_date,
        "date_trunc": times.truncated,
        "to_date": times.to_date,
        "to_timestamp": times.timestamp,
        **{name: partial(times.from_epoch, name) for name in times.EPOCHS},
        **parts.CALLS,
    }


_CALLS: Final = _calls()


def printed(text: str, columns: Mapping[str, Mapping[str, str]]) -> Printed:
    """An expression as DuckDB SQL.

    Args:
        text: Spark SQL whose columns are all qualified.
        columns: alias -> column -> its Spark type.

    Raises:
        NotPortable: it is not proven that its result in DuckDB equals Spark's.
    """
    if "--" in text or "/*" in text:
        raise NotPortable("it has a comment, or a text like one")
    try:
        term = parse(text)
    except (SyntaxMistake, UnknownSyntax) as error:
        raise NotPortable("it has a construct that rejoin does not read") from error
    known = check(text, lambda alias, column: columns.get(alias, {}).get(column))
    if known.mistakes:
        raise NotPortable(f"it has a mistake: {known.mistakes[0]}")
    made = _Printer(columns).of(term)
    if known.type not in (None, made.type):
        raise NotPortable(f"its type is not certain: {known.type} or {made.type}")
    duckdb_type(made.type)
    return Printed(made.text, made.type)


def _flat(term: Term, name: str) -> list[Term]:
    """The operands of ANDs in one another, or of ORs, in their order."""
    return [part for arg in term.args for part in _flat(arg, name)] if term.name == name else [term]


class _Printer:
    def __init__(self, columns: Mapping[str, Mapping[str, str]]) -> None:
        self._columns = columns

    def of(self, term: Term) -> Made:
        made = self._of(term)
        if len(made.text) > LONGEST:
            raise NotPortable("it is too long in DuckDB's SQL")
        return made

    def _of(self, term: Term) -> Made:
        match term.name:
            case "column":
                return self._column(term)
            case "literal":
                return literal(term)
            case "array" if not term.args:
                return Made("[]", EMPTY_ARRAY)
            case "field":
                return parts.field(self.of(term.args[0]), term.value)
            case "item":
                return parts.item(*self._all(term.args))
            case "cast":
                return self._cast(term.args[0], types.canonical(term.of) or term.of)
            case "case":
                return choices.case(self._all(term.args[0].args), self._all(term.args[1:]))
            case "and" | "or":
                return operators.joined(term.name, self._all(_flat(term, term.name)))
            case "not":
                return choices.negation(self.of(term.args[0]))
            case "between":
                return choices.between(*self._all(term.args))
            case "in":
                return choices.among(self._all(term.args))
            case "is null":
                return choices.is_null(self.of(term.args[0]))
            case "is true":
                return choices.is_truth(self.of(term.args[0]), term.value)
            case "like":
                return texts.like(self._all(term.args), term.value or "\\")
        return self._operation(term)

    def _all(self, terms: Sequence[Term]) -> list[Made]:
        return [self.of(term) for term in terms]

    def _column(self, term: Term) -> Made:
        kind = self._columns.get(term.of, {}).get(term.value)
        if kind is None:
            raise NotPortable(f"the type of {f'{term.of}.' if term.of else ''}{term.value} is not known")
        duckdb_type(kind)
        name = term.value.replace('"', '""')
        return Made(f'{term.of}."{name}"', kind)

    def _cast(self, term: Term, to: str) -> Made:
        made = self.of(term)
        duckdb_type(to)
        return cast(made, to)

    def _operation(self, term: Term) -> Made:
        args, count = term.args, len(term.args)
        if term.name in operators.COMPARISONS or (term.name == "equal_null" and count == 2):
            return operators.compared("<=>" if term.name == "equal_null" else term.name, *self._all(args))
        if term.name in ("+", "-") and count == 2 and any(arg.name == "interval" for arg in args):
            return self._shifted(term.name, *args)
        if term.name in _CALCULATED and count == 2:
            return self._calculated(term.name, *self._all(args))
        if term.name in ("unary -", "negative") and count == 1:
            return operators.negated(self.of(args[0]))
        if term.name in ("unary +", "positive") and count == 1:
            return self._signed(args[0])
        if term.name == "abs" and count == 1:
            return operators.absolute(self.of(args[0]))
        if term.name in _ROUNDED:
            return self._rounded(term)
        if term.name in _CASTS and count == 1:
            return self._cast(args[0], term.name.upper())
        if term.name in _CHOICES:
            return self._choice(term)
        return self._call(term)

    def _calculated(self, sign: str, one: Made, other: Made) -> Made:
        if one.type == "DATE" and sign in ("+", "-"):
            return times.moved("date_add" if sign == "+" else "date_sub", [one, other])
        return operators.calculated(sign, one, other)

    def _shifted(self, sign: str, one: Term, other: Term) -> Made:
        if one.name == "interval" and sign == "+":
            one, other = other, one
        if one.name == "interval" or not other.value:
            raise unproven(f"{sign} of such an interval")
        return times.shifted(sign, self.of(one), other.value)

    def _signed(self, term: Term) -> Made:
        made = self.of(term)
        return Made(made.text, operators.absolute(made).type, made.raises)

    def _rounded(self, term: Term) -> Made:
        places = self._all(term.args[1:])
        if len(places) > 1 or any(p.literal is None or p.literal.of != "INTEGER" for p in places):
            raise unproven(f"{term.name} to places that are no constant")
        if places and term.name != "round":
            raise unproven(f"{term.name} with two arguments")
        return operators.rounded(
            _ROUNDED[term.name], self.of(term.args[0]), int(places[0].literal.value) if places and places[0].literal else 0
        )

    def _choice(self, term: Term) -> Made:
        """The short ways to write a CASE."""
        match term.name, self._all(term.args):
            case "if", [condition, one, other]:
                return choices.case([condition], [one, other])
            case "nvl" | "ifnull", [one, other]:
                return choices.first_known([one, other])
            case "nvl2", [value, one, other]:
                return choices.case([choices.is_null(value)], [other, one])
            case "nullif", [one, other]:
                return choices.null_if(one, other)
            case "isnull", [value]:
                return choices.is_null(value)
            case "isnotnull", [value]:
                return choices.negation(choices.is_null(value))
        raise unproven(f"{term.name} with {len(term.args)} argument(s)")

    def _call(self, term: Term) -> Made:
        if term.name == "trim":
            if term.of or term.value not in ("", "BOTH"):
                raise unproven("TRIM with words in it")
            return texts.trimmed("trim", self._all(term.args))
        if term.name == "extract":
            field = times.FIELDS.get(term.value)
            if field is None:
                raise unproven(f"EXTRACT of {term.value}")
            return _CALLS[field](self._all(term.args))
        if term.name not in _CALLS:
            raise unproven(term.name)
        return _CALLS[term.name](self._all(term.args))

"""The type of an expression and every mistake in it, by Spark's rules, without Spark."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rejoin.plan.sql import types
from rejoin.plan.sql.nested import holds_map
from rejoin.plan.sql.typing import arithmetic, constants, parts, patterns
from rejoin.plan.sql.typing.coercion import EMPTY_ARRAY, Mismatch, castable, common, common_of_two, is_decimal, is_interval, is_number
from rejoin.plan.sql.typing.cursor import SyntaxMistake, Term
from rejoin.plan.sql.typing.grammar import LEVELS, parse
from rejoin.plan.sql.typing.lexer import UnknownSyntax
from rejoin.plan.sql.typing.table import CONVERTED, FUNCTIONS, Signature, accepts, left_to_spark, named

_COMPARISONS: Final = frozenset(LEVELS[0])
_ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "%", "div", "mod", "pmod"))
_BITS: Final = frozenset(("&", "|", "^"))
_PART_ONLY: Final = ("TINYINT", "SMALLINT")
_CAST_FUNCTIONS: Final = frozenset(["bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "string", "timestamp"])

ColumnType = Callable[[str, str], str | None]
"""Qualifier and name of a column (as written) -> its type."""


@dataclass(frozen=True)
class Typed:
    """``type``: None if unknown. ``certain``: every part of the expression was judged. ``is_syntax``: the mistake is not one of types."""

    type: str | None
    certain: bool
    mistakes: tuple[str, ...] = ()
    is_syntax: bool = False


def check(text: str, column: ColumnType) -> Typed:
    """What Spark makes of an expression."""
    try:
        term = parse(text)
    except SyntaxMistake as mistake:
        return Typed(None, certain=True, mistakes=(str(mistake),), is_syntax=True)
    except UnknownSyntax:
        return Typed(None, certain=False)
    checker = _Checker(column)
    found = checker.of(term)
    return Typed(found, checker.certain and found is not None, tuple(dict.fromkeys(checker.mistakes)))


class _Checker:
    def __init__(self, column: ColumnType) -> None:
        self._column = column
        self.mistakes: list[str] = []
        self.certain = True

    def of(self, term: Term) -> str | None:
        """The type of a term; None if it is unknown or has a mistake, which is noted."""
        try:
            found = self._of(term)
        except Mismatch as mismatch:
            self.mistakes.append(str(mismatch))
            return None
        self.certain = self.certain and found is not None
        return found

    def _of(self, term: Term) -> str | None:
        match term.name:
            case "column":
                return self._column(term.of, term.value)
            case "literal":
                return _literal(term)
            case "interval":
                return f"INTERVAL {term.of}"
            case "array" if not term.args:
                return EMPTY_ARRAY
            case "field":
                return parts.field(self.of(term.args[0]), term.value)
            case "item":
                return parts.item(*self._types(term.args))
            case "cast" | "try_cast":
                return self._cast(term, types.canonical(term.of) or (term.of if term.of in _PART_ONLY else None))
            case "case":
                for condition in term.args[0].args:
                    self._truth(condition, "a condition of CASE")
                return self._common(term.args[1:], "the branches of CASE")
            case "and" | "or" | "not":
                for arg in term.args:
                    self._operand(arg, f"an operand of {term.name.upper()}")
                return "BOOLEAN"
            case "between" | "in":
                self._comparable(term.args, term.name.upper())
                return "BOOLEAN"
            case "is null":
                self.of(term.args[0])
                return "BOOLEAN"
            case "is true":
                self._operand(term.args[0], "the value before IS TRUE")
                return "BOOLEAN"
            case "like" | "ilike" | "rlike" | "like any" | "concat" | "||":
                return self._texts(term)
        return self._operation(term)

    def _operation(self, term: Term) -> str | None:
        if term.name in _COMPARISONS:
            self._comparable(term.args, term.name)
            return "BOOLEAN"
        if term.name in _ARITHMETIC and len(term.args) == 2:
            return self._arithmetic(term)
        if term.name in _BITS:
            return arithmetic.bits(term.name, self._types(term.args))
        if term.name.startswith("unary"):
            return arithmetic.unary(term.name[-1], self.of(term.args[0]))
        if term.name in _CAST_FUNCTIONS and len(term.args) == 1:
            return self._cast(term, types.canonical(term.name))
        if term.name in ("abs", "ceil", "ceiling", "floor", "round", "bround", "negative", "positive"):
            return self._rounding(term)
        if term.name in parts.TAKEN:
            return parts.result(term.name, self._types(term.args))
        signature = FUNCTIONS.get(term.name)
        if signature is None:
            self._types(term.args)
            return None
        return self._call(term, signature)

    # --- conditions and choices ------------------------------------------------------------------------------------------

    def _types(self, args: tuple[Term, ...]) -> list[str | None]:
        return [self.of(arg) for arg in args]

    def _truth(self, term: Term, what: str) -> None:
        """Notes a condition that is none. Spark casts no text to BOOLEAN here; what it makes of NULL is left to it."""
        found = self.of(term)
        if found == "VOID":
            self.certain = False
        else:
            self._noted(found, what)

    def _operand(self, term: Term, what: str) -> None:
        """As ``_truth``, but Spark may cast a text here."""
        found = self.of(term)
        if found == "STRING":
            self.certain = False
        else:
            self._noted(found, what)

    def _noted(self, found: str | None, what: str) -> None:
        if found not in (None, "BOOLEAN", "VOID"):
            self.mistakes.append(f"{what} must be BOOLEAN, this is {found}")

    def _comparable(self, args: tuple[Term, ...], what: str) -> None:
        """Notes values that have no type in common, and constant texts that are no value of it."""
        found = self._types(args)
        known = [name for name in found if name is not None]
        if len(known) < len(found):
            return
        pairs = [[known[0], other] for other in known[1:]] if what == "BETWEEN" else [known]
        for index, pair in enumerate(pairs):
            shared = common(pair)
            if shared is not None and holds_map(shared):
                raise Mismatch(f"{what} cannot compare {shared}: maps have no order; compare values of it")
            if shared is None:
                raise Mismatch(f"{what} cannot compare {' with '.join(dict.fromkeys(pair))}; write a CAST")
            among = (args[0], args[index + 1]) if what == "BETWEEN" else args
            self._constants(among, shared)

    def _constants(self, args: tuple[Term, ...], to: str) -> None:
        """Notes constant texts that cannot be cast to the type that they are cast to."""
        for arg in args:
            if arg.name == "literal" and arg.of == "STRING" and to != "STRING" and not constants.casts(arg.value, to):
                self.mistakes.append(f"the text {arg.value!r} cannot be cast to {to}, which it is compared or used as")

    def _common(self, args: tuple[Term, ...], what: str) -> str | None:
        found = self._types(args)
        known = [name for name in found if name is not None]
        if len(known) < len(found):
            return None
        shared = common(known)
        if shared is None:
            raise Mismatch(f"{what} have no type in common: {', '.join(dict.fromkeys(known))}; write a CAST")
        self._constants(args, shared)
        if "STRING" in known and len({name for name in known if is_number(name)}) > 1:
            return None  # which of the numbers the text becomes depends on their order
        return shared

    # --- values ----------------------------------------------------------------------------------------------------------

    def _cast(self, term: Term, to: str | None) -> str | None:
        of = self.of(term.args[0])
        if of is None or to is None or is_interval(of):
            return None
        if not castable(of, to):
            if to == "BINARY":
                return None
            raise Mismatch(f"{of} cannot be cast to {to}")
        if term.name != "try_cast":
            self._constants(term.args, to)
        return to

    def _texts(self, term: Term) -> str | None:
        found = self._types(term.args)
        if any(name is not None and is_interval(name) for name in found):
            return None
        if term.name in ("concat", "||"):
            if None in found or not found:
                return None
            return "BINARY" if set(found) == {"BINARY"} else "STRING"
        pattern = term.args[1]
        if pattern.name == "literal" and pattern.of == "STRING":
            said = patterns.mistake(pattern.value) if term.name == "rlike" else patterns.like_mistake(pattern.value, term.value or "\\")
            if said is not None:
                raise Mismatch(f"the pattern {pattern.value!r} is broken: {said}")
        return "BOOLEAN"

    def _arithmetic(self, term: Term) -> str | None:
        one, other = self._types(term.args)
        if one is None or other is None:
            return None
        shared = common_of_two(one, other)
        if "STRING" in (one, other) and shared not in (None, "STRING"):
            self._constants(term.args, str(shared))
        one, other = (
            arithmetic.of_literal(arg, name, beside) for arg, name, beside in zip(term.args, (one, other), (other, one), strict=True)
        )
        return arithmetic.result(term.name, one, other)

    def _rounding(self, term: Term) -> str | None:
        first = self.of(term.args[0]) if term.args else None
        if len(term.args) > 1 and (term.name in ("abs", "negative", "positive") or len(term.args) > 2):
            raise Mismatch(f"{term.name}() takes fewer arguments than {len(term.args)}")
        self._types(term.args[1:])
        if len(term.args) == 2 and first is not None and not is_decimal(first) and term.name not in ("round", "bround"):
            return None
        scale = term.args[1].value if len(term.args) == 2 and term.args[1].of == "INTEGER" else "0" if len(term.args) == 1 else ""
        return arithmetic.rounded(term.name, first, int(scale)) if first and scale else None

    def _call(self, term: Term, signature: Signature) -> str | None:
        name, args = f"{term.name}()", term.args
        if not signature.counts(len(args)):
            raise Mismatch(f"{name} takes {signature.expected} argument(s), not {len(args)}")
        found = self._types(args)
        for index, (arg, of) in enumerate(zip(args, found, strict=True)):
            kind = signature.kind(index)
            if of is not None and not is_interval(of):
                if not accepts(kind, of):
                    if left_to_spark(kind, of):
                        return None
                    raise Mismatch(f"argument {index + 1} of {name} is {of}; expected {named(kind)}")
                self._argument(arg, kind)
        same = tuple(arg for index, arg in enumerate(args) if signature.kind(index) == "same")
        if any(of is not None and is_interval(of) for of in found):
            return None
        if signature.kinds[0] == "first":
            self._comparable(args, name)
            return found[0] if signature.result == "first" else signature.result
        mixed = "STRING" in found and set(found) != {"STRING"}
        if (term.name in ("greatest", "least") and mixed) or (
            term.name == "regexp_replace" and len(args) == 4 and args[3].name != "literal"
        ):
            return None  # Spark refuses some of these
        return self._common(same, f"the arguments of {name}") if signature.result == "common" else signature.result

    def _argument(self, arg: Term, kind: str) -> None:
        if kind in CONVERTED:
            self._constants((arg,), CONVERTED[kind])
        if kind == "pattern" and arg.name == "literal" and arg.of == "STRING" and (said := patterns.mistake(arg.value)):
            raise Mismatch(f"the pattern {arg.value!r} is broken: {said}")


def _literal(term: Term) -> str | None:
    if term.of in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
        of = types.canonical(term.of) or term.of
        if not constants.casts(term.value, of):
            raise Mismatch(f"{term.value!r} is no {of}")
        return of
    if term.of in ("INTEGER", "DECIMAL"):
        return arithmetic.number(term)
    return term.of

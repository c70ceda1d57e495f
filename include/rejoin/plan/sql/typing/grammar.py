"""A Spark SQL expression as a tree, by Spark's own grammar of expressions over one row (its precedences, no more)."""

from typing import Final

from rejoin.plan.sql.typing.cursor import SyntaxMistake, Term
from rejoin.plan.sql.typing.lexer import Token, UnknownSyntax, tokens
from rejoin.plan.sql.typing.literals import Literals

LEVELS: Final = (
    ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "!<", "!>"),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>", ">>>"),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
"""Binary operators over values, those that bind least first."""

_NOT_OPERANDS: Final = (
    *("AND", "OR", "THEN", "WHEN", "ELSE", "END", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "AS", "FROM", "DIV", "ESCAPE"),
)
_ALSO_FUNCTIONS: Final = ("LIKE", "ILIKE", "RLIKE", "REGEXP", "DIV")
_CONSTRUCTS: Final = "column literal interval field item case between in and or not conditions like ilike div"
_WITH_UNIT: Final = ("TIMESTAMPADD", "TIMESTAMPDIFF", "DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF")
_WORDS: Final = (",", "PLACING", "FROM", "FOR")
_SEPARATORS: Final = {"POSITION": ("IN", ","), "SUBSTRING": _WORDS, "SUBSTR": _WORDS, "OVERLAY": _WORDS}
_TIME_UNITS: Final = (*("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),)


def parse(text: str) -> Term:
    """The tree of a text.

    Raises:
        SyntaxMistake: Spark would refuse the text.
        UnknownSyntax: what this grammar does not cover.
    """
    return _Parser(tokens(text)).whole()


class _Parser(Literals):
    def whole(self) -> Term:
        term = self._or()
        if self._now.is_("COLLATE"):
            raise UnknownSyntax
        if self._now.kind != "end":
            raise SyntaxMistake(f"{self._now.value!r} is not expected here")
        return term

    # --- conditions ------------------------------------------------------------------------------------------------------

    def _or(self) -> Term:
        term = self._and()
        while self._take("OR"):
            term = Term("or", (term, self._and()))
        return term

    def _and(self) -> Term:
        term = self._not()
        while self._take("AND"):
            term = Term("and", (term, self._not()))
        return term

    def _not(self) -> Term:
        if self._take("NOT", "!"):
            return Term("not", (self._not(),))
        return self._predicate(self._value())

    def _predicate(self, term: Term) -> Term:
        if self._take("NOT"):
            return Term("not", (self._compared(term, after_not=True),))
        return self._compared(term)

    def _compared(self, term: Term, *, after_not: bool = False) -> Term:
        if self._take("BETWEEN"):
            low = self._value()
            self._need("AND")
            return Term("between", (term, low, self._value()))
        if self._take("IN"):
            self._need("(")
            return Term("in", (term, *self._list()))
        if word := self._take("LIKE", "ILIKE"):
            return self._like(term, word)
        if self._take("RLIKE", "REGEXP"):
            return Term("rlike", (term, self._value()))
        if after_not:
            raise SyntaxMistake("BETWEEN, IN, LIKE or RLIKE is expected after NOT")
        return self._is(term) if self._take("IS") else term

    def _like(self, term: Term, word: str) -> Term:
        if self._take("ANY", "SOME", "ALL"):
            self._need("(")
            return Term("like any", (term, *self._list()))
        pattern = self._value()
        if self._take("ESCAPE"):
            if self._now.kind != "text":
                raise SyntaxMistake("a text of one character is expected after ESCAPE")
            return Term(word.lower(), (term, pattern), value=self._literal().value)
        return Term(word.lower(), (term, pattern))

    def _is(self, term: Term) -> Term:
        if self._take("NOT"):
            return Term("not", (self._is_what(term),))
        return self._is_what(term)

    def _is_what(self, term: Term) -> Term:
        if self._take("NULL"):
            return Term("is null", (term,))
        if word := self._take("TRUE", "FALSE", "UNKNOWN"):
            return Term("is true", (term,), value=word)
        self._need("DISTINCT")
        self._need("FROM")
        return Term("not", (Term("<=>", (term, self._value())),))

    # --- values ----------------------------------------------------------------------------------------------------------

    def _value(self, level: int = 0) -> Term:
        if level == len(LEVELS):
            return self._unary()
        term = self._value(level + 1)
        while sign := self._take(*LEVELS[level]):
            term = Term(sign.lower(), (term, self._value(level + 1)))
        return term

    def _unary(self) -> Term:
        if sign := self._take("-", "+", "~"):
            if sign == "-" and self._now.kind == "number":
                return self._of(self._number("-"))
            return Term(f"unary {sign}", (self._unary(),))
        return self._of(self._primary())

    def _of(self, term: Term) -> Term:
        """A value with what stands right behind it: casts, fields, and elements."""
        while sign := self._take("::", ".", "["):
            if sign == "::":
                term = Term("cast", (term,), of=self._type())
            elif sign == ".":
                term = Term("field", (term,), value=self._field())
            else:
                term = Term("item", (term, self._value()))
                self._need("]")
        return term

    def _field(self) -> str:
        if self._now.kind not in ("word", "name"):
            raise SyntaxMistake("the name of a field is expected behind a point")
        self._at += 1
        return self._tokens[self._at - 1].value

    def _primary(self) -> Term:
        token = self._now
        if token.kind == "number":
            return self._number("")
        if token.kind in ("text", "bytes"):
            return self._literal()
        if self._take("("):
            return self._parenthesis()
        if token.kind == "end":
            raise SyntaxMistake("an operand is missing at the end")
        if token.kind == "sign" or (token.is_(*_NOT_OPERANDS) and not (token.is_(*_ALSO_FUNCTIONS) and self._next().is_("("))):
            raise SyntaxMistake(f"an operand is missing before {token.value!r}")
        return self._word(token)

    def _parenthesis(self) -> Term:
        term = self._or()
        if self._now.is_(","):
            raise UnknownSyntax
        self._need(")")
        return term

    def _word(self, token: Token) -> Term:
        after = self._next()
        if token.is_("NULL", "TRUE", "FALSE"):
            self._at += 1
            return Term("literal", of="VOID" if token.is_("NULL") else "BOOLEAN", value=token.value.lower())
        if token.is_("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ") and after.kind == "text":
            self._at += 1
            return Term("literal", of=token.value.upper(), value=self._literal().value)
        if token.is_("INTERVAL") and (after.kind in ("text", "number") or after.is_("-")):
            return self._interval()
        if token.is_("CASE") and not after.is_("(", ",", ")", "."):
            return self._case()
        self._at += 1
        if self._take("("):
            return self._call(token.value)
        if self._take("."):
            self._at += 1
            return Term("column", value=self._tokens[self._at - 1].value, of=token.value)
        return Term("column", value=token.value)

    def _case(self) -> Term:
        """``args``: the conditions as one term, then the values of the branches."""
        self._need("CASE")
        subject = None if self._now.is_("WHEN") else self._or()
        conditions, values = [], []
        while self._take("WHEN"):
            condition = self._or()
            conditions.append(condition if subject is None else Term("=", (subject, condition)))
            self._need("THEN")
            values.append(self._or())
        if not values:
            raise SyntaxMistake("WHEN is expected after CASE")
        if self._take("ELSE"):
            values.append(self._or())
        self._need("END")
        return Term("case", (Term("conditions", tuple(conditions)), *values))

    # --- calls -----------------------------------------------------------------------------------------------------------

    def _call(self, written: str) -> Term:
        """The call of a function, after its parenthesis."""
        name, upper = written.lower(), written.upper()
        if name in _CONSTRUCTS.split():  # in a tree, these names mean something else
            raise UnknownSyntax
        if upper in ("CAST", "TRY_CAST"):
            term = self._or()
            self._need("AS")
            made = Term(name, (term,), of=self._type())
            self._need(")")
            return made
        if upper in _WITH_UNIT and self._now.is_(*_TIME_UNITS) and self._next().is_(","):
            unit = self._now.value
            self._at += 2
            found = self._list()
            return Term(f"{name} unit", found, value=unit.upper()) if len(found) > 1 else Term(name, (Term("column", value=unit), *found))
        if upper == "EXTRACT":
            return self._extract()
        if upper == "TRIM":
            return self._trim()
        if self._take(")"):
            return Term(name)
        return Term("regexp_like" if upper in _ALSO_FUNCTIONS else name, self._arguments(upper))

    def _arguments(self, upper: str) -> tuple[Term, ...]:
        """Up to the closing parenthesis; SUBSTRING, POSITION and OVERLAY may have words in between."""
        first, separators = self._value() if upper == "POSITION" else self._or(), _SEPARATORS.get(upper, (",",))
        found = [first]
        while self._take(*separators):
            found.append(self._or())
        self._need(")")
        return tuple(found)

    def _list(self) -> tuple[Term, ...]:
        """One or more expressions up to the closing parenthesis."""
        return self._arguments("")

    def _extract(self) -> Term:
        field = self._now
        self._at += 1
        if field.kind not in ("word", "text"):
            raise SyntaxMistake("EXTRACT: a field such as YEAR is expected")
        self._need("FROM")
        term = self._value()
        self._need(")")
        return Term("extract", (term,), value=field.value.upper())

    def _trim(self) -> Term:
        """``value``: the end that is named, ``of``: the word or sign between the arguments; both may be empty."""
        end, between = self._take("BOTH", "LEADING", "TRAILING"), ""
        found = [] if self._now.is_("FROM") else [self._or()]
        while word := self._take("FROM", ","):
            between = word
            found.append(self._or())
        self._need(")")
        return Term("trim", tuple(found), value=end, of=between)

"""What an expression is made of at its leaves: numbers, texts, types, intervals."""

from typing import Final

from rejoin.plan.sql.typing.cursor import Cursor, SyntaxMistake, Term
from rejoin.plan.sql.typing.lexer import UnknownSyntax

_SUFFIXES: Final = {"BD": "DECIMAL", "L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "F": "FLOAT", "D": "DOUBLE"}
_UNITS: Final = {"YEAR": "MONTH", "MONTH": "MONTH", "WEEK": "DAY", "DAY": "DAY", "HOUR": "SECOND", "MINUTE": "SECOND", "SECOND": "SECOND"}
_MICROS: Final = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}


class Literals(Cursor):
    """Reads literals and types."""

    def _number(self, sign: str) -> Term:
        written = self._now.value.upper()
        self._at += 1
        suffix = next((s for s in _SUFFIXES if written.endswith(s)), "")
        digits = written.removesuffix(suffix)
        of = _SUFFIXES[suffix] if suffix else "DOUBLE" if "E" in digits else "DECIMAL" if "." in digits else "INTEGER"
        return Term("literal", value=sign + digits, of=of)

    def _literal(self) -> Term:
        kind, parts = self._now.kind, []
        while self._now.kind == kind:
            parts.append(self._now.value)
            self._at += 1
            if kind == "bytes":
                break
        return Term("literal", value="".join(parts), of="BINARY" if kind == "bytes" else "STRING")

    def _type(self) -> str:
        """A type as written, such as ``DECIMAL(10, 2)``."""
        token = self._now
        if token.kind != "word":
            raise SyntaxMistake(f"a type is expected, not {token.value!r}")
        self._at += 1
        if self._now.is_("<"):
            raise UnknownSyntax
        if not self._take("("):
            return token.value.upper()
        parameters = [self._literal_number()]
        while self._take(","):
            parameters.append(self._literal_number())
        self._need(")")
        return f"{token.value.upper()}({','.join(parameters)})"

    def _literal_number(self) -> str:
        if self._now.kind != "number":
            raise SyntaxMistake(f"a number is expected, not {self._now.value!r}")
        return self._number("").value

    def _interval(self) -> Term:
        """``INTERVAL 1 DAY``, ``INTERVAL '2' HOURS 30 MINUTES``; ``of``: the smallest unit, in which values are added; ``value``: its microseconds,
        where these are whole numbers of units that always have as many.
        """
        self._need("INTERVAL")
        units, micros = set(), list[int | None]()
        while self._now.kind in ("text", "number") or self._now.is_("-"):
            sign = -1 if self._take("-") else 1
            simple = self._now.kind == "number" or self._now.value.strip().lstrip("+-").isdigit()
            number = self._now.value
            self._at += 1
            unit = self._now.value.upper().removesuffix("S")
            micros.append(sign * int(number) * _MICROS[unit] if number.isascii() and number.isdecimal() and unit in _MICROS else None)
            self._at += 1
            if not simple or unit not in _UNITS or self._now.is_("TO"):
                raise UnknownSyntax
            units.add(_UNITS[unit])
        if "MONTH" in units and len(units) > 1:
            raise SyntaxMistake("an interval of months and years cannot have days or smaller units")
        value = "" if None in micros else str(sum(filter(None, micros)))
        return Term("interval", value=value, of=next(unit for unit in ("SECOND", "DAY", "MONTH") if unit in units))

"""Whole columns of values -> Arrow arrays: ``values.converter`` for the forms that nearly all columns have, ten times faster.

``converter`` is the definition. A ``ColumnConverter`` gives the array that its results would make, or raises ``Unsure`` or any error of
``REFUSED``; which values are bad, and why, the caller finds out with the converter. Arrow's own parsers see a text only after a
pattern has let it pass that leaves nothing to interpret: no more digits than the type holds, no offset but Z.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.errors import BadRecord
from rejoin.plan.model.durations import MAX_DAY, MAX_MICROS, MIN_DAY, MIN_MICROS
from rejoin.sources.decode.values import CONNECT_DECIMAL, NUMBER_TEXT, UNITS, Convert, Field, decimal_of
from rejoin.sources.formats.json_text import Unsure

Build = Callable[[Sequence[Any]], pa.Array]
Kinds = frozenset[type]
# What a value that is no plain one makes the builders raise.
REFUSED = (Unsure, BadRecord, pa.ArrowException, ValueError, ArithmeticError)
_NULL = type(None)
_INSTANT = pa.timestamp("us", tz="UTC")
_INT_TEXT = "^(0|-?[1-9][0-9]{0,17})$"
_CLOCK_TEXT = r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
_DATE_TEXT = "^[12][0-9]{3}-[0-9]{2}-[0-9]{2}$"


def _float_text(digits: int, whole: int, exponent: int) -> str:
    """A pattern of numbers that surely fit: at most so many digits in all, of whole numbers so many, as these must be exact."""
    pointed = [rf"[0-9]{{{n}}}\.[0-9]{{1,{digits - n}}}" for n in range(1, digits)]
    return rf"-?([0-9]{{1,{whole}}}|0\.0{{0,8}}[0-9]{{1,{digits}}}|{'|'.join(pointed)})([eE][-+]?[0-9]{{1,{exponent}}})?"


FLOAT_TEXT = {"FLOAT": _float_text(9, 7, 1), "DOUBLE": _float_text(17, 15, 2)}
"""Patterns of the numbers that are read as they stand: of no more digits than tell them apart, and far from the ends of the range."""


@dataclass(frozen=True)
class ColumnHints:
    """What a feed says of a column, and its converter remembers: the arguments of ``converter`` with these names."""

    unit: str = "us"
    field: Field | None = None
    seen: set[str] = dataclasses.field(default_factory=set)


class ColumnConverter:
    """One column of one schema.

    Attributes:
        seen: what its converter remembers of texts (``values.converter``); grows as if that had been called for each value, also if
            the column is refused, so that the caller has to take it back then.
    """

    def __init__(
        self,
        type_: str,
        arrow: pa.DataType,
        convert: Convert,
        source: str,
        told: ColumnHints | None = None,
    ) -> None:
        """As for ``converter``; ``source`` is "debezium", "json" or "csv", ``arrow`` the Arrow type of ``type_``."""
        told = told or ColumnHints()
        known = told.field or Field()
        self._convert, self._arrow, self._type = convert, arrow, type_
        self._is_csv = source == "csv"
        self._unit = UNITS.get(known.name or "", "days" if self._type == "DATE" else told.unit)
        self._decimal = decimal_of(self._type)
        self._is_bytes = known.name == CONNECT_DECIMAL and known.type == "bytes"
        self._is_number_text = known.type == NUMBER_TEXT
        self._is_number = source != "debezium" or known.type == "string"
        self.seen = told.seen
        self._builders: dict[Kinds, Build] = {}

    def __call__(self, values: Sequence[Any], kinds: Kinds) -> pa.Array:
        """The array of ``values``; ``kinds`` are their Python types."""
        build = self._builders.get(kinds)
        if build is None:
            build = self._builders[kinds] = self._builder(kinds - {_NULL})
        return build(values)

    def _builder(self, kinds: Kinds) -> Build:
        if not kinds:
            return lambda values: pa.nulls(len(values), self._arrow)
        if self._is_number_text:
            return self._each
        if self._decimal:
            return self._decimals(kinds)
        if kinds == {str}:
            return self._texts()
        if self._type in FLOAT_TEXT and kinds <= {int, Decimal}:
            return self._floats
        if kinds == {int} and self._type in ("INT", "BIGINT"):
            return self._same
        if kinds == {int} and self._unit in ("us", "ms") and self._type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            return self._micros
        if kinds == {int} and self._unit == "days" and self._type == "DATE":
            return self._days
        if kinds == {bool} and self._type == "BOOLEAN":
            return self._same
        return self._each

    def _texts(self) -> Build:
        if self._type == "STRING":
            return self._same
        if self._is_csv and self._type in ("INT", "BIGINT"):
            return self._matching(_INT_TEXT)
        if self._is_csv and self._type in FLOAT_TEXT:
            return self._floats
        if self._type == "DATE":
            return self._matching(_DATE_TEXT)
        if self._type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            return self._clocks
        return self._each

    def _same(self, values: Sequence[Any]) -> pa.Array:
        return pa.array(values, self._arrow)

    def _each(self, values: Sequence[Any]) -> pa.Array:
        convert = self._convert
        return pa.array([None if value is None else convert(value) for value in values], self._arrow)

    def _matching(self, pattern: str) -> Build:
        """Texts that Arrow casts if all match ``pattern``; else one by one."""

        def build(values: Sequence[Any]) -> pa.Array:
            texts = _plain_texts(values, pattern)
            return self._each(values) if texts is None else texts.cast(self._arrow)

        return build

    def _decimals(self, kinds: Kinds) -> Build:
        assert self._decimal is not None
        precision, scale = self._decimal
        # A point is what base64 does not have: such a text is a number whatever else the column holds.
        pointed = str in kinds and not self._is_number
        if self._is_bytes or not kinds <= {str, int, Decimal} or (pointed and not scale):
            return self._each
        whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
        part = rf"\.[0-9]{{1,{scale}}}" if scale else ""
        pattern = f"^-?{whole}{part}$" if pointed else f"^-?{whole}({part})?$"

        def build(values: Sequence[Any]) -> pa.Array:
            texts = _plain_texts(values if kinds == {str} else [None if v is None else str(v) for v in values], pattern)
            if texts is None:
                return self._each(values)
            if pointed:
                self.seen.add("number")
            return texts.cast(self._arrow)

        return build

    def _floats(self, values: Sequence[Any]) -> pa.Array:
        if _plain_texts([None if v is None else str(v) for v in values], f"^{FLOAT_TEXT[self._type]}$") is None:
            return self._each(values)
        return pa.array([None if v is None else float(v) for v in values], self._arrow)

    def _micros(self, values: Sequence[Any]) -> pa.Array:
        found = pa.array(values, pa.int64())
        if self._unit == "ms":
            found = pc.multiply_checked(found, 1000)
        return _within(found, MIN_MICROS, MAX_MICROS).cast(self._arrow)

    def _days(self, values: Sequence[Any]) -> pa.Array:
        return _within(pa.array(values, pa.int32()), MIN_DAY, MAX_DAY).cast(self._arrow)

    def _clocks(self, values: Sequence[Any]) -> pa.Array:
        texts = _plain_texts(values, _CLOCK_TEXT)
        return self._each(values) if texts is None else texts.cast(_INSTANT).cast(pa.int64()).cast(self._arrow)


def _plain_texts(values: Sequence[Any], pattern: str) -> pa.Array | None:
    """The texts as an array if all of them match."""
    texts = pa.array(values, pa.string())
    return texts if pc.all(pc.match_substring_regex(texts, pattern)).as_py() else None


def _within(values: pa.Array, low: int, high: int) -> pa.Array:
    found = pc.min_max(values).as_py()
    if found["min"] < low or found["max"] > high:
        raise Unsure
    return values

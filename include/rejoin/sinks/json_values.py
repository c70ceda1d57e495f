"""Values that JSON has no word for, or that Python would write in another way, as texts. Pure."""

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rejoin.lake.query.json_values import plain

Row = Mapping[str, Any]

_PLACES = 6


class JsonTexts:
    """For rows with columns of these types. True if there is anything to do at all."""

    def __init__(self, types: pa.Schema) -> None:
        self._floats = [f.name for f in types if pa.types.is_floating(f.type)]
        self._nested = [f.name for f in types if pa.types.is_nested(f.type)]
        # Python writes an exponent where the first digit is behind the sixth place: 0E-8.
        self._small = [f.name for f in types if pa.types.is_decimal(f.type) and f.type.scale > _PLACES]

    def __bool__(self) -> bool:
        return bool(self._floats or self._small or self._nested)

    def decimals(self, row: Row) -> Row:
        """The row with decimals that would get an exponent as texts of all their digits."""
        texts = {n: format(row[n], "f") for n in self._small if row.get(n) is not None}
        return {**row, **texts} if texts else row

    def all(self, row: Row) -> Row:
        """The same, and not-a-number and infinities by their names, also inside of nested values."""
        row = self.decimals(row)
        texts = {n: plain(row[n]) for n in self._floats if row.get(n) is not None and not math.isfinite(row[n])}
        texts |= {n: plain(row[n]) for n in self._nested if row.get(n) is not None}
        return {**row, **texts} if texts else row

"""The rows of a snapshot as columns of bare envelopes of Debezium, as which Parquet files hold them: what ``envelope`` writes of a change, they say of a row. Pure.

Whole numbers, booleans and octets have Arrow's types. Everything else is the text that PostgreSQL prints; a field says which texts are numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from rejoin.capture.envelope import Form, form_of, origin, text_of
from rejoin.capture.tables import CapturedTable
from rejoin.sources.decode.values import ANY_TEXT, NUMBER_TEXT
from rejoin.sources.formats.connect_json import TYPE

_CASTS: Final = {Form.WHOLE: "int8", Form.BOOLEAN: "bool", Form.BINARY: "bytea"}
_TYPES: Final = {Form.WHOLE: pa.int64(), Form.BOOLEAN: pa.bool_(), Form.BINARY: pa.binary()}
_SAID: Final = {Form.NUMBER: NUMBER_TEXT, Form.FLOAT: NUMBER_TEXT, Form.ARRAY: ANY_TEXT, Form.TEXT: ANY_TEXT}
_TEXTS: Final = (25, 1043)
"""The types text and varchar, by their numbers."""


def selected(name: str, type_: int, form: Form) -> str:
    """SQL of PostgreSQL: a column as it is read. Texts are what it prints: a cast to text would print some otherwise (booleans, ``char(n)``).

    Args:
        name: of the column, quoted.
        type_: the number of its type.
        form: how its values are written.
    """
    if form in _CASTS:
        return f"{name}::{_CASTS[form]}"
    return name if type_ in _TEXTS else f"CASE WHEN {name} IS NULL THEN NULL ELSE format('%s', {name}) END"


@dataclass(frozen=True)
class RowColumns:
    """Makes envelopes of the rows of a table.

    Args:
        table: the table.
        types: all of its columns that are read, in their order, and the numbers of their types, of domains what these are made of.
        lsn: where the snapshot is in the log.
        micros: when it was taken, since 1970.
    """

    table: CapturedTable
    types: Mapping[str, int]
    lsn: int
    micros: int

    @cached_property
    def forms(self) -> Mapping[str, Form]:
        """How the values of these columns are written."""
        return {name: form_of(type_, self.table.types.get(name)) for name, type_ in self.types.items()}

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the envelopes."""
        return pa.schema(
            [("after", pa.struct(self._fields)), ("source", pa.struct(self._source("", 0).type)), ("op", _repeated("", 0).type)]
        )

    def envelopes(self, rows: pa.RecordBatch, word: str = "true") -> pa.RecordBatch:
        """The envelopes of some rows. ``word``: which ones of the snapshot they are; "first" and "last" are said of one row each."""
        columns = [self._as_json(column, name) for column, name in zip(rows.columns, self.types, strict=True)]
        after = pa.StructArray.from_arrays([c.cast(f.type) for c, f in zip(columns, self._fields, strict=True)], fields=self._fields)
        return pa.RecordBatch.from_arrays([after, self._source(word, len(after)), _repeated("r", len(after))], schema=self.schema)

    def _as_json(self, column: pa.Array, name: str) -> pa.Array:
        """An array as a text of JSON, which is what a nested column reads; any other column as it is."""
        if self.forms[name] is not Form.ARRAY:
            return column
        encode = text_of(self.types[name], self.table.types.get(name))
        return pa.array([None if text is None else encode(text.encode()).decode() for text in column.to_pylist()], pa.string())

    @cached_property
    def _fields(self) -> list[pa.Field]:
        return [
            pa.field(name, _TYPES.get(form, pa.string()), metadata={TYPE: _SAID[form]} if form in _SAID else None)
            for name, form in self.forms.items()
        ]

    def _source(self, word: str, count: int) -> pa.StructArray:
        said: dict[str, Any] = {**origin(self.table), "lsn": self.lsn, "ts_us": self.micros, "snapshot": word}
        return pa.StructArray.from_arrays([_repeated(value, count) for value in said.values()], list(said))


def _repeated(value: str | int, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([value]))

"""Types and keys of rows, from samples of them. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from rejoin.plan.sql import types
from rejoin.plan.sql.nested import ARRAY, ELEMENT, KEY, MAP, STRUCT, VALUE, Nested
from rejoin.sources.decode.values import CONNECT_DECIMAL, UNITS

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(?P<zone>Z|[+-]\d\d(:?\d\d)?)?")
_WHOLE, _FRACTION = re.compile(r"-?(0|[1-9]\d{0,17})"), re.compile(r"-?\d{1,20}\.\d{1,12}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FLAGS = {"true", "false", "t", "f"}
_ARROW = {pa.int8(): "INT", pa.int16(): "INT", pa.int32(): "INT", pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE"}
_LOGICAL = {
    **{name: "DATE" if unit == "days" else "TIMESTAMP_NTZ" for name, unit in UNITS.items()},
    "io.debezium.time.ZonedTimestamp": "TIMESTAMP",
}
_CONNECT = {
    **dict.fromkeys(("int8", "int16", "int32"), "INT"),
    "int64": "BIGINT",
    "float": "FLOAT",
    "float32": "FLOAT",
    "double": "DOUBLE",
    "float64": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "STRING",
    "bytes": "BINARY",
}


@dataclass(frozen=True)
class Column:
    """A column and its guessed type. ``note``: what the guess rests on, where that is little; ``type`` None: rejoin cannot read it."""

    name: str
    type: str | None
    note: str = ""

    @property
    def declarable(self) -> bool:
        """Whether a topology file can have it."""
        return self.type is not None and _NAME.fullmatch(self.name) is not None


def of_rows(rows: Sequence[Mapping[str, Any]], *, texts: bool = False) -> list[Column]:
    """The columns of rows, in the order in which they come up. ``texts``: numbers and flags are written as texts, as in CSV."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [
        _of_values(name, [row[name] for row in rows if row.get(name) not in (None, *([""] if texts else []))], texts=texts)
        for name in names
    ]


def of_connect(fields: Iterable[Mapping[str, Any]]) -> list[Column]:
    """The columns of a Connect schema."""
    return [Column(str(field.get("field")), _of_field(field)) for field in fields]


def of_arrow(kind: pa.DataType) -> str | None:
    """The type of a column of Arrow; None: rejoin cannot read it."""
    if pat.is_dictionary(kind):
        return of_arrow(kind.value_type)
    if pat.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pat.is_struct(kind):
        return _made(STRUCT, *((field.name, of_arrow(field.type)) for field in kind))
    if pat.is_map(kind):
        return _made(MAP, (KEY, of_arrow(kind.key_type)), (VALUE, of_arrow(kind.item_type)))
    if pat.is_list(kind) or pat.is_large_list(kind):
        return array_of(of_arrow(kind.value_type))
    if pat.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    tests = (
        ("STRING", pat.is_string),
        ("STRING", pat.is_large_string),
        ("BOOLEAN", pat.is_boolean),
        ("DATE", pat.is_date32),
        ("BINARY", pat.is_binary),
        ("BINARY", pat.is_large_binary),
    )
    return _ARROW.get(kind) or next((name for name, test in tests if test(kind)), None)


def array_of(element: str | None, dimensions: int = 1) -> str | None:
    """The type of an array; None if that of its elements is not known."""
    for _ in range(dimensions):
        element = _made(ARRAY, (ELEMENT, element))
    return element


def _made(kind: str, *parts: tuple[str, str | None]) -> str | None:
    """A type that is made of others; None if one of them is not known, or no column may have it."""
    known = tuple((name, of) for name, of in parts if of is not None)
    return types.canonical(Nested(kind, known).text) if parts and len(known) == len(parts) else None


def _of_field(field: Mapping[str, Any]) -> str | None:
    name, parameters = field.get("name"), field.get("parameters") or {}
    if name == CONNECT_DECIMAL:
        return f"DECIMAL({parameters.get('connect.decimal.precision', 38)},{parameters.get('scale', 0)})"
    if isinstance(name, str) and name in _LOGICAL:
        return _LOGICAL[name]
    if isinstance(items := field.get("items"), dict):
        return array_of(_of_field(items))
    return _CONNECT.get(str(field.get("type")))


def _of_values(name: str, values: list[Any], *, texts: bool) -> Column:
    if not values:
        return Column(name, "STRING", "always null in the sample")
    if any(isinstance(value, dict | list) for value in values):
        return Column(name, None, "left out, as it holds arrays or objects: declare it as ARRAY<...>, STRUCT<...> or MAP<STRING, ...>")
    if all(isinstance(value, bool) for value in values):
        return Column(name, "BOOLEAN")
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return Column(name, "BIGINT") if all(abs(value) < 2**63 for value in values) else Column(name, "DECIMAL(38,0)")
    if all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in values):
        return Column(name, _of_decimals([Decimal(str(value)) for value in values]))
    return Column(name, _of_texts([str(value) for value in values], texts=texts))


def _of_texts(values: list[str], *, texts: bool) -> str:
    if all(map(_DATE.fullmatch, values)):
        return "DATE"
    times = [_TIME.fullmatch(value) for value in values]
    if all(times):
        return "TIMESTAMP" if all(found and found["zone"] for found in times) else "TIMESTAMP_NTZ"
    if texts and all(map(_WHOLE.fullmatch, values)):
        return "BIGINT"
    if texts and all(_WHOLE.fullmatch(value) or _FRACTION.fullmatch(value) for value in values):
        return _of_decimals(list(map(Decimal, values)))
    return "BOOLEAN" if texts and {value.lower() for value in values} <= _FLAGS else "STRING"


def _of_decimals(values: list[Decimal]) -> str:
    """The exact type with room for larger values; DOUBLE where numbers have more digits than a price."""
    scale = max(max(0, -int(value.as_tuple().exponent)) for value in values)
    whole = max(value.adjusted() + 1 for value in values)
    return f"DECIMAL({max(18, whole + scale + 4)},{scale})" if scale <= 6 and whole + scale + 4 <= 38 else "DOUBLE"


def key_of(table: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The column that seems to be the key of rows: without null, of another value in each, and called so; empty if there is none."""
    names = [column.name for column in columns if column.type in ("INT", "BIGINT", "STRING", "DECIMAL(38,0)")]
    found = [name for name in names if _is_unique([row.get(name) for row in rows])]
    one = table.lower().removesuffix("s")
    called = [
        n
        for n in found
        if n.lower() in ("id", "key", "code", "uuid", f"{one}_id", f"{one}id", f"{table.lower()}_id", f"{one}_key", f"{one}_code")
    ]
    return tuple((called or found)[:1])


def named_as_key(columns: Iterable[Column]) -> tuple[str, ...]:
    """The column that is called as keys are; empty if there is none."""
    return tuple(column.name for column in columns if column.name.lower() == "id")[:1]


def _is_unique(values: list[Any]) -> bool:
    return bool(values) and None not in values and "" not in values and len(set(values)) == len(values)

"""Rows of Parquet files -> events, column by column: every row an upsert at the ordinal of its pin, or quarantined.

The rules are those of every snapshot (``snapshot``): no key or the whole key, and a quarantined row carries no values.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from rejoin.plan.model.durations import MAX_MICROS, MIN_MICROS
from rejoin.plan.model.plan import Table
from rejoin.sources.events import MISSING_KEY, EventKind, Layout, raw_text
from rejoin.sources.formats.encoded_text import no_utf8
from rejoin.sources.formats.plain_columns import lists
from rejoin.sources.shapes.parquet_file import ParquetRows, parquet_rows
from rejoin.sources.shapes.snapshot import position_of
from rejoin.sources.stored_files import PinnedFile

_YEARS = (MIN_MICROS // 1_000_000, MAX_MICROS // 1_000_000 + 1)
"""Seconds since the epoch: the first of year 1, and the first that is too late."""
_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_A_DAY = 86_400


@dataclass(frozen=True)
class _Wrong:
    """Rows that cannot be applied. ``of_key``: because of what is in their key."""

    rows: pa.BooleanArray
    code: str
    reason: str
    of_key: bool


def decode_parquet(table: Table, ordinal: int, of: ParquetRows, index: int) -> Iterator[pa.RecordBatch]:
    """Rows of a pinned Parquet file -> record batches of ``events_schema(table)``, one row a row. Raises as ``parquet_rows`` does."""
    layout = Layout(table)
    for line, rows in parquet_rows(table, of):
        lines = np.arange(line, line + rows.num_rows)
        yield layout.arranged(event_columns(layout, ordinal, rows), lines, of.file.path, index)  # type: ignore[arg-type]


def raw_rows(table: Table, root: str, file: PinnedFile, wanted: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The rows with these numbers (from 1), as quarantine keeps them."""
    layout, numbers = Layout(table), np.array(sorted(wanted))
    for first, rows in parquet_rows(table, ParquetRows(root, file)):
        here = numbers[(numbers >= first) & (numbers < first + rows.num_rows)]
        yield from zip(here.tolist(), shown_rows(layout, rows.take(pa.array(here - first))), strict=True)


def event_columns(layout: Layout, ordinal: int, rows: pa.RecordBatch) -> dict[str, pa.Array]:
    """Rows with the types of their file -> columns of events."""
    keys, found = [c.name for c in layout.key], dict(zip(rows.schema.names, rows.columns, strict=True))
    yes, no = (pa.repeat(pa.scalar(of), rows.num_rows) for of in (True, False))
    lacking = reduce(pc.or_, (pc.is_null(found[k]) if k in found else yes for k in keys), no)
    wrong = [_Wrong(lacking, MISSING_KEY, f"key column {' or '.join(keys)} is null", of_key=True)]
    for name, values in found.items():
        wrong += [_Wrong(bad, code, reason, name in keys) for bad, code, reason in faults(name, values)]
    wrong = [w for w in wrong if pc.any(w.rows).as_py()]
    refused, no_key = (_either([w for w in wrong if w.of_key or every], rows.num_rows) for every in (True, False))
    made = {"_position": pa.repeat(position_of(ordinal), rows.num_rows), "_kind": pa.repeat(str(EventKind.UPSERT), rows.num_rows)}
    if wrong:
        found = {name: _without(values, no_key if name in keys else refused) for name, values in found.items()}
        made["_position"] = _without(made["_position"], refused)
        made["_kind"] = pc.if_else(refused, str(EventKind.QUARANTINED), made["_kind"])
        made["_code"] = _first([(w.rows, w.code) for w in wrong])
        made["_reason"] = _first([(w.rows, w.reason) for w in wrong])
        made["_raw"] = _at(refused, shown_rows(layout, rows.filter(refused)), rows.num_rows)
    return made | {name: cast_values(values, layout.schema.field(name).type) for name, values in found.items()}


def _either(wrong: list[_Wrong], count: int) -> pa.BooleanArray:
    return reduce(pc.or_, (w.rows for w in wrong), pa.repeat(pa.scalar(False), count))


def _without(values: pa.Array, rows: pa.BooleanArray) -> pa.Array:
    """The values, null in some rows."""
    if pat.is_dictionary(values.type):
        values = values.dictionary_decode()
    return pc.if_else(rows, pa.scalar(None, values.type), values)


def _first(cases: list[tuple[pa.BooleanArray, str]]) -> pa.Array:
    """Of several texts the first whose rows have one."""
    texts = pa.nulls(len(cases[0][0]), pa.string())
    for rows, text in reversed(cases):
        texts = pc.if_else(rows, text, texts)
    return texts


def _at(rows: pa.BooleanArray, texts: list[str], count: int) -> pa.Array:
    """The texts in these rows, null in all others."""
    return pc.replace_with_mask(pa.nulls(count, pa.string()), rows, pa.array(texts, pa.string()))


# --- values ---------------------------------------------------------------------------------------------------------------


def faults(name: str, values: pa.Array) -> Iterator[tuple[pa.BooleanArray, str, str]]:
    """The rows whose value no column of the declared type holds, with code and reason."""
    kind = values.type.value_type if pat.is_dictionary(values.type) else values.type
    if pat.is_nested(kind):
        yield from _of_parts(values, name)
    elif pat.is_string(kind) or pat.is_large_string(kind):
        if (bad := no_utf8(values)) is not None:
            yield bad, "VALUE_TYPE", f"column {name!r}: no UTF-8"
    elif pat.is_date32(kind) or pat.is_timestamp(kind):
        plain = values.dictionary_decode() if pat.is_dictionary(values.type) else values
        number = plain.view(pa.int32()).cast(pa.int64()) if pat.is_date32(kind) else plain.view(pa.int64())
        first, after = (at // _A_DAY if pat.is_date32(kind) else at * _A_SECOND[kind.unit] for at in _YEARS)
        outside = pc.or_(pc.less(number, first), pc.greater_equal(number, after))
        yield pc.fill_null(outside, fill_value=False), "VALUE_RANGE", f"column {name!r}: the date lies outside the years 0001 to 9999"


def _of_parts(values: pa.Array, name: str) -> Iterator[tuple[pa.BooleanArray, str, str]]:
    """The rows in which a part of a nested value has a fault."""
    if pat.is_struct(values.type):
        for field in values.type:
            yield from faults(f"{name}.{field.name}", pc.struct_field(values, field.name))
        return
    found = lists(values)
    for bad, code, reason in faults(f"{name}[]", pc.list_flatten(found)):
        yield pc.is_in(pa.array(range(len(values))), pc.list_parent_indices(found).cast(pa.int64()).filter(bad)), code, reason


def _in_order(value: Any) -> Any:
    """A value as Python has it, with the entries of maps in the order of their keys, so that equal maps are stored alike."""
    if isinstance(value, dict):
        return {name: _in_order(one) for name, one in value.items()}
    if isinstance(value, list):
        made = [_in_order(one) for one in value]
        return sorted(made, key=lambda entry: entry[0]) if made and isinstance(made[0], tuple) else made
    return (value[0], _in_order(value[1])) if isinstance(value, tuple) else value


def cast_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a column, without faults, in the type of its events."""
    if "map<" in str(kind):
        return pa.array(map(_in_order, values.to_pylist()), kind)
    if pat.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values if values.type == kind else values.cast(kind)


def shown_rows(layout: Layout, rows: pa.RecordBatch) -> list[str]:
    """Rows as quarantine keeps them: as JSON, in the order of the declared columns."""
    found = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns = [shown(found[name]) if name in found else [None] * rows.num_rows for name in layout.names]
    texts = (dict(zip(layout.names, row, strict=True)) for row in zip(*columns, strict=True))
    return [raw_text(json.dumps(text, ensure_ascii=False, separators=(",", ":"), default=str).encode()) for text in texts]


def _or_null(found: list[Any], values: pa.Array) -> list[Any]:
    return [one if there else None for one, there in zip(found, values.is_valid().to_pylist(), strict=True)]


def shown(values: pa.Array) -> list[Any]:
    """Values as JSON has them: a text that is none has marks in place of what cannot be read, bytes are base64, times texts."""
    if pat.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pat.is_struct(kind):
        rows = zip(*(shown(part) for part in values.flatten()), strict=True)
        return _or_null([dict(zip((f.name for f in kind), row, strict=True)) for row in rows], values)
    if pat.is_nested(kind):
        found = lists(values)
        inner = iter(shown(pc.list_flatten(found)))
        each = [list(islice(inner, n)) for n in pc.fill_null(pc.list_value_length(found), 0).to_pylist()]
        return _or_null([{e["key"]: e["value"] for e in one} for one in each] if pat.is_map(kind) else each, values)
    if pat.is_string(kind) or pat.is_large_string(kind):
        large = pa.large_binary() if pat.is_large_string(kind) else pa.binary()
        return [None if value is None else value.decode("utf-8", "replace") for value in values.view(large).to_pylist()]
    if pat.is_date32(kind) or pat.is_timestamp(kind):
        return list(values.cast(pa.string()).to_pylist())
    return [base64.b64encode(value).decode() if isinstance(value, bytes) else value for value in values.to_pylist()]

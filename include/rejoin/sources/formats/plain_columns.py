"""Arrow columns of few types, in structs too: whole numbers of 64 bits, times as such numbers (seconds as milliseconds), decimals, texts, octets."""

from collections.abc import Callable, Collection
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from rejoin.sources.formats.encoded_text import no_utf8

Place = tuple[str, ...]
_WIDER: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (lambda kind: pat.is_integer(kind) and kind != pa.uint64(), pa.int64()),
    (lambda kind: pat.is_large_string(kind) or pat.is_string_view(kind), pa.string()),
    (lambda kind: pat.is_large_binary(kind) or pat.is_binary_view(kind) or pat.is_fixed_size_binary(kind), pa.binary()),
)


def plain(values: pa.Array) -> pa.Array:
    """Values in these types; of others as they are."""
    kind = values.type
    if pat.is_dictionary(kind):
        return plain(values.dictionary_decode())
    if pat.is_struct(kind):
        return pa.StructArray.from_arrays([plain(part) for part in values.flatten()], [field.name for field in kind], mask=values.is_null())
    if pat.is_map(kind) or pat.is_list(kind) or pat.is_large_list(kind):
        return _with_plain_parts(values)
    if pat.is_date32(kind) or pat.is_time32(kind):
        return values.cast(pa.int32()).cast(pa.int64())
    if pat.is_timestamp(kind) or pat.is_time64(kind):
        whole = values.cast(pa.timestamp("ms", kind.tz)) if kind.unit == "s" else values
        return whole.cast(pa.int64())
    wider = next((to for test, to in _WIDER if test(kind)), kind)
    return values if kind == wider else values.cast(wider)


def lists(values: pa.Array) -> pa.Array:
    """Arrays as they are; of maps their entries, structs of ``key`` and ``value``."""
    kind = values.type
    return values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))) if pat.is_map(kind) else values


def _with_plain_parts(values: pa.Array) -> pa.Array:
    """Arrays, or maps, of values in these types."""
    found = lists(values)
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(found), 0).cast(pa.int32()))
    offsets, inner = pa.concat_arrays([pa.array([0], pa.int32()), ends]), plain(pc.list_flatten(found))
    if pat.is_map(values.type):
        key, value = inner.flatten()
        return pa.MapArray.from_arrays(offsets, key, value, type=pa.map_(key.type, value.type), mask=values.is_null())
    return pa.ListArray.from_arrays(offsets, inner, type=pa.list_(inner.type), mask=values.is_null())


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the same."""
    return plain(pa.nulls(0, kind)).type


def only(values: pa.Array, wanted: Collection[Place]) -> pa.Array:
    """Of structs those members that are wanted, and some one where none is."""
    if not pat.is_struct(values.type):
        return values
    inside: dict[str, list[Place]] = {}
    for place in wanted:
        if place and values.type.get_field_index(place[0]) >= 0:
            inside.setdefault(place[0], []).append(place[1:])
    found = {name: only(values.field(name), places) for name, places in inside.items()} or {"": pa.repeat(pa.scalar(True), len(values))}
    return pa.StructArray.from_arrays(list(found.values()), list(found), mask=values.is_null())


def from_their_start(values: pa.Array) -> pa.Array:
    """Structs that are part of longer columns as columns of their own: DuckDB takes no others."""
    if not pat.is_struct(values.type):
        return values
    parts = [from_their_start(values.field(n)) for n in range(values.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(values.type), mask=values.is_null() if values.null_count else None)


def all_text(values: pa.Array) -> pa.BooleanArray:
    """In which rows all texts are UTF-8."""
    if pat.is_struct(values.type):
        return reduce(pc.and_, map(all_text, values.flatten()), pa.repeat(pa.scalar(True), len(values)))
    wrong = no_utf8(values) if pat.is_string(values.type) else None
    return pa.repeat(pa.scalar(True), len(values)) if wrong is None else pc.invert(wrong)

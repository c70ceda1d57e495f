"""Columns as Python values are those that Arrow itself gives."""

import datetime as dt
import math

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rejoin.lake.query.arrow_values import rows, values

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KINDS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): TEXT,
    pa.binary(): st.binary(),
    pa.decimal128(20, 4): st.decimals(-(10**15), 10**15, places=4),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.bool_(): st.booleans(),
}
ARRAYS = st.one_of(*(st.lists(st.none() | made, max_size=8).map(lambda v, kind=kind: pa.array(v, kind)) for kind, made in KINDS.items()))
STRUCT = pa.struct([(f"c{n}", kind) for n, kind in enumerate(KINDS)])
STRUCTS = st.lists(st.none() | st.fixed_dictionaries({f"c{n}": st.none() | made for n, made in enumerate(KINDS.values())}), max_size=8)


def same(found: list[object], expected: list[object]) -> bool:
    return found == expected and [type(v) for v in found] == [type(v) for v in expected]


@given(ARRAYS, st.integers(0, 3))
def test_values_are_the_same_also_of_a_slice(array: pa.Array, start: int) -> None:
    assert same(values(array), array.to_pylist()) and same(values(array.slice(start)), array.slice(start).to_pylist())


@given(STRUCTS, st.integers(0, 3))
def test_rows_are_the_same_also_of_a_slice(given_: list[dict[str, object] | None], start: int) -> None:
    array = pa.array(given_, STRUCT)
    assert rows(array) == array.to_pylist() and rows(array.slice(start)) == array.slice(start).to_pylist()


def test_not_a_number_is_not_null() -> None:
    found = values(pa.array([1.0, math.nan, None]))
    assert found[2] is None and math.isnan(found[1])

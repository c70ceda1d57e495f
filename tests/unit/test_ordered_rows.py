"""Rows that are to be written in order: sorted, unless they come so anyway."""

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from rejoin.engines import later
from rejoin.engines.engine import Here
from rejoin.engines.later import Kept, Later

COUNT = 3 * later.BATCH_ROWS + 7


def kept(keys: Sequence[object], kind: pa.DataType) -> Kept:
    rows = Here(pa.table({"k": pa.array(keys, kind), "n": pa.array(range(len(keys)), pa.int64())}))
    return Later("SELECT * FROM given", {"given": rows}).kept()


def read(rows: Later) -> tuple[pa.Table, bool]:
    """The rows in order of ``k``, ``n``, and whether DuckDB had to sort."""
    asked = list[str]()
    original = later.bound

    def listening(statement: str, inputs: object) -> object:
        asked.append(statement)
        return original(statement, inputs)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later, "bound", listening)
        found = pa.Table.from_batches(rows.ordered(["k", "n"]), rows.schema)
    return found, "ORDER BY" in asked[-1]


@pytest.mark.parametrize("changed", [None, 0, later.BATCH_ROWS - 1, later.BATCH_ROWS, COUNT - 2])
@pytest.mark.parametrize("to", ["swapped", "equal", "null"])
def test_what_is_in_order_is_not_sorted_and_everything_else_is(changed: int | None, to: str) -> None:
    keys: list[int | None] = [2 * i - COUNT for i in range(COUNT)]
    if changed is not None and to == "swapped":
        keys[changed], keys[changed + 1] = keys[changed + 1], keys[changed]
    elif changed is not None:
        keys[changed] = keys[changed + 1] if to == "equal" else None
    rows = Later("SELECT k, n FROM made WHERE n >= 0", {"made": kept(keys, pa.int64())})
    found, was_sorted = read(rows)
    assert was_sorted == (changed is not None)
    expected = sorted(zip(keys, range(COUNT), strict=True), key=lambda r: (r[0] is None, r[0] or 0, r[1]))
    assert list(zip(found["k"].to_pylist(), found["n"].to_pylist(), strict=True)) == expected


def test_texts_are_in_the_order_of_their_bytes() -> None:
    texts = sorted(["", " ", "A", "a", "é", "z", "\U00010000", "\uffff", "a" * 300], key=str.encode)
    found, was_sorted = read(Later("SELECT k, n FROM made", {"made": kept(texts, pa.string())}))
    assert not was_sorted
    assert found["k"].to_pylist() == texts
    random.Random(7).shuffle(texts)
    found, was_sorted = read(Later("SELECT k, n FROM made", {"made": kept(texts, pa.string())}))
    assert was_sorted
    assert found["k"].to_pylist() == sorted(texts, key=str.encode)


def test_nothing_and_what_is_not_kept_has_no_order() -> None:
    assert read(Later("SELECT k, n FROM made", {"made": kept([], pa.int64())}))[0].num_rows == 0
    given = Here(pa.table({"k": [1, 2, 3], "n": [0, 0, 0]}))
    assert read(Later("SELECT k, n FROM made", {"made": given}))[1]


def test_duckdb_keeps_the_order_of_what_it_is_told_to_keep() -> None:
    assert later.database().sql("SELECT current_setting('preserve_insertion_order')").fetchall() == [(True,)]

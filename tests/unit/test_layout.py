"""Which files a compaction rewrites: decided from row counts and key bounds alone."""

import random
from itertools import pairwise

import pytest

from rejoin.lake.compact.layout import NULLS, FileBounds, layout, to_fold, to_merge
from rejoin.limits import limits

M = 1_000_000
BASE_ROWS, FOLD_SHARE, MERGE_FILES = limits().base_rows, limits().fold_share, limits().merged_files


def lies(*files: tuple[int, object, object]) -> list[FileBounds]:
    return [FileBounds(i, rows, low, high) for i, (rows, low, high) in enumerate(files)]


def test_large_files_side_by_side_are_the_base_and_the_rest_are_deltas() -> None:
    found = layout(lies((1000, 5, 900), (M, 0, 99), (M, 100, 199), (1000, 0, 150)))
    assert [(u.files, u.start) for u in found.units] == [((1,), None), ((2,), 100)]
    assert found.deltas == (0, 3)


def test_of_files_that_overlap_the_larger_one_is_the_base() -> None:
    found = layout(lies((M, 0, 99), (2 * M, 50, 150)))
    assert [u.files for u in found.units] == [(1,)] and found.deltas == (0,)


def test_files_that_share_a_key_at_their_border_are_one_unit() -> None:
    found = layout(lies((M, 0, 100), (M, 100, 100), (M, 100, 200), (M, 201, 300)))
    assert [(u.files, u.rows, u.start) for u in found.units] == [((0, 1, 2), 3 * M, None), ((3,), M, 201)]


def test_files_of_one_key_are_base_though_a_larger_file_begins_with_it() -> None:
    found = layout(lies((M, 1, 9), *[(M - 1, 1, 1)] * MERGE_FILES, (M, 10, 10)))
    assert [(u.files, u.start) for u in found.units] == [((*range(1, MERGE_FILES + 1), 0), None), ((MERGE_FILES + 1,), 10)]
    assert found.deltas == ()


def test_small_files_and_files_without_bounds_are_never_base() -> None:
    found = layout(lies((BASE_ROWS - 1, 0, 9), (M, None, None)))
    assert found.units == () and found.deltas == (0, 1)


def test_files_of_few_wide_rows_are_base_too() -> None:
    wide = limits().base_bytes
    found = layout([FileBounds(0, 30_000, 0, 9, wide), FileBounds(1, 10_000, 10, 12, wide), FileBounds(2, 500, 3, 11, wide - 1)])
    assert [u.files for u in found.units] == [(0,), (1,)] and found.deltas == (2,)


@pytest.mark.parametrize("seed", range(20))
def test_every_file_is_in_exactly_one_place_and_units_do_not_overlap(seed: int) -> None:
    rng = random.Random(seed)
    files = []
    for _ in range(60):
        low = rng.randrange(1000)
        files.append((rng.choice((10, BASE_ROWS, M)), low, low + rng.randrange(60)))
    found = layout(lies(*files))
    assert sorted([*found.deltas, *(i for u in found.units for i in u.files)]) == list(range(60))
    ends = [(min(files[i][1] for i in u.files), max(files[i][2] for i in u.files)) for u in found.units]
    assert all(a[1] < b[0] for a, b in pairwise(ends))  # type: ignore[operator]


def test_a_unit_is_folded_when_its_changes_reach_the_share() -> None:
    units = layout(lies((M, 0, 99), (M, 100, 199))).units
    assert to_fold(units, [int(FOLD_SHARE * M), int(FOLD_SHARE * M) - 1]) == [0]


def test_deltas_are_merged_when_many_of_one_size_have_come_together() -> None:
    few = lies(*[(1000, 0, 9)] * (MERGE_FILES - 1))
    assert to_merge(few, range(len(few))) == []
    many = lies(*[(1000, 0, 9)] * MERGE_FILES, (10, 0, 9), (300_000, 0, 9))
    assert sorted(to_merge(many, range(len(many)))) == list(range(MERGE_FILES + 1))


def test_a_row_is_merged_a_logarithm_of_times() -> None:
    """1,000 runs of 1,000 rows: what merging writes is a few times what was appended."""
    sizes: list[int] = []
    written = 0
    for _ in range(1000):
        sizes.append(1000)
        files = lies(*((s, 0, 9) for s in sizes))
        chosen = set(to_merge(files, range(len(files))))
        if chosen:
            merged = sum(sizes[i] for i in chosen)
            written += merged
            sizes = [s for i, s in enumerate(sizes) if i not in chosen] + [merged]
    assert len(sizes) < 4 * MERGE_FILES and written < 5 * 1_000_000


def test_nulls_lie_behind_all_values() -> None:
    found = layout(lies((M, 0, 99), (M, 100, NULLS), (M, NULLS, NULLS), (1000, 5, NULLS)))
    assert [(u.files, u.start) for u in found.units] == [((0,), None), ((1, 2), 100)] and found.deltas == (3,)
    behind = layout(lies((M, 0, 99), (M, NULLS, NULLS)))
    assert [(u.files, u.start) for u in behind.units] == [((0,), None), ((1,), NULLS)]


def test_of_two_files_with_nulls_only_one_is_base() -> None:
    found = layout(lies((M, 0, NULLS), (2 * M, 100, NULLS)))
    assert [u.files for u in found.units] == [(1,)] and found.deltas == (0,)

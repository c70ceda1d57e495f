"""Windows of every length, at times before and after the epoch: the pairs are those that a plain comparison of all records with all finds."""

import random
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from rejoin import Topology, records
from rejoin.testing import Driver

WINDOWS = {
    "same_time": {"within": "0 seconds"},
    "a_microsecond": {"within": timedelta(microseconds=1)},
    "a_second": {"within": "1 second"},
    "only_after": {"after": "3 seconds"},
    "only_before": {"before": timedelta(milliseconds=1500)},
    "uneven": {"before": "2 seconds", "after": timedelta(microseconds=1_000_001)},
    "later": {"before": timedelta(seconds=-1), "after": "3 seconds"},
    "ten_years": {"within": timedelta(days=3_660)},
}
START = {
    "before 1970": datetime(1969, 12, 31, 23, 59, 55, tzinfo=UTC),
    "year 1": datetime(1, 1, 1, tzinfo=UTC),
    "now": datetime(2026, 1, 1, tzinfo=UTC),
}


def topology() -> Topology:
    made = Topology("windows")
    left, right = (
        made.stream(name, id="id", key="k", event_time="at", schema="id BIGINT, k STRING, at TIMESTAMP", source=records(name))
        for name in ("lefts", "rights")
    )
    for name, window in WINDOWS.items():
        left.full_join(right, **window, select=["left.id", "right.id AS other"], unmatched="at_once", name=name, max_change_share=1.0)
    return made


def span(window: dict[str, object]) -> tuple[timedelta, timedelta]:
    lengths = {k: v if isinstance(v, timedelta) else timedelta(seconds=int(str(v).split()[0])) for k, v in window.items()}
    return lengths.get("before", lengths.get("within", timedelta())), lengths.get("after", lengths.get("within", timedelta()))


@pytest.mark.slow
@pytest.mark.parametrize("start", [pytest.param(at, id=name) for name, at in START.items()])
def test_pairs_are_those_of_all_with_all(start: datetime) -> None:
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    print(f"seed {seed}")
    ticks = [
        timedelta(microseconds=m) for m in (0, 1, 2, 999_999, 1_000_000, 1_000_001, 1_500_000, 2_000_000, 3_000_000, 3_000_001, 6_000_000)
    ]
    sides = [[(i, chance.choice("ab"), start + chance.choice(ticks) + chance.choice(ticks)) for i in range(25)] for _ in range(2)]
    with Driver(topology()) as driver:
        for half in (0, 1):  # in two runs
            texts = ["\n".join(f"{i} | {k} | {at.isoformat()}" for i, k, at in side if i % 2 == half) for side in sides]
            driver.run(lefts=texts[0], rights=texts[1])
        for name, window in WINDOWS.items():
            before, after = span(window)
            met = [(i, j) for (i, k, at), (j, key, then) in product(*sides) if k == key and -before <= then - at <= after]
            alone = [(i, None) for i in range(25) if i not in {left for left, _ in met}]
            alone_too = [(None, j) for j in range(25) if j not in {right for _, right in met}]
            rows = [(r["id"], r["other"]) for r in driver.lake.read(name).to_arrow().to_pylist()]
            assert sorted(rows, key=str) == sorted([*met, *alone, *alone_too], key=str), name

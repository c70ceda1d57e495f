"""Lines that are not proven, among lines that are: they are read apart, or their chunk in its order; the events are the careful decoder's either way."""

import json
import random
from functools import partial
from typing import Any
from unittest.mock import patch

import both_ways
import pytest
from both_ways import ONE, STYLES, as_texts, line, plain, tombstone
from source_fuzz import feed, mutated, seeds

from rejoin.plan.model.added_columns import versions
from rejoin.sources.decode import proven_lines

check = partial(both_ways.check, chunk=30)  # what is seen of decimals goes from chunk to chunk


@pytest.mark.parametrize("seed", seeds(30))
def test_damaged_lines_among_plain_ones_are_read_alike(seed: int) -> None:
    random_, share = random.Random(seed), (0.01, 0.1, 0.5)[seed % 3]
    lines = [plain(i, random_.choice("ccuur")) for i in range(200)]
    if seed % 2:
        lines = [as_texts(one) for one in lines]
    made = [mutated(random_, one) if i > 5 and random_.random() < share else one for i, one in enumerate(lines)]
    found, _ = check(ONE, b"\n".join(made))
    assert found > 20 or share > 0.1


@pytest.mark.parametrize("seed", seeds(30))
def test_deletes_tombstones_and_ambiguous_decimals_among_plain_lines_are_read_alike(seed: int) -> None:
    random_, found = random.Random(f"{seed} order"), []
    for i in range(300):
        kind = random_.randrange(40 if seed % 2 else 8) if i > 40 else 9
        if kind == 0:
            found += [plain(i, "d"), json.dumps({"key": {"id": i % 7}, "value": None}).encode()]
        elif kind == 1:
            found.append(tombstone(random_.randrange(7)))
        elif kind == 2:
            found.append(plain(i, price=random_.choice(["1234", "BNI=", "EtaA", 5, 1.5, None, "__debezium_unavailable_value"])))
        elif kind == 3:
            found.append(random_.choice([b"", b" ", plain(i, name="a\\b"), plain(i, name='"'), plain(i, id="7")]))
        else:
            found.append(plain(i))
    if seed % 3 == 0:
        found = [as_texts(one) if one.startswith(b"{") else one for one in found]
    assert check(ONE, b"\n".join(found))[0] > 0


@pytest.mark.parametrize("seed", seeds(30))
def test_versions_among_odd_clocks_deletes_and_ambiguous_decimals_are_read_alike(seed: int) -> None:
    random_, found, now = random.Random(f"{seed} clocks"), [], 1_767_225_600_000
    for i in range(300):
        clocks: dict[str, Any] = {"ts_ms": now + i}
        if seed % 3:
            clocks |= {"ts_us": (now + i) * 1_000 + 7, "ts_ns": (now + i) * 1_000_000 + 7_999}
        kind = random_.randrange(40 if seed % 2 else 8) if i > 40 else 9
        if kind == 0:
            clocks[random_.choice(list(clocks))] = random_.choice([None, -1, 0, 2**52, -(2**52), 2**62, -(2**62), 2**70, "1", 1.5, True])
        elif kind == 1:
            clocks.pop(random_.choice(list(clocks)))
        made = plain(i, "d" if kind == 2 else "u", price=random_.choice(["1234", 5, None]) if kind == 3 else "1.50")
        told = json.loads(made)
        told["value"]["source"] |= clocks
        found.append(json.dumps(told, separators=STYLES[0], ensure_ascii=False).encode())
        if kind == 2:
            found.append(tombstone(i % 7))
    assert check(versions(ONE), b"\n".join(found))[0] > 0


def test_fault_nanoseconds_before_1970_are_rounded_alike() -> None:
    found = []
    for i in range(60):
        told = json.loads(plain(i, "u", price="1.50"))
        told["value"]["source"] |= {"ts_ns": i if i < 50 else (49 - i) * 99}
        found.append(json.dumps(told, separators=STYLES[0], ensure_ascii=False).encode())
    assert check(versions(ONE), b"\n".join(found))[0] == 50


@pytest.mark.parametrize("seed", range(6))
def test_random_feeds_are_read_alike(seed: int) -> None:
    lines = [json.dumps(one, separators=STYLES[seed % 2]).encode() for one in feed(random.Random(seed), 200, odd=200)]
    check(ONE, b"\n".join(lines))


@pytest.mark.parametrize(
    ("odd", "apart"),
    [
        (b'{"a":1}', True), (plain(3, price="1234"), True), (plain(3, price=None, name=7), True),
        (plain(3, price="EtaA"), False), (b"", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("priced", [True, False])
def test_one_line_of_another_kind_is_read_apart_unless_it_says_how_decimals_are_written(odd: bytes, apart: bool, priced: bool) -> None:
    made = [plain(i) if priced else plain(i, price=None) for i in range(28)]
    with patch.object(proven_lines, "together", wraps=proven_lines.together) as together:
        proved, records = check(ONE, b"\n".join([*made[:5], odd, *made[5:]]))
    assert (proved, records) == (28, 28 + bool(odd))
    assert together.called == (apart and (priced or b"1234" not in odd))


def test_a_chunk_without_any_other_line_is_read_at_once_whatever_was_seen_of_decimals() -> None:
    made = [plain(i, price="EtaA" if i % 2 and i < 30 else None) for i in range(60)]
    with patch.object(proven_lines, "together", wraps=proven_lines.together) as together:
        check(ONE, b"\n".join(made))
    assert together.call_count == 1, "the second of two chunks"


def test_what_was_read_apart_in_vain_leaves_no_delete_behind() -> None:
    gone = line("d", {"id": 20}, None, 900)
    made = [plain(i) for i in range(25)]
    check(ONE, b"\n".join([*made[:5], tombstone(20), *made[5:15], gone, plain(3, price="EtaA"), *made[15:]]))

"""Maxwell's, Canal's and GoldenGate's lines that are read by DuckDB become what ``read`` makes of them: order, positions, places, and every other column."""

import json
import random
from typing import Any

import pytest
from both_ways import STYLES, check
from dialect_feed import lines, of_dialect
from source_fuzz import mutated

from rejoin.plan.model.plan import Table
from rejoin.sources.decode import proven_rows
from rejoin.sources.shapes import lines as dialect_lines

PLAINLY = {
    "maxwell": {},
    "canal": {},
    "goldengate": {},
    "maxwell without nulls": {"nulls": False},
    "goldengate compressed": {"whole": False},
}


def _of(name: str, *, only: bool = True) -> tuple[str, Table]:
    dialect = name.split(maxsplit=1)[0]
    return dialect, of_dialect(dialect, only=only, optional="nulls" in name)


@pytest.mark.parametrize("name", PLAINLY)
def test_nearly_all_lines_of_a_feed_are_proven_whatever_they_say(name: str) -> None:
    (dialect, of), style = _of(name), STYLES["without" in name]
    found, _ = check(of, b"\n".join(lines(dialect, random.Random(name), 600, style, **PLAINLY[name])), chunk=400)
    assert found > 570


def test_a_feed_that_begins_with_other_lines_than_it_goes_on_with_is_proven_nearly_whole() -> None:
    bare = '{{"database":"shop","table":"orders","type":"{}","ts":1,"commit":true,"position":"b.1:{}","data":{{"id":{},"part":"p"}}{}}}'
    made = [bare.format("insert", i, i, "") for i in range(100)]
    made += [bare.format("update", i, i % 100, ',"old":{"note":"n"}') for i in range(100, 800)]
    of, data = of_dialect("maxwell", optional=True), "\n".join(made).encode()
    assert check(of, data, chunk=100) == (800, 800)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", PLAINLY)
def test_feeds_of_which_lines_are_damaged_are_read_alike(name: str, seed: int) -> None:
    _check_damaged(name, f"{name} {seed}", 150, 50)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("name", PLAINLY)
def test_fifty_thousand_damaged_lines_of_each_dialect_are_read_alike(name: str, block: int) -> None:
    for n in range(10):
        _check_damaged(name, f"{name} {block} {n}", 1_000, 500)


def _check_damaged(name: str, seed: str, count: int, chunk: int) -> None:
    """Of the lines behind the first ones some, half or all are damaged."""
    random_ = random.Random(seed)
    dialect, of = _of(name, only=random_.random() < 0.75)
    style, share = random_.choice(STYLES), random_.choice([0.02, 0.5, 1.0])
    made = list(lines(dialect, random_, count, style, **PLAINLY[name]))
    for i in range(chunk // 2, count):
        if random_.random() < share:
            made[i] = mutated(random_, made[i]) if random_.random() < 0.5 else _with_another_value(random_, made[i], style)
    check(of, b"\n".join(made), chunk=chunk)


def _with_another_value(random_: random.Random, line: bytes, style: tuple[str, str]) -> bytes:
    """In the style of the others, so that only the value makes it another line."""
    message: Any = json.loads(line)
    of = message
    while isinstance(of, dict | list) and of:
        name = random_.choice(list(of)) if isinstance(of, dict) else random_.randrange(len(of))
        if not isinstance(of[name], dict | list) or not of[name] or random_.random() < 0.3:
            of[name] = random_.choice([None, "", 0, -1, 1.5, True, [], {}, "\ud83d", [{}], {"id": "1"}, 10**30])
            break
        of = of[name]
    return json.dumps(message, separators=style).encode()


def test_a_message_with_as_many_changes_as_a_record_may_say_is_proven_and_one_with_more_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dialect_lines, proven_rows):
        monkeypatch.setattr(module, "MOST_CHANGES", 8)

    def message(rows: int) -> bytes:
        now = dict.fromkeys(("id", "part", "total", "n", "ok", "share", "note", "at")) | {"part": "p"}
        both = {"data": [now | {"id": str(i)} for i in range(rows)], "old": [{"id": str(-i - 1)} for i in range(rows)]}
        return json.dumps({"database": "shop", "table": "orders", "type": "UPDATE", **both}, separators=STYLES[0]).encode()

    assert check(of_dialect("canal"), b"\n".join([*[message(2)] * 20, message(4), message(5)])) == (21, 20 * 4 + 8 + 1)


def test_what_comes_with_every_fifth_line_is_seen_though_as_many_lines_are_looked_at_as_stand_between() -> None:
    made = [
        f'{{"table":"SHOP.ORDERS","op_type":"I","pos":"{i}","after":{{"id":{i},"part":"p","total":1,"n":1,"ok":true,"share":0.5,"note":{"null" if i % 5 == 0 else chr(34) + "x" + chr(34)},"at":null}}}}'
        for i in range(1000)
    ]
    assert check(of_dialect("goldengate"), "\n".join(made).encode(), chunk=1000)[0] == 1000


def test_a_line_with_more_schemas_than_can_be_marked_is_read() -> None:
    odd = {f"m{i}": {"schema": {"type": str(i)}, "payload": {"x": 1}} for i in range(9)}
    made = [json.dumps({"database": "shop", "table": "orders", "type": "x", **odd}).encode()] * 50
    assert check(of_dialect("maxwell"), b"\n".join(made)) == (0, 50)

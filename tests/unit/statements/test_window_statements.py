"""Statements of joins of two streams: views of ads, and clicks from 5 seconds before to 10 seconds after them."""

import pytest
from statement_tables import SQL, check, spoken

from rejoin import Topology, records
from rejoin.joins.window import statements
from rejoin.joins.window.statements import ALL, Keys, Stored, window_of
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan


def _plan() -> Plan:
    made = Topology("visits")
    views, clicks = (
        made.stream(
            name,
            id=["s", key],
            key=["s", "ad"],
            event_time="at",
            schema=f"s INT, {key} INT, ad STRING, at TIMESTAMP",
            source=records(name),
            lateness="2 seconds",
        )
        for name, key in (("views", "v"), ("clicks", "c"))
    )
    select = ["left.s", "left.v", "right.s AS rs", "right.c"]
    times = {"before": "5 seconds", "after": "10 seconds"}
    views.full_join(clicks, **times, select=select, clock="s", name="full")
    views.join(clicks, **times, select=select, name="inner_")
    views.full_join(clicks, **times, select=select, unmatched="at_once", name="at_once")
    views.full_join(clicks, **times, select=select, watermark="each", clock="s", name="each")
    return compile(made)


PLAN = _plan()
FULL, INNER, AT_ONCE, EACH = (spoken(PLAN, name) for name in ("full", "inner_", "at_once", "each"))
WINDOW = window_of(FULL.edges[0])
KEYS = Keys(("s", "v"), ("s", "c"))
VIEW, CLICK = (f'STRUCT(s INT, {key} INT, ad VARCHAR, "at" TIMESTAMPTZ, _hash BLOB)' for key in "vc")


def rows(key: str, *given: tuple[int, int, str, str]) -> str:
    """Records of a stream: shop, number, ad, second since 1970."""
    kind = VIEW if key == "v" else CLICK
    line = [f"{s} | {n} | {row(key, s, n, ad, at)}" for s, n, ad, at in given]
    return "\n".join([f"s INT | {key} INT | _row {kind}", *line])


def row(key: str, s: int, n: int, ad: str, at: str) -> str:
    return "NULL" if ad == "-" else f"{{s: {s}, {key}: {n}, ad: {ad}, at: 1970-01-01 00:{at}+00, _hash: h}}"


def changed(key: str, *given: tuple[int, int, str, str]) -> str:
    """Changes of a stream: what is inserted."""
    kind = VIEW if key == "v" else CLICK
    return "\n".join(
        [f"s INT | {key} INT | _before {kind} | _after {kind}", *(f"{s} | {n} | NULL | {row(key, s, n, ad, at)}" for s, n, ad, at in given)]
    )


MARKS = "c_1 INT | old_mark BIGINT | mark BIGINT\n 1 | 50000000 | 60000000\n 2 | 0 | 30000000"
VIEWS = rows(
    "v",
    (1, 1, "a", "20:00"),
    (1, 2, "a", "00:30"),
    (1, 3, "a", "00:39.999999"),
    (1, 4, "a", "00:40"),
    (1, 5, "b", "00:49.999999"),
    (1, 6, "b", "00:50"),
    (1, 7, "NULL", "00:55"),
    (2, 1, "a", "00:10"),
    (2, 2, "a", "00:25"),
)
CLICKS = rows(
    "c",
    (1, 1, "a", "19:54.999999"),
    (1, 2, "a", "19:55"),
    (1, 3, "a", "20:10"),
    (1, 4, "a", "20:10.000001"),
    (1, 5, "b", "00:44.999999"),
    (1, 6, "c", "00:54.999999"),
    (1, 7, "c", "00:55"),
    (1, 8, "NULL", "00:59"),
    (2, 1, "a", "00:20"),
)
PAIRS = """
  1    | 1    | 1    | 2
  1    | 1    | 1    | 3
  1    | 5    | 1    | 5
  2    | 1    | 2    | 1
  2    | 2    | 2    | 1
"""
HEADER = "pk_1 | pk_2 | pk_3 | pk_4\n"
PLAIN = "1 | 6 | NULL | NULL"


def check_state(node, expected: str, scoped=None, stored: Stored = ALL, **inputs: str) -> None:  # type: ignore[no-untyped-def]
    text = statements.state(SQL, node, KEYS, scoped=scoped, stored=stored)
    check(text, HEADER + expected, lefts=VIEWS, rights=CLICKS, marks=inputs.pop("marks", MARKS), **inputs)


ALONE = """
  1    | 2    | NULL | NULL
  1    | 3    | NULL | NULL
  1    | 4    | NULL | NULL
  1    | 7    | NULL | NULL
  NULL | NULL | 1    | 6
  NULL | NULL | 1    | 8
"""


def test_pairs_are_within_the_window_and_the_others_wait_for_its_end() -> None:
    check_state(FULL, PAIRS + ALONE)


def test_an_inner_join_has_only_pairs() -> None:
    check_state(INNER, PAIRS, marks="old_mark BIGINT | mark BIGINT\n 0 | 60000000")


def test_at_once_nobody_waits() -> None:
    waiting = " 1 | 6 | NULL | NULL\n NULL | NULL | 1 | 1\n NULL | NULL | 1 | 4\n NULL | NULL | 1 | 7"
    check_state(AT_ONCE, PAIRS + ALONE + waiting, marks="old_mark BIGINT | mark BIGINT\n 0 | 0")


def test_a_record_of_a_clock_without_a_time_waits() -> None:
    check_state(
        FULL, PAIRS + "1 | 7 | NULL | NULL\n NULL | NULL | 1 | 8", marks="c_1 INT | old_mark BIGINT | mark BIGINT\n 3 | 0 | 60000000"
    )


def test_only_pairs_of_changed_records_and_lonely_ones_are_in_scope() -> None:
    lonely = {"lonely_left": "pk_1 INT | pk_2 INT\n 1 | 2\n 1 | 6\n 2 | 3", "lonely_right": "rk_1 INT | rk_2 INT\n 1 | 8\n 2 | 6"}
    moved = {"left_changes": changed("v", (2, 1, "a", "00:10"), (1, 9, "-", "")), "right_changes": changed("c", (1, 3, "a", "20:10"))}
    check_state(
        FULL,
        " 1 | 1 | 1 | 3\n 2 | 1 | 2 | 1\n 1 | 2 | NULL | NULL\n NULL | NULL | 1 | 8",
        ["left_changes", "right_changes"],
        **lonely,
        **moved,
    )
    check_state(FULL, " 1 | 2 | NULL | NULL\n NULL | NULL | 1 | 8", [], **lonely)


def test_of_a_record_whose_partners_were_let_go_nobody_knows_whether_it_is_alone() -> None:
    # Partners of a view are from 5 s before it, those of a click from 10 s before it.
    kept = " 1 | 4 | NULL | NULL\n 1 | 7 | NULL | NULL\n NULL | NULL | 1 | 6\n NULL | NULL | 1 | 8"
    check_state(FULL, PAIRS + kept, stored=Stored(left=44_999_999, right=35_000_000))
    check_state(FULL, PAIRS + kept.replace(" NULL | NULL | 1 | 6\n", ""), stored=Stored(left=45_000_000, right=34_999_999 + 1))


def test_a_record_is_judged_anew_if_its_window_ends_or_it_or_its_partner_changed() -> None:
    moved = {"left_changes": changed("v", (1, 9, "a", "01:00")), "right_changes": changed("c", (1, 3, "a", "20:10"), (2, 1, "a", "00:20"))}
    given = list(moved)
    ends = "pk_1 | pk_2\n 1 | 4\n 1 | 5\n 2 | 1"
    check(statements.lonely(SQL, FULL, KEYS, left=True, given=[]), ends, lefts=VIEWS, marks=MARKS)
    check(statements.lonely(SQL, FULL, KEYS, left=True, given=given), ends + "\n 1 | 1\n 1 | 9\n 2 | 2", lefts=VIEWS, marks=MARKS, **moved)
    moved["left_changes"] = changed("v", (1, 1, "a", "20:00"))
    theirs = "rk_1 | rk_2\n 1 | 6\n 2 | 1"
    check(statements.lonely(SQL, FULL, KEYS, left=False, given=[]), theirs, rights=CLICKS, marks=MARKS)
    check(statements.lonely(SQL, FULL, KEYS, left=False, given=given), theirs + "\n 1 | 2\n 1 | 3", rights=CLICKS, marks=MARKS, **moved)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(FULL, "1 | 28000000 | 38000000\n 2 | -2000000 | 3000000\n 3 | {0} | 7000000", id="of either stream"),
        pytest.param(EACH, "1 | 18000000 | 38000000\n 2 | {0} | 2000000\n 3 | {0} | {0}", id="of both streams"),
    ],
)
def test_the_watermark_is_behind_the_newest_record(node, expected: str) -> None:  # type: ignore[no-untyped-def]
    newest = "c_1 INT | newest BIGINT\n"
    inputs = {
        "a": "1 | 20000000\n 2 | 0",
        "b": "1 | 30000000",
        "c": "1 | 40000000\n 2 | 5000000",
        "d": "1 | 40000000\n 2 | 4000000\n 3 | 9000000",
    }
    text = statements.marks(window_of(node.edges[0]), before=["a", "b"], now=["c", "d"])
    never = str(-statements.FOREVER - 2_000_000)
    check(text, "c_1 | old_mark | mark\n" + expected.replace("{0}", never), **{name: newest + rows_ for name, rows_ in inputs.items()})


def test_windows_close_from_the_old_watermark_up_to_the_new_one() -> None:
    marks = "old_mark BIGINT | mark BIGINT\n 50000000 | 60000000\n 50000000 | 50000000"
    check(statements.closing(WINDOW, left=True), "low | high\n 40000000 | 49999999", rows_=marks)
    check(statements.closing(WINDOW, left=False), "low | high\n 45000000 | 54999999", rows_=marks)


def test_the_times_of_changed_records_are_those_before_and_after() -> None:
    moved = f"s INT | v INT | _before {VIEW} | _after {VIEW}\n 1 | 1 | {row('v', 1, 1, 'a', '00:07')} | {row('v', 1, 1, 'a', '00:09')}\n 1 | 2 | NULL | {row('v', 1, 2, 'a', '00:03')}"
    check(
        statements.times(SQL, FULL, KEYS, left=True), "low | high\n 7000000 | 7000000\n 9000000 | 9000000\n 3000000 | 3000000", rows_=moved
    )


STORED_RESULTS = "s INT | v INT | rs INT | c INT\n 1 | 1 | 1 | 2\n 1 | 1 | 2 | 2\n 1 | 2 | NULL | NULL\n 1 | 3 | NULL | NULL\n NULL | NULL | 1 | 8\n NULL | NULL | 1 | 7\n 2 | 2 | 2 | 8\n 1 | 4 | 1 | 9"


def test_results_of_changed_and_of_lonely_records_are_in_scope() -> None:
    given = {
        "left_changes": changed("v", (1, 4, "a", "01:00"), (2, 1, "a", "01:00")),
        "right_changes": changed("c", (1, 2, "a", "20:10"), (2, 9, "a", "20:10")),
        "lonely_left": "pk_1 INT | pk_2 INT\n 1 | 2\n 2 | 3\n 2 | 2",
        "lonely_right": "rk_1 INT | rk_2 INT\n 1 | 8\n 2 | 7\n 2 | 2",
    }
    expected = "s | v | rs | c\n 1 | 1 | 1 | 2\n 1 | 4 | 1 | 9\n 1 | 2 | NULL | NULL\n NULL | NULL | 1 | 8"
    names = ["s", "v", "rs", "c"]
    text = statements.in_scope(SQL, names, KEYS, given=["left_changes", "right_changes"], kept=(True, True))
    check(text, expected, rows_=STORED_RESULTS, **given)
    text = statements.in_scope(SQL, names, KEYS, given=[], kept=(True, False))
    check(text, "s | v | rs | c\n 1 | 2 | NULL | NULL", rows_=STORED_RESULTS, **given)


TIMES = ('"at"', '"at"')


def test_results_of_records_that_were_let_go_are_settled() -> None:
    lefts = "s INT | v INT | at BIGINT\n 1 | 1 | 5\n 1 | 2 | 15000000\n 1 | 3 | 14999999\n 1 | 5 | NULL"
    rights = "s INT | c INT | at BIGINT\n 1 | 1 | 5\n 1 | 2 | 5\n 1 | 7 | 20000000\n 1 | 8 | 19999999"
    results = """
      s INT | v INT | rs INT | c INT
      1     | 1     | 1      | 1
      1     | 1     | 1      | 9
      1     | 9     | 1      | 1
      2     | 1     | 1      | 1
      1     | 2     | NULL   | NULL
      1     | 3     | NULL   | NULL
      1     | 4     | NULL   | NULL
      1     | 5     | NULL   | NULL
      NULL  | NULL  | 1      | 7
      NULL  | NULL  | 1      | 8
      NULL  | NULL  | 1      | 9
    """
    expected = "s | v | rs | c\n 1 | 1 | 1 | 1\n 1 | 2 | NULL | NULL\n 1 | 5 | NULL | NULL\n NULL | NULL | 1 | 7"
    given = {"rows_": results, "lefts": lefts, "rights": rights}
    check(statements.unsettled(SQL, FULL, KEYS, TIMES, Stored(left=10_000_000, right=10_000_000)), expected, **given)
    every = expected + "\n 1 | 3 | NULL | NULL\n NULL | NULL | 1 | 8"
    check(statements.unsettled(SQL, FULL, KEYS, TIMES, ALL), every, **given)

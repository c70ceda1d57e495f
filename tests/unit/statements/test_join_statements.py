"""Statements of joins by the same key, of right and full joins, and of streams with tables; and what they begin with."""

from dataclasses import replace

import pytest
from statement_tables import SQL, check, spoken

from rejoin import Topology, debezium, records, snapshot
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation
from rejoin.joins import sides
from rejoin.joins.as_of import statements as as_of
from rejoin.joins.outer import statements as outer
from rejoin.joins.same_key import statements as same_key
from rejoin.joins.time_spans import TimeSpans
from rejoin.plan.check.compile import compile
from rejoin.plan.model.match import JoinKind
from rejoin.plan.model.plan import Plan


def _plan() -> Plan:
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, c INT", snapshot("orders")).filter("o < 9")
    customers = made.table("customers", ["s", "c"], "s INT, c INT, name STRING", snapshot("customers")).filter("name <> 'gone'")
    orders.full_join(customers, foreign_key=["s", "c"], select=["left.s", "left.o", "right.s AS rs", "right.c", "right.name"], name="full")
    notes = made.table("notes", ["s", "n"], "s INT, n INT, note STRING", snapshot("notes"))
    orders.full_join(notes, select=["left.s", "left.o", "right.note"], name="same")
    visits = made.stream(
        "visits", id=["s", "v"], key=["s", "p"], event_time="at", schema="s INT, v INT, p STRING, at TIMESTAMP", source=records("v")
    )
    prices = made.table("prices", ["s", "p"], "s INT, p STRING, price INT", debezium("prices")).filter("coalesce(price, 0) <> 13")
    visits.left_join(prices, as_of="event_time", select=["left.s", "left.v", "right.price"], name="then")
    visits.left_join(prices, as_of="run", select=["left.s", "left.v", "right.price"], name="now")
    return compile(made)


PLAN = _plan()
FULL, SAME, THEN, NOW = (spoken(PLAN, name) for name in ("full", "same", "then", "now"))
ORDER, NOTE = "STRUCT(s INT, o INT, c INT, _hash BLOB)", "STRUCT(s INT, n INT, note VARCHAR, _hash BLOB)"
CUSTOMER = "STRUCT(s INT, c INT, name VARCHAR, _hash BLOB)"


def order(s: int, o: int) -> str:
    return f"{{s: {s}, o: {o}, c: 7, _hash: h}}"


def customer(s: int, c: int, name: str = "Ann") -> str:
    return f"{{s: {s}, c: {c}, name: {name}, _hash: h}}"


# --- what all begin with -----------------------------------------------------------------------------------------------------


def test_rows_as_of_a_run_are_those_after_its_changes_and_what_did_not_change() -> None:
    changes = f"s INT | o INT | _before {ORDER} | _after {ORDER}\n 1 | 1 | NULL | {order(1, 1)}\n 1 | 2 | {order(1, 2)} | NULL\n NULL | 3 | NULL | {order(1, 3)}"
    read = f"s INT | o INT | _row {ORDER}\n 1 | 1 | {order(1, 8)}\n 1 | 2 | {order(1, 8)}\n 1 | 3 | {order(1, 8)}\n 2 | 1 | {order(1, 8)}\n NULL | 3 | {order(1, 8)}"
    expected = "s | o | _row.o\n 1 | 1 | 1\n NULL | 3 | 3\n 1 | 3 | 8\n 2 | 1 | 8"
    check(sides.as_of_now(SQL, ["s", "o"]), expected, changes=changes, read=read)
    both = "s | o | _row IS NULL\n 1 | 1 | false\n 1 | 2 | false\n NULL | 3 | false"
    check(sides.images(SQL, ["s", "o"], "changes", "_before", "_after"), both, changes=changes)


@pytest.mark.parametrize(("absent", "expected"), [(False, "1 | 1\n NULL | 2"), (True, "1 | 2\n NULL | 1")])
def test_rows_are_found_by_keys_null_by_null(*, absent: bool, expected: str) -> None:
    rows, keys = "s INT | o INT\n 1 | 1\n 1 | 2\n NULL | 1\n NULL | 2", "a INT | b INT\n 1 | 1\n NULL | 2\n 2 | 1"
    check(sides.among(SQL, ["s", "o"], ["a", "b"], absent=absent), f"s | o\n{expected}", rows_=rows, keys=keys)


def spans(*given: tuple[int | None, int | None]) -> tuple[tuple[int, int], ...]:
    import pyarrow as pa

    rows = LocalRelation(
        pa.table({"low": pa.array([a for a, _ in given], pa.int64()), "high": pa.array([b for _, b in given], pa.int64())})
    )
    return TimeSpans.of(DuckdbEngine(PLAN), "SELECT low, high FROM rows_", rows).of_time


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([(5, 9), (1, 3)], [(1, 3), (5, 9)], id="apart"),
        pytest.param([(1, 5), (5, 9)], [(1, 9)], id="with one time in common"),
        pytest.param([(1, 4), (5, 9)], [(1, 9)], id="side by side"),
        pytest.param([(1, 20), (3, 4), (10, 12), (30, 31)], [(1, 20), (30, 31)], id="one within another"),
        pytest.param([(1, 5), (1, 2), (4, 8)], [(1, 8)], id="that begin together"),
        pytest.param([(None, 5), (1, None), (7, 8)], [(7, 8)], id="without an end"),
        pytest.param([(9, 4)], [], id="that end before they begin"),
    ],
)
def test_spans_of_time_that_touch_are_one(given: list[tuple[int | None, int | None]], expected: list[tuple[int, int]]) -> None:
    assert spans(*given) == tuple(expected)


def test_more_spans_than_64_are_read_as_64() -> None:
    made = spans(*((i * 10, i * 10 + 1) for i in range(128)))
    assert made == tuple((i * 20, i * 20 + 11) for i in range(64))


def test_spans_that_overlap_are_one_before_they_are_too_many() -> None:
    assert spans(*((i * 10, i * 10 + (11 if i < 60 else 1)) for i in range(100))) == (
        (0, 601),
        *((i * 10, i * 10 + 1) for i in range(61, 100)),
    )


# --- by the same key -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "alone"),
    [
        (JoinKind.FULL, "1 | 2 | 2 | NULL\n NULL | 4 | 4 | NULL\n 2 | 1 | NULL | b\n NULL | 4 | NULL | d\n 1 | 9 | NULL | c"),
        (JoinKind.RIGHT, "2 | 1 | NULL | b\n NULL | 4 | NULL | d\n 1 | 9 | NULL | c"),
        (JoinKind.LEFT, "1 | 2 | 2 | NULL\n NULL | 4 | 4 | NULL"),
    ],
)
def test_rows_of_one_key_meet_and_others_are_alone(kind: JoinKind, alone: str) -> None:
    lefts = f"s INT | o INT | _row {ORDER}\n 1 | 1 | {order(1, 1)}\n 1 | 2 | {order(1, 2)}\n 1 | 9 | {order(1, 9)}\n 1 | 10 | {order(1, 10)}\n NULL | 4 | {order(1, 4)}"
    rights = f"s INT | n INT | _row {NOTE}\n 1 | 1 | {{s: 1, n: 1, note: a, _hash: h}}\n 2 | 1 | {{s: 2, n: 1, note: b, _hash: h}}\n 1 | 9 | {{s: 1, n: 9, note: c, _hash: h}}\n NULL | 4 | {{s: 1, n: 4, note: d, _hash: h}}"
    expected = f"pk_1 | pk_2 | l.o | r1.note\n 1 | 1 | 1 | a\n {alone}"
    check(
        same_key.state(SQL, replace(SAME, edges=(replace(SAME.edges[0], kind=kind),)), ["s", "o"], ["s", "n"]),
        expected,
        lefts=lefts,
        rights=rights,
    )


# --- right and full ------------------------------------------------------------------------------------------------------------

STATE = f"""
  pk_1 INT | pk_2 INT | l {ORDER}      | r1 {CUSTOMER}
  1        | 1        | {order(1, 1)}  | {customer(1, 7)}
  1        | 2        | {order(1, 2)}  | {customer(1, 7)}
  1        | 3        | {order(1, 3)}  | NULL
  1        | 4        | NULL           | {customer(1, 8)}
"""


def test_results_are_keyed_by_both_rows_and_right_rows_alone_by_theirs() -> None:
    rights = f"s INT | c INT | _row {CUSTOMER}\n 1 | 9 | {customer(1, 9, 'Bob')}\n 2 | 7 | {customer(2, 7, 'Cleo')}\n 2 | 8 | {customer(2, 8, 'gone')}"
    expected = """
      pk_1 | pk_2 | pk_3 | pk_4 | l.o  | r1.name
      1    | 1    | 1    | 7    | 1    | Ann
      1    | 2    | 1    | 7    | 2    | Ann
      1    | 3    | NULL | NULL | 3    | NULL
      1    | 4    | 1    | 8    | NULL | Ann
      NULL | NULL | 1    | 9    | NULL | Bob
      NULL | NULL | 2    | 7    | NULL | Cleo
    """
    check(outer.results(SQL, FULL, ["s", "o"], ["s", "c"]), expected, state=STATE, rights=rights, none=f"s INT | o INT | _row {ORDER}")


def test_right_keys_that_a_left_row_has_are_met_once() -> None:
    rows = [order(1, 1), order(1, 2), order(2, 9), "NULL", order(3, 1).replace("c: 7", "c: NULL")]
    lefts = f"s INT | o INT | _row {ORDER}\n" + "\n".join(f"1 | {at} | {row}" for at, row in enumerate(rows))
    check(outer.met(SQL, FULL), "fk_1 | fk_2\n 1 | 7", lefts=lefts)


def test_right_keys_that_may_have_gained_or_lost_a_left_row_are_touched_once() -> None:
    given = {"sent": ("fk_1", "fk_2"), "changes": ("s", "c")}
    sent, changes = "fk_1 INT | fk_2 INT\n 1 | 7\n 1 | NULL\n NULL | NULL", "s INT | c INT\n 1 | 7\n 1 | 8"
    check(outer.touched(SQL, given, ["s", "c"], ["a"]), "s | c\n 1 | 7\n 1 | NULL\n NULL | NULL\n 1 | 8", sent=sent, changes=changes)


def test_results_without_a_left_row_have_its_key_null() -> None:
    check(
        outer.alone(SQL, ["a"], ["b", "c"]),
        "a | b | c\n NULL | 1 | 7\n NULL | 1 | 8",
        theirs="b INT | c INT\n 1 | 7\n 1 | 8",
        none="a INT",
    )


def test_results_of_affected_left_rows_and_of_touched_right_rows_alone_are_in_scope() -> None:
    rows = "s INT | o INT | rs INT | c INT\n 1 | 1 | 1 | 7\n 1 | 2 | 1 | 7\n NULL | 1 | 1 | 8\n NULL | NULL | 1 | 7\n NULL | NULL | 1 | 8\n 1 | 3 | 1 | 8"
    mine, theirs = "s INT | o INT\n 1 | 1\n NULL | 1\n NULL | NULL\n 2 | 2", "rs INT | c INT\n 1 | 8\n 2 | 7"
    expected = "s | o | rs | c\n 1 | 1 | 1 | 7\n NULL | 1 | 1 | 8\n NULL | NULL | 1 | 8"
    check(outer.in_scope(SQL, ["s", "o", "rs", "c"], 2), expected, rows_=rows, mine=mine, theirs=theirs)


# --- streams with tables -------------------------------------------------------------------------------------------------------

VISIT = 'STRUCT(s INT, v INT, p VARCHAR, "at" TIMESTAMPTZ, _hash BLOB)'
PRICE = "STRUCT(s INT, p VARCHAR, price INT, _valid_from TIMESTAMPTZ, _gone BOOLEAN, _hash BLOB)"


def visit(v: int, p: str, second: str, s: int = 1) -> str:
    return f"{s} | {v} | {{s: {s}, v: {v}, p: {p}, at: 2026-01-01 10:00:{second}+00, _hash: h}}"


VISITS = "\n".join(
    [
        f"s INT | v INT | _row {VISIT}",
        visit(1, "a", "04.999999"),
        visit(2, "a", "05"),
        visit(3, "a", "09.999999"),
        visit(4, "a", "10"),
        visit(5, "b", "10"),
        visit(6, "NULL", "10"),
        visit(7, "c", "10"),
        visit(1, "a", "20", s=2),
    ]
)


def test_the_stream_names_each_right_key_once() -> None:
    check(as_of.wanted(SQL, THEN, ["s", "v"], ["s", "p"]), "s | p\n 1 | a\n 1 | b\n 1 | c\n 2 | a", lefts=VISITS)


def test_as_of_the_run_a_record_meets_the_row_that_there_is() -> None:
    rights = "s INT | p | _row STRUCT(s INT, p VARCHAR, price INT, _hash BLOB)\n 1 | a | {s: 1, p: a, price: 10, _hash: h}\n 1 | b | {s: 1, p: b, price: 13, _hash: h}\n 2 | b | {s: 2, p: b, price: 20, _hash: h}"
    expected = "pk_1 | pk_2 | l.p | r1.price\n 1 | 1 | a | 10\n 1 | 2 | a | 10\n 1 | 3 | a | 10\n 1 | 4 | a | 10\n 1 | 5 | b | NULL\n 1 | 6 | NULL | NULL\n 1 | 7 | c | NULL\n 2 | 1 | a | NULL"
    check(as_of.state(SQL, NOW, ["s", "v"], ["s", "p"]), expected, lefts=VISITS, rights=rights)


VERSIONS = f"""
  s INT | p | _valid_from TIMESTAMPTZ    | _row {PRICE}
  1     | a | 2026-01-01 10:00:05+00     | {{s: 1, p: a, price: 10, _valid_from: 2026-01-01 10:00:05+00, _gone: false, _hash: h}}
  1     | a | 2026-01-01 10:00:10+00     | {{s: 1, p: a, price: 11, _valid_from: 2026-01-01 10:00:10+00, _gone: false, _hash: h}}
  1     | b | 2026-01-01 10:00:05+00     | {{s: 1, p: b, price: 20, _valid_from: 2026-01-01 10:00:05+00, _gone: false, _hash: h}}
  1     | b | 2026-01-01 10:00:07+00     | {{s: 1, p: b, price: NULL, _valid_from: 2026-01-01 10:00:07+00, _gone: true, _hash: h}}
  2     | a | 2026-01-01 10:00:05+00     | {{s: 2, p: a, price: 12, _valid_from: 2026-01-01 10:00:05+00, _gone: false, _hash: h}}
  2     | a | 2026-01-01 10:00:15+00     | {{s: 2, p: a, price: 13, _valid_from: 2026-01-01 10:00:15+00, _gone: false, _hash: h}}
"""


def test_as_of_event_time_a_record_meets_the_version_of_its_time_and_no_other() -> None:
    expected = """
      pk_1 | pk_2 | l.p  | r1.price | r1 IS NULL
      1    | 1    | a    | NULL     | true
      1    | 2    | a    | 10       | false
      1    | 3    | a    | 10       | false
      1    | 4    | a    | 11       | false
      1    | 5    | b    | NULL     | true
      1    | 6    | NULL | NULL     | true
      1    | 7    | c    | NULL     | true
      1    | 8    | b    | 20       | false
      2    | 1    | a    | NULL     | true
    """
    lefts = VISITS + "\n" + visit(8, "b", "06")
    check(as_of.state(SQL, THEN, ["s", "v"], ["s", "p", "_valid_from"]), expected, lefts=lefts, rights=VERSIONS)


def test_a_changed_version_is_valid_until_the_next_one_of_its_row() -> None:
    changed = """
      s INT | p | _valid_from TIMESTAMPTZ
      1     | a | 1970-01-01 00:00:02+00
      1     | a | 1970-01-01 00:00:09+00
      1     | b | 1970-01-01 00:00:03+00
      2     | a | 1970-01-01 00:00:04+00
    """
    stored = """
      s INT | p | _valid_from TIMESTAMPTZ
      1     | a | 1970-01-01 00:00:01+00
      1     | a | 1970-01-01 00:00:02+00
      1     | a | 1970-01-01 00:00:05+00
      1     | a | 1970-01-01 00:00:09+00
      1     | b | 1970-01-01 00:00:03+00
      1     | b | 1970-01-01 00:00:08+00
    """
    expected = "on_1 | on_2 | since | until\n 1 | a | 2000000 | 5000000\n 1 | a | 9000000 | NULL\n 1 | b | 3000000 | 8000000\n 2 | a | 4000000 | NULL"
    check(as_of.valid(SQL, THEN.edges[0], ["s", "p", "_valid_from"]), expected, versions=changed, rights=stored)


SPANS = "on_1 INT | on_2 | since BIGINT | until BIGINT\n 1 | a | {0}5000000 | {0}10000000\n 1 | b | {0}8000000 | NULL\n 1 | c | {0}11000000 | NULL\n 3 | a | 0 | NULL"


def test_records_within_the_time_of_a_changed_version_are_touched_once() -> None:
    valid = SPANS.replace("{0}10000000", "1767261610000000").replace("{0}11000000", "1767261611000000").replace("{0}", "176726160")
    check(
        as_of.touched(SQL, THEN, ["s", "v"]),
        "s | v\n 1 | 2\n 1 | 3\n 1 | 5",
        lefts=VISITS,
        valid=valid + "\n 1 | a | 1767261605000000 | 1767261606000000",
    )

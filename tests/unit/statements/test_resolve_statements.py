"""resolve of a star, and what it shares with the other kinds of joins: results become rows, and their difference changes."""

import pytest
from statement_tables import SQL, check, spoken

from rejoin import Topology, snapshot
from rejoin.context import new_output
from rejoin.engines.deferred_relation import DeferredRelation
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation
from rejoin.joins.foreign_key import resolve as star
from rejoin.joins.foreign_key.right_rows import lacking
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Node, Plan
from rejoin.statements.dialect import aggregated
from rejoin.statements.provenance import provenance_hash
from rejoin.steps.resolve import statements


def _plan() -> Plan:
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, c INT, p INT", snapshot("orders")).filter("o > 0")
    customers = made.table("customers", ["s", "c"], "s INT, c INT, name STRING", snapshot("customers")).filter("name <> 'gone'")
    parts = made.table("parts", ["p"], "p INT, label STRING", snapshot("parts"))
    named = orders.left_join(customers, foreign_key=["s", "c"], select=["left.*", "right.name"])
    named.join(parts, foreign_key="p", select=["left.s", "left.o", "left.name", "right.label"], name="both")
    named.left_join(parts, foreign_key="p", select=["left.s", "left.o", "left.name", "right.label"]).filter("o < 9").named("kept")
    orders.full_join(customers, foreign_key=["s", "c"], select=["left.s", "left.o", "right.s AS rs", "right.c", "right.name"], name="full")
    return compile(made)


PLAN = _plan()
BOTH, KEPT, FULL = (spoken(PLAN, name) for name in ("both", "kept", "full"))
KEY = ("s", "o")
ORDER = "STRUCT(s INT, o INT, c INT, p INT, _hash BLOB)"
CUSTOMER, PART = "STRUCT(s INT, c INT, name VARCHAR, _hash BLOB)", "STRUCT(p INT, label VARCHAR, _hash BLOB)"


def order(o: int, c: str | int = 7, p: str | int = 3, hashed: str = "h") -> str:
    return f"{{s: 1, o: {o}, c: {c}, p: {p}, _hash: {hashed}}}"


CHANGES = f"""
  s INT | o INT | _before {ORDER} | _after {ORDER}
  1     | 1     | NULL            | {order(1)}
  1     | 2     | {order(2)}      | NULL
  1     | 3     | {order(3)}      | {order(3, "NULL", hashed="i")}
  1     | 10    | NULL            | {order(10)}
"""
ANSWERS = """
  pk_1 INT | pk_2 INT | left_hash | right STRUCT(s INT, c INT, name VARCHAR, _hash BLOB)
  1        | 1        | h         | {s: 1, c: 7, name: Ann, _hash: a}
  1        | 3        | h         | {s: 1, c: 7, name: Ann, _hash: a}
  1        | 4        | h         | {s: 1, c: 7, name: Ann, _hash: a}
  1        | 5        | g         | {s: 1, c: 7, name: Ann, _hash: a}
  1        | 2        | h         | {s: 1, c: 7, name: Ann, _hash: a}
  1        | 7        | NULL      | {s: 1, c: 7, name: Ann, _hash: a}
"""
AGAIN = "s INT | o INT\n 1 | 1\n 1 | 6\n 2 | 1"


@pytest.mark.parametrize(
    ("changed", "again", "expected"),
    [
        pytest.param(False, False, "1 | 1\n 1 | 2\n 1 | 3\n 1 | 4\n 1 | 5\n 1 | 7", id="answers"),
        pytest.param(True, False, "1 | 4\n 1 | 5\n 1 | 7", id="answers of rows that did not change"),
        pytest.param(
            False, True, "1 | 1\n 1 | 1\n 1 | 2\n 1 | 3\n 1 | 4\n 1 | 5\n 1 | 6\n 1 | 7\n 2 | 1", id="and rows that are judged again"
        ),
        pytest.param(True, True, "1 | 4\n 1 | 5\n 1 | 6\n 1 | 7\n 2 | 1", id="and rows that are judged again and did not change"),
    ],
)
def test_left_rows_are_looked_up_that_did_not_change_themselves(*, changed: bool, again: bool, expected: str) -> None:
    given = {"a": ANSWERS, **({"changes": CHANGES} if changed else {}), **({"again": AGAIN} if again else {})}
    check(star.touched(SQL, ["a"], KEY, changed=changed, again=again, nulls=False), f"s | o\n{expected}", **given)


def test_a_key_with_a_null_in_it_is_found_where_keys_may_have_one() -> None:
    again, changes = "s INT | o INT\n NULL | 1", f"s INT | o INT | _after {ORDER}\n NULL | 1 | NULL"
    text = star.touched(SQL, [], KEY, changed=True, again=True, nulls=True)
    check(text, "s | o", again=again, changes=changes)
    check(star.touched(SQL, [], KEY, changed=True, again=True, nulls=False), "s | o\n NULL | 1", again=again, changes=changes)


def test_every_changed_and_every_touched_key_is_affected() -> None:
    touched = "s INT | o INT\n 1 | 4"
    check(
        star.affected(SQL, KEY, KEY, changed=True, told=True),
        "s | o\n 1 | 1\n 1 | 2\n 1 | 3\n 1 | 4\n 1 | 10",
        changes=CHANGES,
        touched=touched,
    )


def test_rows_before_are_those_before_the_changes_and_those_that_did_not_change() -> None:
    lefts = f"s INT | o INT | _row {ORDER}\n 1 | 4 | {order(4)}"
    expected = "s | o | _row IS NULL\n 1 | 1 | true\n 1 | 2 | false\n 1 | 3 | false\n 1 | 4 | false\n 1 | 10 | true"
    check(star.lefts_before(SQL, KEY, changed=True, looked_up=True), expected, changes=CHANGES, lefts=lefts)


def test_an_affected_row_meets_its_answer_unless_that_is_stale() -> None:
    lefts = f"""
      s INT | o INT | _row {ORDER}
      1     | 4     | {order(4)}
      1     | 5     | {order(5)}
      1     | 6     | {order(6)}
      1     | 7     | {order(7)}
      1     | 8     | {order(8, "NULL", "NULL")}
    """
    text = star.pair(SQL, BOTH, KEY, {BOTH.edges[0].name: "a"}, changed=True, looked_up=True)
    expected = """
      pk_1 | pk_2 | l.o  | changed | r1.name | stale_1 | lacks_1 | stale_2 | lacks_2
      1    | 1    | 1    | true    | Ann     | false   | false   | false   | false
      1    | 2    | NULL | true    | Ann     | false   | false   | false   | false
      1    | 7    | 7    | false   | NULL    | true    | true    | false   | true
      1    | 10   | 10   | true    | NULL    | false   | false   | false   | false
      1    | 3    | 3    | true    | NULL    | true    | false   | false   | false
      1    | 4    | 4    | false   | Ann     | false   | false   | false   | true
      1    | 5    | 5    | false   | NULL    | true    | true    | false   | true
      1    | 6    | 6    | false   | NULL    | false   | true    | false   | true
      1    | 8    | 8    | false   | NULL    | false   | false   | false   | false
    """
    check(text, expected, changes=CHANGES, lefts=lefts, a=ANSWERS)


STATE = f"""
  pk_1 INT | pk_2 INT | l {ORDER}          | lacks_1 BOOLEAN | r1 {CUSTOMER}
  1        | 1        | {order(1)}         | true            | NULL
  1        | 2        | {order(2)}         | false           | {{s: 1, c: 7, name: Ann, _hash: a}}
  1        | 3        | {order(3, 8)}      | true            | {{s: 1, c: 7, name: Ann, _hash: a}}
  1        | 4        | {order(4, 9)}      | true            | NULL
  1        | 5        | {order(5)}         | true            | NULL
  1        | 6        | {order(6, "NULL")} | false           | NULL
"""
RIGHTS = f"""
  s INT | c INT | _row {CUSTOMER}
  1     | 7     | {{s: 1, c: 7, name: Anna, _hash: b}}
  1     | 9     | {{s: 1, c: 9, name: gone, _hash: c}}
"""


def test_only_what_rows_lack_is_looked_up_and_once() -> None:
    check(star.missing(SQL, 1, BOTH.edges[0], (*KEY[:1], "c")), "s | c\n 1 | 7\n 1 | 8\n 1 | 9", state=STATE)


def test_what_was_looked_up_fills_the_rows_that_lack_it() -> None:
    columns = ["pk_1", "pk_2", "l", "lacks_1", "r1"]
    expected = "pk_2 | r1.name\n 1 | Anna\n 2 | Ann\n 3 | NULL\n 4 | NULL\n 5 | Anna\n 6 | NULL"
    check(star.fill(SQL, columns, 1, BOTH.edges[0], ("s", "c")), expected, state=STATE, rights=RIGHTS)
    unanswered = "pk_2 | r1.name\n 1 | Anna\n 2 | NULL\n 3 | NULL\n 4 | NULL\n 5 | Anna\n 6 | NULL"
    check(star.fill(SQL, columns[:-1], 1, BOTH.edges[0], ("s", "c")), unanswered, state=STATE, rights=RIGHTS)
    nothing = "pk_2 | r1 IS NULL\n" + "\n".join(f"{n} | true" for n in range(1, 7))
    check(star.fill(SQL, columns[:-1], 1, BOTH.edges[0], ("s", "c"), none=True), nothing, state=STATE, rights=RIGHTS)


def test_what_rows_lack_and_stale_answers_are_counted_wherever_the_rows_are() -> None:
    engine = DuckdbEngine(PLAN)
    rows = "(true, false, true, NULL), (true, true, false, true), (false, NULL, true, false)"
    state = DeferredRelation(f"SELECT * FROM (VALUES {rows}) AS t(lacks_1, lacks_2, stale_1, stale_2)")
    for given in (state, LocalRelation(state.here())):
        found = lacking(engine, len(BOTH.edges), given)
        assert (found["lacks_1"], found["lacks_2"], found["stale"]) == (2, 1, 3)
        assert lacking(engine, 0, given) == {"stale": 0}, "a filter has no edge, and a statement without columns is none"


JOINED = f"""
  pk_1 INT | pk_2 INT | l {ORDER}   | r1 {CUSTOMER}                       | r2 {PART}
  1        | 1        | {order(1)}  | {{s: 1, c: 7, name: Ann, _hash: a}} | {{p: 3, label: nut, _hash: b}}
  1        | 2        | {order(2)}  | NULL                                | {{p: 3, label: nut, _hash: b}}
  1        | 3        | {order(3)}  | {{s: 1, c: 7, name: Ann, _hash: a}} | NULL
  1        | 4        | NULL        | NULL                                | {{p: 3, label: nut, _hash: b}}
  1        | 9        | {order(9)}  | NULL                                | NULL
"""


@pytest.mark.parametrize(
    ("node", "there"),
    [
        pytest.param(BOTH, {1: "Ann | nut", 2: "NULL | nut"}, id="inner"),
        pytest.param(KEPT, {1: "Ann | nut", 2: "NULL | nut", 3: "Ann | NULL"}, id="left, with a filter"),
    ],
)
def test_a_result_is_a_row_where_no_side_is_missing_that_has_to_be_there(node: Node, there: dict[int, str]) -> None:
    expected = "\n".join(f"{o} | {there.get(o, 'NULL | NULL')} | {str(o in there).lower()}" for o in (1, 2, 3, 4, 9))
    text = statements.join(SQL, node, "print")
    check(text, f"pk_2 | new.name | new.label | new IS NOT NULL\n{expected}", state=JOINED)


def test_the_hash_of_a_row_is_of_what_it_is_made_of() -> None:
    made = {1: provenance_hash("print", [b"h", b"a", b"b"]), 2: provenance_hash("print", [b"h", None, b"b"])}
    expected = "\n".join(f"{o} | {made[o].hex().upper()}" for o in made)
    check(f"SELECT * FROM ({statements.join(SQL, BOTH, 'print')}) WHERE pk_2 < 3", f"pk_2 | hex(new._hash)\n{expected}", state=JOINED)


def test_a_full_join_has_a_row_where_either_side_is() -> None:
    state = f"""
      pk_1 INT | pk_2 INT | pk_3 INT | pk_4 INT | l {ORDER}  | r1 {CUSTOMER}
      1        | 1        | NULL     | NULL     | {order(1)} | NULL
      NULL     | NULL     | 1        | 7        | NULL       | {{s: 1, c: 7, name: Ann, _hash: a}}
      2        | 2        | NULL     | NULL     | NULL       | NULL
    """
    check(
        statements.join(SQL, FULL, "print"),
        "pk_1 | pk_4 | new.name | new IS NULL\n 1 | NULL | NULL | false\n NULL | 7 | Ann | false\n 2 | NULL | NULL | true",
        state=state,
    )


OUT = "STRUCT(s INT, o INT, name VARCHAR, label VARCHAR, _hash BLOB)"


def out(o: int, name: str, label: str = "nut", hashed: str = "h") -> str:
    return f"{{s: 1, o: {o}, name: {name}, label: {label}, _hash: {hashed}}}"


def test_a_row_that_was_made_of_the_same_is_the_stored_one() -> None:
    made = f"""
      pk_1 INT | pk_2 INT | new {OUT}
      1        | 1        | {out(1, "Ann")}
      1        | 2        | {out(2, "Ann", hashed="i")}
      1        | 3        | NULL
      1        | 4        | {out(4, "Ann")}
      1        | 6        | {out(6, "Ann")}
    """
    stored = "s INT | o INT | _hash BLOB | _place INT\n 1 | 1 | h | 10\n 1 | 2 | h | 20\n 1 | 3 | h | 30\n 1 | 4 | h | 40\n 1 | 5 | h | 50\n 2 | 6 | h | 60"
    expected = "s | o | _row.name | _place\n 1 | 1 | Ann | 10\n 1 | 2 | NULL | 20\n 1 | 3 | NULL | 30\n 1 | 4 | {} | 40\n 1 | 5 | NULL | 50\n 2 | 6 | NULL | 60"
    check(statements.proven(SQL, BOTH, held=False), expected.format("Ann"), made=made, stored=stored)
    held = "s INT | o INT\n 1 | 4\n 2 | 1"
    check(statements.proven(SQL, BOTH, held=True), expected.format("NULL"), made=made, stored=stored, held=held)


TYPES = {"s": "INT", "o": "INT", "name": "STRING", "label": "STRING"}
MADE = f"""
  pk_1 INT | pk_2 INT | new {OUT}
  1        | 1        | {out(1, "Ann")}
  1        | 2        | {out(2, "Ann", hashed="i")}
  1        | 3        | {out(3, "Bob", "NULL")}
  1        | 4        | NULL
  1        | 5        | NULL
  1        | 6        | {out(6, "Ann", "NULL")}
"""
OLD = f"""
  s INT | o INT | _row {OUT}            | _place INT
  1     | 2     | {out(2, "Ann")}       | 20
  1     | 3     | {out(3, "Ann", "NULL")} | 30
  1     | 4     | {out(4, "Ann")}       | 40
  1     | 6     | {out(6, "Ann", "NULL")} | 60
  1     | 7     | {out(7, "Ann")}       | 70
  1     | 1     | NULL                  | 10
"""
DIFFERENCE = """
  s | o | _op | _before.name | _after.name | _place
  1 | 1 | I   | NULL         | Ann         | 10
  1 | 2 | N   | Ann          | Ann         | 20
  1 | 3 | U   | Ann          | Bob         | 30
  1 | 4 | D   | Ann          | NULL        | 40
  1 | 5 | N   | NULL         | NULL        | NULL
  1 | 6 | N   | Ann          | Ann         | 60
"""


def test_the_difference_of_new_and_old_rows_are_net_changes_and_what_is_not_made_again_is_gone() -> None:
    expected = DIFFERENCE + "1 | 7 | D | Ann | NULL | 70"
    check(statements.difference(SQL, BOTH, TYPES, stored=True), expected, made=MADE, old=OLD)


def test_of_an_output_that_never_had_a_row_everything_is_new() -> None:
    inserted = "\n".join(f"{o} | {op} | NULL" for o, op in enumerate("IIINNI", start=1))
    check(statements.difference(SQL, BOTH, TYPES, stored=False), f"o | _op | _before\n{inserted}", made=MADE)


def test_a_row_that_loses_the_value_of_a_dropped_column_has_changed() -> None:
    wider = OUT.replace(", _hash", ", note VARCHAR, _hash")
    old = f"s INT | o INT | _row {wider} | _place INT\n 1 | 2 | {out(2, 'Ann').replace(', _hash', ', note: x, _hash')} | 20\n 1 | 6 | {out(6, 'Ann', 'NULL').replace(', _hash', ', note: NULL, _hash')} | 60"
    made = f"pk_1 INT | pk_2 INT | new {OUT}\n 1 | 2 | {out(2, 'Ann')}\n 1 | 6 | {out(6, 'Ann', 'NULL')}"
    text = statements.difference(SQL, BOTH, TYPES, stored=True, gone=[("note", "STRING")])
    check(text, "o | _op | _before.note\n 2 | U | x\n 6 | N | NULL", made=made, old=old)


def test_changes_are_counted_by_kind() -> None:
    changes = "_op\n" + "\n".join(op for op, count in (("I", 1), ("U", 2), ("D", 3), ("N", 4)) for _ in range(count))
    check(aggregated(SQL, new_output.COUNTS, "changes"), "inserted | updated | deleted | unchanged\n 1 | 2 | 3 | 4", changes=changes)

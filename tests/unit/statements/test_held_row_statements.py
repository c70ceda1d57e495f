"""validate: rows of an output that are held back, and come again."""

import pytest
from statement_tables import SQL, check, spoken

from rejoin import Topology, snapshot
from rejoin.plan.check.compile import compile
from rejoin.steps.validate import held_rows


def _topology() -> Topology:
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, name STRING", snapshot("orders"))
    orders.select(["s", "o", "name"]).named("out")
    return made


NODE = spoken(compile(_topology()), "out")
KEY = ("s", "o")
ROW = "STRUCT(name VARCHAR)"
DIFFERENCE = f"""
  s INT | o INT | _op | _before {ROW} | _after {ROW}  | _place INT
  1     | 1     | I   | NULL          | {{name: new}}  | NULL
  1     | 2     | U   | {{name: old}} | {{name: new}}  | 20
  1     | 3     | D   | {{name: old}} | NULL          | 30
  1     | 4     | N   | {{name: old}} | {{name: old}}  | 40
  1     | 5     | N   | {{name: old}} | {{name: old}}  | 50
  NULL  | 6     | I   | NULL          | {{name: new}}  | NULL
"""
ASIDE = "s INT | o INT | _why\n 1 | 2 | no number\n 1 | 4 | no date\n 2 | 1 | no number\n NULL | 6 | no date"
HELD = "s INT | o INT\n 1 | 2\n 1 | 5\n 1 | 9\n 2 | 3\n NULL | 6"


def test_without_anything_held_back_all_changes_are_candidates() -> None:
    expected = "o | _op | _before.name | _after.name | _place | _held | _why\n 1 | I | NULL | new | NULL | false | NULL\n 2 | U | old | new | 20 | false | NULL\n 3 | D | old | NULL | 30 | false | NULL\n 4 | N | old | old | 40 | false | NULL\n 5 | N | old | old | 50 | false | NULL\n 6 | I | NULL | new | NULL | false | NULL"
    check(held_rows.candidates(SQL, KEY, aside=False, held=False, nulls=True), expected, difference=DIFFERENCE)


def test_what_cannot_be_computed_and_what_is_held_back_is_marked() -> None:
    expected = """
      s    | o | _op | _after.name | _held | _why
      1    | 1 | I   | new         | false | NULL
      1    | 2 | N   | new         | true  | no number
      1    | 3 | D   | NULL        | false | NULL
      1    | 4 | N   | old         | false | no date
      1    | 5 | N   | old         | true  | NULL
      1    | 9 | N   | NULL        | true  | NULL
      2    | 3 | N   | NULL        | true  | NULL
      NULL | 6 | N   | new         | true  | no date
    """
    given = {"difference": DIFFERENCE, "aside": ASIDE, "held": HELD}
    text = held_rows.candidates(SQL, KEY, aside=True, held=True, nulls=True)
    check(text, expected, **given)
    kept = "\n".join(line for line in expected.splitlines() if "| 7 " not in line)
    check(f"SELECT * FROM ({text}) WHERE {held_rows.IS_CANDIDATE}", kept, **given)


CANDIDATES = f"""
  s INT | o INT | _op | _before {ROW} | _after {ROW}  | _place INT | _held BOOLEAN | _why
  1     | 1     | I   | NULL          | {{name: new}}  | NULL       | false         | NULL
  1     | 2     | U   | {{name: old}} | {{name: bad}}  | 20         | false         | NULL
  1     | 3     | D   | {{name: old}} | NULL          | 30         | true          | NULL
  1     | 4     | N   | {{name: old}} | {{name: old}}  | 40         | true          | NULL
  1     | 5     | N   | {{name: old}} | NULL          | 50         | false         | no date
  NULL  | 6     | I   | NULL          | {{name: bad}}  | NULL       | true          | NULL
"""
BAD = "s INT | o INT | _reason\n 1 | 2 | a rule\n 1 | 5 | a rule\n 2 | 1 | a rule\n NULL | 6 | a rule"


@pytest.mark.parametrize(
    ("op", "why", "held", "candidate"),
    [
        pytest.param("N", None, False, False, id="stays the same"),
        pytest.param("U", None, False, True, id="changes"),
        pytest.param("N", None, True, True, id="is held back"),
        pytest.param("N", "no date", False, True, id="cannot be computed"),
    ],
)
def test_a_candidate_changes_or_was_held_back_or_cannot_be_computed(*, op: str, why: str | None, held: bool, candidate: bool) -> None:
    rows = f"_op | _held BOOLEAN | _why\n {op} | {held} | {why or 'NULL'}"
    check(f"SELECT {held_rows.IS_CANDIDATE} AS is_one FROM rows_", f"is_one\n {str(candidate).lower()}", rows_=rows)


def test_a_row_is_held_back_by_what_it_breaks_or_since_it_cannot_be_computed() -> None:
    reasons = "o | _reason\n 1 | NULL\n 2 | {}\n 3 | NULL\n 4 | NULL\n 5 | no date\n 6 | {}"
    check(held_rows.judged(SQL, KEY, bad=True, nulls=True), reasons.format("a rule", "a rule"), candidates=CANDIDATES, bad=BAD)
    check(held_rows.judged(SQL, KEY, bad=True, nulls=False), reasons.format("a rule", "NULL"), candidates=CANDIDATES, bad=BAD)
    check(held_rows.judged(SQL, KEY, bad=False, nulls=True), reasons.format("NULL", "NULL"), candidates=CANDIDATES)


JUDGED = f"""
  s INT | o INT | _op | _before {ROW} | _after {ROW}  | _place INT | _held BOOLEAN | _why    | _reason
  1     | 1     | I   | NULL          | {{name: new}}  | NULL       | false         | NULL    | NULL
  1     | 2     | U   | {{name: old}} | {{name: bad}}  | 20         | false         | NULL    | a rule
  1     | 3     | D   | {{name: old}} | NULL          | 30         | true          | NULL    | NULL
  1     | 4     | N   | {{name: old}} | {{name: old}}  | 40         | true          | NULL    | NULL
  1     | 5     | N   | {{name: old}} | NULL          | 50         | false         | no date | no date
  1     | 6     | N   | {{name: old}} | {{name: old}}  | 60         | false         | NULL    | NULL
"""


def test_what_changes_and_is_not_held_back_is_published() -> None:
    expected = "_run | _op | o | _before.name | _after.name | _place\n 3 | I | 1 | NULL | new | NULL\n 3 | D | 3 | old | NULL | 30"
    check(held_rows.published(SQL, KEY, 3), expected, judged=JUDGED)


def test_the_quarantine_hears_of_what_is_held_back_and_what_no_longer_is() -> None:
    expected = """
      s | o | _run | _op | _code          | _reason | _raw
      1 | 2 | 3    | Q   | EXPECTATION    | a rule  | "{\\"s\\":1,\\"o\\":2,\\"name\\":\\"bad\\"}"
      1 | 3 | 3    | R   | EXPECTATION    | NULL    | NULL
      1 | 4 | 3    | R   | EXPECTATION    | NULL    | NULL
      1 | 5 | 3    | Q   | NOT_COMPUTABLE | no date | "{\\"s\\":null,\\"o\\":null,\\"name\\":null}"
    """
    whole = JUDGED.replace(ROW, "STRUCT(s INT, o INT, name VARCHAR)").replace("{name: bad}", "{s: 1, o: 2, name: bad}")
    whole = whole.replace("{name:", "{s: 1, o: 1, name:")
    check(held_rows.set_aside(SQL, NODE, 3), expected, judged=whole)


def test_the_new_rows_of_changes_are_judged() -> None:
    changes = "_op | _after STRUCT(s INT, o INT, name VARCHAR)\n I | {s: 1, o: 1, name: a}\n U | {s: 1, o: 2, name: b}\n D | NULL\n N | {s: 1, o: 3, name: c}"
    check(held_rows.new_rows(SQL, NODE), "_row.name\n a\n b", changes=changes)

"""ingest: versions of a source that are held back, and records that are refused, and come again."""

from event_tables import ORDERS, row
from statement_tables import SQL, check

from rejoin.steps.ingest import held_versions

MADE = "s INT | o INT | _fate | _code | _reason | _op | _arrival BIGINT | _file | _line BIGINT | _raw | _position | _row STRUCT(s INT, o INT, c INT, note VARCHAR, _hash BLOB) | _new STRUCT(s INT, o INT, c INT, note VARCHAR)"


def new(o: int, c: int | str = 7, note: str = "x") -> str:
    return f"{{s: 1, o: {o}, c: {c}, note: {note}}}"


def test_what_was_held_back_comes_again_as_an_event() -> None:
    held = "s INT | o INT | _version | _source_file | _line BIGINT | _raw | _row STRUCT(c INT)\n 1 | 2 | p5 | file | 3 | text | {c: 7}"
    expected = "_kind | s | o | c | note | _position | _arrival | len(_missing) | len(_absent) | _old_key | _file | _line | _lines | _code | _reason | _raw | _snapshot\n upsert | 1 | 2 | 7 | NULL | p5 | -1 | 0 | 0 | NULL | file | 3 | 1 | NULL | NULL | text | NULL"
    check(held_versions.held_events(SQL, ORDERS, ("c",)), expected, held=held)


def test_rows_are_judged_that_become_others() -> None:
    made = f"""
      _op  | _row STRUCT(s INT, o INT, c INT, note VARCHAR, _hash BLOB) | _new STRUCT(s INT, o INT, c INT, note VARCHAR)
      I    | NULL       | {new(1)}
      U    | {row(2, 6)} | {new(2)}
      N    | {row(3, 7, "y")} | {new(3)}
      N    | {row(4, 7)} | {new(4)}
      D    | {row(5, 7)} | NULL
      NULL | NULL       | {new(6)}
      U    | {row(7, "NULL")} | {new(7, "NULL")}
    """
    check(held_versions.new_rows(SQL, ORDERS), "_row.o\n 1\n 2\n 3", made=made)


def test_a_version_of_a_bad_row_is_held_back() -> None:
    columns = ["s", "o", "_fate", "_code", "_reason", "_op"]
    made = "s INT | o INT | _fate | _code | _reason | _op\n 1 | 1 | applied | NULL | NULL | I\n 1 | 2 | applied | NULL | NULL | U\n 1 | 3 | stale | NULL | NULL | NULL\n 2 | 1 | applied | NULL | NULL | I"
    bad = "s INT | o INT | _reason\n 1 | 1 | a rule\n 1 | 3 | a rule\n 2 | 2 | a rule"
    expected = "s | o | _fate | _code | _reason | _op\n 1 | 1 | quarantined | EXPECTATION | a rule | NULL\n 1 | 2 | applied | NULL | NULL | U\n 1 | 3 | stale | NULL | NULL | NULL\n 2 | 1 | applied | NULL | NULL | I"
    check(held_versions.held_back(SQL, ORDERS, columns), expected, made=made, bad=bad)


def test_the_quarantine_of_a_source_hears_of_what_is_refused_and_of_what_no_longer_is() -> None:
    refused = "s INT | o INT | _code | _reason | _file | _line BIGINT | _raw\n NULL | NULL | BAD_JSON | no JSON | f | 1 | text"
    judged = f"""{MADE}
      1 | 1 | quarantined | EXPECTATION | a rule | NULL | 1 | f | 2 | a | p1 | NULL | {new(1)}
      1 | 2 | quarantined | TOO_LATE    | old    | NULL | 2 | f | 3 | b | p2 | NULL | {new(2)}
      1 | 3 | applied     | NULL        | NULL   | I    | 3 | f | 4 | c | p3 | NULL | {new(3)}
    """
    made = f"""{judged}
      1 | 4 | applied     | NULL        | NULL   | I    | -1 | f | 5 | d | p1 | NULL | {new(4)}
      1 | 5 | quarantined | TOO_LATE    | old    | NULL | -1 | f | 6 | e | p1 | NULL | {new(5)}
      1 | 6 | applied     | NULL        | NULL   | I    | -2 | f | 7 | g | p1 | NULL | {new(6)}
      1 | 7 | quarantined | TOO_LATE    | old    | NULL | -2 | f | 8 | h | p1 | NULL | {new(7)}
      1 | 8 | applied     | NULL        | NULL   | I    | -3 | f | 9 | i | p1 | NULL | {new(8)}
    """
    held = "s INT | o INT | _code | _reason | _source_file | _line BIGINT | _raw\n" + "\n".join(
        f"{s} | {o} | EXPECTATION | a rule | f | {o} | t" for s, o in ((1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 5), (1, 9))
    )
    expected = """
      s    | o    | _run | _op | _code       | _reason | _source_file | _line | _raw | _version | _row.c
      NULL | NULL | 4    | Q   | BAD_JSON    | no JSON | f            | 1     | text | NULL     | NULL
      1    | 1    | 4    | Q   | EXPECTATION | a rule  | f            | 2     | a    | p1       | 7
      1    | 2    | 4    | Q   | TOO_LATE    | old     | f            | 3     | b    | NULL     | NULL
      1    | 6    | 4    | R   | REPLAYED    | NULL    | f            | 7     | g    | NULL     | NULL
      1    | 8    | 4    | R   | REPLAYED    | NULL    | f            | 9     | i    | NULL     | NULL
    """
    given = {"refused": refused, "judged": judged, "made": made}
    check(held_versions.records_aside(SQL, ORDERS, 4, held=False), expected, **given)
    free = "\n".join(
        f"{s} | {o} | 4 | R | EXPECTATION | a rule | f | {o} | t | NULL | NULL" for s, o in ((1, 2), (1, 3), (1, 4), (2, 5), (1, 9))
    )
    check(held_versions.records_aside(SQL, ORDERS, 4, held=True), expected + free, **given, held=held)

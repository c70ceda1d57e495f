"""ingest: what is made of the newest event of a key: values that it left out, a snapshot's rows, new versions."""

import pytest
from event_tables import ORDERS, before, classified, events, row, versions
from statement_tables import SQL, check

from rejoin.steps.ingest import statements

NOTHING = versions("o\n")


def test_what_an_event_leaves_out_is_what_the_newest_earlier_version_of_its_life_had() -> None:
    given = classified(
        f"""
        _kind  | s | o | c    | note | _position | _arrival | _missing  | _row          | _fate
        upsert | 1 | 1 | 8    | NULL | p1        | 1        | [note]    | {row(1, 7, "old")} | applied
        upsert | 1 | 2 | 7    | a    | p1        | 2        | []        | {row(2, 7, "old")} | superseded
        upsert | 1 | 2 | 8    | NULL | p2        | 3        | [note]    | {row(2, 7, "old")} | superseded
        upsert | 1 | 2 | NULL | b    | p3        | 4        | [c]       | {row(2, 7, "old")} | applied
        upsert | 1 | 3 | 7    | a    | p1        | 5        | []        | NULL          | superseded
        delete | 1 | 3 | NULL | NULL | p2        | 6        | []        | NULL          | superseded
        upsert | 1 | 3 | 7    | NULL | p3        | 7        | [note]    | NULL          | applied
        upsert | 1 | 4 | 7    | NULL | p3        | 8        | [note]    | NULL          | applied
        delete | 1 | 5 | NULL | NULL | p1        | 9        | []        | {row(5, 7, "old")} | superseded
        upsert | 1 | 5 | 7    | NULL | p2        | 10       | [note]    | {row(5, 7, "old")} | applied
        upsert | 1 | 6 | 7    | NULL | p2        | 11       | [note]    | NULL          | stale
        upsert | 1 | 6 | 7    | late | p1        | 12       | []        | NULL          | stale
        upsert | 1 | 7 | 7    | NULL | p2        | 14       | [note]    | NULL          | applied
        upsert | 1 | 7 | 7    | c    | p2        | 13       | []        | NULL          | duplicate
        upsert | 1 | 8 | 7    | NULL | p1        | 15       | []        | {row(8, 7, "old")} | superseded
        upsert | 1 | 8 | 8    | NULL | p2        | 16       | [note]    | {row(8, 7, "old")} | applied
        upsert | 2 | 1 | 9    | z    | p0        | 17       | []        | NULL          | superseded
        """
    )
    expected = """
      s | o | _position | c    | note | len(_missing) | _fate       | _code
      1 | 1 | p1        | 8    | old  | 0             | applied     | NULL
      1 | 2 | p1        | 7    | a    | 0             | superseded  | NULL
      1 | 2 | p2        | 8    | a    | 0             | superseded  | NULL
      1 | 2 | p3        | 8    | b    | 0             | applied     | NULL
      1 | 3 | p1        | 7    | a    | 0             | superseded  | NULL
      1 | 3 | p2        | NULL | NULL | 0             | superseded  | NULL
      1 | 3 | p3        | 7    | NULL | 1             | quarantined | TOAST_UNRESOLVED
      1 | 4 | p3        | 7    | NULL | 1             | quarantined | TOAST_UNRESOLVED
      1 | 5 | p1        | NULL | NULL | 0             | superseded  | NULL
      1 | 5 | p2        | 7    | NULL | 1             | quarantined | TOAST_UNRESOLVED
      1 | 6 | p2        | 7    | late | 0             | stale       | NULL
      1 | 6 | p1        | 7    | late | 0             | stale       | NULL
      1 | 7 | p2        | 7    | NULL | 1             | quarantined | TOAST_UNRESOLVED
      1 | 7 | p2        | 7    | c    | 0             | duplicate   | NULL
      1 | 8 | p1        | 7    | NULL | 0             | superseded  | NULL
      1 | 8 | p2        | 8    | NULL | 0             | applied     | NULL
      2 | 1 | p0        | 9    | z    | 0             | superseded  | NULL
    """
    check(statements.unsettled(SQL, ORDERS, stored=False), expected, classified=given)
    named = '_reason\n "no known value for unchanged column note"\n'
    check(
        f"SELECT DISTINCT _reason FROM ({statements.unsettled(SQL, ORDERS, stored=False)}) WHERE _reason IS NOT NULL",
        named,
        classified=given,
    )


def test_a_row_with_a_new_key_goes_on_with_what_the_row_of_its_old_key_had() -> None:
    given = classified(
        """
        _kind  | o  | c    | note | _position | _arrival | _missing | _old_key       | _fate
        upsert | 1  | 7    | a    | p1        | 1        | []       | NULL           | superseded
        upsert | 1  | 7    | b    | p2        | 2        | []       | NULL           | superseded
        delete | 1  | NULL | NULL | p3        | 3        | []       | NULL           | applied
        upsert | 11 | 8    | NULL | p3        | 4        | [note]   | {s: 1, o: 1}   | applied
        upsert | 12 | 8    | NULL | p5        | 5        | [note]   | {s: 1, o: 2}   | applied
        upsert | 13 | 8    | NULL | p5        | 6        | [note]   | {s: 1, o: 3}   | applied
        upsert | 14 | 8    | NULL | p5        | 7        | [note]   | {s: 2, o: 1}   | applied
        upsert | 15 | NULL | own  | p5        | 8        | [c]      | {s: 1, o: 2}   | applied
        upsert | 16 | 8    | NULL | p1        | 9        | [note]   | {s: 1, o: 4}   | applied
        upsert | 4  | 8    | new  | p2        | 10       | []       | NULL           | applied
        upsert | 17 | 8    | n    | p5        | 11       | []       | {s: 1, o: 2}   | applied
        upsert | 5  | 9    | NULL | p1        | 12       | [note]   | NULL           | stale
        upsert | 18 | 9    | NULL | p2        | 13       | [note]   | {s: 1, o: 5}   | applied
        upsert | 19 | 9    | NULL | p2        | 14       | [note]   | {s: 1, o: 6}   | applied
        upsert | 20 | 9    | both | p2        | 15       | []       | NULL           | applied
        upsert | 21 | 9    | NULL | p2        | 16       | [note]   | {s: 1, o: 20}  | applied
        upsert | 22 | 9    | NULL | p2        | 17       | [note]   | {s: 1, o: 7}   | applied
        """
    )
    stored = versions(
        f"o | _version | _row | _before\n 2 | p1 | {row(2, 5, 'kept')} | {before(4, 'older')}\n 7 | p1 | {row(7, 5, 'first')} | NULL\n 3 | p1 | NULL | {before(4, 'gone')}\n 6 | p1 | NULL | NULL"
    )
    expected = """
      o  | c | note | len(_missing) | _fate
      1  | 7 | a    | 0             | superseded
      1  | 7 | b    | 0             | superseded
      1  | NULL | NULL | 0          | applied
      11 | 8 | b    | 0             | applied
      12 | 8 | kept | 0             | applied
      13 | 8 | gone | 0             | applied
      14 | 8 | NULL | 1             | quarantined
      15 | 5 | own  | 0             | applied
      16 | 8 | NULL | 1             | quarantined
      4  | 8 | new  | 0             | applied
      17 | 8 | n    | 0             | applied
      5  | 9 | NULL | 1             | stale
      18 | 9 | NULL | 1             | quarantined
      19 | 9 | NULL | 1             | quarantined
      20 | 9 | both | 0             | applied
      21 | 9 | both | 0             | applied
      22 | 9 | first | 0            | applied
    """
    check(statements.unsettled(SQL, ORDERS, stored=True), expected, classified=given, stored=stored)


SNAPSHOT = events(
    """
    s | o | c | note | _position | _arrival
    1 | 1 | 7 | a    | p2        | 1
    1 | 2 | 7 | a    | p2        | 2
    1 | 2 | 7 | a    | p3        | 3
    1 | 3 | 7 | a    | p2        | 4
    1 | 3 | 7 | b    | p2        | 5
    2 | 1 | 8 | c    | p2        | 6
    1 | 8 | 8 | c    | p2        | NULL
    1 | 8 | 8 | c    | p2        | 7
    """
)
OF_SNAPSHOT = """
  _kind  | s | o | c | _position | _arrival | _fate       | _code
  upsert | 1 | 1 | 7 | p2        | 1        | applied     | NULL
  upsert | 1 | 2 | 7 | p2        | 2        | applied     | NULL
  upsert | 1 | 2 | 7 | p3        | 3        | duplicate   | NULL
  upsert | 1 | 3 | 7 | p2        | 4        | quarantined | DUPLICATE_KEY
  upsert | 1 | 3 | 7 | p2        | 5        | quarantined | DUPLICATE_KEY
  upsert | 2 | 1 | 8 | p2        | 6        | applied     | NULL
  upsert | 1 | 8 | 8 | p2        | NULL     | applied     | NULL
  upsert | 1 | 8 | 8 | p2        | 7        | duplicate   | NULL
"""


@pytest.mark.parametrize("stored", [True, False])
def test_of_a_snapshot_equal_rows_of_a_key_are_duplicates_and_different_ones_are_refused(*, stored: bool) -> None:
    check(
        statements.snapshot(SQL, ORDERS, stored=stored, deletes=False),
        OF_SNAPSHOT,
        events=SNAPSHOT,
        **({"stored": NOTHING} if stored else {}),
    )


def test_what_a_snapshot_lacks_is_deleted_unless_it_was_not_readable() -> None:
    stored = versions(
        f"s | o | _version | _row\n 1 | 1 | a | {row(1, 7)}\n 1 | 4 | a | {row(4, 7)}\n 1 | 5 | a | NULL\n 1 | 6 | a | {row(6, 7)}\n 2 | 6 | a | {row(6, 7)}\n 1 | 3 | a | {row(3, 7)}"
    )
    expected = OF_SNAPSHOT + "delete | 1 | 4 | NULL | p3 | NULL | applied | NULL\n delete | 2 | 6 | NULL | p3 | NULL | applied | NULL"
    bad = "s INT | o INT\n 1 | 6\n 1 | 6\n 2 | 9\n 1 | 1\n 1 | 1"
    check(statements.snapshot(SQL, ORDERS, stored=True, deletes=True), expected, events=SNAPSHOT, stored=stored, bad_keys=bad)
    check(statements.snapshot(SQL, ORDERS, stored=True, deletes=False), OF_SNAPSHOT, events=SNAPSHOT, stored=stored)


def judged(*, keep: bool) -> str:
    return statements.versions(SQL, ORDERS, keep_unchanged=keep)


NEW = classified(
    f"""
    _kind  | o | c | note | _row                  | _fate
    upsert | 1 | 7 | a    | NULL                  | applied
    upsert | 2 | 8 | a    | {row(2, 7, "a")}      | applied
    upsert | 3 | 7 | b    | {row(3, 7, "a")}      | applied
    upsert | 4 | 7 | a    | {row(4, 7, "a")}      | applied
    delete | 5 | NULL | NULL | {row(5, 7, "a")}   | applied
    delete | 6 | NULL | NULL | NULL               | applied
    upsert | 7 | 7 | a    | NULL                  | superseded
    delete | 8 | NULL | NULL | {row(8, 7, "a")}   | stale
    upsert | 9 | NULL | NULL | NULL               | applied
    delete | 10 | NULL | NULL | {row(10, "NULL", "NULL")} | applied
    """
)


def test_a_new_version_says_what_it_changes() -> None:
    expected = """
      o  | _fate      | _op  | _before.c | _new.c | _newhash IS NULL
      1  | applied    | I    | NULL      | 7      | false
      2  | applied    | U    | 7         | 8      | false
      3  | applied    | U    | 7         | 7      | false
      4  | applied    | U    | 7         | 7      | false
      5  | applied    | D    | 7         | NULL   | true
      6  | noop       | D    | NULL      | NULL   | true
      7  | superseded | NULL | NULL      | NULL   | true
      8  | stale      | NULL | NULL      | NULL   | true
      9  | applied    | I    | NULL      | NULL   | false
      10 | applied    | D    | NULL      | NULL   | true
    """
    check(judged(keep=True), expected, classified=NEW)
    there = "\n".join(f"{o} | {str(o in (1, 2, 3, 4, 9)).lower()}" for o in range(1, 11))
    check(judged(keep=True), f"o | _new IS NOT NULL\n{there}", classified=NEW)
    unchanged = expected.replace("4  | applied    | U    | 7         | 7      | false", "4 | noop | NULL | 7 | 7 | true")
    check(judged(keep=False), unchanged, classified=NEW)


def test_a_row_with_the_same_used_columns_and_their_hash_is_a_noop() -> None:
    check(judged(keep=True), f"{HASHED}\n 3 | noop | N | false\n 4 | noop | N | false", classified=_rehashed())
    check(judged(keep=False), f"{HASHED}\n 3 | noop | N | false\n 4 | noop | NULL | true", classified=_rehashed())


HASHED = "o | _fate | _op | _newhash IS NULL"


def _rehashed() -> str:
    """Rows 3 and 4 with the hashes that they have of their used columns."""
    from statement_tables import database

    from rejoin.plan.change.fingerprint import columns_print
    from rejoin.statements.dialect import text
    from rejoin.statements.value_hash import canonical, hashed

    with database().cursor() as connection:
        types = {c.name: c.type or "" for c in ORDERS.columns}
        values = {"s": "1", "c": "7"}

        def of(o: int) -> str:
            parts = [
                (text(columns_print(ORDERS.used)), "STRING"),
                *((f"CAST({values.get(n, o)} AS INTEGER)", types[n]) for n in ORDERS.used),
            ]
            ((found,),) = connection.execute(f"SELECT {hashed(canonical(SQL, parts))}").fetchall()
            return "".join(f"\\x{byte:02X}" for byte in found)

        return classified(
            f'_kind | o | c | note | _row | _fate\n upsert | 3 | 7 | b | "{_quoted(row(3, 7, "a", of(3)))}" | applied\n upsert | 4 | 7 | a | "{_quoted(row(4, 7, "a", of(4)))}" | applied'
        )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\")


MADE = f"""
  s INT | o INT | _fate | _arrival BIGINT | _row {"STRUCT(s INT, o INT, c INT, note VARCHAR, _hash BLOB)"} | _lines BIGINT | _op | _position | _newhash BLOB | _new STRUCT(s INT, o INT, c INT, note VARCHAR) | _before STRUCT(s INT, o INT, c INT, note VARCHAR, _hash BLOB)
  1 | 1 | applied | 0    | NULL        | 2 | I    | p1 | h | {{s: 1, o: 1, c: 7, note: a}} | NULL
  1 | 2 | applied | -1   | {row(2, 7)} | 1 | U    | p1 | h | {{s: 1, o: 2, c: 8, note: a}} | {row(2, 7)}
  1 | 3 | applied | NULL | {row(3, 7)} | 1 | D    | p1 | NULL | NULL | {row(3, 7)}
"""


def test_new_versions_are_rows_of_the_source_table() -> None:
    expected = """
      o | _run | _op | _version | c    | note | _before.c | _fate   | _real | _alive | _lines
      1 | 4    | I   | p1       | 7    | a    | NULL      | applied | true  | false  | 2
      2 | 4    | U   | p1       | 8    | a    | 7         | applied | false | true   | 1
      3 | 4    | D   | p1       | NULL | NULL | 7         | applied | false | true   | 1
    """
    check(statements.table_rows(SQL, ORDERS, 4), expected, made=MADE)
    unstored = MADE + " 1 | 4 | noop | 0 | NULL | 1 | NULL | p1 | NULL | NULL | NULL"
    check(f"SELECT * FROM ({statements.table_rows(SQL, ORDERS, 4)}) WHERE {statements.APPENDED}", "o\n 1\n 2\n 3", made=unstored)
    check(statements.table_rows(SQL, ORDERS, 4), "o | _before IS NULL\n 1 | true\n 2 | false\n 3 | false", made=MADE)

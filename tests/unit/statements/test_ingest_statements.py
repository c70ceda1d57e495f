"""ingest: events of a cut and stored versions become new versions."""

from event_tables import ORDERS, events, row, versions
from statement_tables import SQL, check

from rejoin.steps.ingest import statements
from rejoin.steps.ingest.stream_records import Ages

NOTHING = versions("o\n")


def test_a_truncation_deletes_every_key_that_lives_or_appears() -> None:
    given = events("o | c | _position | _arrival\n 1 | 7 | p1 | 1\n 2 | 7 | p2 | 2\n 2 | 8 | p3 | 3")
    stored = versions(f"s | o | _version | _row\n 1 | 2 | a | {row(2, 7)}\n 2 | 3 | b | {row(3, 7)}\n 1 | 4 | c | NULL")
    own = "_kind | s | o | c | _position | _arrival | len(_missing)\n upsert | 1 | 1 | 7 | p1 | 1 | 0\n upsert | 1 | 2 | 7 | p2 | 2 | 0\n upsert | 1 | 2 | 8 | p3 | 3 | 0\n"
    made = "delete | 1 | 1 | NULL | p2 | NULL | 0\n delete | 1 | 2 | NULL | p2 | NULL | 0\n"
    check(statements.truncation(SQL, ORDERS, "p2", stored=False), own + made, events=given)
    check(
        statements.truncation(SQL, ORDERS, "p2", stored=True),
        own + made + "delete | 2 | 3 | NULL | p2 | NULL | 0",
        events=given,
        stored=stored,
    )


READ, CHANGE = "00000000000000000005.0.00000000000000000000", "00000000000000000003.1.00000000000000000000"


def test_changes_right_after_a_snapshot_stand_behind_the_row_that_it_has_read() -> None:
    later = CHANGE.replace("3.1", "9.1")
    given = events(
        f"""
        o | _position | _arrival | _snapshot
        1 | {READ}    | 1        | row t
        1 | {CHANGE}  | 2        | after
        2 | {CHANGE}  | 1        | after
        2 | {READ}    | 2        | row t
        3 | {CHANGE}  | 3        | after
        4 | {CHANGE}  | 4        | after
        5 | {CHANGE}  | 4        | NULL
        6 | {READ}    | 5        | row t
        6 | {later}   | 6        | after
        7 | {CHANGE}  | 6        | after
        7 | {CHANGE}  | 7        | after
        """
    )
    stored = versions(f"o | _version | _row\n 3 | {READ} | {row(3, 7)}\n 4 | {later} | {row(4, 7)}\n 5 | {READ} | {row(5, 7)}")
    expected = [
        (1, READ), (1, f"{READ}~{CHANGE}"), (2, CHANGE), (2, READ), (3, f"{READ}~{CHANGE}"), (4, CHANGE), (5, CHANGE), (6, READ), (6, later), (7, CHANGE), (7, CHANGE),
    ]  # fmt: skip
    check(
        statements.behind_reads(SQL, ORDERS, stored=True),
        "o | _position\n" + "\n".join(f"{o} | {p}" for o, p in expected),
        events=given,
        stored=stored,
    )
    expected[4] = (3, CHANGE)
    check(
        statements.behind_reads(SQL, ORDERS, stored=False), "o | _position\n" + "\n".join(f"{o} | {p}" for o, p in expected), events=given
    )


FEED = events(
    """
    s | o | _position | _arrival
    1 | 1 | p5        | 1
    1 | 2 | p5        | 2
    1 | 3 | p5        | 3
    1 | 4 | p3        | 4
    1 | 4 | p7        | 5
    1 | 4 | p7        | 6
    1 | 4 | p5        | 7
    2 | 1 | p1        | 8
    1 | 5 | p2        | 9
    1 | 5 | p6        | 10
    1 | 6 | p6        | NULL
    1 | 6 | p6        | 11
    """
)
STORED = versions(
    f"s | o | _version | _row\n 1 | 1 | p6 | {row(1, 7)}\n 1 | 2 | p5 | {row(2, 7)}\n 1 | 3 | p4 | NULL\n 1 | 5 | p5 | {row(5, 7)}"
)


def test_the_newest_position_of_a_key_wins() -> None:
    expected = """
      s | o | _position | _arrival | _version | _fate
      1 | 1 | p5        | 1        | p6       | stale
      1 | 2 | p5        | 2        | p5       | duplicate
      1 | 3 | p5        | 3        | p4       | applied
      1 | 4 | p3        | 4        | NULL     | superseded
      1 | 4 | p7        | 5        | NULL     | duplicate
      1 | 4 | p7        | 6        | NULL     | applied
      1 | 4 | p5        | 7        | NULL     | superseded
      2 | 1 | p1        | 8        | NULL     | applied
      1 | 5 | p2        | 9        | p5       | stale
      1 | 5 | p6        | 10       | p5       | applied
      1 | 6 | p6        | NULL     | NULL     | duplicate
      1 | 6 | p6        | 11       | NULL     | applied
    """
    check(statements.feed(SQL, ORDERS, stored=True, placed=True), expected, events=FEED, stored=STORED)


def test_an_event_alone_with_its_key_is_only_compared_with_what_is_stored() -> None:
    given = events("o | _position\n 1 | p5\n 2 | p5\n 3 | p5\n 4 | p5")
    check(
        statements.feed(SQL, ORDERS, stored=True, placed=True, alone=True),
        "o | _fate\n 1 | stale\n 2 | duplicate\n 3 | applied\n 4 | applied",
        events=given,
        stored=STORED,
    )


def test_rows_of_a_snapshot_before_the_newest_whole_one_say_nothing() -> None:
    given = events("o | _position | _snapshot\n 1 | p4 | row t\n 2 | p5 | first t\n 3 | p4 | NULL\n 4 | p4 | added\n 5 | p4 | after")
    expected = "o | _fate\n 1 | stale\n 2 | applied\n 3 | applied\n 4 | applied\n 5 | applied"
    check(statements.feed(SQL, ORDERS, stored=False, placed=True, ages=Ages(floor="p5")), expected, events=given)


def test_a_tombstone_stands_right_behind_the_event_before_it() -> None:
    given = events(
        """
        _kind  | s | o | _position | _arrival
        upsert | 1 | 1 | p5        | 1
        delete | 1 | 1 | NULL      | 2
        upsert | 1 | 1 | p6        | 3
        delete | 1 | 2 | NULL      | 1
        upsert | 1 | 2 | p5        | 2
        delete | 1 | 3 | NULL      | 1
        delete | 1 | 4 | NULL      | 1
        delete | 1 | 5 | NULL      | 1
        delete | 2 | 1 | NULL      | 2
        upsert | 1 | 6 | p5        | NULL
        delete | 1 | 6 | NULL      | 9
        """
    )
    stored = versions(f"o | _version | _row\n 3 | p3 | {row(3, 7)}\n 4 | p3 | NULL\n 6 | p3 | {row(6, 7)}")
    expected = """
      s | o | _position | _fate
      1 | 1 | p5        | superseded
      1 | 1 | p5~       | superseded
      1 | 1 | p6        | applied
      1 | 2 | ""        | superseded
      1 | 2 | p5        | applied
      1 | 3 | p3~       | applied
      1 | 4 | p3        | duplicate
      1 | 5 | ~         | applied
      2 | 1 | ~         | applied
      1 | 6 | p5        | applied
      1 | 6 | p3~       | superseded
    """
    check(statements.feed(SQL, ORDERS, stored=True, placed=False), expected, events=given, stored=stored)

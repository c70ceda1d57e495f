"""ingest: snapshots within a feed, and how many events of each kind a cut has."""

import pytest
from event_tables import ORDERS, events, row, versions
from statement_tables import SQL, check

from rejoin.statements.dialect import aggregated
from rejoin.steps.ingest import bootstraps, generations
from rejoin.steps.ingest.bootstraps import Beginning
from rejoin.steps.ingest.event_counts import kind_counts

MARKED = events(
    """
    _kind    | s | o | _position | _arrival | _snapshot
    upsert   | 1 | 1 | p1        | 1        | NULL
    upsert   | 1 | 2 | p5        | 2        | "first t"
    upsert   | 1 | 3 | p5        | 3        | row
    upsert   | 1 | 4 | p5        | 4        | "last t"
    upsert   | 1 | 4 | p5        | 5        | "last t"
    upsert   | 1 | 5 | p3        | 6        | row
    upsert   | 1 | 6 | p7        | 7        | row
    upsert   | 1 | 7 | p5        | 8        | added
    upsert   | 1 | 8 | p0        | 9        | after
    delete   | 1 | 9 | p9        | 10       | NULL
    truncate | 1 | 9 | p8        | 11       | NULL
    skipped  | 1 | 9 | p99       | 12       | NULL
    upsert   | 1 | 9 | p6        | 13       | NULL
    """
)


def test_rows_of_snapshots_are_counted_by_generation_and_mark() -> None:
    expected = '_position | _mark | _rows | _at\n p5 | "first t" | 1 | 2\n p5 | NULL | 1 | 3\n p5 | "last t" | 2 | 5'
    check(generations.marked(SQL, []), expected, events=MARKED)
    check(generations.marked(SQL, ["p3"]), expected + "\n p3 | NULL | 1 | 6", events=MARKED)


def test_beside_generations_counts_what_is_of_none_and_the_ends_of_changes() -> None:
    text = aggregated(SQL, generations.others(["p5"]), "events")
    check(text, "unmarked | oldest | newest\n p7 | p1 | p9", events=MARKED)
    check(aggregated(SQL, generations.others([]), "events"), "unmarked | oldest | newest\n p7 | p1 | p9", events=MARKED)
    check(aggregated(SQL, generations.others(["p7"]), "events"), "unmarked | oldest | newest\n p5 | p1 | p9", events=MARKED)


@pytest.mark.parametrize(
    ("kind", "mark", "is_change"),
    [
        ("upsert", "NULL", True),
        ("delete", "NULL", True),
        ("truncate", "NULL", True),
        ("skipped", "NULL", False),
        ("upsert", "row", False),
        ("upsert", "after", False),
        ("upsert", "added", True),
    ],
)
def test_what_no_snapshot_read_is_a_change(kind: str, mark: str, *, is_change: bool) -> None:
    at = "p1" if is_change else "NULL"
    given = events(f"_kind | o | _position | _snapshot\n {kind} | 1 | p1 | {mark}")
    check(aggregated(SQL, generations.others([]), "events"), f"oldest | newest\n {at} | {at}", events=given)


def test_a_first_load_says_its_snapshots_at_once() -> None:
    given = (
        MARKED
        + '\nupsert | 1 | 1 | NULL | NULL | p5 | 20 | [] | [] | NULL | NULL | NULL | 1 | NULL | NULL | NULL | "first u"\nupsert | 1 | 1 | NULL | NULL | p5 | 20 | [] | [] | NULL | NULL | NULL | 1 | NULL | NULL | NULL | "last u"'
    )
    expected = 'read_from | min_first | max_first | min_last | max_last | oldest | newest\n p3 | "first t" | "first u" | "last t" | "last u" | p1 | p9'
    check(aggregated(SQL, generations.LOADED, "events"), expected, events=given)


def test_what_a_whole_snapshot_did_not_bring_is_deleted_behind_its_version() -> None:
    given = events(
        """
        _kind  | s | o  | _position | _arrival | _snapshot
        upsert | 1 | 1  | p5        | 1        | row
        upsert | 1 | 2  | p4        | 1        | NULL
        upsert | 1 | 2  | p3        | 1        | NULL
        upsert | 1 | 3  | p4        | 9        | NULL
        upsert | 1 | 4  | p4        | 8        | NULL
        upsert | 1 | 5  | p4        | 1        | row
        delete | 1 | 6  | p4        | 1        | NULL
        upsert | 1 | 7  | p4        | 1        | NULL
        upsert | 1 | 7  | p6        | 2        | NULL
        upsert | 1 | 8  | p4        | 1        | NULL
        upsert | 1 | 9  | p5        | 1        | NULL
        upsert | 1 | 14 | NULL      | 1        | NULL
        """
    )
    unread = "s INT | o INT\n 1 | 8\n 2 | 2\n 1 | 12"
    stored = versions(
        "\n".join(["s | o | _version | _row", *(f"1 | {o} | {at} | {there}" for o, at, there in ((1, "p1", row(1, 7)), (10, "p4", row(10, 7)), (11, "p4", "NULL"), (12, "p4", row(12, 7)), (13, "p5", row(13, 7)), (2, "p2", row(2, 7)))), f"2 | 1 | p4 | {row(1, 7, s=2)}"])
    )  # fmt: skip
    gone = "_kind | s | o | _position | _arrival | len(_missing)\n delete | 1 | 2 | p4~p5 | NULL | 0\n delete | 1 | 4 | p4~p5 | NULL | 0\n"
    deletes = "SELECT * FROM ({}) WHERE _arrival IS NULL".format
    check(deletes(generations.reconciled(SQL, ORDERS, "p5", 8, stored=False)), gone, events=given, unread=unread)
    more = gone + "delete | 1 | 10 | p4~p5 | NULL | 0\n delete | 2 | 1 | p4~p5 | NULL | 0"
    check(deletes(generations.reconciled(SQL, ORDERS, "p5", 8, stored=True)), more, events=given, unread=unread, stored=stored)
    count = f"SELECT count(*) AS n FROM ({generations.reconciled(SQL, ORDERS, 'p5', 8, stored=False)})"
    check(count, "n\n 14", events=given, unread=unread)


def test_rows_of_a_snapshot_without_a_place_get_that_of_its_beginning() -> None:
    given = events(
        """
        _kind   | o | _position | _arrival | _snapshot
        upsert  | 1 | p1        | 1        | NULL
        skipped | 0 | NULL      | 2        | "first t"
        upsert  | 2 | q         | 3        | "row t"
        skipped | 0 | NULL      | 4        | "last t"
        upsert  | 3 | q         | 5        | "row u"
        upsert  | 4 | q         | 1        | "row t"
        upsert  | 5 | q         | 9        | "row t"
        upsert  | 6 | p9        | 9        | added
        """
    )
    begun = [Beginning("t", 2, "at2"), Beginning("t", 7, "at7")]
    expected = """
      o | _arrival | _position | _snapshot
      1 | 1        | p1        | NULL
      0 | 2        | at2       | "first t"
      2 | 3        | at2       | "row t"
      0 | 4        | at2       | "last t"
      3 | 5        | q         | added
      4 | 1        | q         | added
      5 | 9        | at7       | "row t"
      6 | 9        | p9        | added
    """
    check(bootstraps._placed(SQL, ORDERS, begun), expected, events=given)
    adds = "o | _position | _snapshot\n 1 | p1 | NULL\n 2 | q | added"
    check(f"SELECT * FROM ({bootstraps._placed(SQL, ORDERS, [])}) WHERE o IN (1, 2)", adds, events=given)


def test_events_are_counted_by_kind() -> None:
    given = events(
        """
        _kind       | o    | _position | _missing | _absent | _old_key     | _lines | _snapshot
        upsert      | 1    | p1        | []       | []      | NULL         | 1      | NULL
        upsert      | 2    | NULL      | [c]      | []      | NULL         | 1      | NULL
        upsert      | 3    | p1        | [c]      | []      | {s: 1, o: 1} | 1      | NULL
        upsert      | 3    | p1        | []       | []      | {s: 1, o: 1} | 1      | NULL
        upsert      | 4    | p1        | []       | [c]     | NULL         | 1      | NULL
        delete      | 5    | NULL      | []       | []      | NULL         | 1      | NULL
        delete      | 6    | p1        | []       | []      | NULL         | 1      | NULL
        quarantined | NULL | NULL      | []       | []      | NULL         | 3      | NULL
        quarantined | 7    | NULL      | []       | []      | NULL         | 2      | NULL
        quarantined | 7    | NULL      | []       | []      | NULL         | 1      | NULL
        upsert      | 2    | p1        | [c]      | []      | NULL         | 1      | NULL
        skipped     | NULL | NULL      | []       | []      | NULL         | 1      | NULL
        truncate    | NULL | p5        | []       | []      | NULL         | 1      | NULL
        truncate    | NULL | p6        | []       | []      | NULL         | 1      | NULL
        upsert      | 8    | p8        | []       | []      | NULL         | 1      | row
        upsert      | 8    | p7        | []       | []      | NULL         | 1      | row
        upsert      | 9    | p9        | []       | []      | NULL         | 1      | added
        upsert      | 9    | p3        | []       | []      | NULL         | 1      | after
        upsert      | 9    | p4        | []       | []      | NULL         | 1      | after
        """
    )
    for kind in ("quarantined", "skipped", "truncate"):
        given = given.replace(f"{kind} | 1 | NULL", f"{kind} | NULL | NULL")
    counts = "read | lines | quarantined_lines | skipped | quarantined | quarantined_without_key | truncates | truncated | incomplete | adopted | unplaced | absent | reads | read_to | first_after\n"
    text = aggregated(SQL, kind_counts(SQL, ORDERS), "events")
    check(text, counts + "19 | 22 | 6 | 1 | 3 | 1 | 2 | p6 | 3 | 1 | 2 | 1 | 2 | p8 | p3", events=given)
    check(text, counts + "0 | 0 | 0 | 0 | 0 | 0 | 0 | NULL | 0 | 0 | 0 | 0 | 0 | NULL | NULL", events=events("o\n"))

"""ingest: what an attempt asks of its events and of what is stored, beside its statements."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from attempts import attempt, landed, relation
from event_tables import ORDERS, PLAN, before, events, row
from statement_tables import check_rows
from stored_tables import StoredTables

from rejoin.context.work import Cut, Work
from rejoin.engines.relation import KeySpread
from rejoin.errors import SchemaDrift, SnapshotAgain
from rejoin.lake.ledger.generations import Generation, Generations
from rejoin.plan.model.step_results import Ingested
from rejoin.plan.pin import Pin
from rejoin.sources import SourceAccess
from rejoin.steps.ingest import bootstraps, snapshot_ends
from rejoin.steps.ingest.bootstraps import Beginning
from rejoin.steps.ingest.column_drift import check_columns
from rejoin.steps.ingest.event_counts import alone, count_kinds, no_kinds
from rejoin.steps.ingest.generations import Mark, Reads
from rejoin.steps.ingest.new_versions import Storing
from rejoin.steps.ingest.passed_over import _newest_commit
from rejoin.steps.ingest.record_checks import OF_OTHERS, _first, _hint, check_any_applied
from rejoin.steps.ingest.snapshot_ends import SnapshotEnds
from rejoin.steps.ingest.step import Ingesting

STORED = "s INT | o INT | _run BIGINT | _op | _version\n"
READ, CHANGED, LATER = (f"{at:020d}.{rank}.{0:020d}" for at, rank in ((5, 0), (5, 1), (9, 1)))


@pytest.fixture
def lake(tmp_path: Path) -> StoredTables:
    return StoredTables(tmp_path, "shop")


@pytest.fixture
def work(lake: StoredTables) -> Work:
    return attempt(lake, PLAN)


def storing(work: Work, cut: Cut) -> Storing:
    return Storing(work, ORDERS, cut, None)


NO_LINES = Cut(Pin("debezium", (), 1), SourceAccess("."))
MADE_ONLY = ("_version", "_row", "_fate", "_op", "_before", "_new", "_newhash")
MADE = events(
    f"""
    o  | _op  | _arrival | _fate       | _lines | _position | _row        | _before     | _new
    1  | I    | 1        | applied     | 1      | p1        | NULL        | NULL        | {row(1, 8)[:-11]}}}
    2  | U    | 2        | applied     | 1      | p1        | {row(2, 7)} | {before(7)} | {row(2, 8)[:-11]}}}
    3  | D    | 3        | applied     | 1      | p1        | {row(3, 7)} | {before(7)} | NULL
    4  | D    | 4        | noop        | 1      | p1        | NULL        | NULL        | NULL
    5  | D    | NULL     | applied     | 1      | p4~p9     | {row(5, 7)} | {before(7)} | NULL
    6  | D    | NULL     | applied     | 1      | p5        | {row(6, 7)} | {before(7)} | NULL
    7  | N    | 7        | noop        | 1      | p1        | {row(7, 7)} | {before(7)} | {row(7, 7)[:-11]}}}
    8  | NULL | 8        | quarantined | 3      | p1        | {row(8, 7)} | NULL        | NULL
    9  | NULL | 9        | stale       | 1      | p1        | NULL        | NULL        | NULL
    10 | D    | NULL     | noop        | 1      | p4~p9     | NULL        | NULL        | NULL
    11 | NULL | -1       | quarantined | 7      | p1        | NULL        | NULL        | NULL
    12 | U    | 12       | applied     | 1      | p4~p9     | {row(2, 7)} | {before(7)} | {row(2, 8)[:-11]}}}
    13 | NULL | 13       | superseded  | 1      | p1        | NULL        | NULL        | NULL
    14 | NULL | 14       | duplicate   | 1      | p1        | {row(8, 7)} | NULL        | NULL
    15 | U    | 15       | applied     | 1      | p4~p9     | {row(2, 7)} | {before(7)} | {row(2, 8)[:-11]}}}
    """,
    *MADE_ONLY,
)


def test_every_record_has_its_fate_and_every_change_is_counted(work: Work) -> None:
    fates, bad_lines, write = storing(work, NO_LINES).write(made := relation(MADE), KeySpread(made, ORDERS.order, 15))
    counts = {"applied": 5, "noop": 2, "superseded": 1, "duplicate": 1, "stale": 1, "quarantined": 1}
    assert fates == Ingested(**counts, changes=7, deleted=3, implied=2, reconciled=1, live=7)
    assert bad_lines == 3
    stored = work.after([write]).every("orders", ["o", "_op"])
    check_rows(stored.here(), "o | _op\n 1 | I\n 2 | U\n 3 | D\n 4 | D\n 5 | D\n 6 | D\n 7 | N\n 10 | D\n 12 | U\n 15 | U")
    none = relation(MADE.splitlines()[0])
    assert storing(work, NO_LINES).write(none, KeySpread(none, ORDERS.order, 0))[:2] == (Ingested(), 0)


def test_records_that_are_refused_later_are_kept_as_they_were_written(work: Work, tmp_path: Path) -> None:
    cut = landed(tmp_path, "1.jsonl", ["first", "second", "third"])
    judged = relation(
        events("o | _file | _line | _fate | _code\n 1 | 1.jsonl | 1 | applied | a\n 2 | 1.jsonl | 2 | quarantined | b\n 3 | 2.jsonl | 2 | quarantined | c\n 4 | 1.jsonl | 3 | quarantined | d", "_fate")
    )  # fmt: skip
    written = storing(work, cut)._as_written(judged)
    check_rows(written.here(), "o | _raw | _fate\n 2 | second | quarantined\n 4 | third | quarantined\n 3 | NULL | quarantined")
    refused = relation(events("o | _file | _line | _code\n 9 | 1.jsonl | 9 | z"))
    bad = storing(work, cut)._bad(refused, judged)
    check_rows(bad.here(), "_code | _file | _line\n b | 1.jsonl | 2\n c | 2.jsonl | 2\n d | 1.jsonl | 3\n z | 1.jsonl | 9")


def test_what_is_held_back_is_no_record_of_the_cut(work: Work) -> None:
    made = events(
        "o | _arrival | _fate | _code | _position | _file | _line\n 1 | 0 | quarantined | a | p1 | f | 1\n 2 | -1 | quarantined | b | p1 | f | 2\n 3 | 1 | applied | NULL | p1 | f | 3",
        *MADE_ONLY,
    )
    nothing, spread = relation(events("o\n")), KeySpread(relation(made), ORDERS.order, 3)
    outcome = storing(work, NO_LINES)._append(relation(made), replace(no_kinds(), read=2, lines=2), nothing, spread, None)
    assert (outcome.result.quarantined, outcome.result.applied) == (1, 1)
    check_rows(work.after(outcome.writes).every("orders__quarantine", ["o", "_code"]).here(), "o | _code\n 1 | a")


# --- what a run takes together ----------------------------------------------------------------------------------------


def ingesting(work: Work) -> Ingesting:
    return Ingesting(work, ORDERS, NO_LINES, None)


def test_only_rows_and_deletes_are_facts(work: Work) -> None:
    given = relation(events("_kind | o\n upsert | 1\n delete | 2\n truncate | 3\n skipped | 4\n quarantined | 5"))
    check_rows(ingesting(work)._facts_of(given).here(), "o | _kind\n 1 | upsert\n 2 | delete")
    check_rows(ingesting(work)._refused(given).here(), "o | _kind\n 5 | quarantined")
    check_rows(ingesting(work)._together([given, relation(events("o\n 6"))]).here(), "o\n 1\n 2\n 3\n 4\n 5\n 6")


def test_the_old_key_of_a_row_is_looked_up_where_a_row_takes_values_of_another(work: Work) -> None:
    given = relation(events("o | _old_key\n 1 | NULL\n 2 | {s: 9, o: 8}"))
    check_rows(ingesting(work)._looked_up(given, replace(no_kinds(), adopted=1)).here(), "s | o\n 1 | 1\n 1 | 2\n 9 | 8")
    check_rows(ingesting(work)._looked_up(given, no_kinds()).here(), "s | o\n 1 | 1\n 1 | 2")


def test_records_that_are_tried_again_arrive_in_the_order_in_which_they_came(lake: StoredTables) -> None:
    lines = [
        json.dumps({"op": "c", "after": {"s": 1, "o": o, "c": 1, "note": ""}, "source": {"connector": "postgresql", "lsn": o}})
        for o in range(5)
    ]
    rows = "\n".join(
        f"NULL | NULL | {run} | Q | VALUE_TYPE | x | {file} | {line} | {json.dumps(lines[o])}"
        for o, (run, file, line) in enumerate([(2, "a", 1), (1, "b", 2), (1, "b", 1), (1, "a", 9), (2, "a", 2)])
    )
    lake.write("orders__quarantine", "s INT | o INT | _run BIGINT | _op | _code | _reason | _source_file | _line BIGINT | _raw\n" + rows)
    again = ingesting(attempt(lake, PLAN))._replayed()
    assert again is not None and again[1].read == 5
    check_rows(again[0].here(), "_arrival | o\n -2 | 4\n -3 | 0\n -4 | 1\n -5 | 2\n -6 | 3")


@pytest.mark.parametrize(
    ("rows", "is_alone"), [("SELECT 1 AS s, 1 AS o UNION ALL SELECT 1, 2", True), ("SELECT 1 AS s, 1 AS o UNION ALL SELECT 1, 1", False)]
)
def test_it_is_seen_whether_many_events_have_keys_of_their_own(work: Work, rows: str, *, is_alone: bool) -> None:
    assert alone(work.engine, ORDERS, work.engine.files(rows)) is is_alone


# --- columns that are gone --------------------------------------------------------------------------------------------


def absent(text: str) -> str:
    return events(f"_kind | o | _position | _absent | _file | _line\n{text}")


@pytest.mark.parametrize(
    ("given", "stored", "gone"),
    [
        ("upsert | 1 | p5 | [c] | 1 | 1\n upsert | 2 | p6 | [] | 1 | 2", "p1", False),
        ("upsert | 1 | p7 | [c] | 1.jsonl | 2\n upsert | 2 | p6 | [] | 1.jsonl | 1", "p1", True),
        ("upsert | 1 | p7 | [c] | 1.jsonl | 2\n upsert | 2 | p6 | [] | 1.jsonl | 1", "p8", False),
        ("upsert | 1 | p5 | [c] | 1.jsonl | 1\n upsert | 3 | p7 | [c] | 1.jsonl | 2\n upsert | 2 | p6 | [] | 1.jsonl | 1", "p1", True),
        ("upsert | 1 | p5 | [] | 1.jsonl | 1\n upsert | 3 | p4 | [] | 1.jsonl | 1\n upsert | 2 | p7 | [note, c] | 1.jsonl | 2", "p1", True),
        ("delete | 1 | p9 | [c] | 1.jsonl | 1\n upsert | 2 | p6 | [] | 1.jsonl | 1", "p1", False),
        ("upsert | 1 | p9 | [note] | 1.jsonl | 2\n upsert | 2 | p8 | [c] | 1.jsonl | 1\n delete | 2 | p99 | [note] | 1.jsonl | 1\n upsert | 2 | p7 | [] | 1.jsonl | 1", "p1", True),
    ],
)  # fmt: skip
def test_a_column_is_gone_if_the_newest_event_and_what_is_stored_lack_it(
    lake: StoredTables, tmp_path: Path, given: str, stored: str, gone: bool
) -> None:
    lake.write("orders", f"{STORED} 1 | 1 | 1 | I | p0\n 1 | 2 | 1 | I | {stored}")
    old, new = (json.dumps({"op": "c", "after": {"s": 1, "o": 1, column: 1}, "source": {}}) for column in ("c", "renamed"))
    cut = landed(tmp_path, "1.jsonl", [old, new])
    work = attempt(lake, PLAN)
    if not gone:
        check_columns(work.engine, ORDERS, relation(absent(given)), work.before, cut.given, cut.access)
        return
    with pytest.raises(SchemaDrift, match="renamed"):
        check_columns(work.engine, ORDERS, relation(absent(given)), work.before, cut.given, cut.access)


# --- what is said of records ------------------------------------------------------------------------------------------


def test_the_first_refused_records_are_told_by_place_and_reason(work: Work) -> None:
    bad = events(
        "_kind | _file | _line | _code | _reason\n upsert | a | 1 | NULL | NULL\n quarantined | b | 2 | K | why\n quarantined | a | 3 | K | why"
    )
    assert _first(work.engine, relation(bad)) == "K at a:3: why (also at b:2)"


def test_what_refused_records_look_like_is_told_by_those_whose_text_is_at_hand(work: Work) -> None:
    maxwell = json.dumps({"database": "d", "table": "orders", "type": "insert", "ts": 1, "xid": 1, "data": {}})
    bad = events(f"_file | _line | _code | _raw\n a | 1 | K | NULL\n a | 2 | K | {json.dumps(maxwell)}")
    assert "Maxwell" in _hint(work.engine, ORDERS, relation(bad))


def test_records_that_others_make_unusable_do_not_stop_a_run(work: Work) -> None:
    every = Ingested(read=2, quarantined=2)
    check_any_applied(
        work.engine, ORDERS, every, relation(f"_code | _file | _line | _reason\n {OF_OTHERS[0]} | a | 1 | x\n K | a | 2 | x"), 3
    )
    with pytest.raises(Exception, match="cannot be applied"):
        check_any_applied(work.engine, ORDERS, every, relation("_code | _file | _line | _reason\n K | a | 1 | x\n K | a | 2 | x"), 3)


def test_the_newest_commit_is_that_of_the_newest_changes(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.steps.ingest.passed_over.LOOKED_AT", 2)
    cut = landed(tmp_path, "1.jsonl", [json.dumps({"op": "u", "source": {"ts_ms": 1000 * n}}) for n in range(1, 7)])
    given = events(
        """
        _kind    | o | _arrival | _snapshot | _file   | _line
        upsert   | 1 | 1        | NULL      | 1.jsonl | 4
        upsert   | 1 | 2        | NULL      | 1.jsonl | 2
        delete   | 1 | 3        | NULL      | 1.jsonl | 3
        upsert   | 1 | 4        | row       | 1.jsonl | 5
        skipped  | 1 | 5        | NULL      | 1.jsonl | 6
        """
    )
    assert _newest_commit(work, cut, ORDERS, relation(given)) == 3
    assert _newest_commit(work, cut, ORDERS, relation(given.replace("delete", "upsert").replace("1.jsonl | 2", "1.jsonl | 4"))) == 4


# --- snapshots within a feed ------------------------------------------------------------------------------------------


def of_kinds(text: str) -> str:
    return events("_kind | o | _position | _arrival | _snapshot | _file\n" + text)


def test_a_bootstrap_stands_behind_the_newest_change_before_it(lake: StoredTables, work: Work) -> None:
    given = relation(
        of_kinds(
            """
            upsert  | 1    | p3   | 1 | NULL      | a
            upsert  | 1    | p5   | 2 | NULL      | a
            upsert  | 1    | p4   | 3 | NULL      | a
            upsert  | 2    | q9   | 3 | "row u"   | a
            skipped | NULL | NULL | 4 | "first t" | a
            upsert  | 1    | p6   | 4 | NULL      | a
            upsert  | 2    | q    | 5 | "row t"   | a
            skipped | NULL | NULL | 6 | "last t"  | a
            skipped | NULL | p7   | 7 | NULL      | a
            skipped | NULL | NULL | 8 | "first u" | a
            upsert  | 1    | p8   | 9 | NULL      | a
            """
        )
    )
    begun = [Beginning("t", 4, "p5»0000000003.00000"), Beginning("u", 8, "p7»0000000003.00001")]
    assert bootstraps._begun(work, ORDERS, given) == begun
    none = relation(of_kinds('skipped | NULL | NULL | 4 | "first t" | a'))
    assert bootstraps._begun(work, ORDERS, none)[0].position.startswith("0" * 20 + "»")
    lake.write("orders", f"{STORED} 1 | 1 | 1 | I | p6~p9\n 1 | 2 | 1 | I | p0\n 1 | 3 | 2 | I | p2")
    assert [b.position.partition("»")[0] for b in bootstraps._begun(attempt(lake, PLAN), ORDERS, given)] == ["p6", "p7"]


def test_rows_of_one_snapshot_lie_in_one_partition(work: Work) -> None:
    one = 'upsert | 1 | q | 1 | "row t" | a\n upsert | 2 | q | 1 | "row t" | a\n upsert | 3 | q | 1 | "row u" | b\n upsert | 3 | p | 1 | NULL | b\n upsert | 3 | p | 1 | NULL | a'
    bootstraps._check_together(work, ORDERS, relation(of_kinds(one)))
    with pytest.raises(SnapshotAgain, match="2 partitions"):
        bootstraps._check_together(work, ORDERS, relation(of_kinds(one + '\n upsert | 4 | q | 2 | "row t" | b')))


def ends(work: Work) -> SnapshotEnds:
    """Of a snapshot that began in run 2, and ends at arrival 5."""
    now = Generations({"t": Generation("p5", 2, 9, "p5")})
    return SnapshotEnds(work, ORDERS, Reads((Mark("p5", "t", last=True, at=5),)), None, now)


def test_keys_that_a_snapshot_may_have_brought_are_those_refused_since_it_began(lake: StoredTables) -> None:
    given = events("_kind | o | _arrival\n quarantined | 1 | 4\n quarantined | 2 | 5\n quarantined | 3 | 6\n upsert | 4 | 4")
    assert ends(attempt(lake, PLAN)).unreadable(relation(given)) == 0
    check_rows(ends(attempt(lake, PLAN))._unread(relation(given)).here(), "s | o\n 1 | 1\n 1 | 2")
    lake.write(
        "orders__quarantine",
        """
        s INT | o INT | _run BIGINT | _op | _code | _reason | _source_file | _line BIGINT
        1     | 5     | 1           | Q   | K     | x       | a            | 1
        1     | 6     | 2           | Q   | K     | x       | a            | 2
        NULL  | NULL  | 3           | Q   | K     | x       | a            | 3
        """,
    )
    check_rows(ends(attempt(lake, PLAN))._unread(relation(given)).here(), "s | o\n 1 | 1\n 1 | 2\n 1 | 6\n NULL | NULL")
    assert ends(attempt(lake, PLAN)).unreadable(relation(given)) == 1


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ('upsert | 2 | p5 | 1 | "row t" | a', False),
        ('upsert | 1 | p5 | 1 | "row t" | a', True),
        ('upsert | 1 | p5 | 1 | NULL | a\n upsert | 2 | p5 | 1 | "row t" | a', False),
        ('upsert | 2 | p4 | 1 | "row t" | a', True),
    ],
    ids=["of other keys", "of a key that is stored", "a change of that key", "after changes"],
)
def test_a_full_load_comes_once_and_before_all_changes(lake: StoredTables, given: str, again: bool) -> None:
    lake.write("orders", f"{STORED} 1 | 1 | 1 | I | p5")
    work, found = attempt(lake, PLAN), relation(of_kinds(given))
    kinds = count_kinds(work.engine, ORDERS, found)
    if not again:
        snapshot_ends._check_first(work, ORDERS, found, kinds)
        return
    with pytest.raises(SnapshotAgain):
        snapshot_ends._check_first(work, ORDERS, found, kinds)


@pytest.mark.parametrize(("version", "older"), [(CHANGED, True), (LATER, False), (READ, False)])
def test_rows_of_an_unmarked_snapshot_do_not_come_after_changes(lake: StoredTables, version: str, older: bool) -> None:
    lake.write("orders", f"{STORED} 1 | 1 | 1 | I | {version}")
    reads = Reads(unmarked=LATER)
    if not older:
        snapshot_ends._check_told(attempt(lake, PLAN), ORDERS, reads)
        return
    with pytest.raises(SnapshotAgain):
        snapshot_ends._check_told(attempt(lake, PLAN), ORDERS, reads)

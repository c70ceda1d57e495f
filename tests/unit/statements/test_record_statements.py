"""ingest: what the records of a cut count for: streams, snapshots within a feed, what is held back, and how many there are of each kind."""

import pytest
from event_tables import EVENTS
from statement_tables import SQL, check

from rejoin import Topology, records
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table
from rejoin.steps.ingest import statements
from rejoin.steps.ingest.stream_records import Ages


def _stream(event_time: str = "at", retention: str | None = None) -> Table:
    made = Topology("web")
    kept = {} if retention is None else {"retention": retention}
    views = made.stream(
        "views", id=["s", "o"], key="k", event_time=event_time, schema="s INT, o INT, k STRING, at TIMESTAMP", source=records("v"), **kept
    )
    views.select(["s", "o", "k"]).named("out")
    return compile(made).table("views")


PLAIN, TIMED, KEPT = _stream(), _stream("at + INTERVAL 0 SECONDS"), _stream(retention="10 seconds")


def views(table: Table, text: str) -> str:
    """Events of the stream: those of orders, with its columns instead."""
    typed = {"k": "VARCHAR", "at": "TIMESTAMPTZ", "event_time": "TIMESTAMPTZ"}
    header, *lines = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    columns = [f"{c.name}" for c in table.columns]
    names = ["_kind", *columns, *EVENTS[5:]]
    types = {
        "s": "INT",
        "o": "INT",
        "_arrival": "BIGINT",
        "_missing": "VARCHAR[]",
        "_absent": "VARCHAR[]",
        "_old_key": "STRUCT(s INT, o INT)",
        "_line": "BIGINT",
        "_lines": "BIGINT",
    } | typed
    usual = {"_kind": "upsert", "s": "1", "_missing": "[]", "_absent": "[]", "_lines": "1"}
    rows = (" | ".join(dict(zip(header, line, strict=True)).get(name, usual.get(name, "NULL")) for name in names) for line in lines)
    return "\n".join([" | ".join(f"{name} {types[name]}" if name in types else name for name in names), *rows])


def test_the_first_record_of_an_id_counts() -> None:
    given = views(
        PLAIN,
        """
        _kind  | s | o | _position | _arrival
        upsert | 1 | 1 | p2        | 1
        upsert | 1 | 1 | p1        | 3
        upsert | 1 | 1 | p1        | 2
        upsert | 1 | 2 | p2        | 1
        upsert | 1 | 2 | NULL      | 2
        upsert | 1 | 3 | p1        | 1
        upsert | 2 | 1 | p1        | 1
        delete | 1 | 4 | p1        | 1
        upsert | 1 | 4 | p2        | 2
        upsert | 1 | 5 | p1        | 5
        upsert | 1 | 5 | p1        | NULL
        """,
    )
    stored = "s INT | o INT | _version | _row\n 1 | 3 | p1 | NULL"
    expected = """
      s | o | _position | _arrival | _fate
      1 | 1 | p2        | 1        | duplicate
      1 | 1 | p1        | 3        | duplicate
      1 | 1 | p1        | 2        | applied
      1 | 2 | p2        | 1        | duplicate
      1 | 2 | NULL      | 2        | applied
      1 | 3 | p1        | 1        | duplicate
      2 | 1 | p1        | 1        | applied
      1 | 4 | p1        | 1        | duplicate
      1 | 4 | p2        | 2        | applied
      1 | 5 | p1        | 5        | duplicate
      1 | 5 | p1        | NULL     | applied
    """
    check(statements.feed(SQL, PLAIN, stored=True, placed=True), expected, events=given, stored=stored)
    alone = views(PLAIN, "_kind | o\n upsert | 1\n upsert | 3\n delete | 4")
    check(
        statements.feed(SQL, PLAIN, stored=True, placed=True, alone=True),
        "o | _fate\n 1 | applied\n 3 | duplicate\n 4 | duplicate",
        events=alone,
        stored=stored,
    )


def test_a_record_for_which_no_time_is_computed_is_refused_and_another_of_its_id_counts() -> None:
    assert TIMED.event_time is not None
    given = views(
        TIMED,
        f"""
        _kind  | o | _position | {TIMED.event_time} | _missing
        upsert | 1 | p1        | NULL               | []
        upsert | 1 | p2        | 2026-01-01 10:00+00 | []
        upsert | 2 | p1        | 2026-01-01 10:00+00 | []
        delete | 3 | p1        | NULL               | []
        upsert | 4 | p1        | NULL               | [{TIMED.event_time}]
        """,
    )
    expected = """
      o | _position | _fate       | _code
      1 | p1        | quarantined | NO_EVENT_TIME
      1 | p2        | applied     | NULL
      2 | p1        | applied     | NULL
      3 | p1        | duplicate   | NULL
      4 | p1        | applied     | NULL
    """
    check(statements.feed(SQL, TIMED, stored=False, placed=True), expected, events=given)


def late(*given: tuple[int, str, str, str]) -> str:
    lines = (
        f"{kind} | {o} | p{n} | {n} | {'NULL' if at == '-' else f'1970-01-01 00:00:{at}+00'}" for n, (o, kind, at, _) in enumerate(given)
    )
    return views(KEPT, "\n".join(["_kind | o | _position | _arrival | at", *lines]))


@pytest.mark.parametrize(
    ("ages", "given"),
    [
        pytest.param(
            Ages(),
            [(1, "upsert", "20", "applied"), (2, "upsert", "10", "applied"), (3, "upsert", "09.999999", "late"), (4, "upsert", "25", "applied"), (5, "upsert", "14", "late"), (6, "upsert", "-", "applied"), (7, "delete", "01", "duplicate")],
            id="than those before it in its cut",
        ),
        pytest.param(
            Ages(newest=20_000_000),
            [(1, "upsert", "09.999999", "late"), (2, "upsert", "10", "applied"), (3, "upsert", "-", "applied"), (4, "upsert", "09", "late"), (4, "upsert", "11", "applied"), (5, "delete", "01", "duplicate")],
            id="than what is stored",
        ),
        pytest.param(Ages(newest=20_000_000, taken=15_000_000), [(1, "upsert", "14.999999", "late"), (2, "upsert", "15", "applied")], id="than what was let go"),
        pytest.param(Ages(newest=20_000_000, taken=5_000_000), [(1, "upsert", "09.999999", "late"), (2, "upsert", "10", "applied")], id="than retention allows"),
        pytest.param(
            Ages(),
            [(1, "upsert", "20", "applied"), (1, "upsert", "40", "duplicate"), (2, "upsert", "12", "applied")],
            id="but a duplicate makes none too old",
        ),
    ],
)  # fmt: skip
def test_a_record_is_too_old(ages: Ages, given: list[tuple[int, str, str, str]]) -> None:
    fates = (
        f"{o} | p{n} | " + ("quarantined | TOO_LATE" if fate == "late" else f"{fate} | NULL") for n, (o, _, _, fate) in enumerate(given)
    )
    check(
        statements.feed(SQL, KEPT, stored=False, placed=True, ages=ages),
        "\n".join(["o | _position | _fate | _code", *fates]),
        events=late(*given),
    )

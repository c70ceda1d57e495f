"""A table in PostgreSQL is equal to the output after every run, whatever happens in between (P2, P4, P5, P6, P7)."""

import signal
import threading
import time
from pathlib import Path

import psycopg
import pytest
from integration.made import Lake, deliver, delivering
from targets import Hook, rows_of

from rejoin.airflow.local.server import free_port
from rejoin.errors import SinkConflict, SinkCursorLost, SinkDenied, SinkDown, SinkFenced, SinkRecordRefused, SinkSchemaRefused, SinkSlow
from rejoin.steps.deliver.catch_up import Restart

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def table(lake: Lake, topic: str, database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The target, in a schema of its own, with the lake's sink declared."""
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    lake.declare(f'postgres("{topic}.people")')
    return f"{topic}.people"


def test_a_run_after_the_other_the_table_is_equal_to_the_output(lake: Lake, database: str, table: str) -> None:
    for _ in range(4):
        assert lake.topology().deliver("people.postgres").upto == max(int(str(r["_run"])) for r in lake.state.values())
        assert rows_of(database, table) == lake.rows()
        lake.run(lake.some(20))


@pytest.mark.parametrize("every", [pytest.param(1, id="every one", marks=pytest.mark.nightly), pytest.param(6, id="every sixth")])
def test_after_kills_at_every_point_the_table_is_equal_to_the_output(
    lake: Lake, database: str, table: str, tmp_path: Path, every: int
) -> None:
    lake.declare(f'postgres("{table}", start="changes")')
    trace = tmp_path / "trace"
    done = deliver(lake, "postgres", REJOIN_CRASH_TRACE=str(trace))
    assert done.returncode == 0, done.stderr
    second = [p for p in dict.fromkeys(trace.read_text().split()) if ":2:" in p]
    points = ["deliver.people.postgres:taken_over", "deliver.people.postgres:moving", *second, *(p.replace(":2:", ":1:") for p in second)]
    assert len(points) >= 20, points
    for point in points[::every]:
        for _ in range(2):  # at least as many transactions as the point's number says
            lake.run(lake.some(10))
        killed = deliver(lake, "postgres", REJOIN_CRASH=point)
        assert killed.returncode == -signal.SIGKILL, f"the fault at {point} did not fire:\n{killed.stderr}"
    again = deliver(lake, "postgres")
    assert again.returncode == 0, again.stderr
    assert rows_of(database, table) == lake.rows()


def test_two_attempts_side_by_side(lake: Lake, database: str, table: str) -> None:
    for _ in range(3):
        for _ in range(3):
            lake.run(lake.some(20))
        both = [delivering(lake, "postgres") for _ in range(2)]
        done = [p.wait(120) for p in both]
        assert all(p.returncode == 0 or "SINK_FENCED" in p.stderr for p in done), "\n".join(p.stderr for p in done)
    lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == lake.rows()


def test_an_attempt_that_a_newer_one_overtakes_writes_nothing_more(lake: Lake, database: str, table: str, at: Hook) -> None:
    at(":taken_over", lambda: lake.topology().deliver("people.postgres"))
    with pytest.raises(SinkFenced):
        lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == lake.rows()


def test_a_database_that_is_down_gets_everything_later(lake: Lake, database: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", f"postgresql://rejoin@127.0.0.1:{free_port()}/postgres")
    with pytest.raises(SinkDown):
        lake.topology().deliver("people.postgres")
    lake.run(lake.some(9))
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == lake.rows()


@pytest.mark.parametrize("where", ["copying", "rows_locked", "merged", "moved"])
def test_a_connection_that_breaks_within_the_transaction(lake: Lake, database: str, table: str, where: str, at: Hook) -> None:
    def terminate() -> None:
        with psycopg.connect(database) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rejoin'")

    lake.topology().deliver("people.postgres")
    before = lake.rows()
    lake.run(lake.some(20))
    at(f":{where}", terminate)
    with pytest.raises(SinkDown):
        lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == before, "nothing of the transaction is there"
    lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == lake.rows()


def test_a_database_that_is_too_slow(lake: Lake, database: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.topology().deliver("people.postgres")
    lake.run(lake.some(20))
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", f"{database}?options=-c%20statement_timeout%3D400")
    with psycopg.connect(database) as other:
        other.execute(f"LOCK TABLE {table}")
        with pytest.raises(SinkSlow, match="QueryCanceled"):
            lake.topology().deliver("people.postgres")
    lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == lake.rows()


CONSTRAINTS = {
    "a check": "ALTER TABLE {table} ADD CONSTRAINT cheap CHECK (paid < 100000)",
    "a narrow column": "ALTER TABLE {table} ALTER COLUMN name TYPE varchar(12)",
    "a foreign key": "CREATE TABLE {table}_names (name text PRIMARY KEY); INSERT INTO {table}_names SELECT DISTINCT name FROM {table};"
    " ALTER TABLE {table} ADD CONSTRAINT known FOREIGN KEY (name) REFERENCES {table}_names",
    "not null": "UPDATE {table} SET active = coalesce(active, false); ALTER TABLE {table} ALTER COLUMN active SET NOT NULL",
}


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
def test_a_row_that_the_table_refuses_rolls_back_the_whole_run_and_no_value_is_told(
    lake: Lake, database: str, table: str, constraint: str
) -> None:
    lake.topology().deliver("people.postgres")
    with psycopg.connect(database) as db:
        db.execute(f"UPDATE {table} SET paid = 1, name = 'short'")
        db.execute(constraint.format(table=table))  # type: ignore[call-overload]
    good = rows_of(database, table)
    bad = {**lake.row(500), "name": "much too long for it", "paid": 999_999, "active": None}
    lake.run({499: {**lake.row(499), "name": "short", "paid": 1, "active": True}, 500: bad})
    with pytest.raises(SinkRecordRefused) as raised:
        lake.topology().deliver("people.postgres")
    assert "much too long" not in str(raised.value) and "999999" not in str(raised.value)
    assert rows_of(database, table) == good, "never half a run"
    with psycopg.connect(database) as db:
        db.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS cheap, DROP CONSTRAINT IF EXISTS known")
        db.execute(f"ALTER TABLE {table} ALTER COLUMN name TYPE text, ALTER COLUMN active DROP NOT NULL")
    lake.topology().deliver("people.postgres")
    assert rows_of(database, table).keys() == good.keys() | {499, 500}


def test_a_deadlock_with_others_is_retried(lake: Lake, database: str, table: str, at: Hook) -> None:
    """The other session locks the last key, waits until we hold the first, and asks for it; it never gives up itself."""
    deadlock(lake, database, table, at, tries=5)
    done = lake.topology().deliver("people.postgres")
    assert done.detail["repeated"] >= 1, "the fault did not fire"
    assert rows_of(database, table) == lake.rows()


def test_a_deadlock_without_retries_left_is_told_as_a_conflict(lake: Lake, database: str, table: str, at: Hook) -> None:
    deadlock(lake, database, table, at, tries=0)
    with pytest.raises(SinkConflict, match="DeadlockDetected"):
        lake.topology().deliver("people.postgres")
    lake.topology().deliver("people.postgres")
    assert rows_of(database, table) == lake.rows()


def deadlock(lake: Lake, database: str, table: str, at: Hook, *, tries: int) -> None:
    lake.declare(f'postgres("{table}", retries={tries})')
    lake.topology().deliver("people.postgres")
    low, high = min(lake.state), max(lake.state)
    lake.run({low: lake.row(low), high: lake.row(high)})
    ours = threading.Event()

    def other() -> None:
        with psycopg.connect(database, autocommit=True) as db:
            db.execute("SET deadlock_timeout = '1h'")
            with db.transaction():
                db.execute(f"SELECT 1 FROM {table} WHERE id = {high} FOR UPDATE")
                ours.set()
                time.sleep(0.5)  # we take the first key and wait for the last
                db.execute(f"SELECT 1 FROM {table} WHERE id = {low} FOR UPDATE")

    def begin() -> None:
        threading.Thread(target=other, daemon=True).start()
        ours.wait(10)

    at(":staged", begin)


def test_a_serialization_failure_is_retried(lake: Lake, database: str, table: str, at: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.topology().deliver("people.postgres")
    lake.run(lake.some(20))
    key = min(lake.state)
    lake.run({key: lake.row(key)})
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", f"{database}?options=-c%20default_transaction_isolation%3Dserializable")

    def disturb() -> None:
        with psycopg.connect(database) as db:
            db.execute(f"UPDATE {table} SET name = 'x'")

    at(":staged", disturb)
    done = lake.topology().deliver("people.postgres")
    assert done.detail["repeated"] >= 1, "the fault did not fire"
    lake.topology().deliver("people.postgres", Restart(None))
    assert rows_of(database, table) == lake.rows()


def test_a_table_that_does_not_fit_is_refused_with_all_that_is_wrong(lake: Lake, database: str, table: str) -> None:
    schema, _, name = table.partition(".")
    with psycopg.connect(database) as db:
        db.execute(f'CREATE SCHEMA "{schema}"')
        db.execute(f'CREATE TABLE "{schema}"."{name}" (id bigint, name integer, paid numeric(10,2), share real)')
    with pytest.raises(SinkSchemaRefused) as raised:
        lake.topology().deliver("people.postgres")
    said = str(raised.value)
    wanted = ("'name' is integer, not text", "'paid' is numeric(10,2)", "'share' is real", "'born' is missing", "no primary key")
    assert all(text in said for text in wanted), said


def test_a_table_of_the_users_own_with_wider_types_and_more_columns_fits(lake: Lake, database: str, table: str) -> None:
    schema = table.partition(".")[0]
    columns = (
        "id numeric, name varchar(200), paid numeric, share double precision, born date, seen timestamptz, photo bytea, active boolean"
    )
    with psycopg.connect(database) as db:
        db.execute(f"CREATE SCHEMA {schema}")
        db.execute(f"CREATE TABLE {table} ({columns}, remark text DEFAULT 'ours', UNIQUE (id))")
    lake.topology().deliver("people.postgres")
    assert {k: {c: v for c, v in r.items() if c != "remark"} for k, r in rows_of(database, table).items()} == lake.rows()


def test_names_that_need_quotes_are_names_and_nothing_else(lake: Lake, database: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    evil = f'{topic} \\"x; DROP TABLE y.people--'
    lake.declare(f'postgres("{evil}")')
    lake.topology().deliver("people.postgres")
    quoted = f'"{topic} ""x; DROP TABLE y"."people--"'
    assert rows_of(database, quoted) == lake.rows()


def test_without_rights_it_says_so(lake: Lake, database: str, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(database) as db:
        db.execute("DROP ROLE IF EXISTS guest")
        db.execute("CREATE ROLE guest LOGIN")
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database.replace("rejoin@", "guest@"))
    with pytest.raises(SinkDenied):
        lake.topology().deliver("people.postgres")


@pytest.mark.parametrize("gone", ["SCHEMA {schema}", "TABLE {schema}.people", "TABLE {schema}.rejoin_cursors"])
def test_a_table_that_is_gone_is_not_taken_for_a_new_sink(lake: Lake, database: str, table: str, gone: str) -> None:
    lake.topology().deliver("people.postgres")
    with psycopg.connect(database) as db:
        db.execute(f"DROP {gone.format(schema=table.partition('.')[0])} CASCADE")  # type: ignore[call-overload]
    lake.run(lake.some(9))
    with pytest.raises(SinkCursorLost):
        lake.topology().deliver("people.postgres")
    lake.topology().deliver("people.postgres", Restart(None))
    assert rows_of(database, table) == lake.rows()


def test_a_snapshot_again_removes_rows_that_others_wrote_and_from_run_repeats_changes(lake: Lake, database: str, table: str) -> None:
    lake.topology().deliver("people.postgres")
    lake.run(lake.some(20))
    lake.topology().deliver("people.postgres")
    with psycopg.connect(database) as db:
        db.execute(f"INSERT INTO {table} (id) VALUES (-1)")
        db.execute(f"UPDATE {table} SET name = 'changed by hand'")
    lake.topology().deliver("people.postgres", Restart(1))
    assert rows_of(database, table).keys() == lake.rows().keys() | {-1}
    lake.topology().deliver("people.postgres", Restart(None))
    assert rows_of(database, table) == lake.rows()

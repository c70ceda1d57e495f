"""What steps other than ingest, and kinds of joins, ask in passing: what is new to a node, old rows, measures of a table."""

from pathlib import Path

import pyarrow as pa
import pytest
from attempts import attempt, relation
from event_tables import PLAN
from statement_tables import SQL, check, check_rows
from stored_tables import StoredTables

from rejoin import Topology, debezium, records, snapshot
from rejoin.joins.as_of.changes import AsOfJoin
from rejoin.joins.kind import JoinResults
from rejoin.joins.window.changes import WindowJoin
from rejoin.lake.ledger.left_out_nodes import LeftOutNode
from rejoin.lake.ledger.records import StepRecord
from rejoin.lake.read.lookups import LookupKeys
from rejoin.plan.check.compile import compile
from rejoin.steps.resolve import old_rows
from rejoin.steps.respond.step import Responding
from rejoin.steps.subscribe.step import _left_changes
from rejoin.steps.validate.judging import _value, hours_since_newest, share_matched
from rejoin.steps.validate.step import Validating

OUT = PLAN.node("out")
ORDERS = "s INT | o INT | _run BIGINT | _op | _version | _hash BLOB | c INT | note | _before STRUCT(c INT, note VARCHAR, _hash BLOB)\n"


@pytest.fixture
def lake(tmp_path: Path) -> StoredTables:
    return StoredTables(tmp_path, "shop")


def test_every_row_is_new_to_a_node_that_is_made_anew(lake: StoredTables) -> None:
    lake.write("orders", ORDERS + "1 | 1 | 1 | I | p | h | 7 | a | NULL\n 1 | 2 | 1 | D | p | h | NULL | NULL | NULL")
    changes = _left_changes(attempt(lake, PLAN, rebuild=("out",)), OUT)
    assert changes is not None
    check_rows(changes.here(), "s | o | _op | _before IS NULL | _after.note\n 1 | 1 | I | true | a")


def test_new_subscriptions_and_changed_right_rows_are_answered(lake: StoredTables) -> None:
    customers = "k INT | _run BIGINT | _op | _version | _hash BLOB | name | _before STRUCT(name VARCHAR, _hash BLOB)\n"
    lake.write(
        "customers",
        customers + "7 | 1 | I | p | h | Ann | NULL\n 7 | 3 | U | q | i | Anne | {name: Ann, _hash: h}\n 8 | 1 | I | p | h | Bob | NULL",
    )
    sent = "fk_1 INT | pk_1 INT | pk_2 INT | _run BIGINT | _op | _hash BLOB | _instruction\n"
    instruction = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
    lake.write("out__subscriptions__customers", f"{sent} 7 | 1 | 1 | 1 | S | h | {instruction}\n 8 | 1 | 2 | 3 | S | h | {instruction}")
    steps = [StepRecord("subscribe.out", {"subscribed": 1}, 0.1, 0), StepRecord("ingest.customers", {"changes": 1}, 0.1, 0)]
    work = attempt(lake, PLAN, *steps)
    outcome = Responding(work).run(OUT, OUT.edges[0])
    assert outcome.result.responses == 2
    answers = work.after(outcome.writes).responses(OUT, OUT.edges[0])
    assert answers is not None
    check_rows(answers.here(), 'pk_1 | pk_2 | ("right").name\n 1 | 1 | Anne\n 1 | 2 | Bob')


def test_old_rows_are_those_that_are_proven_and_those_that_were_read(lake: StoredTables, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write("out", "s INT | o INT | name | _run BIGINT | _hash BLOB\n 1 | 1 | Ann | 1 | h\n 1 | 2 | Bob | 1 | h\n 1 | 3 | Cid | 1 | h")
    made = relation(
        "s INT | o INT | _row STRUCT(s INT, o INT, name VARCHAR, _hash BLOB) | _place BIGINT\n 1 | 1 | {s: 1, o: 1, name: Proven, _hash: h} | 0\n 1 | 2 | NULL | NULL"
    )
    monkeypatch.setattr(old_rows, "_proven", lambda *_: made)
    keys = LookupKeys(made, 2)
    found = old_rows.made_again(attempt(lake, PLAN), OUT, JoinResults(made, ((OUT.key, keys),), None, 2))
    check_rows(found.here(), "o | _row.name\n 1 | Proven\n 2 | Bob")


def test_the_share_of_left_rows_that_find_a_right_row(lake: StoredTables) -> None:
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, c INT, note STRING", debezium("orders"))
    customers = made.table("customers", ["s", "k"], "s INT, k INT, name STRING", debezium("customers"))
    some = orders.filter("note <> 'test'").left_join(
        customers.filter("name <> 'Eve'"), foreign_key=["s", "c"], select=["left.s", "left.o", "right.name"]
    )
    some.named("some")
    plan = compile(made)
    given = [(7, "a"), (8, "a"), ("NULL", "a"), (7, "a"), (9, "a"), (7, "test")]
    lake.write("orders", ORDERS + "\n".join(f"1 | {o} | 1 | I | p | h | {c} | {note} | NULL" for o, (c, note) in enumerate(given)))
    header = "s INT | k INT | _run BIGINT | _op | _version | _hash BLOB | name"
    lake.write("customers", f"{header}\n 1 | 7 | 1 | I | p | h | Ann\n 1 | 9 | 1 | I | p | h | Eve\n 2 | 8 | 1 | I | p | h | Bob")
    assert share_matched(plan, plan.node("some"), "customers", attempt(lake, plan).now) == 0.4


def test_nan_is_no_value_to_an_expectation() -> None:
    shown = _value(SQL, pa.field("x", pa.float64()))
    check(f"SELECT {shown} AS x FROM given", "x\n 0.5\n NULL", given="t STRUCT(x DOUBLE)\n {x: 0.5}\n {x: nan}")


def test_what_is_held_back_and_what_no_longer_is_are_counted(lake: StoredTables) -> None:
    image = "STRUCT(s INT, o INT, name VARCHAR, _hash BLOB)"
    candidates = relation(
        f"""
        s INT | o INT | _op | _before {image} | _after {image}                       | _place BIGINT | _held BOOLEAN | _why
        1     | 1     | I   | NULL            | {{s: 1, o: 1, name: Ann, _hash: h}}  | NULL          | false         | NULL
        1     | 2     | I   | NULL            | {{s: 1, o: 2, name: Bob, _hash: h}}  | NULL          | false         | NULL
        1     | 3     | I   | NULL            | {{s: 1, o: 3, name: Cid, _hash: h}}  | NULL          | false         | NULL
        1     | 4     | I   | NULL            | {{s: 1, o: 4, name: Dan, _hash: h}}  | NULL          | true          | NULL
        """
    )
    bad = relation("s INT | o INT | _reason\n 1 | 2 | why\n 1 | 3 | why")
    work = attempt(lake, PLAN, StepRecord("resolve.out", {"inserted": 4, "changes": 4, "held_before": 1}, 0.1, 0))
    result, writes = Validating(work, None)._split(OUT, candidates, bad)
    assert (result.held_back, result.released) == (2, 1)
    check_rows(work.after(writes).current("out").here(), "o | _row.name\n 1 | Ann\n 4 | Dan")


def _visits() -> Topology:
    made = Topology("shop")
    clicks = made.stream("clicks", id="id", key="k", event_time="at", schema="id INT, k INT, at TIMESTAMP", source=records("clicks"))
    pages = made.table("pages", "k", "k INT, name STRING", snapshot("pages"))
    clicks.left_join(pages, as_of="run", select=["left.id", "right.name"]).named("seen")
    return made


def test_records_since_an_output_was_left_out_are_new_to_it_and_the_newest_says_how_old_a_table_is(lake: StoredTables) -> None:
    plan = compile(_visits())
    lake.write(
        "clicks",
        "id INT | _run BIGINT | _op | _version | _hash BLOB | k INT | at TIMESTAMPTZ\n 1 | 1 | I | p | h | 7 | 1970-01-01 00:00:00+00\n 2 | 2 | I | p | h | 7 | 1970-01-01 01:00:00+00\n 3 | 3 | I | p | h | 7 | 1970-01-01 00:30:00+00",
    )
    work = attempt(lake, plan, behind={"seen": LeftOutNode(2, asked=False)})
    keys = AsOfJoin(work, plan.node("seen"), None)._records()
    assert keys is not None
    check_rows(keys.here(), "id\n 3")
    assert hours_since_newest("clicks", "at", work.now, 10_800.0) == 2


def test_records_that_results_have_are_looked_up_once_each(lake: StoredTables) -> None:
    made = Topology("shop")
    views, clicks = (
        made.stream(name, id=name[0], key="k", event_time="at", schema=f"{name[0]} INT, k INT, at TIMESTAMP", source=records(name))
        for name in ("views", "clicks")
    )
    views.full_join(clicks, before="1 second", after="1 second", select=["left.v", "right.c"], name="both")
    plan = compile(made)
    kind = WindowJoin(attempt(lake, plan), plan.node("both"), None)
    found = kind._keys_of(relation("v INT | c INT\n 1 | 7\n 1 | 8\n NULL | 9"), ("v",), ("id",), 3)
    check_rows(found.rows.here(), "id\n 1")

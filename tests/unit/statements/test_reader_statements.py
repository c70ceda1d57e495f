"""What a reader makes of the tables of a lake: versions, changes, subscriptions, what is held back and refused."""

from pathlib import Path

import pytest
from statement_tables import check_rows, table_of
from stored_tables import StoredTables

from rejoin import Topology, debezium, records, snapshot
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation, Relation
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.read.reader import Reader
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan, Projection, View

BEFORE = "_before STRUCT(c INT, note VARCHAR, _hash BLOB)"
ORDERS = f"""
  s INT | o INT | _run BIGINT | _op | _version | _hash BLOB | c INT | note | {BEFORE}
  1     | 1     | 1           | I   | p1       | h1         | 7     | old  | NULL
  1     | 1     | 2           | U   | p4       | h2         | 8     | new  | {{c: 7, note: old, _hash: h1}}
  1     | 2     | 1           | I   | p2       | h3         | 7     | b    | NULL
  1     | 2     | 2           | D   | p5       | NULL       | NULL  | NULL | {{c: 7, note: b, _hash: h3}}
  1     | 3     | 2           | N   | p3       | h4         | 9     | c    | {{c: 9, note: z, _hash: h4}}
  1     | 4     | 2           | D   | p3       | NULL       | NULL  | NULL | NULL
  2     | 1     | 2           | I   | p3       | h5         | 9     | d    | NULL
"""
KEPT = "_run BIGINT | _op | _code | _reason | _source_file | _line BIGINT"


def _plan() -> Plan:
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, c INT, note STRING", debezium("orders"))
    customers = made.table("customers", "k", "k INT, name STRING", snapshot("customers"))
    orders.left_join(customers, foreign_key="c", select=["left.s", "left.o", "right.name"], name="out")
    orders.full_join(customers, foreign_key="c", select=["left.s", "left.o", "right.k", "right.name"], name="both")
    return compile(made)


PLAN = _plan()
OUT = PLAN.node("out")


@pytest.fixture
def lake(tmp_path: Path) -> StoredTables:
    return StoredTables(tmp_path, "shop")


def reader(lake: StoredTables) -> Reader:
    return Reader(DuckdbEngine(PLAN), PLAN, lake.states, lake.refs)


def keys(text: str) -> LookupKeys:
    rows = table_of(text)
    return LookupKeys(LocalRelation(rows), rows.num_rows, rows)


def check(found: Relation | None, expected: str) -> None:
    assert found is not None
    check_rows(found.here(), expected)


def test_a_version_of_a_deleted_row_has_no_row(lake: StoredTables) -> None:
    lake.write("orders", ORDERS)
    expected = """
      s | o | _version | _row.note | _before.note
      1 | 1 | p4       | new       | old
      1 | 2 | p5       | NULL      | b
      1 | 3 | p3       | c         | z
      1 | 4 | p3       | NULL      | NULL
      2 | 1 | p3       | d         | NULL
    """
    check(reader(lake).versions("orders", None, before=True), expected)
    check(reader(lake).versions("orders", keys("s INT | o INT\n 1 | 2"), before=False), "s | o | _version | _row\n 1 | 2 | p5 | NULL")


def test_the_newest_version_of_a_table_is_its_highest_position(lake: StoredTables) -> None:
    lake.write("orders", ORDERS)
    assert reader(lake).newest_version("orders") == "p5"
    assert reader(lake).newest_version("customers") == ""


def test_the_changes_of_a_run_are_those_of_used_columns_to_rows_that_lived_or_live(lake: StoredTables) -> None:
    lake.write("orders", ORDERS)
    expected = """
      s | o | _op | _before.note | _after.note
      1 | 1 | U   | old          | new
      1 | 2 | D   | b            | NULL
      2 | 1 | I   | NULL         | d
    """
    check(reader(lake).changes("orders", 2), expected)


def test_the_rows_of_a_table_are_those_that_live(lake: StoredTables) -> None:
    lake.write("orders", ORDERS)
    check(reader(lake).current("orders"), "s | o | _row.note | _row.c\n 1 | 1 | new | 8\n 1 | 3 | c | 9\n 2 | 1 | d | 9")


def test_the_changes_of_a_run_in_an_output_that_another_one_has_loaded_are_its_own(lake: StoredTables) -> None:
    row = "STRUCT(s INT, o INT, name VARCHAR, _hash BLOB)"
    change = "{{s: 1, o: {}, name: {}, _hash: h}}".format
    lake.write("out", "s INT | o INT | name | _run BIGINT | _hash BLOB\n 1 | 1 | Ann | 1 | h\n 1 | 2 | Bob | 2 | h\n 1 | 3 | Cid | 3 | h")
    lake.write(
        "out__changes",
        f"""
        _run BIGINT | _op | s INT | o INT | _before {row}     | _after {row}
        1           | A   | NULL  | NULL  | NULL              | NULL
        2           | U   | 1     | 2     | {change(2, "Bo")} | {change(2, "Bob")}
        3           | I   | 1     | 3     | NULL              | {change(3, "Cid")}
        """,
    )
    check(reader(lake).changes("out", 1), "s | o | _op | _before.name | _after.name\n 1 | 1 | I | NULL | Ann\n 1 | 2 | I | NULL | Bo")
    check(reader(lake).changes("out", 2), "s | o | _op | _before.name | _after.name\n 1 | 2 | U | Bo | Bob")


def test_rows_that_are_looked_up_by_several_keys_come_once(lake: StoredTables) -> None:
    lake.write(
        "out",
        """
        s INT | o INT | name | _run BIGINT | _hash BLOB
        1     | 1     | a    | 1           | h
        1     | 2     | b    | 1           | h
        2     | 1     | c    | 1           | h
        2     | 2     | d    | 1           | h
        3     | 3     | e    | 1           | h
        """,
    )
    some = [(("s",), keys("s INT\n 1")), (("o",), keys("o INT\n 1")), (("s", "o"), keys("s INT | o INT\n 1 | 2\n 2 | 1\n 2 | 2"))]
    check(reader(lake).lookup_any("out", some[:1]), "s | o | _row.name\n 1 | 1 | a\n 1 | 2 | b")
    check(reader(lake).lookup_any("out", some[:2]), "s | o | _row.name\n 1 | 1 | a\n 1 | 2 | b\n 2 | 1 | c")
    check(reader(lake).lookup_any("out", some), "s | o | _row.name\n 1 | 1 | a\n 1 | 2 | b\n 2 | 1 | c\n 2 | 2 | d")


def test_the_newest_time_of_each_value_is_that_of_the_whole_table(lake: StoredTables) -> None:
    made = Topology("shop")
    clicks = made.stream("clicks", id="n", schema="n INT, who STRING, at TIMESTAMP", event_time="at", source=records("clicks"))
    lake.write(
        "clicks",
        """
        n INT | _run BIGINT | who | at TIMESTAMPTZ
        1     | 1           | a   | 1970-01-01 00:00:01+00
        2     | 1           | a   | 1970-01-01 00:00:03+00
        3     | 1           | a   | 1970-01-01 00:00:02+00
        4     | 1           | b   | 1970-01-01 00:00:04+00
        """,
    )
    clicks.select(["n", "who"]).named("seen")
    plan = compile(made)
    view = View("clicks", tuple(Projection(c, f"t.`{c}`", "") for c in ("at", "who")), None, ("n",))
    stored = Reader(DuckdbEngine(plan), plan, lake.states, lake.refs)
    check(stored.newest_by(view, "at", ["who"]), "c_1 | newest\n a | 3000000\n b | 4000000")
    assert stored.newest(view, "at") == 4_000_000


def test_a_foreign_key_is_subscribed_while_a_newest_subscription_says_so(lake: StoredTables) -> None:
    lake.write(
        "out__subscriptions__customers",
        """
        fk_1 INT | pk_1 INT | pk_2 INT | _run BIGINT | _op | _hash BLOB
        7        | 1        | 1        | 1           | S   | a
        7        | 1        | 1        | 2           | D   | NULL
        7        | 1        | 2        | 1           | S   | b
        7        | 1        | 3        | 2           | S   | c
        8        | 1        | 1        | 2           | S   | d
        9        | 1        | 1        | 1           | D   | NULL
        """,
    )
    edge = OUT.edges[0]
    live = "fk_1 | pk_1 | pk_2 | CAST(_hash AS VARCHAR)\n 7 | 1 | 2 | b\n 7 | 1 | 3 | c"
    check(reader(lake).subscribers(OUT, edge, keys("fk_1 INT\n 7\n 9")), live)
    check(reader(lake).subscribers(OUT, edge, None), live + "\n 8 | 1 | 1 | d")
    check(reader(lake).subscribed(OUT, edge, keys("fk_1 INT\n 7\n 9\n 8")), "fk_1\n 7\n 8")


def test_a_row_is_held_back_while_its_newest_entry_says_so(lake: StoredTables) -> None:
    lake.write(
        "orders__quarantine",
        f"""
        s INT | o INT | {KEPT} | _raw
        1 | 1 | 1 | Q | EXPECTATION    | a    | f    | 1    | x
        1 | 1 | 2 | R | EXPECTATION    | NULL | f    | 1    | x
        1 | 2 | 1 | Q | EXPECTATION    | b    | f    | 2    | x
        1 | 2 | 2 | Q | VALUE_TYPE     | c    | f    | 7    | x
        1 | 3 | 1 | Q | NOT_COMPUTABLE | d    | f    | 3    | x
        1 | 4 | 1 | Q | VALUE_TYPE     | e    | f    | 4    | x
        1 | 5 | 1 | NULL | VALUE_TYPE  | g    | f    | 5    | x
        1 | 5 | 2 | R    | REPLAYED    | NULL | f    | 5    | x
        1 | 6 | 1 | NULL | VALUE_TYPE  | i    | f    | 6    | x
        1 | 6 | 1 | NULL | VALUE_TYPE  | j    | g    | 6    | x
        """,
    )
    check(reader(lake).held("orders", None), "s | o | _reason\n 1 | 2 | b\n 1 | 3 | d")
    check(reader(lake).refused("orders"), "_reason | _line\n c | 7\n e | 4\n i | 6\n j | 6")


def test_keys_without_a_value_are_those_of_one_side_alone(lake: StoredTables) -> None:
    header = "s INT | o INT | k INT | _run BIGINT | _op | _code | _reason | _raw"
    lake.write(
        "both__quarantine",
        f"""
        {header}
        1    | 1    | NULL | 1 | Q | NOT_COMPUTABLE | a | x
        1    | 2    | NULL | 1 | Q | EXPECTATION    | b | x
        NULL | NULL | 7    | 1 | Q | NOT_COMPUTABLE | c | x
        1    | 3    | 8    | 1 | Q | NOT_COMPUTABLE | d | x
        NULL | 4    | 9    | 1 | Q | NOT_COMPUTABLE | e | x
        """,
    )
    check(reader(lake).uncomputable(PLAN.node("both")), "s | o\n 1 | 1")
    check(reader(lake).uncomputable(PLAN.node("both"), right=True), "k\n 7")

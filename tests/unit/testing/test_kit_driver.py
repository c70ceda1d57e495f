"""Topologies under test: every kind of source, several runs, what goes wrong, and what pytest shows."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rejoin
from rejoin import Topology, arrival, changes, computable, condition, debezium, snapshot
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import BadTestTable, EngineRefused, SnapshotEmpty, TopologyFileError, UnknownTable
from rejoin.plan.model.policy import RunOptions
from rejoin.plan.model.sources import Source
from rejoin.testing import Driver

ORDERS = "order_id BIGINT, customer_id BIGINT, total DECIMAL(10,2)"
FIRST = {"orders": "1 | 7 | 12.50\n 2 | 9 | 3", "customers": "7 | Ann"}


def shop(orders: SourceDeclaration | Source, customers: SourceDeclaration | Source, customer: str = "right.name AS customer") -> Topology:
    made = Topology("shop")
    left = made.table("orders", key="order_id", schema=ORDERS, source=orders)
    right = made.table("customers", key="customer_id", schema="customer_id BIGINT, name STRING", source=customers)
    left.left_join(right, "customer_id", ["left.*", customer]).named("orders_enriched")
    return made


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(shop(snapshot("landing/orders"), snapshot("landing/customers"))) as made:
        yield made


SOURCES = {
    "a folder of snapshots and a feed": lambda: (snapshot("in/orders"), debezium("/in/customers")),
    "snapshots as files": lambda: (snapshot("in/orders.csv", null="-"), snapshot("in/customers.json.gz")),
    "snapshots elsewhere": lambda: (snapshot("/in/orders.parquet"), snapshot("s3a://bucket/customers")),
    "rows with their positions": lambda: (
        changes("in/orders", order_by="lsn", columns={"total": "amount"}),
        changes("in/c", order_by=arrival()),
    ),
    "feeds in one folder": lambda: (debezium("in", topic="orders"), debezium("in", topic="customers")),
}


@pytest.mark.parametrize("sources", SOURCES.values(), ids=SOURCES)
def test_a_test_is_the_same_whatever_the_source(sources) -> None:  # type: ignore[no-untyped-def]
    with Driver(shop(*sources())) as driver:
        made = driver.run(
            orders="""
              order_id | customer_id | total
              1        | 7           | 12.50
              2        | NULL        | 3
            """,
            customers="""
              customer_id | name
              7           | Ann
              8           | "Bob | \\"Co\\", Ltd."
            """,
        )
        assert (
            made["orders_enriched"]
            == """
          op | order_id | customer_id | total | customer
          I  | 1        | 7           | 12.5  | Ann
          I  | 2        | NULL        | 3     | NULL
        """
        )
        made = driver.run(orders="1 | 8 | 12.50", customers="- 7")
        assert made["customers"] == "op | customer_id | name | was\nD | 7 | | Ann"
        assert (
            made["orders_enriched"]
            == """
          op | order_id | customer               | was
          U  | 1        | "Bob | \\"Co\\", Ltd." | Ann
        """
        )
        assert driver.run(orders="- 1")["orders_enriched"] == "op | order_id | total | was\nD | 1 | | 12.50"
        assert driver.table("orders_enriched") == "order_id | customer\n2 | NULL"
        assert driver.table("orders") == "order_id | customer_id | total\n2 | NULL | 3.00"
        assert list(made) == ["orders_enriched"]


def test_snapshots_have_what_their_names_say() -> None:
    with Driver(shop(snapshot("in/orders.ndjson"), snapshot("in/customers.csv.gz", null="-"))) as driver:
        driver.run(orders="1 | 7 | 2\n -2 | NULL | 1", customers='7 | NULL\n 8 | "NULL"')
        assert json.loads((driver.root / "in/orders.ndjson").read_text().splitlines()[1]) == {
            "order_id": -2,
            "customer_id": None,
            "total": 1.0,
        }
        assert gzip.decompress((driver.root / "in/customers.csv.gz").read_bytes()) == b"customer_id,name\n7,-\n8,NULL\n"


def test_events_say_when_they_were_committed() -> None:
    with Driver(shop(debezium("in/orders"), debezium("in/customers"))) as driver:
        driver.clock = datetime(2026, 11, 21, 10, tzinfo=UTC)
        driver.run(orders="1 | 7 | 12.50")
        [file] = (driver.root / "in/orders").iterdir()
        assert json.loads(file.read_text())["value"]["source"]["ts_ms"] == 1795255200000


def test_columns_that_a_header_leaves_out_stay_as_they_are(driver: Driver) -> None:
    driver.run(**FIRST)
    driver.run(orders="order_id | total\n 1 | 5\n 3 | 6")
    assert (
        driver.table("orders")
        == """
      order_id | customer_id | total
      1        | 7           | 5
      2        | 9           | 3
      3        | NULL        | 6
    """
    )
    assert driver.run(orders="3 | 7")["orders_enriched"] == "op | order_id | total | was\nU | 3 | 7 | 6"


def test_all_types_arrive_as_they_are_written() -> None:
    schema = (
        "id INT, b BOOLEAN, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(38,10), s STRING, x BINARY, day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ"
    )
    rows = """
      id | b     | l                    | f    | d     | n                             | s    | x    | day        | at                        | wall
      1  | true  | -9223372036854775808 | 0.1  | 1e300 | 1234567890123456789.012345678 | ""   | AAE= | 2026-11-21 | 2026-11-21 10:00:00.12+02 | 2026-11-21 10:00
      2  | false | 9223372036854775807  | -2.5 | 0.1   | 0                             | NULL | ""   | 0001-01-01 | 9999-12-31 23:59:59       | 0001-01-01 00:00
      3  | NULL  | NULL                 | NULL | NULL  | NULL                          | x    | NULL | NULL       | NULL                      | NULL
    """.replace('| ""   | 0001', "| AA== | 0001")
    for source in (snapshot("in/all"), debezium("in/all")):
        made = Topology("everything")
        made.table("every", key="id", schema=schema, source=source).filter("id > 0").named("same")
        with Driver(made) as driver:
            driver.run(every=rows)
            assert driver.table("same") == rows, source.options


def test_an_optional_column_is_there_once_a_test_names_it() -> None:
    made = Topology("shop")
    made.table("customers", key="id", schema="id BIGINT, tier STRING", optional=["tier"], source=snapshot("in")).filter("id > 0").named(
        "all"
    )
    with Driver(made) as driver:
        driver.run(customers="id\n 1")
        assert "tier" not in (driver.root / "in/000001.jsonl").read_text()
        assert driver.run(customers="id | tier\n 1 | gold")["all"] == "op | id | tier | was\nU | 1 | gold | NULL"


def test_what_cannot_be_applied_is_in_quarantine(driver: Driver) -> None:
    assert driver.quarantine("orders") == ""
    driver.run(**FIRST)
    driver.run(orders="1 | 7 | 1.234\n 3 | x | 1")
    assert driver.quarantine("orders") == "order_id | code\n 1 | VALUE_ROUNDED\n 3 | VALUE_TYPE"
    assert driver.table("orders") == "order_id | total\n 1 | 12.50\n 2 | 3"
    driver.run(orders="1 | 7 | 1.23\n 3 | 7 | 1")
    assert driver.table("orders") == "order_id | total\n 1 | 1.23\n 2 | 3\n 3 | 1"


def test_rows_that_break_an_expectation_are_held_back() -> None:
    made = shop(debezium("in/orders"), snapshot("in/customers"))
    made.relation("orders").expect(condition("total >= 0"), severity="quarantine")
    with Driver(made) as driver:
        driver.run(**FIRST)
        assert not driver.run(orders="1 | 7 | -1")["orders_enriched"]
        assert driver.quarantine("orders") == 'order_id | code | reason\n 1 | EXPECTATION | "condition(\\"total >= 0\\")"'
        assert driver.run(orders="1 | 7 | 1")["orders_enriched"] == "op | order_id | total | was\nU | 1 | 1 | 12.5"
        assert driver.quarantine("orders") == ""


def test_rows_that_cannot_be_computed_are_spark_s_work_and_the_kit_says_so() -> None:
    made = shop(snapshot("in/orders"), snapshot("in/customers"), "CAST(right.name AS BIGINT) AS number")
    made.relation("orders_enriched").expect(computable(), severity="quarantine")
    with Driver(made) as driver:
        driver.run(orders="1 | 7 | 1", customers="7 | 42")
        with pytest.raises(EngineRefused, match="engine"):
            driver.run(customers="7 | Ann")
        assert driver.table("orders_enriched") == "order_id | number\n 1 | 42"


def test_an_expression_that_only_spark_can_check_is_refused_before_anything_runs() -> None:
    made = shop(snapshot("in/orders"), snapshot("in/customers"), "soundex(right.name) AS sounds")
    with Driver(made) as driver, pytest.raises(EngineRefused, match='engine="auto"'):
        driver.run(**FIRST)


def test_a_run_that_fails_shows_nothing_and_the_next_one_goes_on(driver: Driver) -> None:
    driver.run(**FIRST)
    with pytest.raises(SnapshotEmpty):
        driver.run(customers="- 7")
    assert driver.table("customers") == "customer_id | name\n 7 | Ann"
    assert driver.run(customers="8 | Bob")["orders_enriched"] == "op | order_id | customer | was\nU | 1 | NULL | Ann"


def test_a_restart_keeps_the_lake_and_can_bring_an_edited_topology(driver: Driver) -> None:
    driver.run(**FIRST)
    driver.restart()
    assert driver.run(orders="2 | 7 | 3")["orders_enriched"] == "op | order_id | customer | was\nU | 2 | Ann | NULL"
    driver.restart(shop(snapshot("landing/orders"), snapshot("landing/customers"), "upper(right.name) AS customer"))
    assert driver.run()["orders_enriched"] == "op | order_id | customer | was\nU | 1 | ANN | Ann\nU | 2 | ANN | Ann"
    driver.restart()
    assert not driver.run()["orders_enriched"]
    assert driver.lake.sql("SELECT count(*) AS n FROM orders_enriched").to_arrow().to_pylist() == [{"n": 2}]


def test_a_run_takes_options(driver: Driver) -> None:
    driver.run(**FIRST)
    driver.run(RunOptions(only=("orders_enriched",), note="of a test"), orders="2 | 7 | 3")
    assert driver.table("orders_enriched").rows[1]["customer"] == "Ann"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"orders": "1 | 7"}, "has 2 cells"),
        ({"orders": "order_id | custmer_id\n 1 | 7"}, "no column custmer_id"),
        ({"orders": "customer_id | total\n 7 | 1"}, "a key column order_id"),
        ({"orders": "order_id | order_id\n 1 | 1"}, "no column twice"),
        ({"orders": "1 | | 1"}, "a cell with nothing in it"),
        ({"orders": "- 5"}, "no row 5"),
        ({"orders": "- 1 | 7"}, "named by its key"),
    ],
)
def test_a_slip_of_the_pen_is_told_before_anything_runs(driver: Driver, tables: dict[str, str], message: str) -> None:
    with pytest.raises(BadTestTable, match=message):
        driver.run(**tables)
    assert driver.table("orders") == ""


def test_snapshots_need_a_row_before_the_first_run(driver: Driver) -> None:
    with pytest.raises(BadTestTable, match="customers is snapshots"):
        driver.run(orders="1 | 7 | 1")


def test_a_table_that_is_none_is_named(driver: Driver) -> None:
    for asked in (lambda: driver.run(order="1"), lambda: driver.table("order"), lambda: driver.quarantine("order")):
        with pytest.raises(UnknownTable, match="'order'"):
            asked()


def opened(root: Path) -> list[str]:
    """The files below a directory that this process keeps open; a database that is removed first, and then closed, shows as deleted."""
    found = [str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return [file for file in found if file.startswith(str(root))]


def test_nothing_is_left_of_a_test() -> None:
    with Driver(shop(debezium("in/orders"), debezium("in/customers"))) as driver:
        driver.run(orders="1 | 7 | 1")
        root = driver.root
        assert opened(root)
    assert not root.exists() and not opened(root)
    with pytest.raises(TopologyFileError):
        Driver(root / "shop.py")


@pytest.mark.slow
def test_pytest_shows_what_differs(tmp_path: Path) -> None:
    (tmp_path / "topologies.py").write_text(
        "from rejoin import Topology, snapshot\nt = Topology('t')\n"
        "t.table('a', key='id', schema='id INT, n STRING', source=snapshot('a')).filter('id > 0').named('b')\n"
    )
    (tmp_path / "test_it.py").write_text(
        "from rejoin.testing import fixture\nt = fixture('topologies.py:t')\n"
        "def test_b(t):\n    assert t.run(a='1 | Ann')['b'] == '''\n      op | id | n\n      I  | 1  | Anne\n    '''\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(rejoin.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:airflow", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    for line in ("changes of b in run 1: 1 row expected (-), 1 row found (+)", "- I  | 1  | Anne\n", "+ I  | 1  | Ann\n"):
        assert line in done.stdout, done.stdout

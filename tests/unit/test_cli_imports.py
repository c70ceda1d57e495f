"""Which heavy packages a command loads. Not how long it takes: that depends on the machine, this does not."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from small_lake import make

HEAVY = (
    *("airflow", "confluent_kafka", "duckdb", "great_expectations", "mmh3", "msgspec", "numpy", "pandas", "psycopg", "pyarrow"),
    *("pyiceberg", "pyspark", "requests", "sqlalchemy", "sqlglot"),
)
TABLES = {"mmh3", "numpy", "pandas", "pyarrow", "pydantic", "pyiceberg", "requests", "sqlalchemy"}
"""What PyIceberg brings: allowed where a table is read."""

TOPOLOGY = """
from rejoin import Topology, kafka, snapshot
shop = Topology("shop")
orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=snapshot("landing/orders"))
customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
enriched = orders.left_join(customers, foreign_key="customer_id", select=["left.id", "note", "right.name AS customer"]).named("enriched")
enriched.to(kafka(topic="enriched"))
"""

# Commands one after the other in one process, lightest first: each is asked what it has loaded that none before it had.
REPORT = """
import json, sys
from rejoin.cli import main
heavy, commands = json.loads(sys.argv[1])
for command in commands:
    before = set(sys.modules)
    try:
        main(command, prog_name="rejoin")
        code = 0
    except SystemExit as ended:
        code = ended.code
    loaded = sorted({m.partition(".")[0] for m in set(sys.modules) - before} & set(heavy))
    print("LOADED", json.dumps([code, loaded]), file=sys.stderr)
"""

COMMANDS: tuple[tuple[tuple[str, ...], int, set[str]], ...] = (
    (("--help",), 0, set()),
    (("--version",), 0, set()),
    (("--versions",), 0, set()),
    (("init", "started"), 0, set()),
    (("run", "--help"), 0, set()),
    (("verify", "--help"), 0, set()),
    (("history",), 0, {"sqlalchemy"}),
    (("history", "--json"), 0, {"sqlalchemy"}),
    (("history", "--run", "1"), 0, {"sqlalchemy"}),
    (("sinks",), 0, {"sqlalchemy"}),
    (("abandon", "--run", "1"), 4, {"sqlalchemy"}),
    (("explain", "FILE", "--json"), 0, {"sqlglot"}),
    (("explain", "FILE"), 0, {"sqlglot", "sqlalchemy"}),
    (("explain", "FILE", "--run", "1"), 0, {"sqlglot", "sqlalchemy"}),
    (("sinks", "FILE"), 0, {"sqlglot", "sqlalchemy"}),
    (("get", "enriched", "1"), 0, TABLES),
    (("quarantine", "list", "enriched"), 0, TABLES),
    (("expire",), 0, TABLES),
    (("changes", "enriched"), 0, TABLES | {"duckdb"}),  # which sorts them, however many they are
)
WITHOUT_A_LAKE = ("--help", "--version", "--versions", "started")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], tuple[int, set[str]]]:
    """Command -> its exit code, and the heavy packages that it was the first to load."""
    place = tmp_path_factory.mktemp("imports")
    file = place / "shop.py"
    file.write_text(TOPOLOGY)
    lake = make(place)

    def whole(command: tuple[str, ...]) -> list[str]:
        here = [str(file) if a == "FILE" else a for a in command]
        needs_none = command[-1] in WITHOUT_A_LAKE
        return here if needs_none else [*here, "--lake", lake]

    arguments = json.dumps([HEAVY, [whole(c) for c, _, _ in COMMANDS]])
    done = subprocess.run([sys.executable, "-c", REPORT, arguments], capture_output=True, text=True, check=False, cwd=place)
    told = [json.loads(line.removeprefix("LOADED ")) for line in done.stderr.splitlines() if line.startswith("LOADED ")]
    assert len(told) == len(COMMANDS), done.stderr
    return {command: (code, set(names)) for (command, _, _), (code, names) in zip(COMMANDS, told, strict=True)}


@pytest.mark.parametrize(("command", "code", "allowed"), COMMANDS, ids=[" ".join(c) for c, _, _ in COMMANDS])
def test_a_command_loads_nothing_that_it_does_not_need(
    loaded: dict[tuple[str, ...], tuple[int, set[str]]], command: tuple[str, ...], code: int, allowed: set[str]
) -> None:
    found = loaded[command]
    assert found[0] == code
    assert found[1] <= allowed, f"`rejoin {' '.join(command)}` also loads {sorted(found[1] - allowed)}: import it inside functions"


def test_the_test_above_sees_what_is_loaded(loaded: dict[tuple[str, ...], tuple[int, set[str]]]) -> None:
    assert loaded["history",][1] == {"sqlalchemy"}
    assert {"pyarrow", "pyiceberg"} <= loaded["get", "enriched", "1"][1]


QUIET = """
from rejoin import Topology, debezium, iceberg, snapshot
shop = Topology("shop")
orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, at TIMESTAMP", source=debezium("landing/orders"))
customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
orders.left_join(customers, foreign_key="customer_id", select=["left.id", "right.name AS customer"]).named("enriched")
regions = shop.table("regions", key="id", schema="id BIGINT, name STRING", source=snapshot(iceberg("shop.regions", at="bronze")))
regions.named("places")
"""


def test_a_run_that_finds_nothing_new_loads_neither_an_engine_nor_the_lake_of_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(QUIET)
    (tmp_path / "landing" / "orders").mkdir(parents=True)
    (tmp_path / "landing" / "customers").mkdir()
    value = {"op": "c", "after": {"id": 1, "customer_id": 7, "at": 0}, "source": {"connector": "postgresql", "snapshot": "false", "lsn": 1}}
    (tmp_path / "landing" / "orders" / "1.jsonl").write_text(json.dumps({"key": {"id": 1}, "value": value}) + "\n")
    (tmp_path / "landing" / "customers" / "1.csv").write_text("id,name\n7,Ann\n")
    where = {"uri": f"sqlite:///{tmp_path}/bronze.db", "warehouse": f"file://{tmp_path}/bronze"}
    monkeypatch.setenv("REJOIN_SOURCE_BRONZE", json.dumps({"type": "sql", **where}))
    catalog = SqlCatalog("bronze", **where)
    catalog.create_namespace("shop")
    regions = pa.table({"id": pa.array([1], pa.int64()), "name": ["here"]})
    catalog.create_table("shop.regions", regions.schema).append(regions)

    def loaded_by_a_run() -> set[str]:
        arguments = json.dumps([HEAVY, [["run", "shop.py", "--engine", "local"]]])
        done = subprocess.run([sys.executable, "-c", REPORT, arguments], capture_output=True, text=True, check=False, cwd=tmp_path)
        code, names = json.loads(done.stderr.rpartition("LOADED ")[2])
        assert code == 0, done.stderr
        return set(names)

    assert {"duckdb", "pyiceberg"} <= loaded_by_a_run()
    assert loaded_by_a_run() <= {"mmh3", "msgspec", "numpy", "pyarrow", "sqlalchemy", "sqlglot"}

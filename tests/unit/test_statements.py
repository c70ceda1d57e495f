"""Every stage is a statement that can be looked at, and says where it runs."""

from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from rejoin import Topology, debezium, snapshot
from rejoin.cli import main
from rejoin.engines.choice import EngineChoice
from rejoin.limits import limits
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.report.statements import HERE, REFUSED, by_spark, statements


def plan(name: str) -> Plan:
    t = Topology("town")
    orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, total DECIMAL(10,2)", source=debezium("landing/orders"))
    customers = t.table("customers", key="id", schema="id STRING, name STRING", source=snapshot("landing/customers"))
    orders.left_join(customers, foreign_key="customer", select=["left.*", f"{name} AS name"]).named("enriched")
    return compile(t)


def test_every_step_has_its_statements_in_the_order_of_a_run() -> None:
    found = list(statements(plan("upper(right.name)")))
    assert list(dict.fromkeys(s.step for s in found)) == [
        "ingest.orders",
        "ingest.customers",
        "subscribe.enriched",
        "respond.enriched.customers",
        "resolve.enriched",
    ]
    assert {s.where for s in found} == {HERE}


def test_duckdb_parses_every_statement_that_it_is_said_to_run() -> None:
    for one in statements(plan("upper(right.name)")):
        with pytest.raises(duckdb.CatalogException, match=r"Table with name .* does not exist"):  # all but the inputs is known to it
            duckdb.sql(one.sql)


def test_what_is_not_portable_is_sparks_and_why_is_said() -> None:
    found = list(statements(plan("soundex(right.name)")))
    by_spark = [s for s in found if s.where != HERE]
    assert {s.step for s in by_spark} == {"subscribe.enriched", "respond.enriched.customers", "resolve.enriched"}
    assert all(s.where == "Spark: column name: soundex is not proven equal in DuckDB" for s in by_spark)
    assert any("named_struct" in s.sql for s in by_spark)
    assert not any("named_struct" in s.sql for s in found if s.where == HERE)


def test_where_spark_is_asked_for_the_text_is_sparks_and_bulk_steps_may_be_tasks() -> None:
    found = list(statements(plan("upper(right.name)"), EngineChoice.SPARK))
    assert (
        {s.where for s in found} == {by_spark()}
        and f"{limits().task_rows:,} rows or {limits().task_bytes >> 10} KiB" in by_spark()
        and "one task" in by_spark()
    )
    assert [(s.step, s.part) for s in found] == [(s.step, s.part) for s in statements(plan("upper(right.name)"))]
    assert any("named_struct" in s.sql for s in found if s.step.startswith("ingest."))
    never = [s.where for s in statements(plan("soundex(right.name)"), EngineChoice.SPARK) if s.where != by_spark()]
    assert never and all(where.startswith("Spark: column name: soundex") for where in never)


def test_what_is_not_portable_is_refused_where_no_spark_may_be_asked() -> None:
    found = {s.where for s in statements(plan("soundex(right.name)"), EngineChoice.LOCAL)}
    assert found == {HERE, f"Spark: column name: soundex is not proven equal in DuckDB{REFUSED}"}


FILE = """
from rejoin import Topology, snapshot

t = Topology("town")
t.table("people", key="id", schema="id BIGINT", source=snapshot("landing")).filter("id > 0").named("some")
"""


@pytest.mark.parametrize(
    ("variable", "in_lake", "option", "spark"),
    [
        ("", "", (), False),
        ("spark", "", (), True),
        ("spark", "", ("--engine", "auto"), False),
        ("spark", 'engine = "local"', (), False),
        ("local", 'engine = "spark"', (), True),
        ("", "", ("--engine", "spark"), True),
        ("", '[spark]\n"spark.master" = "spark://there:7077"', (), True),
    ],
)
def test_explain_says_where_a_run_would_do_it(
    variable: str, in_lake: str, option: tuple[str, ...], spark: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REJOIN_ENGINE", variable)
    (tmp_path / "town.py").write_text(FILE)
    lake = tmp_path / "lake.toml"
    lake.write_text(f'warehouse = "{tmp_path}/w"\ncatalog = "sqlite"\nuri = "sqlite:///{tmp_path}/c.db"\n{in_lake}\n')
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "town.py"), "--sql", "--lake", str(lake), *option])
    assert done.exit_code == 0, done.output
    assert (by_spark() in done.output, HERE in done.output) == (spark, not spark)


def test_explain_makes_no_lake(tmp_path: Path) -> None:
    (tmp_path / "town.py").write_text(FILE)
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "town.py"), "--sql", "--lake", str(tmp_path / "lake")])
    assert done.exit_code == 0 and [p.name for p in tmp_path.iterdir() if p.name != "__pycache__"] == ["town.py"]

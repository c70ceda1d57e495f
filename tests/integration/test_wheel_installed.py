"""The wheel in an environment of its own, away from the checkout: what a user does who has only typed `pip install`."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from followed import files, follow
from packed import ROOT, environment, outside, wheel
from unit import small_lake

from rejoin.airflow.local.client import Client
from rejoin.airflow.local.server import USER, free_port
from rejoin.lake.spark import setup_check

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
EVERYTHING = ("airflow", "demo", "kafka", "postgres", "spark", "validation")
README = (ROOT / "README.md").read_text()

DAGS = """
import json, sys
from rejoin import deployed
from airflow.dag_processing.dagbag import DagBag
from airflow import plugins_manager
bag = DagBag(str(deployed.DAGS))
plugins, wrong = plugins_manager._get_plugins()
print(json.dumps({
    "dags": sorted(bag.dags), "errors": bag.import_errors, "plugins": [str(p.source) for p in plugins if p.name == "rejoin"], "wrong": wrong,
    "pages": [a["url_prefix"] for a in plugins_manager.get_fastapi_plugins()[0]], "folder": str(deployed.PLUGINS),
}))
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def everything(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with all extras."""
    return environment(tmp_path_factory.mktemp("everything") / "venv", packed, *EVERYTHING)


def said(programs: Path, where: Path, *command: str, code: int = 0, **more: str) -> str:
    more = {"REJOIN_JARS": str(setup_check.jars_dir()), **more}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=where, env=outside(programs, **more))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_base_alone_declares_explains_and_reads(packed: Path, tmp_path: Path) -> None:
    programs, lake = environment(tmp_path / "venv", packed), small_lake.make(tmp_path / "elsewhere")
    (tmp_path / "orders.py").write_text(files(README)["orders.py"])
    assert "resolve.orders_enriched" in said(programs, tmp_path, "rejoin", "explain", "orders.py")
    said(programs, tmp_path, "rejoin", "init", "started")
    assert "resolve.orders_enriched" in said(programs, tmp_path / "started", "rejoin", "explain", "shop.py")
    assert '"note": "first"' in said(programs, tmp_path, "rejoin", "get", "enriched", "1", "--lake", lake)
    bare = {"PATH": str(programs), "REJOIN_ENGINE": "auto"}  # and no Java
    assert "run 1 of shop: committed" in said(programs, tmp_path / "started", "rejoin", "run", "shop.py", **bare)
    assert '"customer": "Ann"' in said(programs, tmp_path / "started", "rejoin", "get", "orders_enriched", "1", **bare)
    (tmp_path / "started" / "landing" / "customers" / "0002.csv").write_text("customer_id,name\n7,Anne\n")
    refused = said(programs, tmp_path / "started", "rejoin", "run", "shop.py", "--engine", "spark", code=5)
    assert "SETUP rejoin run needs pyspark, which is not installed" in refused
    assert "pip install 'rejoin[spark]'" in refused


@pytest.mark.nightly
@pytest.mark.airflow
@pytest.mark.parametrize("folder", [False, True], ids=["by its entry point", "plugins folder, too"])
def test_airflow_reads_the_dags_and_registers_the_page_once(everything: Path, tmp_path: Path, folder: bool) -> None:
    where = said(everything, tmp_path, "python", "-c", "from rejoin import deployed; print(deployed.PLUGINS)").strip()
    more = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600"}
    if folder:
        more["AIRFLOW__CORE__PLUGINS_FOLDER"] = where
    found = json.loads(said(everything, tmp_path, "python", "-W", "ignore", "-c", DAGS, **more).splitlines()[-1])
    assert found["errors"] == {} and found["wrong"] == {}
    assert found["dags"] == [
        "aeroplanes",
        "departures",
        "flights",
        "rejoin_abandon",
        "rejoin_freshness",
        "rejoin_maintenance",
        "rejoin_verify",
        "shop",
    ]
    assert [source.partition(":")[0] for source in found["plugins"]] == ["rejoin==0.1.0"] and found["pages"].count("/rejoin") == 1


@pytest.mark.nightly
def test_the_example_of_the_readme_does_what_it_says(everything: Path, tmp_path: Path) -> None:
    follow(README, tmp_path, outside(everything, REJOIN_JARS=str(setup_check.jars_dir())))
    assert (tmp_path / "lake").exists()


@pytest.mark.nightly
def test_the_demo_runs_and_verifies(everything: Path, tmp_path: Path) -> None:
    text = said(everything, tmp_path, "rejoin", "demo", "--lake", "demo")
    assert "0 differences" in text
    [explain] = re.findall(r"rejoin (explain .*flights\.py)", text)
    assert "flights_enriched" in said(everything, tmp_path, "rejoin", *explain.split())


@pytest.mark.nightly
@pytest.mark.airflow
def test_up_runs_an_example_and_shows_the_page(everything: Path, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    text = said(everything, tmp_path, "rejoin", "up", "--dir", "up", "--port", str(port))
    try:
        [password] = re.findall(r"password (\S+)", text)
        client = Client(url, USER, password)
        client.pause("shop", paused=False)
        assert client.follow("shop", client.trigger("shop", "from_the_wheel"), lambda _: None) == "success"
        page = client.request("GET", "/rejoin/t/shop/runs/1")
        assert page.status_code == 200 and "items_enriched" in page.text
        style = client.request("GET", "/rejoin/static/page.css")
        assert style.status_code == 200 and ".card" in style.text
    finally:
        said(everything, tmp_path, "rejoin", "down", "--dir", "up")

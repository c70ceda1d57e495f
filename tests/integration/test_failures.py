"""An expression that has no value for a row: what is said of it holds no value, wherever it is said."""

import json
import os
import sqlite3
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner
from integration.conftest import Sessions

from rejoin.cli import main
from rejoin.errors import NotComputable
from rejoin.lake.config import lake_config
from rejoin.lake.query.quarantine_reader import entries
from rejoin.operate.verify.verify import verify
from rejoin.page import render
from rejoin.page.gather import Lake
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

CANARY = "kanary4711"
"""A value of a row that no cast to a number takes."""
FILE = """
from rejoin import *

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer STRING, code STRING", source=snapshot("orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("customers"))
{output}
"""
SELECT = 'orders.select(["id", "customer", "CAST(code AS BIGINT) AS number"]).named("coded")'
FOREIGN_KEY = 'orders.left_join(customers, foreign_key="CAST(code AS BIGINT)", select=["left.*", "right.name AS name"]).named("coded")'
CONDITION = 'orders.named("coded").expect(condition("CAST(code AS BIGINT) > 0"))'


def landed(root: Path, output: str, codes: tuple[str, ...] = ("1", CANARY, "3")) -> Path:
    """A topology with orders 1, 2 ... of these codes, under ``root``."""
    for table, lines in (("orders", [f"{i},c,{c}" for i, c in enumerate(codes, 1)]), ("customers", ["1,Ann", "3,Bob"])):
        (root / table).mkdir(parents=True)
        header = "id,customer,code" if table == "orders" else "id,name"
        (root / table / "1.csv").write_text("\n".join([header, *lines]) + "\n")
    file = root / "t.py"
    file.write_text(FILE.replace("{output}", output))
    return file


def opened(file: Path) -> Topology:
    return Topology(load(str(file)), lake_config(str(file.parent / "lake")), str(file.parent))


def everything_told(file: Path) -> str:
    """All that people can see of the lake's runs: commands, page, and the ledger itself."""
    lake = str(file.parent / "lake")
    commands = (["history"], ["history", "--json"], ["history", "--run", "1"], ["history", "--run", "1", "--json"])
    told = [CliRunner().invoke(main, [*c, "--lake", lake]).output for c in commands]
    told.append(CliRunner().invoke(main, ["explain", str(file), "--run", "1", "--lake", lake]).output)
    place = render.Site("/rejoin", "", time.time())
    told.append(render.run(place, Lake(lake).run("t", 1)))
    told.append(render.topology(place, Lake(lake).topology("t"), None))
    with sqlite3.connect(f"{lake}/ledger.db") as db:
        told += db.iterdump()
    return "\n".join(told)


def test_fault_b_no_value_of_a_row_is_printed_or_kept_when_a_cast_fails(tmp_path: Path) -> None:
    file = landed(tmp_path, SELECT)
    settings = {**os.environ, "PYTHONPATH": str(Path("include").resolve()), "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    command = [sys.executable, "-m", "rejoin.cli", "run", str(file), "--root", str(tmp_path), "--lake", str(tmp_path / "lake")]
    ran = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=300, check=False)
    assert ran.returncode == NotComputable.exit_code == 3, ran.stderr
    assert CANARY not in ran.stdout + ran.stderr
    for said in ("NOT_COMPUTABLE", "column 'number'", "output 'coded'", "CAST_INVALID_INPUT", "resolve.coded", "to go on:"):
        assert said in ran.stderr
    told = everything_told(file)
    assert CANARY not in told
    assert "NOT_COMPUTABLE" in told
    assert "NOT_COMPUTABLE: NOT_COMPUTABLE" not in told
    runs = json.loads(CliRunner().invoke(main, ["history", "--json", "--lake", str(tmp_path / "lake")]).output)
    assert runs["state"] == "failed"


def run(file: Path, sessions: Sessions, owner: str = "test") -> int:
    topology = opened(file)
    return run_topology(topology, lambda: sessions(topology), f"{owner} {len(topology.ledger.runs())}").number


def published(file: Path) -> dict[int, dict[str, object]]:
    """The output, as PyIceberg reads it."""
    table = opened(file).refs.table("coded")
    assert table is not None
    return {r["id"]: {k: v for k, v in r.items() if k[0] != "_"} for r in table.scan().to_arrow().to_pylist()}


def kept_aside(file: Path) -> dict[object, tuple[str, str]]:
    topology = opened(file)
    return {e.key["id"]: (e.code, e.reason) for e in entries(topology.ledger, topology.refs, "coded")}


def next_orders(file: Path, codes: dict[int, str]) -> None:
    """The next snapshot of the orders: these, and two more that never change."""
    number = len(list((file.parent / "orders").iterdir())) + 1
    lines = "".join(f"{key},c,{code}\n" for key, code in {**codes, 4: "9", 5: "9"}.items())
    (file.parent / "orders" / f"{number}.csv").write_text("id,customer,code\n" + lines)


def no_differences(file: Path, sessions: Sessions) -> None:
    topology = opened(file)
    for fast in (False, True):
        assert [d.total for d in verify(topology, lambda: sessions(topology), fast=fast)] == [0]


@pytest.mark.parametrize("output", [SELECT, FOREIGN_KEY])
def test_fault_b_a_row_that_cannot_be_computed_stops_the_run_with_its_expression_and_how_many_there_are(
    output: str, tmp_path: Path, sessions: Sessions
) -> None:
    file = landed(tmp_path, output, ("1", CANARY, "3", CANARY))
    with pytest.raises(NotComputable) as caught:
        run(file, sessions)
    said = str(caught.value)
    assert "for 2 rows" in said
    assert "CAST(" in said
    assert "CAST_INVALID_INPUT" in said
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert CANARY not in everything_told(file)


@pytest.mark.parametrize("output", [SELECT, FOREIGN_KEY])
def test_fault_b_a_row_that_cannot_be_computed_is_held_back_until_it_can(output: str, tmp_path: Path, sessions: Sessions) -> None:
    file = landed(tmp_path, output + '.expect(computable(), severity="quarantine")', ("1", CANARY, "3", "9", "9"))
    value = "number" if output == SELECT else "name"
    first, third = (1, 3) if output == SELECT else ("Ann", "Bob")
    run(file, sessions)
    assert {k: r[value] for k, r in published(file).items() if k < 4} == {1: first, 3: third}
    assert {k: code for k, (code, _) in kept_aside(file).items()} == {2: "NOT_COMPUTABLE"}
    assert "CAST_INVALID_INPUT" in kept_aside(file)[2][1]
    assert CANARY not in kept_aside(file)[2][1]
    no_differences(file, sessions)
    next_orders(file, {1: "x" + CANARY, 2: "3", 3: "3"})  # a published row cannot be computed any more, the other one can again
    run(file, sessions)
    assert {k: r[value] for k, r in published(file).items() if k < 4} == {1: first, 2: third, 3: third}
    assert set(kept_aside(file)) == {1}
    next_orders(file, {1: "3", 2: "1", 3: CANARY})
    run(file, sessions)
    assert {k: r[value] for k, r in published(file).items() if k < 4} == {1: third, 2: first, 3: third}
    assert set(kept_aside(file)) == {3}
    next_orders(file, {1: "3", 2: "1"})  # a row that is held back is deleted
    run(file, sessions)
    assert {k: r[value] for k, r in published(file).items() if k < 4} == {1: third, 2: first}
    assert not kept_aside(file)

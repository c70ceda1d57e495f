"""The example with documents, `dags/aeroplanes.py`: real flights that are corrected, re-assigned and deleted, and aeroplanes that come and go, compared with DuckDB after every run."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sparkless import no_spark

from rejoin.demo.story import Landing, Year, story
from rejoin.engines.choice import EngineChoice
from rejoin.lake.config import lake_config
from rejoin.notebook import Lake
from rejoin.operate.verify.verify import verify
from rejoin.plan.check.topology_file import load
from rejoin.plan.model.policy import Fuse, RunOptions
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

FILE = Path(__file__).parents[2] / "dags" / "aeroplanes.py"
DAYS = 14
WANTED = """
    WITH lines AS (SELECT *, row_number() OVER () AS line FROM read_json({events},
        columns = {{key: 'JSON', value: 'STRUCT(op VARCHAR, "after" STRUCT(time_hour TIMESTAMPTZ, carrier VARCHAR, flight INT, tailnum VARCHAR, origin VARCHAR,
            dest VARCHAR, arr_delay INT, distance BIGINT), source STRUCT(lsn BIGINT))'}})),
    newest AS (FROM lines QUALIFY row_number() OVER (PARTITION BY key ORDER BY value.source.lsn DESC, line DESC) = 1),
    flights AS (SELECT unnest(value."after") FROM newest WHERE value.op <> 'd'),
    flown AS (SELECT tailnum, count(*) AS flights, sum(distance)::BIGINT AS miles, count(*) FILTER (arr_delay > 15) AS late, count(DISTINCT dest) AS airports,
        list(struct_pack(time_hour := time_hour, carrier := carrier, flight := flight, origin := origin, dest := dest)
            ORDER BY time_hour DESC, carrier, flight)[:5] AS latest
        FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum)
    SELECT f.*, p.manufacturer, p.model, p.seats::INT AS seats, p."year"::INT AS built
    FROM flown AS f LEFT JOIN read_csv({planes}, nullstr = 'NA', all_varchar = true) AS p USING (tailnum)"""


@pytest.mark.slow
def test_aeroplanes_have_their_flights(tmp_path: Path) -> None:
    config = replace(lake_config(str(tmp_path / "lake")), engine=EngineChoice.LOCAL)
    topology, runs = Topology(load(str(FILE)), config, str(tmp_path)), 0
    for _ in story(Year.read(DAYS), Landing(tmp_path / "landing")):
        run_topology(topology, no_spark, "test", options=RunOptions(fuse=Fuse.APPLY))
        runs += 1
        rows = {row["tailnum"]: comparable(row) for row in Lake(tmp_path / "lake").read("aeroplanes").to_arrow().to_pylist()}
        assert rows == by_duckdb(tmp_path / "landing"), f"after run {runs}"
        assert max(len(row["latest"]) for row in rows.values()) == 5
    assert runs > 5
    assert [found.total for found in verify(topology, no_spark, fast=False)] == [0, 0]


def by_duckdb(landing: Path) -> dict[str, Any]:
    events = [str(file) for file in sorted(landing.glob("flights/*.jsonl*"))]
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        found = database.sql(WANTED.format(events=events, planes=[str(max(landing.glob("planes/*.csv")))])).to_arrow_table()
    return {row["tailnum"]: comparable(row) for row in found.to_pylist()}


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Times as texts of one kind, also within arrays."""

    def told(value: object) -> object:
        return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)

    return dict(json.loads(json.dumps(row, default=told)))

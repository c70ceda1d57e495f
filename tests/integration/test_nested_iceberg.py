"""Nested columns of Iceberg tables that others write, as snapshots and as records."""

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.nested_values import SCHEMA, value
from integration.texts import Lake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import In

from rejoin.engines.iceberg_nulls import keep_nulls
from rejoin.sources.events import arrow_type

NOON = datetime(2026, 1, 2, 12)  # noqa: DTZ001 -- of a column without zone
pytestmark = pytest.mark.slow

COLUMNS = ", ".join(f"{name} {of}" for name, of in SCHEMA.items())
FILE = f"""
things = t.table("things", key="id", schema="id BIGINT, {COLUMNS}", source=snapshot(iceberg("shop.things", at="bronze"), max_delete_share=1.0))
things.select(["*"]).named("out", max_change_share=1.0)
t.stream("seen", id="id", event_time="place.at.wall", schema="id BIGINT, {COLUMNS}", source=records(iceberg("shop.seen", at="bronze"))).select(["*"]).named("records")
"""


def test_nested_columns_of_tables_of_others_arrive_as_they_were_written(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    chance = random.Random(int(pytestconfig.option.hypothesis_seed))
    stored = {"uri": f"sqlite:///{tmp_path}/bronze.db", "warehouse": f"file://{tmp_path}/bronze"}
    monkeypatch.setenv("REJOIN_SOURCE_BRONZE", json.dumps({"type": "sql", **stored}))
    keep_nulls()  # PyIceberg writes as it reads
    catalog = SqlCatalog("bronze", **stored)
    catalog.create_namespace("shop")
    schema = pa.schema([("id", pa.int64()), *((name, arrow_type(of)) for name, of in SCHEMA.items())])
    things, seen = (catalog.create_table(f"shop.{name}", schema) for name in ("things", "seen"))
    lake, rows, records = Lake(tmp_path, sessions, FILE), dict[int, dict[str, Any]](), dict[int, dict[str, Any]]()

    def made(key: int) -> dict[str, Any]:
        return {"id": key, **{name: value(of, chance)[1] for name, of in SCHEMA.items()}}

    for number in range(5):
        changed = {key: made(key) for key in chance.sample(range(20), 8)}
        if rows.keys() & {*changed, number}:
            things.delete(In("id", [*changed, number]))
        things.append(pa.Table.from_pylist([{**row, "props": row["props"] and row["props"][::-1]} for row in changed.values()], schema))
        rows = {key: row for key, row in rows.items() if key != number} | changed
        added = {number * 10 + n: made(number * 10 + n) for n in range(4)}
        added[number * 10]["place"] = {
            "city": None,
            "at": {"day": None, "wall": NOON},
        }  # a run of nothing but records without time would stop
        seen.append(pa.Table.from_pylist(list(added.values()), schema))
        records |= {key: row for key, row in added.items() if ((row["place"] or {}).get("at") or {}).get("wall") is not None}
        lake.run()
        assert lake.rows("out") == rows, number
        found = lake.rows("records")
        assert {key: {name: found[key][name] for name in row} for key, row in records.items()} == records, found.keys()
    assert lake.run()["ingest.things"]["read"] == 0

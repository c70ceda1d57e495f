"""Rows as named tools land them: what their fields say comes out, and what they do not say is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mapped import both_ways, lines

from rejoin import Topology, airbyte, csv, dms, fivetran, flattened, kafka
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import TopologyError
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table

ROW = {"id": 7, "name": "Ann"}


def table(source: SourceDeclaration) -> Table:
    topology = Topology("t")
    topology.table("orders", key="id", schema="id BIGINT, name STRING", source=source).named("out")
    return compile(topology).table("orders")


def told(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The events in the order of their positions; refused ones by their codes, last."""
    good = sorted((e for e in events if not e["_code"]), key=lambda e: str(e["_position"]))
    return [*((e["_kind"], e["id"], e["name"]) for e in good), *(e["_code"] for e in events if e["_code"])]


def test_flattened_events_of_debezium(tmp_path: Path) -> None:
    of = table(flattened("landing", order_by="__lsn"))
    rows = [
        {"id": 7, "name": None, "__op": "d", "__lsn": 110, "__deleted": "true"},
        {**ROW, "__op": "r", "__lsn": 99, "__deleted": "false"},
        {**ROW, "name": "Bob", "__op": "u", "__lsn": 100, "__deleted": "false"},
        {**ROW, "__op": "u", "__lsn": 120},  # the connector drops deletes, or does not rewrite them
        {**ROW, "__op": "u", "__deleted": "false"},  # it adds no position
    ]
    found = told(both_ways(of, tmp_path, "1.jsonl", lines(rows)))
    assert found == [("upsert", 7, "Ann"), ("upsert", 7, "Bob"), ("delete", 7, None), "UNKNOWN_OP", "UNKNOWN_POSITION"]


def test_fault_flattened_events_without_a_position_are_refused_when_the_file_is_read() -> None:
    with pytest.raises(TopologyError, match="order_by: expected what says which of two records of a key is newer"):
        table(flattened("landing"))


DMS = """Op,AR_H_CHANGE_SEQ,id,name
U,20261126101010120000000000000000012,7,Bob
I,20261126101010120000000000000000009,8,Cid
D,20261126101010120000000000000000013,7,Bob
X,20261126101010120000000000000000014,9,Dee
"""


def test_files_of_dms_with_the_full_load_first(tmp_path: Path) -> None:
    of = table(dms("landing"))
    loaded = both_ways(of, tmp_path, "LOAD00000001.csv", b"id,name,AR_H_CHANGE_SEQ\n7,Ann,\n")
    changed = both_ways(of, tmp_path, "20261126-101010123.csv", DMS.encode())
    expected = [("upsert", 7, "Ann"), ("upsert", 8, "Cid"), ("upsert", 7, "Bob"), ("delete", 7, None), "UNKNOWN_OP"]
    assert told([*loaded, *changed]) == expected
    texts = [line.split(",") for line in DMS.splitlines()]
    pq.write_table(pa.table(dict(zip(texts[0], map(list, zip(*texts[1:], strict=True)), strict=True))), tmp_path / "x.parquet")
    as_parquet = both_ways(of, tmp_path, "1.parquet", (tmp_path / "x.parquet").read_bytes())
    assert told([*loaded, *as_parquet]) == expected
    bare = table(dms("landing", sequence="seq", format=csv(header=False, names=["Op", "seq", "id", "name"])))
    assert told(both_ways(bare, tmp_path, "2.csv", DMS.partition("\n")[2].encode())) == expected[1:]


@pytest.mark.parametrize("tool", [dms, fivetran, airbyte])
def test_fault_topics_of_tools_that_land_rows_in_files_and_tables_are_refused_when_the_file_is_read(tool: Any) -> None:
    with pytest.raises(TopologyError, match=rf"{tool.__name__}\(\.\.\.\) reads files and tables of Iceberg"):
        table(tool(kafka("orders")))


def test_rows_of_fivetran_and_airbyte(tmp_path: Path) -> None:
    of = table(fivetran("landing"))
    rows = [
        {**ROW, "_fivetran_synced": "2026-11-26T10:00:00.120Z", "_fivetran_deleted": True},
        {**ROW, "_fivetran_synced": "2026-11-26T10:00:00Z", "_fivetran_deleted": False},
        {**ROW, "_fivetran_synced": "2026-11-26T10:00:00Z"},
    ]
    assert told(both_ways(of, tmp_path, "1.jsonl", lines(rows))) == [("upsert", 7, "Ann"), ("delete", 7, None), "UNKNOWN_OP"]
    of = table(airbyte("landing"))
    rows = [
        {**ROW, "_ab_cdc_lsn": 27_000_000_128, "_ab_cdc_updated_at": "2026-11-26T10:00:00Z", "_ab_cdc_deleted_at": "2026-11-26T10:00:00Z"},
        {**ROW, "_ab_cdc_lsn": 9_000_000_000, "_ab_cdc_updated_at": "2026-11-26T09:00:00Z", "_ab_cdc_deleted_at": None},
        {**ROW, "_ab_cdc_lsn": None},
    ]
    assert told(both_ways(of, tmp_path, "2.jsonl", lines(rows))) == [("upsert", 7, "Ann"), ("delete", 7, None), "UNKNOWN_POSITION"]


def test_a_named_source_is_changes_with_what_the_tool_calls_things() -> None:
    source = fivetran("landing", on_bad_record="fail", columns={"name": "full_name"})
    assert source.kind == "changes"
    assert (source.place.file, json.dumps(dict(source.options)["columns"])) == (__file__, '{"name": "full_name"}')

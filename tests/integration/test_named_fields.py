"""Snapshots and records as declared: ``format=`` and ``columns=`` in whole runs."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from integration.conftest import Sessions
from integration.shop import rows as stored
from integration.texts import Lake
from limited import limited

from rejoin.errors import BadRecords, SchemaDrift, SourceCorrupt
from rejoin.plan.model import json_form
from rejoin.why.trace import why

pytestmark = pytest.mark.slow

EXPORT = """
t.table(
    "orders", key="id", schema="id BIGINT, customer STRING, total DECIMAL(10,2)",
    source=snapshot("exports", max_delete_share=0.9, format=csv(delimiter=";", encoding="latin-1", names=["Id", "Name", "Amount", "Spare"], header={header}),
                    columns={{"id": "Id", "customer": "concat('Mr ', Name)", "total": "replace(replace(Amount, '.', ''), ',', '.')"}}),
).filter("id > 0").named("published")
"""


@pytest.mark.parametrize("by_spark", [False, pytest.param(True, marks=[pytest.mark.by_spark, pytest.mark.nightly])])
def test_a_snapshot_is_read_as_declared_and_what_it_lacks_is_gone(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, *, by_spark: bool
) -> None:
    if by_spark:
        limited(monkeypatch, small_rows=0, fetched_bytes=0, sparse=0)
    lake = Lake(tmp_path, sessions, EXPORT.format(header=True))
    lake.land("exports/1.txt", 'ID;NAME;AMOUNT;X\n1;Müller;1.234,50;\n2;Ann;5;\n3;"Bob\nJr";7,5;\n'.encode("latin-1"))
    assert lake.run()["ingest.orders"]["applied"] == 3
    assert lake.rows("published") == {
        1: {"id": 1, "customer": "Mr Müller", "total": Decimal("1234.50")},
        2: {"id": 2, "customer": "Mr Ann", "total": Decimal("5.00")},
        3: {"id": 3, "customer": "Mr Bob\nJr", "total": Decimal("7.50")},
    }
    lake.land("exports/2/a.dat", "ID;NAME;AMOUNT;X\n1;Müller;1;\n".encode("latin-1"))
    lake.land("exports/2/b.dat", "ID;NAME;AMOUNT;X\n2;Ann;much;\n")
    done = lake.run()["ingest.orders"]
    assert (done["implied"], done["quarantined"]) == (1, 1)
    assert {k: str(r["total"]) for k, r in lake.rows("published").items()} == {
        1: "1.00",
        2: "5.00",
    }  # a row that is refused stays as it was
    assert lake.kept_aside("orders") == {("exports/2/b.dat", 2): ("VALUE_TYPE", "2;Ann;much;")}
    topology = lake.topology
    monkeypatch.undo()
    assert "file='exports/2/a.dat', line=2," in repr(why(topology.ledger, topology.refs, topology.access, "published", ["1"], None))
    assert json_form.from_json(json_form.to_json(topology.plan)) == topology.plan


def test_fault_a_snapshot_that_is_not_as_declared_stops_the_run(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, EXPORT.format(header=True))
    lake.land("exports/1.txt", "ID;NAME\n1;Ann\n")
    with pytest.raises(SourceCorrupt, match="its header has 2 fields, declared are 4 names"):
        lake.run()
    lake.declare(EXPORT.replace('names=["Id", "Name", "Amount", "Spare"], header={header}', "").format())
    with pytest.raises(SchemaDrift, match="lacks: id, customer, total; it has, not declared"):
        lake.run()
    lake.declare(EXPORT.format(header=False))
    with pytest.raises(BadRecords, match="BAD_CSV"):
        lake.run()


CLICKS = """
t.stream("clicks"{id}, schema="page STRING, n INT, at TIMESTAMP", source=records("clicks"{format}, columns={{"page": "lower(url)", "n": "CAST(count AS INT) + 1"}}),
         event_time="at", lateness="1 hour").named("seen")
"""


@pytest.mark.parametrize("name", ["1.jsonl", "1.csv", "1.parquet"])
def test_records_are_read_as_declared(tmp_path: Path, sessions: Sessions, name: str) -> None:
    lake = Lake(tmp_path, sessions, CLICKS.format(id="", format=""))
    rows = [{"url": "A/B", "count": 4, "at": "2026-01-01T00:00:00Z"}, {"url": "c", "count": None, "at": "2026-01-01T00:00:01Z"}]
    texts = {"jsonl": "".join(f"{pa.scalar(str(r)).as_py()}\n" for r in rows).replace("'", '"').replace("None", "null")}
    texts["csv"] = "url,count,at\n" + "".join(f"{r['url']},{'' if r['count'] is None else r['count']},{r['at']}\n" for r in rows)
    lake.land(f"clicks/{name}", texts.get(name.partition(".")[2]) or pa.Table.from_pylist(rows))
    assert lake.run()["ingest.clicks"]["applied"] == 2
    assert sorted((r["page"], r["n"]) for r in stored(lake.topology, "seen")) == [("a/b", 5), ("c", None)]


def test_fault_a_file_of_records_without_a_field_is_drift_and_one_of_no_bytes_has_none(tmp_path: Path, sessions: Sessions) -> None:
    lake = Lake(tmp_path, sessions, CLICKS.format(id="", format=""))
    lake.land("clicks/0.csv", "")
    lake.run()
    lake.land("clicks/1.csv", "url,counts,at\na,1,2026-01-01\n")
    with pytest.raises(SchemaDrift, match="lacks: n"):
        lake.run()

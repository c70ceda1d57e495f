"""A lake from Python: runs, and what queries find in real tables with deletes."""

from pathlib import Path

import pytest
from integration.shop import SOURCE, Shop

from rejoin import Lake
from rejoin.errors import SourceMissing

pytestmark = pytest.mark.slow


def test_a_notebook_runs_a_topology_and_reads_what_came_out_as_of_any_run(tmp_path: Path) -> None:
    shop, lake = Shop(tmp_path), Lake(tmp_path / "lake")
    with pytest.raises(SourceMissing):
        lake.run(str(shop.file), root=tmp_path / "elsewhere")
    expected = {}
    for _ in range(3):
        shop.next_batch(40)
        expected[lake.run(str(shop.file), root=tmp_path).number] = shop.expected()
    for run, rows in expected.items():
        found = lake.read("enriched", as_of=run).to_arrow().to_pylist()
        assert {row["id"]: row for row in found} == rows and len(found) == len(rows)
    current = lake.sql("SELECT * FROM orders ORDER BY id").to_arrow().to_pylist()
    assert current == [shop.orders[key] for key in sorted(shop.orders)]
    joined = "SELECT o.id, o.note, c.name AS customer FROM orders o LEFT JOIN customers c ON c.id = o.customer_id"
    assert lake.sql(f"({joined}) EXCEPT ALL (FROM enriched)").count() == 0
    assert lake.sql(f"(FROM enriched) EXCEPT ALL ({joined})").count() == 0


def test_the_plan_of_a_failed_run_is_not_taken_up_again(tmp_path: Path) -> None:
    shop, lake = Shop(tmp_path), Lake(tmp_path / "lake")
    shop.next_batch()
    (tmp_path / "landing" / "customers" / "0001.csv").rename(tmp_path / "0001.csv")
    with pytest.raises(SourceMissing):
        lake.run(str(shop.file), root=tmp_path)
    (tmp_path / "0001.csv").rename(tmp_path / "landing" / "customers" / "0001.csv")
    shop.file.write_text(SOURCE.replace('right.name AS customer"', 'right.name AS buyer"'))
    assert lake.run(str(shop.file), root=tmp_path).number == 2
    assert lake.read("enriched").columns == ("id", "note", "buyer")

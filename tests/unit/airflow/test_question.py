"""What a person reads before approving a run: counts, what is kept aside, some rows, and no value that becomes markup."""

from pathlib import Path

import pytest
from unit import small_lake
from unit.small_lake import NASTY, make

from rejoin.airflow.tasks.approval import question
from rejoin.lake.config import lake_config
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.airflow


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    return Topology(small_lake.plan(), lake_config(make(tmp_path)), str(tmp_path))


def test_it_has_counts_refused_records_unmet_expectations_rows_and_a_link(topology: Topology) -> None:
    text = question(topology, topology.ledger.run(1), ("shop_dag", "manual 1"))
    assert "| output | inserted | updated | deleted | held back | released |" in text
    assert "| enriched | 6 | 0 | 0 | 0 | 0 |" in text
    assert "- 1 record of orders refused" in text
    assert "- enriched: expected note is not " in text and "2 rows not so (warn)" in text
    assert "| inserted | no row | id 1, note " in text
    assert text.endswith("[All of it on rejoin's page](/rejoin/dag/shop_dag/run/manual%201)")


def test_a_value_is_shown_letter_by_letter(topology: Topology) -> None:
    text = question(topology, topology.ledger.run(1), ("shop_dag", "1"))
    assert NASTY not in text and "&lt;script&gt;alert" in text

"""The same lake on PostgreSQL: catalog and ledger in a real database, by configuration only."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.servers import postgres
from integration.shop import Shop, folded, output

from rejoin.errors import SetupError
from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.operate.compact import compact
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as url:
        yield url


def test_runs_compaction_and_reads_work_with_catalog_and_ledger_in_postgresql(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path)
    monkeypatch.setenv("LAKE_URL", database)
    file = tmp_path / "lake.toml"
    file.write_text(f'catalog = "postgresql"\nuri = "${{LAKE_URL}}"\nwarehouse = "{(tmp_path / "warehouse").as_uri()}"\n')

    def topology() -> Topology:
        return Topology(load(str(shop.file)), lake_config(str(file)), str(shop.root))

    spark = session(topology().config)
    for number in range(3):
        shop.next_batch()
        run_topology(topology(), lambda: spark, f"owner {number}")
        assert output(topology()) == shop.expected() == folded(topology())
    compact(topology(), lambda: spark, "compactor")
    assert output(topology()) == shop.expected()


def test_a_lake_file_names_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = tmp_path / "lake.toml"
    for text, message in [
        ('catalog = "hive"\nuri = "x"\nwarehouse = "y"\n', "unknown catalog 'hive'"),
        ('uri = "x"\nwarehous = "y"\n', "unknown setting warehous"),
        ('uri = "x"\n', "setting warehouse is missing"),
        ('uri = "${NOT_SET_ANYWHERE}"\nwarehouse = "y"\n', "environment variable NOT_SET_ANYWHERE is not set"),
        ('catalog = "rest"\nuri = "http://x"\nwarehouse = "y"\n', "setting ledger is missing"),
    ]:
        file.write_text(text)
        with pytest.raises(SetupError, match=message.replace("$", r"\$")):
            lake_config(str(file))

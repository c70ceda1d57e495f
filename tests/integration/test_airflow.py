"""A DAG under a real scheduler, as a user has it: triggers, schedules, failures, clears, retries, backfills, kills. Every time the table is right."""

from collections.abc import Iterator

import pytest
from integration.airflow_server import Airflow, airflow
from integration.airflow_shop import DagShop
from integration.servers import spark_connect
from integration.shop import check

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.postgres, pytest.mark.timeout(1800)]

RESOLVE = "resolve.enriched"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Airflow, DagShop]]:
    """One Airflow and one warm Spark Connect server for all tests of this file; the shop's lake grows through them."""
    root = tmp_path_factory.mktemp("airflow")
    shop = DagShop(root / "shop")
    with spark_connect(shop.topology().config, root) as remote:
        host, port = remote.removeprefix("sc://").split(":")
        connection = f'{{"conn_type": "spark_connect", "host": "{host}", "port": {port}}}'
        places = {"REJOIN_LAKE": str(shop.lake), "REJOIN_ROOT": str(shop.root), "AIRFLOW_CONN_REJOIN_SPARK": connection}
        (root / "home" / "dags").mkdir(parents=True)
        shop.write_dag(root / "home" / "dags")
        with airflow(root / "home", **places) as made:
            made.ready("shop")
            yield made, shop


def test_a_triggered_run_publishes_and_says_what_it_did(running: tuple[Airflow, DagShop]) -> None:
    flow, shop = running
    shop.next_batch()
    assert flow.wait("shop", flow.trigger("shop", "first", note="the first load")) == "success"
    check(shop)
    summary = flow.call("GET", "/api/v2/dags/shop/dagRuns/first/taskInstances/publish/xcomEntries/return_value", deserialize=True)
    assert '"state": "committed"' in str(summary["value"]).replace("'", '"')
    assert shop.topology().ledger.steps(1)["cut"].detail == {"note": "the first load"}
    assert shop.topology().ledger.run(1).owner == "airflow:shop:first"

"""The shop as a DAG under a real scheduler, with a warm Spark: one of each for a file of tests, whose runs fill one lake."""

from collections.abc import Iterator

import pytest
from integration.airflow_server import airflow
from integration.airflow_shop import DagShop
from integration.servers import ConnectServer
from running import Running


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("airflow")
    shop = DagShop(root / "shop")
    connect = ConnectServer(shop.topology().config, root)
    try:
        connection = f'{{"conn_type": "spark_connect", "host": "127.0.0.1", "port": {connect.port}}}'
        places = {"REJOIN_LAKE": str(shop.lake), "REJOIN_ROOT": str(shop.root), "AIRFLOW_CONN_REJOIN_SPARK": connection}
        (root / "home" / "dags").mkdir(parents=True)
        shop.write_dags(root / "home" / "dags")
        with airflow(root / "home", **places) as made:
            made.ready("shop")
            yield Running(made, shop, connect)
    finally:
        connect.stop()


@pytest.fixture(autouse=True)
def nothing_left(running: Running) -> Iterator[None]:
    """A test that fails fails alone."""
    yield
    running.flow.end_runs()
    left = running.shop.topology().ledger.open_run()
    if left is not None:
        running.shop.topology().ledger.abandon(left.number, "left by a test")

"""What a test of a DAG has: Airflow, the shop and a warm Spark."""

from typing import NamedTuple

from integration.airflow_server import Airflow
from integration.airflow_shop import DagShop
from integration.servers import ConnectServer
from integration.shop import check


class Running(NamedTuple):
    """One Airflow and one warm Spark Connect server for all tests of a file; the shop's lake grows through them."""

    flow: Airflow
    shop: DagShop
    connect: ConnectServer


def finished(flow: Airflow, shop: DagShop, run_id: str, dag: str = "shop") -> None:
    """The run ends well, and the table and its changes are what plain Python says."""
    assert flow.wait(dag, run_id) == "success", flow.states(dag, run_id)
    check(shop)

"""Topologies as Airflow DAGs: one task a stage. ``from rejoin.airflow import to_dag``.

A DAG file that the command line reads (``rejoin run dags/shop.py``) loads no Airflow.
"""

from typing import TYPE_CHECKING, Any

from rejoin.declare.topology import Topology
from rejoin.plan.check.topology_file import is_loading

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = ["to_dag"]


def to_dag(topology: Topology, **settings: Any) -> "DAG | None":
    """A DAG of the topology's stages, for a top-level variable of the DAG file; None where ``rejoin`` and not Airflow reads the file.

    Args:
        topology: what to run.
        settings: those of ``rejoin.airflow.dag.build``: ``schedule``, ``dag_id``, ``start_date``, ``catchup``, ``retries``,
            ``execution_timeout``, ``dagrun_timeout``, ``deadline``, ``owner``, ``pool``, ``queue``, ``tags``, ``default_args`` and others.

    Raises:
        TopologyError: the topology has mistakes; Airflow shows them as an import error of the file.
        TopologyFileError: a setting has a value that does not fit.
    """
    if is_loading():
        return None
    from rejoin.airflow.dag import build

    return build(topology, **settings)

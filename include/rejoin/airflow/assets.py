"""Source tables and outputs as Airflow assets, so that other DAGs feed a topology or are started by it."""

from airflow.sdk import Asset


def source(topology: str, table: str) -> Asset:
    """A source table's landing place. A DAG that lands files names it as its outlet; ``to_dag(..., schedule=[source(...)])`` then runs."""
    return _asset(topology, table)


def output(topology: str, name: str) -> Asset:
    """An output. A DAG with ``schedule=[output("shop", "orders_enriched")]`` runs after every run that changed it."""
    return _asset(topology, name)


def _asset(topology: str, table: str) -> Asset:
    return Asset(name=f"{topology}.{table}", uri=f"rejoin://{topology}/{table}", group="rejoin")

"""The page of rejoin in Airflow's UI, for an Airflow that has rejoin in its path, but not installed: else it would be registered twice."""

from importlib.metadata import entry_points

__all__: list[str] = []

if not entry_points(group="airflow.plugins", name="rejoin"):
    from rejoin.airflow.plugin import RejoinPlugin

    __all__ += ["RejoinPlugin"]

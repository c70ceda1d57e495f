"""What the tasks of a DAG import, loaded ahead of time."""

from importlib import import_module
from importlib.util import find_spec

MODULES = (
    "rejoin.steps.run.job",
    "rejoin.steps.deliver.step",
    "rejoin.steps.deliver.catch_up",
    "rejoin.steps.run.placed_step",
    "rejoin.sinks.connect",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.dataframe",
    "pyspark.sql.connect.functions",
    "pyiceberg.catalog.sql",
    "pandas",
    "duckdb",
    "great_expectations",
)
"""Modules of any size that start no thread, so that a process may fork after them."""


def preload() -> None:
    """Imports them, those of packages that are not installed left out."""
    for name in MODULES:
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)

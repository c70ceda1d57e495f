"""All sources of a plan, looked at one after the other."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from rejoin.capture.tables import captured_tables
from rejoin.doctor.findings import Finding, ok, raised
from rejoin.errors import RejoinError
from rejoin.failures import extras
from rejoin.failures.engine_errors import named_errors
from rejoin.plan.captured_path import captured_path
from rejoin.plan.extensions import transports
from rejoin.plan.model.plan import Plan, Table
from rejoin.plan.topic_path import topic_path
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.registry import transport


def findings(plan: Plan, access: SourceAccess, every: timedelta) -> Iterator[Finding]:
    """What is found of each source.

    Args:
        plan: the topology.
        access: how sources are reached.
        every: how often it runs, at least.
    """
    topics = defaultdict[str, list[Table]](list)
    for table in plan.tables:
        if (topic := topic_path(table.source.path)) is not None:
            topics[topic.at].append(table)
        elif captured_path(table.source.path) is None:
            yield from _of_table(table, access, every)
    for at, of_cluster in topics.items():
        yield from _of_cluster(at, of_cluster, access, every)
    for at, captured in captured_tables(plan).items():
        try:
            extras.require("rejoin doctor", "psycopg2")
            from rejoin.doctor import databases

            yield from databases.findings(at, captured, access, every)
        except RejoinError as error:
            yield raised(at, "database", error)


def _of_table(table: Table, access: SourceAccess, every: timedelta) -> Iterator[Finding]:
    try:
        with named_errors(f"looking at the source of {table.name}"):  # a catalog, or a package, that does not answer
            yield from _looked_at(table, access, every)
    except RejoinError as error:
        yield raised(table.name, "source", error)


def _looked_at(table: Table, access: SourceAccess, every: timedelta) -> Iterator[Finding]:
    scheme = transports.name_of(table.source.path)
    if scheme == "files":
        from rejoin.doctor import files

        yield from files.findings(table, access.root)
    elif scheme == "iceberg":
        from rejoin.doctor import iceberg

        yield from iceberg.findings(table, access, every)
    else:
        transport(table, access).waiting(None, dict)
        yield ok(table.name, "source", "it answers")


def _of_cluster(at: str, tables: list[Table], access: SourceAccess, every: timedelta) -> Iterator[Finding]:
    try:
        extras.require("rejoin doctor", "confluent_kafka", "fastavro")
        from rejoin.doctor import topics

        yield from topics.findings(at, tables, access, every)
    except RejoinError as error:
        yield raised(at, "cluster", error)

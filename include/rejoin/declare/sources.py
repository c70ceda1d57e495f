"""What a user writes for where rows come from: ``snapshot``, ``records``, ``debezium``, ``feed``. Recorded; ``plan.check.sources`` checks.

Where files are is a path; a topic is ``kafka("orders")``, the same that names it as a sink.
"""

from collections.abc import Mapping

from rejoin.declare.declarations import SinkDeclaration, SourceDeclaration, here
from rejoin.declare.formats import FormatDeclaration


def iceberg(table: str, *, at: str = "lake") -> str:
    """The path of an Iceberg table, for ``snapshot(iceberg("bronze.orders"))``, and for ``changes(...)`` or ``records(...)`` of one to which rows are only added.

    Args:
        table: namespace and name.
        at: the catalog: ``"lake"`` is that of the lake itself; any other name stands in ``[sources.<name>]`` of the lake's file.
    """
    return f"iceberg://{at}/{table}"


def captured(table: str, *, at: str) -> str:
    """The path of a table of a PostgreSQL database that ``rejoin capture`` reads, for ``debezium(captured("public.orders", at="shop"))``.

    Args:
        table: schema and name.
        at: the connection: ``[sources.<name>]`` of the lake's file, or the environment variable ``REJOIN_SOURCE_<NAME>``, has its URL.
    """
    return f"capture://{at}/{table}"


def snapshot(
    path: str,
    *,
    max_delete_share: float = 0.3,
    null: str = "",
    columns: Mapping[str, str] | None = None,
    format: FormatDeclaration | None = None,  # noqa: A002 -- as users say it
    on_bad_record: str = "quarantine",
    max_bad_share: float = 0.05,
) -> SourceDeclaration:
    """Full snapshots, one completed file or directory each; a row that is absent from the newest one was deleted.

    Args:
        path: the directory of the snapshots.
        max_delete_share: the run refuses a snapshot that would delete more than this share of the rows.
        null: the text that means NULL in a CSV field; with ``format=csv(...)`` that says it.
        columns: ``{"column": "field, or SQL over fields"}``, see ``changes``.
        format: how all files are written; None: as their names say. With it, or ``columns``, every field is a text, see ``changes``.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("max_delete_share", max_delete_share), ("null", null), ("columns", columns), ("format", format))
    return SourceDeclaration("snapshot", (*options, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here())


def records(
    path: str | SinkDeclaration,
    *,
    null: str = "",
    columns: Mapping[str, str] | None = None,
    format: FormatDeclaration | None = None,  # noqa: A002 -- as users say it
    on_bad_record: str = "quarantine",
    max_bad_share: float = 0.05,
) -> SourceDeclaration:
    """Records of a stream: every file, or message of a topic, adds its own.

    Args:
        path: the directory of the files, a pattern (``landing/**/*.json.gz``), or ``kafka(topic)``.
        null: the text that means NULL in a CSV field; with ``format=csv(...)`` that says it.
        columns: ``{"column": "field, or SQL over fields"}``, see ``changes``.
        format: how all files are written; None: as their names say. With it, or ``columns``, every field is a text, see ``changes``.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("null", null), ("columns", columns), ("format", format))
    return SourceDeclaration("records", (*options, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here())


def debezium(
    path: str | SinkDeclaration,
    *,
    topic: str | None = None,
    units: dict[str, str] | None = None,
    placeholder: str = "__debezium_unavailable_value",
    snapshots: str = "complete",
    max_delete_share: float = 0.3,
    on_incomplete: str = "publish",
    on_bad_record: str = "quarantine",
    max_bad_share: float = 0.05,
) -> SourceDeclaration:
    """Debezium change events, in files of JSON or on a topic: whole messages, or their values, with or without schema.

    Args:
        path: the directory of the files, a pattern (``landing/**/*.json.gz``), or ``kafka(topic)``.
        topic: read only the events of this topic.
        units: ``{"column": "ms" | "us" | "ns"}`` for integer timestamps of events without schema (default ``"us"``).
        placeholder: the text that stands for an unchanged large value.
        snapshots: ``"complete"``: a snapshot that the connector takes again deletes, at its end, the rows that it did not bring; ``"additive"``: its rows
            only add and update.
        max_delete_share: the run refuses such a snapshot if it would delete more than this share of the rows.
        on_incomplete: while a snapshot is not complete, ``"publish"`` shows the rows that have come, ``"wait"`` leaves every output of the table as it was.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("topic", topic), ("units", units or {}), ("placeholder", placeholder))
    within = (("snapshots", snapshots), ("max_delete_share", max_delete_share), ("on_incomplete", on_incomplete))
    return SourceDeclaration("debezium", (*options, *within, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here())


def feed(
    path: str | SinkDeclaration,
    dialect: str,
    *,
    only: str | None = None,
    snapshots: str = "complete",
    max_delete_share: float = 0.3,
    on_incomplete: str = "publish",
    on_bad_record: str = "quarantine",
    max_bad_share: float = 0.05,
) -> SourceDeclaration:
    """Change events in a dialect that an installed package brings (docs/extending.md), in files of lines or on a topic.

    Args:
        path: the directory of the files, a pattern (``landing/**/*.json.gz``), or ``kafka(topic)``.
        dialect: its name, such as ``"maxwell"``.
        only: what the dialect selects records by, such as the name of a table; None: all records.
        snapshots: see ``debezium``, where the dialect has snapshots: those of Maxwell are its bootstraps.
        max_delete_share: see ``debezium``.
        on_incomplete: see ``debezium``.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("dialect", dialect), ("only", only))
    within = (("snapshots", snapshots), ("max_delete_share", max_delete_share), ("on_incomplete", on_incomplete))
    return SourceDeclaration("feed", (*options, *within, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here())

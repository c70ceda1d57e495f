"""What a user writes for where rows come from: ``snapshot``, ``records``, ``debezium``, ``feed``. Recorded; ``plan.check.sources`` checks."""

from rejoin.declare.declarations import SourceDeclaration, here


def iceberg(table: str, *, at: str = "lake") -> str:
    """The path of an Iceberg table, for ``snapshot(iceberg("bronze.orders"))``, and for ``records(...)`` of a table to which rows are only added.

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
    on_bad_record: str = "quarantine",
    max_bad_share: float = 0.05,
) -> SourceDeclaration:
    """Full snapshots, one completed file or directory each; a row that is absent from the newest one was deleted.

    Args:
        path: the directory of the snapshots.
        max_delete_share: a snapshot that would delete more than this share of the rows is refused.
        null: the text that means NULL in a CSV field.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("max_delete_share", max_delete_share), ("null", null))
    return SourceDeclaration("snapshot", (*options, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here())


def records(path: str, *, null: str = "", on_bad_record: str = "quarantine", max_bad_share: float = 0.05) -> SourceDeclaration:
    """Files of records of a stream: every file adds its records.

    Args:
        path: the directory of the files.
        null: the text that means NULL in a CSV field.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("null", null), ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share))
    return SourceDeclaration("records", options, here())


def debezium(
    path: str,
    *,
    topic: str | None = None,
    units: dict[str, str] | None = None,
    placeholder: str = "__debezium_unavailable_value",
    on_bad_record: str = "quarantine",
    max_bad_share: float = 0.05,
) -> SourceDeclaration:
    """Debezium change events, in files of JSON lines.

    Args:
        path: the directory of the files.
        topic: read only the events of this topic.
        units: ``{"column": "ms" | "us" | "ns"}`` for integer timestamps of events without schema (default ``"us"``).
        placeholder: the text that stands for an unchanged large value.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("topic", topic), ("units", units or {}), ("placeholder", placeholder))
    return SourceDeclaration("debezium", (*options, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here())


def feed(
    path: str, dialect: str, *, only: str | None = None, on_bad_record: str = "quarantine", max_bad_share: float = 0.05
) -> SourceDeclaration:
    """Change events in a dialect that an installed package brings (docs/extending.md), in files of lines.

    Args:
        path: the directory of the files.
        dialect: its name.
        only: what the dialect chooses records by, such as the name of a table; None: all records.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    options = (("path", path), ("dialect", dialect), ("only", only))
    return SourceDeclaration("feed", (*options, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here())

"""What a user writes for rows that tools land as they change: ``changes``, and ``arrival`` for its order. Recorded; ``plan.check.mapping`` checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rejoin.declare.declarations import SinkDeclaration, SourceDeclaration, here
from rejoin.declare.formats import FormatDeclaration


@dataclass(frozen=True)
class Arrival:
    """``order_by=arrival()``."""


Order = str | Sequence[str] | Arrival | None


def arrival() -> Arrival:
    """The order of files by their names (numbers in them by value), and of the records in a file: only where nothing in the records says it. Of a topic that of
    each partition, which is so without a word.
    """
    return Arrival()


def changes(
    path: str | SinkDeclaration,
    *,
    order_by: Order = None,
    deleted: str | None = None,
    loaded: str | None = None,
    columns: Mapping[str, str] | None = None,
    format: FormatDeclaration | None = None,  # noqa: A002 -- as users say it
    on_bad_record: str = "quarantine",
    max_bad_share: float = 0.05,
) -> SourceDeclaration:
    """Rows that a tool has landed, each as it is now, or gone: in files of JSON lines, CSV or Parquet, in messages of a topic, appended to a table.

    Args:
        path: the directory of the files, ``kafka(topic)``, or ``iceberg(table)``.
        order_by: the field, or SQL over fields, that says which of two records of a key is newer; a list if several do, the most
            telling first; ``arrival()``: the order of files and records. Of a topic it may be left out: the order of each partition.
        deleted: SQL that is true of a record whose row is gone, such as ``"__deleted = 'true'"``; None: no row is ever deleted, but by a message
            without value.
        loaded: SQL that is true of a record of a full load, which comes before all changes by ``order_by``. Another one stops a run: of rows that it lacks nobody
            could say whether they are gone. None: there is none, or its rows only add what is not there.
        columns: ``{"column": "field, or SQL over fields"}`` for columns that are not called so there. In SQL every field is a text.
        format: how all files are written; None: as the name of each file says.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    about_rows = (("order_by", order_by), ("deleted", deleted), ("loaded", loaded), ("columns", columns), ("format", format))
    return SourceDeclaration(
        "changes", (("path", path), *about_rows, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here()
    )

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
    """The order of the files by their names (numbers in them by value), and of the records in each file. Use it only if no field says which record is newer.
    A topic needs no ``order_by``: its records are in the order of their partition.
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
    """Rows that a tool writes whenever they change: a record has the whole row, or says that it was deleted. The records are in files of JSON lines, CSV or Parquet,
    in messages of a topic, or in an Iceberg table to which they are appended.

    Args:
        path: the directory of the files, ``kafka(topic)``, or ``iceberg(table)``.
        order_by: the field, or SQL over fields, that says which of two records of a key is newer; a list if it takes several, the most
            significant first; or ``arrival()``. For a topic it may be left out: then the order within each partition counts.
        deleted: SQL that is true of a record whose row is gone, such as ``"__deleted = 'true'"``; None: only a message without
            value deletes a row.
        loaded: SQL that is true of a record of a full load; by ``order_by`` these come before all changes. A second full load stops the run, because a row that it
            lacks may or may not have been deleted. None: there is no full load, or its rows only add what is not there yet.
        columns: ``{"column": "field, or SQL over fields"}`` for columns that have another name there, or are computed. In SQL every field is a text.
        format: how all files are written; None: as the name of each file says.
        on_bad_record: ``"quarantine"`` keeps and counts a bad record, ``"fail"`` stops the run.
        max_bad_share: more bad records than this share stop the run in any case.
    """
    about_rows = (("order_by", order_by), ("deleted", deleted), ("loaded", loaded), ("columns", columns), ("format", format))
    return SourceDeclaration(
        "changes", (("path", path), *about_rows, ("on_bad_record", on_bad_record), ("max_bad_share", max_bad_share)), here()
    )

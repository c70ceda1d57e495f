"""What a user writes for rows that well-known tools land: ``changes(...)`` with what these tools call things. docs/sources.md says what their fields can and cannot promise."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict, Unpack

from rejoin.declare.changes import Order, changes
from rejoin.declare.declarations import SinkDeclaration, SourceDeclaration
from rejoin.declare.formats import FormatDeclaration


class Options(TypedDict, total=False):
    """Those of ``changes``."""

    columns: Mapping[str, str] | None
    format: FormatDeclaration | None
    on_bad_record: str
    max_bad_share: float


class LoadedOptions(Options, total=False):
    """Those of ``changes``, of a tool that lands full loads beside changes."""

    loaded: str | None


def flattened(
    path: str | SinkDeclaration, *, order_by: Order = None, deleted: str = "__deleted = 'true'", **options: Unpack[Options]
) -> SourceDeclaration:
    """Debezium's events flattened by ``ExtractNewRecordState``, with ``delete.tombstone.handling.mode=rewrite`` and a position by ``add.fields``.

    Args:
        path: the directory of the files, ``kafka(topic)``, or ``iceberg(table)``.
        order_by: the fields with the position: ``"__lsn"`` of PostgreSQL; ``["__file", ...]`` of others. Without ``add.fields`` there are none. For a topic it
            may be left out: then the order within each partition counts.
        deleted: see ``changes``.
        options: see ``changes``.
    """
    return changes(path, order_by=order_by, deleted=deleted, **options)


def dms(path: str, *, sequence: str = "AR_H_CHANGE_SEQ", **options: Unpack[LoadedOptions]) -> SourceDeclaration:
    """Files of AWS DMS, full load and changes: ``Op`` is I, U or D. Records of a full load have neither ``Op`` nor a sequence, and come before all others.

    Args:
        path: the directory of the files of a table, or ``iceberg(table)``.
        sequence: the column to which a transformation rule adds ``$AR_H_CHANGE_SEQ``.
        options: see ``changes``; ``loaded`` is by default true of the records without a sequence.
    """
    gone = "CASE coalesce(nullif(Op, ''), 'I') WHEN 'D' THEN true WHEN 'I' THEN false WHEN 'U' THEN false END"
    position = f"coalesce(CAST(nullif(`{sequence}`, '') AS DECIMAL(38,0)), CAST(0 AS DECIMAL(38,0)))"
    said: LoadedOptions = {"loaded": f"nullif(`{sequence}`, '') IS NULL", **options}
    return replace(changes(path, order_by=position, deleted=gone, **said), landed_by="dms")


def fivetran(path: str, *, order_by: Order = "_fivetran_synced", **options: Unpack[Options]) -> SourceDeclaration:
    """Rows as Fivetran writes them, each with the time of its synchronisation and a mark if it was deleted.

    Args:
        path: the directory of the files of a table, or ``iceberg(table)``.
        order_by: see ``changes``.
        options: see ``changes``.
    """
    return replace(changes(path, order_by=order_by, deleted="CAST(_fivetran_deleted AS BOOLEAN)", **options), landed_by="fivetran")


def airbyte(path: str, *, order_by: Order = "_ab_cdc_lsn", **options: Unpack[Options]) -> SourceDeclaration:
    """Rows as Airbyte's CDC sources write them, in files whose fields are columns.

    Args:
        path: the directory of the files of a stream, or ``iceberg(table)``.
        order_by: the field with the position: ``"_ab_cdc_lsn"`` of PostgreSQL, ``"_ab_cdc_cursor"`` of MySQL and others.
        options: see ``changes``.
    """
    return replace(changes(path, order_by=order_by, deleted="_ab_cdc_deleted_at IS NOT NULL", **options), landed_by="airbyte")

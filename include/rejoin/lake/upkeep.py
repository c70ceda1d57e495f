"""Freeing storage: snapshots that nobody may ask for any more, and files that no snapshot knows. By Iceberg's own procedures."""

from collections.abc import Collection
from datetime import datetime

from pyspark.sql import SparkSession

from rejoin.lake.config import CATALOG
from rejoin.lake.paths import native
from rejoin.lake.refs import Refs

AT_ONCE = 500
"""Snapshots a call: the list of their ids is part of a SQL text."""
NO_AGE = "TIMESTAMP '1970-01-02 00:00:00'"
"""Expire by id only: without a limit the procedure also expires by the age that the table's properties say."""


def expire(spark: SparkSession, refs: Refs, table: str, kept: Collection[int]) -> dict[str, int]:
    """Expires every snapshot of a table but ``kept`` and those that a branch or tag points to, with the files that only they need.

    Returns:
        How many ``snapshots`` and data and delete ``files`` are gone.
    """
    existing = refs.table(table)
    if existing is None:
        return {"snapshots": 0, "files": 0}
    named = {ref.snapshot_id for ref in existing.refs().values()}
    gone = [s.snapshot_id for s in existing.metadata.snapshots if s.snapshot_id not in named and s.snapshot_id not in kept]
    files = 0
    for start in range(0, len(gone), AT_ONCE):
        ids = ", ".join(f"{i}L" for i in gone[start : start + AT_ONCE])
        call = f"CALL {CATALOG}.system.expire_snapshots(table => '{refs.topology}.{table}', older_than => {NO_AGE}, snapshot_ids => ARRAY({ids}))"
        row = spark.sql(call).first()
        assert row is not None
        files += sum(int(row[n]) for n in ("deleted_data_files_count", "deleted_position_delete_files_count"))
    return {"snapshots": len(gone), "files": files}


def remove_orphans(spark: SparkSession, refs: Refs, table: str, before: datetime) -> int:
    """Deletes files in the table's directory that no snapshot knows and that are older than ``before`` (UTC; at least a day ago).

    Returns:
        How many files are gone.
    """
    existing = refs.table(table)
    # Hadoop, which lists files otherwise, knows no s3://; Iceberg's own client does.
    listing = ", prefix_listing => true" if existing is not None and native(existing.location()) is None else ""
    call = (
        f"CALL {CATALOG}.system.remove_orphan_files(table => '{refs.topology}.{table}', "
        f"older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}'{listing})"
    )
    return spark.sql(call).count()

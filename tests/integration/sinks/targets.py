"""What a sink's target holds and should hold, and how a test acts in the middle of a delivery."""

from collections.abc import Callable

import psycopg
from integration.made import Lake, plain

Hook = Callable[[str, Callable[[], object]], None]
"""Does something when a crash point whose name ends so is reached for the first time."""


def rows_of(database: str, table: str) -> dict[int, dict[str, object]]:
    """A table of PostgreSQL by key."""
    with psycopg.connect(database) as db, db.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        assert cursor.description is not None
        names = [c.name for c in cursor.description]
        return {row[0]: dict(zip(names, row, strict=True)) for row in cursor}


def wanted(lake: Lake) -> dict[str, dict[str, object]]:
    """The output as documents."""
    return {str(key): {c: v for c, v in row.items() if v is not None} for key, row in plain(lake.rows()).items()}

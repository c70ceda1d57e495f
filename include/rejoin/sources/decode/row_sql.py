"""SQL of users, computed of the records of a file by DuckDB: in this process as on Spark's workers.

A value that cannot be computed is null in TRY, and no other record is the worse for it.
"""

from functools import cache
from typing import TYPE_CHECKING

from rejoin.plan.sql.portable import DISABLED, UTC

if TYPE_CHECKING:
    import duckdb

_ERROR = "CREATE MACRO error(m) AS [NULL][CAST(m AS INTEGER)]"
"""An error like DuckDB's own, which has no value of any type: that one may not stand in TRY. No text of an error is a number."""
_ALONE = f"SET disabled_optimizers = '{DISABLED},common_subexpressions,in_clause'"
"""As ``portable.SETTINGS``; and a part that stands twice, or a long list of values that is made a join, would be computed outside of TRY."""


@cache
def database() -> "duckdb.DuckDBPyConnection":
    """Where it is computed; a thread takes a cursor of its own."""
    import duckdb  # a cut needs none

    made = duckdb.connect()
    for setting in (UTC, _ALONE, "SET enable_progress_bar = false", "SET threads = 1", _ERROR):
        made.execute(setting)
    return made

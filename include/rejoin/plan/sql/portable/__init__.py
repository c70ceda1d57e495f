"""Spark SQL expressions of a plan as DuckDB SQL, where the results are proven equal.

``printing`` walks the tree of a text, ``literals``, ``casts``, ``operators``, ``choices``, ``texts`` and ``times`` print its parts,
``plans`` finds the types of columns and says why a node is not portable. Everything is a list of what may be printed: what is not
on it raises ``NotPortable``. tests/integration/test_portable_beside_spark.py compares what is on it with Spark, value by value.

What "equal" means: Spark in ANSI mode with the time zone UTC, and DuckDB with ``SETTINGS``, give the same value or null of each row. Where Spark
raises an error, DuckDB raises one. DuckDB may raise an error where Spark has a value (a text that is cast and has an unusual form,
for instance): then Spark has to be asked.
"""

from rejoin.plan.sql.portable.plans import Columns, member_columns, node_columns, types_of, view_columns, why_not
from rejoin.plan.sql.portable.printed import DISABLED, SETTINGS, UTC, NotPortable, Printed, duckdb_type, quoted
from rejoin.plan.sql.portable.printing import printed

__all__ = [
    "DISABLED",
    "SETTINGS",
    "UTC",
    "Columns",
    "NotPortable",
    "Printed",
    "duckdb_type",
    "member_columns",
    "node_columns",
    "printed",
    "quoted",
    "types_of",
    "view_columns",
    "why_not",
]

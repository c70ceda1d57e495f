"""Statements over the rows of versioned tables, as readers fold them."""

from collections.abc import Sequence

from rejoin.statements.dialect import Dialect


def latest(sql: Dialect, columns: Sequence[str], key: Sequence[str]) -> str:
    """``found``, rows of a versioned table -> the newest version of each key: a run writes at most one."""
    newest = f"row_number() OVER (PARTITION BY {sql.names(key)} ORDER BY _run DESC)"
    return f"SELECT {sql.names(columns)} FROM (SELECT *, {newest} AS _nth FROM found) WHERE _nth = 1"


def without(sql: Dialect, columns: Sequence[str], key: Sequence[str], gone: Sequence[str], *, nulls: bool) -> str:
    """``lefts`` with nulls in the columns ``gone`` where the key is among ``keys``; ``nulls``: parts of it may be null.

    No filter: an engine may move conditions of later joins and filters below it, and compute them for the rows that are to be left out.
    """
    line = ", ".join(
        f"CASE WHEN k._out IS NULL THEN r.{sql.name(c)} END AS {sql.name(c)}" if c in gone else f"r.{sql.name(c)}" for c in columns
    )
    on = sql.on(key, "r", "k", nulls=nulls)
    return f"SELECT {line} FROM lefts AS r LEFT JOIN (SELECT {sql.names(key)}, true AS _out FROM keys) AS k ON {on}"

"""How the feed of an output begins: with a reference instead of a copy of all rows.

The run that writes an output for the first time puts one row into its changes table: ``_op`` LOADED, nothing else but ``_run``. It stands for an
insert of every row that the output had after that run. They are found without an old snapshot: a row that nothing has changed since is still there
as that run wrote it, and of any other the first change tells what was before.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from rejoin.stages.columns import HASH, RUN
from rejoin.stages.dialect import Dialect, text

LOADED = "A"
"""``_op`` of the row that stands for all rows of an output."""


def reference(schema: pa.Schema, run: int) -> pa.Table:
    """The row that stands for all that a run has loaded. ``schema``: of the changes table."""
    row = {RUN: run, "_op": LOADED}
    return pa.table([pa.array([row.get(f.name)], f.type) for f in schema], schema=schema)


def rows(sql: Dialect, columns: Sequence[str]) -> str:
    """``changes`` of a run that loads an output -> the rows of the output."""
    after = ", ".join(f"{sql.get('_after', c)} AS {sql.name(c)}" for c in columns)
    return f"SELECT {after}, {RUN}, {sql.get('_after', HASH)} AS {HASH} FROM changes"


def changes(sql: Dialect, key: Sequence[str], image: Mapping[str, str]) -> str:
    """``log``, the stored changes of all runs up to some run, and ``stored``, the rows of the output after that run -> the same changes with an
    insert of every row in place of the reference: ``_run``, ``_op``, the key, ``_before``, ``_after``.

    Args:
        sql: the dialect.
        key: key columns.
        image: the fields of ``_after`` and their types in the dialect.
    """
    keys, columns = sql.names(key), f"{RUN}, _op, {sql.names(key)}, _before, _after"

    def whole(of: str) -> str:
        return sql.struct((name, f"CAST({sql.get(of, name) if of else sql.name(name)} AS {kind})") for name, kind in image.items())

    untouched, before = whole(""), whole("_before")
    first = f"row_number() OVER (PARTITION BY {keys} ORDER BY {RUN})"
    since = f"SELECT l.*, {first} AS _nth FROM log AS l JOIN loading AS m ON l.{RUN} > m._loaded WHERE l._op <> {text(LOADED)}"
    return f"""
WITH loading AS (SELECT {RUN} AS _loaded FROM log WHERE _op = {text(LOADED)}),
since AS ({since})
SELECT {columns} FROM log WHERE _op <> {text(LOADED)}
UNION ALL
SELECT m._loaded, 'I', {keys}, CASE WHEN false THEN {untouched} END, {untouched} FROM stored AS s JOIN loading AS m ON s.{RUN} = m._loaded
UNION ALL
SELECT m._loaded, 'I', {keys}, CASE WHEN false THEN {before} END, {before} FROM since CROSS JOIN loading AS m
WHERE _nth = 1 AND _before IS NOT NULL"""

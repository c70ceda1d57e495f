"""How the feed of an output begins: with a reference instead of a copy of all rows.

The run that writes an output for the first time puts one row into its changes table: ``_op`` LOADED, nothing else but ``_run``. It stands for an
insert of every row that the output had after that run. They are found without an old snapshot: a row that nothing has changed since is still there
as that run wrote it, and of any other the first change tells what was before.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rejoin.statements.dialect import Dialect, text
from rejoin.statements.own_columns import HASH, RUN

LOADED = "A"
"""``_op`` of the row that stands for all rows of an output."""


def reference(schema: pa.Schema, run: int) -> pa.Table:
    """The row that stands for all that a run has loaded. ``schema``: of the changes table."""
    row = {RUN: run, "_op": LOADED}
    return pa.table([pa.array([row.get(f.name)], f.type) for f in schema], schema=schema)


def rows(sql: Dialect, columns: Sequence[str], key: Sequence[str]) -> str:
    """``changes`` of a run that loads an output -> the rows of the output, with ``_op``. The ``key`` is not taken from ``_after``: no engine could tell which rows
    have which key without making them (``engines.key_ranges``).
    """
    after = ", ".join(sql.name(c) if c in key else f"{sql.get('_after', c)} AS {sql.name(c)}" for c in columns)
    return f"SELECT {after}, {RUN}, {sql.get('_after', HASH)} AS {HASH}, _op FROM changes"


@dataclass(frozen=True)
class Images:
    """The columns that rows of a feed have, whatever edits have brought or taken since.

    Attributes:
        types: the fields of ``_after`` as the changes are read, and their types in the dialect.
        before: those that ``_before`` has as well.
        stored: those that the output has as it is read.
    """

    types: Mapping[str, str]
    before: Collection[str]
    stored: Collection[str]


def changes(sql: Dialect, key: Sequence[str], images: Images) -> str:
    """``log``, the stored changes of all runs up to some run, and ``stored``, the rows of the output after that run -> the same changes with an
    insert of every row in place of the reference: ``_run``, ``_op``, the key, ``_before``, ``_after``.

    Args:
        sql: the dialect.
        key: key columns.
        images: the columns of the rows. What an output or an image does not have is null there: a row that had a value in a column that was
            dropped has changed since.
    """
    keys, columns = sql.names(key), f"{RUN}, _op, {sql.names(key)}, _before, _after"

    def whole(have: Collection[str], value: Callable[[str], str]) -> str:
        return sql.struct((name, f"CAST({value(name) if name in have else 'NULL'} AS {kind})") for name, kind in images.types.items())

    untouched, before = whole(images.stored, sql.name), whole(images.before, lambda name: sql.get("_before", name))
    first = f"row_number() OVER (PARTITION BY {keys} ORDER BY {RUN})"
    since = f"SELECT l.*, {first} AS _nth FROM log AS l JOIN loading AS m ON l.{RUN} > m._loaded WHERE l._op <> {text(LOADED)}"
    return f"""
WITH loading AS (SELECT {RUN} AS _loaded FROM log WHERE _op = {text(LOADED)}),
since AS ({since})
SELECT {columns} FROM log WHERE _op <> {text(LOADED)}
UNION ALL
SELECT m._loaded, 'I', {keys}, NULL, {untouched} FROM stored AS s JOIN loading AS m ON s.{RUN} = m._loaded
UNION ALL
SELECT m._loaded, 'I', {keys}, NULL, {before} FROM since CROSS JOIN loading AS m
WHERE _nth = 1 AND _before IS NOT NULL"""

"""Rows of outputs that are held back (ADR 0010): the candidates of a node are split, and come again.

``Candidates``: key columns; ``_op`` I, U, D, or N for a key that is held back and whose new row equals the published one; ``_before``, the
published row; ``_after``, the new row; ``_place``, where the published row lies; ``_held``: the key is held back before this run; ``_why``: the new row cannot be computed (``_op`` is N, ``_after`` null), and why.
Versions of source tables are held back by ``hold_versions``.
"""

from collections.abc import Sequence

from rejoin.plan.model.plan import Node
from rejoin.statements.dialect import Dialect, text
from rejoin.statements.own_columns import HELD_CODE, NOT_COMPUTABLE, PLACE


def candidates(sql: Dialect, key: Sequence[str], *, aside: bool, held: bool, nulls: bool) -> str:
    """``difference``, the changes of ``resolve.difference`` -> the same with ``_held`` and ``_why``; filtered by ``IS_CANDIDATE`` they are
    ``Candidates``.

    Args:
        sql: the dialect.
        key: key columns.
        aside: ``aside`` is an input: keys whose new row cannot be computed, with ``_why``.
        held: ``held`` is an input: the keys that are held back, of those that were compared; one that ``difference`` lacks is gone.
        nulls: parts of a key may be null.
    """
    keys = sql.names(key, "d")
    if aside:
        made = f"""
        SELECT {keys}, CASE WHEN a._why IS NULL THEN d._op ELSE 'N' END AS _op, d._before, d._after, d.{PLACE}, a._why
        FROM difference AS d LEFT JOIN aside AS a ON {sql.on(key, "d", "a", nulls=nulls)}"""
    else:
        made = f"SELECT {keys}, d._op, d._before, d._after, d.{PLACE}, {sql.null('STRING')} AS _why FROM difference AS d"
    if not held:
        return f"SELECT {sql.names(key)}, _op, _before, _after, {PLACE}, false AS _held, _why FROM ({made})"
    shown = ", ".join(f"coalesce(d.{sql.name(k)}, h.{sql.name(k)}) AS {sql.name(k)}" for k in key)
    return f"""
SELECT {shown}, coalesce(d._op, 'N') AS _op, d._before, d._after, d.{PLACE}, coalesce(h._held, false) AS _held, d._why
FROM ({made}) AS d FULL JOIN (SELECT {sql.names(key)}, true AS _held FROM held) AS h ON {sql.on(key, "d", "h", nulls=nulls)}"""


IS_CANDIDATE = "_op <> 'N' OR _held OR _why IS NOT NULL"


def judged(sql: Dialect, key: Sequence[str], *, bad: bool, nulls: bool) -> str:
    """``candidates`` -> the same with ``_reason``, null for what may be published.

    Args:
        sql: the dialect.
        key: key columns.
        bad: ``bad`` is an input: the keys whose new row is to be held back, with ``_reason``.
        nulls: parts of a key may be null.
    """
    if not bad:
        return "SELECT *, _why AS _reason FROM candidates"
    columns = f"{sql.names(key, 'c')}, c._op, c._before, c._after, c.{PLACE}, c._held, c._why"
    on = sql.on(key, "c", "b", nulls=nulls)
    return f"SELECT {columns}, coalesce(c._why, b._reason) AS _reason FROM candidates AS c LEFT JOIN bad AS b ON {on}"


def published(sql: Dialect, key: Sequence[str], run: int) -> str:
    """``judged`` -> what becomes visible: rows of the changes table, with ``_place``."""
    columns = f"{sql.cast(str(run), 'BIGINT')} AS _run, _op, {sql.names(key)}, _before, _after, {PLACE}"
    return f"SELECT {columns} FROM judged WHERE _op <> 'N' AND _reason IS NULL"


def set_aside(sql: Dialect, node: Node, run: int) -> str:
    """``judged`` -> rows of the quarantine table: Q for a key that is held back now, R for one that no longer is."""
    raw = sql.json(sql.struct((p.name, sql.get("_after", p.name)) for p in node.columns))
    return f"""
SELECT
    {sql.names(node.key)}, {sql.cast(str(run), "BIGINT")} AS _run,
    CASE WHEN _reason IS NOT NULL THEN 'Q' ELSE 'R' END AS _op,
    CASE WHEN _why IS NOT NULL THEN {text(NOT_COMPUTABLE)} ELSE {text(HELD_CODE)} END AS _code,
    _reason, CASE WHEN _reason IS NOT NULL THEN {raw} END AS _raw
FROM judged WHERE _reason IS NOT NULL OR _held"""


def new_rows(sql: Dialect, node: Node) -> str:
    """``changes`` (``Changes`` or ``Candidates``) -> ``_row``: the new row of each, with the node's columns only."""
    row = sql.struct((p.name, sql.get("_after", p.name)) for p in node.columns)
    return f"SELECT {row} AS _row FROM changes WHERE _op IN ('I', 'U')"

"""The rows of both views as relations that statements of joins begin with.

``Lefts``: ``pk_1``.., the left key; ``l``, the row through the left view; ``fk_1``.., what has to be equal.
``Rights``: ``rk_1``.., the right key; ``r1``, the row through the right view; ``on_1``.., what has to be equal.
With times also ``lt`` and ``rt``: BIGINT, microseconds since the epoch.
"""

from collections.abc import Sequence

from rejoin.plan.model.plan import Edge, View
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import numbered
from rejoin.statements.relations import seen


def lefts(sql: Dialect, view: View, edge: Edge, key: Sequence[str], rows: str, *, time: str | None = None) -> str:
    """``Lefts`` of ``rows``, an SQL text that gives ``Rows`` with the columns ``key``; rows that the view does not show are left out."""
    pks = numbered("pk", len(key))
    equal = ", ".join(f"{part} AS fk_{i}" for i, part in enumerate(edge.foreign_key, start=1))
    at = "" if time is None else f", {micros(sql, view, 'l', time)} AS lt"
    shown = f"SELECT {sql.names(pks)}, {seen(sql, view)} AS l FROM (SELECT {sql.renamed(key, pks)}, _row AS t FROM ({rows}))"
    return f"SELECT {sql.names(pks)}, l, {equal}{at} FROM ({shown}) WHERE l IS NOT NULL"


def rights(sql: Dialect, view: View, on: Sequence[str], key: Sequence[str], rows: str, *, time: str | None = None) -> str:
    """``Rights`` of ``rows``, likewise."""
    rks = numbered("rk", len(key))
    equal = ", ".join(f"{sql.get('r1', name)} AS on_{i}" for i, name in enumerate(on, start=1))
    at = "" if time is None else f", {micros(sql, view, 'r1', time)} AS rt"
    shown = f"SELECT {sql.names(rks)}, {seen(sql, view)} AS r1 FROM (SELECT {sql.renamed(key, rks)}, _row AS t FROM ({rows}))"
    return f"SELECT {sql.names(rks)}, r1, {equal}{at} FROM ({shown}) WHERE r1 IS NOT NULL"


def stored(sql: Dialect, key: Sequence[str], rows: str) -> str:
    """``Rows`` as ``lefts`` and ``rights`` take them."""
    return f"SELECT {sql.names(key)}, _row FROM {rows}"


def images(sql: Dialect, key: Sequence[str], changes: str, *sides: str) -> str:
    """``Changes`` likewise: the rows before, after, or both, as ``sides`` names the columns."""
    return " UNION ALL ".join(f"SELECT {sql.names(key)}, {side} AS _row FROM {changes} WHERE {side} IS NOT NULL" for side in sides)


def as_of_now(sql: Dialect, key: Sequence[str]) -> str:
    """Rows as of this run: those in ``read``, Rows, and of what this run changed, whether it was read or not, the rows after it in ``changes``."""
    known = f"SELECT 1 FROM changes AS c WHERE {sql.on(key, 'c', 'r', nulls=True)}"
    read = f"SELECT {sql.names(key, 'r')}, r._row FROM read AS r WHERE NOT EXISTS ({known})"
    return f"{images(sql, key, 'changes', '_after')} UNION ALL {read}"


def micros(sql: Dialect, view: View, row: str, time: str) -> str:
    """The microseconds of a time of a view."""
    return sql.time_micros(sql.get(row, time), zoned=view.column(time).type != "TIMESTAMP_NTZ")


def met(count: int, left: str, right: str) -> str:
    """The condition that a left and a right row have equal values, none of them null."""
    return " AND ".join(f"{left}.fk_{i} = {right}.on_{i}" for i in range(1, count + 1))


def among(sql: Dialect, key: Sequence[str], of: Sequence[str] = (), *, shown: str = "*", absent: bool = False) -> str:
    """What is ``shown`` of those ``rows_`` whose ``key`` is among ``keys``, there the columns ``of`` (the same by default); ``absent``: is not."""
    same = " AND ".join(sql.same(f"k.{sql.name(o)}", f"r.{sql.name(n)}") for n, o in zip(key, of or key, strict=True))
    return f"SELECT {shown} FROM rows_ AS r WHERE {'NOT ' if absent else ''}EXISTS (SELECT 1 FROM keys AS k WHERE {same})"

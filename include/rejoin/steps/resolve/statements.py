"""resolve, what all kinds of joins share: results become rows of the output, and what differs from what is stored its net changes.

``state`` and ``old`` come from a kind of join (``joins/``): each of these functions is one statement over them.
"""

from collections.abc import Mapping, Sequence

from rejoin.plan.model.plan import Node
from rejoin.statements.dialect import Dialect, equal
from rejoin.statements.own_columns import HASH, PLACE, numbered
from rejoin.statements.value_hash import compared, provenance


def join(sql: Dialect, node: Node, fingerprint: str) -> str:
    """``state`` with every ``r<i>`` filled -> ``pk_1``.. and ``new``: the output row with its ``_hash``, null if there is none."""
    pks = sql.names(numbered("pk", len(node.key)))
    sides = [f"r{i}" for i in range(1, len(node.edges) + 1)]
    present = [] if any(e.kind.keeps_right for e in node.edges) else ["l IS NOT NULL"]
    present += [f"{side} IS NOT NULL" for side, edge in zip(sides, node.edges, strict=True) if not edge.kind.keeps_left]
    present += [] if present else ["(l IS NOT NULL OR r1 IS NOT NULL)"]
    present += [f"({node.where})"] if node.where else []
    hashes = [sql.get(side, HASH) for side in ("l", *sides)]
    row = sql.struct([*((p.name, p.sql) for p in node.columns), (HASH, HASH)])
    hashed = f"SELECT *, {provenance(sql, fingerprint, hashes)} AS {HASH} FROM state"
    return f"SELECT {pks}, CASE WHEN {' AND '.join(present)} THEN {row} END AS {sql.name('new')} FROM ({hashed})"


def proven(sql: Dialect, node: Node, *, held: bool) -> str:
    """``made``, rows of the output as ``join`` gives them, and ``stored``, the keys of its rows with ``_hash`` and ``_place`` -> the ``Rows`` that are
    stored; ``_row`` is null of those that were not made of the same, and of keys that are in ``held``, if that is an input.
    """
    pks, new, nulls = numbered("pk", len(node.key)), sql.name("new"), node.null_keys
    candidates = f"SELECT {sql.renamed(pks, node.key)}, {new} FROM made"
    if held:
        candidates = (
            f"SELECT * FROM ({candidates}) AS c WHERE NOT EXISTS (SELECT 1 FROM held AS h WHERE {sql.on(node.key, 'h', 'c', nulls=nulls)})"
        )
    row = f"CASE WHEN {sql.get(f'm.{new}', HASH)} = s.{HASH} THEN m.{new} END AS _row"
    return f"""
    SELECT {sql.names(node.key, "s")}, {row}, s.{PLACE}
    FROM stored AS s LEFT JOIN ({candidates}) AS m ON {sql.on(node.key, "s", "m", nulls=nulls)}"""


def difference(sql: Dialect, node: Node, types: Mapping[str, str], *, stored: bool, gone: Sequence[tuple[str, str]] = ()) -> str:
    """``made``, the new output rows of ``join``, and ``old``, the ``Rows`` of the output before this run -> ``Changes`` of the output with
    ``_op`` ``N`` for affected keys whose row stays the same, and ``_place``, where the old row lies. A row of ``old`` whose key ``made`` lacks is gone.

    A row that loses a value because its column is dropped has changed: who follows the changes would else find the old value there when
    a column of that name comes back.

    Args:
        sql: the dialect.
        node: the node.
        types: Spark SQL types of the columns of ``old``: of those of ``new`` the same or wider ones.
        stored: ``old`` is an input; else the output never had a row.
        gone: name and Spark SQL type of columns that ``old`` has after the node's own, and the node no longer has.
    """
    pks, keys, new, old = numbered("pk", len(node.key)), list(node.key), sql.name("new"), sql.name("old")
    if not stored:
        none = f"CASE WHEN false THEN {new} END AS {old}, {sql.null('BIGINT')} AS {PLACE}"
        both = f"SELECT {sql.names(pks)}, {new}, {none} FROM made"
    else:
        fields = [*((p.name, types[p.name]) for p in node.columns), *gone, (HASH, "BINARY")]
        row = sql.struct((name, sql.cast(sql.get("_row", name), of)) for name, of in fields)
        before = f"SELECT {sql.renamed(keys, pks)}, CASE WHEN _row IS NOT NULL THEN {row} END AS {old}, {PLACE} FROM old"
        shown = ", ".join(f"coalesce(m.{c}, o.{c}) AS {c}" for c in pks)
        on = sql.on(pks, "m", "o", nulls=node.null_keys)
        both = f"SELECT {shown}, m.{new}, o.{old}, o.{PLACE} FROM made AS m FULL JOIN ({before}) AS o ON {on}"
    kept = ([compared(sql, sql.get(side, p.name), types.get(p.name)) for side in (new, old)] for p in node.columns)
    same = equal([*((one, other) for one, other in kept), *(("NULL", compared(sql, sql.get(old, name), of)) for name, of in gone)])
    op = f"""CASE
        WHEN {old} IS NULL AND {new} IS NULL THEN 'N' WHEN {old} IS NULL THEN 'I' WHEN {new} IS NULL THEN 'D' WHEN {same} THEN 'N' ELSE 'U'
    END"""
    return f"SELECT {sql.renamed(pks, keys)}, {op} AS _op, {old} AS _before, {new} AS _after, {PLACE} FROM ({both})"

"""The relations that stages exchange, and what their statements share. Every stage reads and gives only these, so each can be tested with
three rows by hand.

A stage is SQL text in the dialect of the engine that runs it; its inputs are tables with the names that its docstring says.

Users' column names never start with ``_``; so relations with users' key columns name everything else with ``_``, and a stage renames the key
columns to ``pk_1``.. or ``fk_1``.. before it adds the columns ``t``, ``l``, ``r1``.. that a plan's SQL texts refer to.

``Changes`` (a run's net changes of a table or output, at most one row a key)
    key columns; ``_op`` STRING in I, U, D; ``_before`` STRUCT, ``_after`` STRUCT: all columns and ``_hash``, null where there was no row.
``Rows`` (the state of a table or output at some run, at most one row a key)
    key columns; ``_row`` STRUCT: all columns and ``_hash``; of rows of an output that are looked up or read as a whole also ``_place`` BIGINT.
``Versions`` (the newest version of each key of a source table, deletes included)
    key columns; ``_version`` STRING (source position); ``_row`` STRUCT as above, null for a remembered delete;
    ``_before`` STRUCT: the value columns of the version before.
``Subscriptions`` (rows of an edge's subscription table)
    ``fk_1``..; ``pk_1``..; ``_run`` BIGINT; ``_op`` S (subscribed) or D (unsubscribed); ``_hash`` BINARY of the left row;
    ``_instruction`` STRING of KIP-213. Those of members to their group have the values of the member, ``v_1``.., instead of an instruction.
``Responses`` (an edge's answers in one run, at most one a primary key)
    ``pk_1``..; ``left_hash`` BINARY; ``right`` STRUCT: the columns of the edge's right view and ``_hash``, null where there is no right row.
"""

from collections.abc import Sequence

from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, View
from rejoin.statements.dialect import Dialect
from rejoin.statements.own_columns import HASH, numbered


def subscription_key(to: Edge | Grouping, key: Sequence[str]) -> list[str]:
    """``fk_1``.., ``pk_1``..: the key of subscriptions of a left table with this key, by which they lie."""
    return [*numbered("fk", len(to.foreign_key)), *numbered("pk", len(key))]


def seen(sql: Dialect, view: View) -> str:
    """SQL text over a struct column ``t``, a row of the view's table: the columns of the view and ``_hash``, null where ``t`` is null or the view
    filters it out.
    """
    present = f"t IS NOT NULL AND ({view.where})" if view.where else "t IS NOT NULL"
    fields = [*((p.name, p.sql) for p in view.columns), (HASH, sql.get("t", HASH))]
    return f"CASE WHEN {present} THEN {sql.struct(fields)} END"


def foreign_key(sql: Dialect, to: Edge | Grouping) -> str:
    """SQL text of the struct ``fk_1``.. over ``l``; null without a left row, and if any part is null, where null is no key."""
    fields = zip(numbered("fk", len(to.foreign_key)), to.foreign_key, strict=True)
    present = ["l IS NOT NULL", *(f"({part}) IS NOT NULL" for part in to.foreign_key if not to.null_is_a_key)]
    return f"CASE WHEN {' AND '.join(present)} THEN {sql.struct(fields)} END"


def key_parts(sql: Dialect, to: Edge | Grouping) -> str:
    """SQL text of the columns ``fk_1``.. over a struct column ``fk``, a ``foreign_key``."""
    return ", ".join(f"{sql.get('fk', c)} AS {c}" for c in numbered("fk", len(to.foreign_key)))

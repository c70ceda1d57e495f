"""What an edit of a topology may not do to tables that exist: another key, or a source column of another or narrower type."""

import re

from rejoin.errors import SchemaRefused
from rejoin.plan.model import Plan

_WIDENINGS = {("INT", "BIGINT"), ("FLOAT", "DOUBLE")}


def left_behind(old: Plan, new: Plan) -> tuple[str, ...]:
    """Names of tables and outputs that ``new`` no longer has: their tables stay as they are."""
    kept = {t.name for t in new.tables} | {n.name for n in new.nodes}
    return tuple(name for name in (*(t.name for t in old.tables), *(n.name for n in old.nodes if n.published)) if name not in kept)


def refuse_incompatible(old: Plan, new: Plan) -> None:
    """Compares the plan of the last committed run with the one to run now, by table and node names.

    Raises:
        SchemaRefused: a table or output has another key, or a declared column changes its type other than to a wider one.
    """
    for table in new.tables:
        before = next((t for t in old.tables if t.name == table.name), None)
        if before is None:
            continue
        _same_key(table.name, before.key, table.key)
        types = {c.name: c.type or "" for c in before.columns}
        for column in table.columns:
            was, now = types.get(column.name, column.type or ""), column.type or ""
            if not _fits(was, now):
                raise SchemaRefused(
                    f"column {column.name!r} of table {table.name!r} was declared {was} and is now {now}",
                    expected="the same type or a wider one",
                    next_step="declare the old type, or declare the table under a new name",
                )
    for node in new.nodes:
        was_node = next((n for n in old.nodes if n.name == node.name), None)
        if was_node is not None:
            _same_key(node.name, was_node.key, node.key)


def _same_key(name: str, was: tuple[str, ...], now: tuple[str, ...]) -> None:
    if was != now:
        raise SchemaRefused(
            f"the key of {name!r} was ({', '.join(was)}) and is now ({', '.join(now)})",
            expected="the same key: every stored row and every change is identified by it",
            next_step="give the table or output a new name",
        )


def _fits(was: str, now: str) -> bool:
    decimals = [re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", t) for t in (was, now)]
    if decimals[0] and decimals[1]:
        return decimals[0][2] == decimals[1][2] and int(decimals[0][1]) <= int(decimals[1][1])
    return was == now or (was, now) in _WIDENINGS

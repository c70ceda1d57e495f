"""Events and stored versions of a table ``orders``, as text tables with the columns that a case needs."""

from rejoin import Topology, debezium, snapshot
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan, Table
from rejoin.testing.text import lines, split


def _plan() -> Plan:
    made = Topology("shop")
    orders = made.table("orders", ["s", "o"], "s INT, o INT, c INT, note STRING", debezium("orders"))
    customers = made.table("customers", "k", "k INT, name STRING", snapshot("customers"))
    orders.left_join(customers, foreign_key="c", select=["left.s", "left.o", "right.name"], name="out")
    return compile(made)


PLAN = _plan()
ORDERS: Table = PLAN.table("orders")
"""Keyed by shop ``s`` and number ``o``; a join reads ``c``, and nobody ``note``."""

ROW, BEFORE = "STRUCT(s INT, o INT, c INT, note VARCHAR, _hash BLOB)", "STRUCT(c INT, note VARCHAR, _hash BLOB)"
TYPES = {
    "s": "INT", "o": "INT", "c": "INT", "note": "VARCHAR", "_arrival": "BIGINT", "_missing": "VARCHAR[]", "_absent": "VARCHAR[]",
    "_old_key": "STRUCT(s INT, o INT)", "_line": "BIGINT", "_lines": "BIGINT", "_row": ROW, "_new": ROW.replace(", _hash BLOB", ""), "_before": BEFORE, "_newhash": "BLOB",
}  # fmt: skip
DEFAULTS = {"_kind": "upsert", "s": "1", "_missing": "[]", "_absent": "[]", "_lines": "1"}
EVENTS = [
    "_kind", "s", "o", "c", "note", "_position", "_arrival", "_missing", "_absent", "_old_key", "_file", "_line", "_lines", "_code", "_reason", "_raw", "_snapshot",
]  # fmt: skip


def row(o: int, c: str | int, note: str = "x", hashed: str = "h", s: int = 1) -> str:
    return f"{{s: {s}, o: {o}, c: {c}, note: {note}, _hash: {hashed}}}"


def before(c: str | int, note: str = "x") -> str:
    return f"{{c: {c}, note: {note}, _hash: h}}"


def events(text: str, *more: str) -> str:
    """Events, in the order of their columns; what the header leaves out is as of an upsert in shop 1. ``more``: columns of what was made of them."""
    return _whole(text, [*EVENTS, *more])


def versions(text: str) -> str:
    """``Versions`` with the version before."""
    return _whole(text, ["s", "o", "_version", "_row", "_before"])


def classified(text: str) -> str:
    """Events with what ``stored`` has of their keys and their fates."""
    return events(text, "_version", "_row", "_fate")


def _whole(text: str, columns: list[str]) -> str:
    header, *rows = map(split, lines(text))
    assert set(header) <= set(columns), header
    typed = " | ".join(f"{name} {TYPES[name]}" if name in TYPES else name for name in columns)
    shown = (" | ".join(dict(zip(header, line, strict=True)).get(name, DEFAULTS.get(name, "NULL")) for name in columns) for line in rows)
    return "\n".join([typed, *shown])

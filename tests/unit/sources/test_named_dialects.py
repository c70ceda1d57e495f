"""Maxwell, Canal and GoldenGate: their messages, as their documentation shows them, -> events."""

import json
from pathlib import Path
from typing import Any

import pytest
from pinning import put, there

from rejoin import Topology, feed
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table
from rejoin.sources import SourceAccess, read_again_here, read_here

SCHEMA = "id BIGINT, line INT, total DECIMAL(10,2), tags STRING, photo BINARY, at TIMESTAMP"
Row = dict[str, Any]


def table(dialect: str, only: str | None = "shop.orders") -> Table:
    made = Topology("t")
    orders = made.table("orders", key=["id", "line"], schema=SCHEMA, source=feed("src", dialect, only=only))
    orders.select(["id", "line"]).named("listed")
    return compile(made).table("orders")


def events(root: Path, dialect: str, *messages: object, only: str | None = "shop.orders") -> list[Row]:
    lines = [m if isinstance(m, str) else json.dumps(m) for m in messages]
    put(root, **{"src/1.jsonl": "".join(f"{line}\n" for line in lines)})
    of = table(dialect, only)
    pin = there(of, str(root)).pin
    assert pin is not None
    found = read_here(of, pin, SourceAccess(str(root)))
    assert found is not None
    return found.to_pylist()


def shown(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Line, kind, key, and the code where a record was refused."""
    return [(e["_line"], e["_kind"], e["id"], e["line"], *([e["_code"]] if e["_code"] else [])) for e in rows]


def maxwell(type_: str, row: Row | None = None, at: int = 1, **more: Any) -> Row:
    own = {"database": "shop", "table": "orders", "type": type_, "ts": 1700000000, "xid": 55, "position": f"mysql-bin.000003:{at}"}
    return {**own, "commit": True, **({} if row is None else {"data": row}), **more}


ROW: Row = {"id": 1, "line": 2, "total": 3.50, "tags": ["a", "b"], "photo": "AQI=", "at": "2026-11-27 10:00:00"}


def test_maxwell(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        "maxwell",
        maxwell("bootstrap-start"),
        maxwell("bootstrap-insert", ROW, position=None, commit=None),
        maxwell("insert", ROW, at=10),
        maxwell("update", ROW, at=11, old={"total": None}),
        maxwell("update", {**ROW, "line": 9}, at=12, old={"line": 2}),
        maxwell("delete", ROW, at=13),
        maxwell("table-alter"),
        {**maxwell("insert", ROW), "table": "items"},
        maxwell("insert", ROW, position=None),
        maxwell("insert", {**ROW, "at": "0000-00-00 00:00:00"}, at=14),
        maxwell("insert", ROW, at=15, commit=None),
        maxwell("insert", None, at=16),
        maxwell("merge", ROW, at=17),
        '{"database": "shop"',
    )
    assert shown(found) == [
        (1, "skipped", None, None),
        (2, "upsert", 1, 2),
        (3, "upsert", 1, 2),
        (4, "upsert", 1, 2),
        (5, "delete", 1, 2),
        (5, "upsert", 1, 9),
        (6, "delete", 1, 2),
        (7, "skipped", None, None),
        (8, "skipped", None, None),
        (9, "quarantined", None, None, "UNKNOWN_POSITION"),
        (10, "quarantined", None, None, "VALUE_RANGE"),
        (11, "quarantined", None, None, "UNKNOWN_POSITION"),
        (12, "quarantined", None, None, "MAXWELL_DATA"),
        (13, "quarantined", None, None, "MAXWELL_TYPE"),
        (14, "quarantined", None, None, "BAD_JSON"),
    ]
    assert (str(found[2]["total"]), found[2]["tags"], found[2]["photo"]) == ("3.50", "a,b", b"\x01\x02")
    positions = [e["_position"] for e in found if e["_position"]]
    assert positions == sorted(positions), "a bootstrapped row is older than every change"
    assert len({e["_arrival"] for e in found}) == len(found)


def test_what_a_bootstrap_of_maxwell_brings_says_so_and_where_it_begins_and_ends(tmp_path: Path) -> None:
    marks = [maxwell(f"bootstrap-{word}", ROW if word == "insert" else None) for word in ("start", "insert", "complete")]
    found = events(tmp_path, "maxwell", *marks, maxwell("insert", ROW), {**marks[0], "table": "items"})
    assert [e["_snapshot"] for e in found] == ["first shop.orders", "row shop.orders", "last shop.orders", None, None]
    assert [e["_kind"] for e in found] == ["skipped", "upsert", "skipped", "upsert", "skipped"]


def test_two_changes_of_a_row_in_one_transaction_of_maxwell_have_their_order(tmp_path: Path) -> None:
    """The position is that of the statement or transaction; xoffset counts its rows, and the last one has commit instead."""
    first, second, last = (
        maxwell("update", {**ROW, "total": n}, at=7, old={}, **more)
        for n, more in ((1, {"commit": None, "xoffset": 0}), (2, {"commit": None, "xoffset": 10}), (3, {}))
    )
    found = events(tmp_path, "maxwell", last, second, first)
    assert [int(e["total"]) for e in sorted(found, key=lambda e: e["_position"])] == [1, 2, 3]


def canal(type_: str, *rows: Row, old: list[Row | None] | None = None, **more: Any) -> Row:
    own = {
        "id": 9,
        "database": "shop",
        "table": "orders",
        "pkNames": ["id", "line"],
        "isDdl": False,
        "es": 1700000000000,
        "ts": 1700000000150,
    }
    return {**own, "type": type_, "sql": "", "data": list(rows) or None, "old": old, "gtid": "", **more}


TEXTS: Row = {"id": "1", "line": "2", "total": "3.50", "tags": "a,b", "photo": "\x01\xff", "at": "2026-11-27 10:00:00"}


def test_canal(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        "canal",
        canal("CREATE", isDdl=True),
        canal("INSERT", TEXTS, {**TEXTS, "line": "3"}),
        canal("UPDATE", TEXTS, {**TEXTS, "line": "4"}, old=[{"total": None, "line": "2"}, {"line": "3"}]),
        canal("DELETE", TEXTS),
        canal("TRUNCATE", isDdl=True),
        canal("QUERY", TEXTS),
        {**canal("INSERT", TEXTS), "database": "other"},
        canal("UPDATE", TEXTS, TEXTS, old=[{}]),
        canal("INSERT", TEXTS, {**TEXTS, "line": "x"}),
        canal("INSERT", {**TEXTS, "line": 3}),
        canal("INSERT", {**TEXTS, "photo": "\u20ac"}),
        canal("MERGE", TEXTS),
        canal("INSERT", data="x"),
    )
    assert shown(found) == [
        (1, "skipped", None, None),
        (2, "upsert", 1, 2),
        (2, "upsert", 1, 3),
        (3, "upsert", 1, 2),
        (3, "delete", 1, 3),
        (3, "upsert", 1, 4),
        (4, "delete", 1, 2),
        (5, "truncate", None, None),
        (6, "skipped", None, None),
        (7, "skipped", None, None),
        (8, "quarantined", None, None, "CANAL_DATA"),
        (9, "quarantined", None, None, "VALUE_TYPE"),
        (10, "quarantined", None, None, "VALUE_TYPE"),
        (11, "quarantined", None, None, "VALUE_TYPE"),
        (12, "quarantined", None, None, "CANAL_TYPE"),
        (13, "quarantined", None, None, "CANAL_DATA"),
    ]
    assert found[1]["photo"] == b"\x01\xff"
    facts = [e for e in found if e["_kind"] in ("upsert", "delete", "truncate")]
    assert [e["_position"] for e in facts] == sorted({e["_position"] for e in facts}), "order is arrival"
    assert all(e["_position"] is None for e in found if e not in facts)


def test_refused_messages_of_canal_are_not_read_again(tmp_path: Path) -> None:
    record = {"_file": "f", "_line": 1, "_reason": "x", "_raw": json.dumps(canal("INSERT", TEXTS)), "_arrival": -2}
    assert read_again_here(table("canal"), [record]).num_rows == 0, "nothing tells where it would stand among the others"


def gate(op: str, after: Row | None = None, before: Row | None = None, pos: int = 1) -> Row:
    own = {"table": "SHOP.ORDERS", "op_type": op, "op_ts": "2026-11-27 10:00:00.000000", "pos": f"{pos:020d}"}
    return own | {name: row for name, row in (("before", before), ("after", after)) if row is not None}


def test_golden_gate(tmp_path: Path) -> None:
    row = {**TEXTS, "photo": "AQI="}
    found = events(
        tmp_path,
        "goldengate",
        gate("I", row, pos=1),
        gate("U", {"id": 1, "line": 2, "total": 4}, {"id": 1, "line": 2}, pos=2),
        gate("U", {**row, "line": "9"}, row, pos=3),
        gate("D", None, row, pos=4),
        gate("T", pos=5),
        {**gate("I", row), "table": "SHOP.ITEMS"},
        gate("U", {"id": 1, "line": 3}, {"id": 1, "line": 9}, pos=6),
        gate("I", row, pos=7) | {"pos": None},
        gate("D", row, pos=8),
        gate("X", row, pos=9),
        only="SHOP.ORDERS",
    )
    assert shown(found) == [
        (1, "upsert", 1, 2),
        (2, "upsert", 1, 2),
        (3, "delete", 1, 2),
        (3, "upsert", 1, 9),
        (4, "delete", 1, 2),
        (5, "truncate", None, None),
        (6, "skipped", None, None),
        (7, "quarantined", None, None, "GOLDENGATE_KEY"),
        (8, "quarantined", None, None, "UNKNOWN_POSITION"),
        (9, "quarantined", None, None, "GOLDENGATE_DATA"),
        (10, "quarantined", None, None, "GOLDENGATE_TYPE"),
    ]
    assert found[1]["_missing"] == ["tags", "photo", "at"], "a compressed update leaves out what stays"


@pytest.mark.parametrize("dialect", ["maxwell", "canal", "goldengate"])
def test_a_record_that_is_none_of_the_dialect_is_refused_and_not_taken_for_one_of_another_table(tmp_path: Path, dialect: str) -> None:
    other = maxwell("insert", ROW) if dialect == "goldengate" else gate("I", ROW)
    found = events(tmp_path, dialect, {}, ROW, {"op": "c", "source": {"table": "orders"}, "after": ROW}, other)
    assert [e["_code"] for e in found] == [f"{dialect.upper()}_TYPE"] * 4

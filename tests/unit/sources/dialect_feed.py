"""Lines of Maxwell, Canal and GoldenGate as these write them, of two tables, with odd values, keys that change, and rows that come in part."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from source_cases import table

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import FeedSource

COLUMNS = "id BIGINT; part STRING; total DECIMAL(10,2); n INT; ok BOOLEAN; share DOUBLE; note STRING; at TIMESTAMP"
ONLY = {"maxwell": "shop.orders", "canal": "shop.orders", "goldengate": "SHOP.ORDERS"}
NOTES = ("", "plain", "ä 😀 '", "x" * 300, 'say "hi"', "back\\slash", "two\nlines", "null", '"note":null', "[]", None, None)
Row = dict[str, Any]


def of_dialect(dialect: str, *, only: bool = True, optional: bool = False) -> Table:
    """Orders. ``optional``: rows may lack what is no key."""
    of = table(COLUMNS, "id,part", FeedSource("f", dialect, ONLY[dialect] if only else None))
    return replace(of, optional=("total", "n", "ok", "share", "note", "at")) if optional else of


def row(random_: random.Random, number: int, *, odd: bool = True) -> Row:
    return {
        "id": number % 17,
        "part": f"p{number % 3}",
        "total": random_.choice([number / 4, 0, -12.5, None]),
        "n": number - 50,
        "ok": random_.choice([True, False]),
        "share": random_.random(),
        "note": random_.choice(NOTES) if odd else f"n {number}",
        "at": f"2026-11-27 10:{number // 60 % 60:02d}:{number % 60:02d}",
    }


def _before(random_: random.Random, now: Row) -> Row:
    """Earlier values of some columns, rarely of the key."""
    keys = ("id", "part") if random_.random() < 0.1 else ()
    was = {name: value for name, value in now.items() if name in keys or (name not in ("id", "part") and random_.random() < 0.3)}
    return was | {name: f"{value} once" for name, value in was.items() if name in ("part", "note")}


def maxwell(random_: random.Random, number: int, *, nulls: bool = True) -> Row:
    kind = random_.choices(["insert", "update", "delete", "bootstrap-insert"], [4, 5, 2, 1])[0]
    now = row(random_, number)
    if kind == "update" and number % 5 == 0:
        old: Any = {**_before(random_, now), "id": number % 17 + 1}
        old = {name: old[name] for name in now if name in old}
    else:
        old = _before(random_, now)
    if not nulls:
        now = {name: value for name, value in now.items() if value is not None}
    own = {
        "database": "shop",
        "table": random_.choices(["orders", "items"], [9, 1])[0],
        "type": kind,
        "ts": 1700000000 + number,
        "xid": number // 5,
    }
    place = {"xoffset": number % 5} if number % 5 < 4 else {"commit": True}
    placed = {} if kind == "bootstrap-insert" else {**place, "position": f"mysql-bin.0000{number % 7:02d}:{number}"}
    data = {"sku": now["part"], "price": 1.5} if own["table"] == "items" else now
    return {**own, **placed, "data": data, **({"old": old} if kind == "update" else {})}


def canal(random_: random.Random, number: int) -> Row:
    kind = random_.choices(["INSERT", "UPDATE", "DELETE"], [4, 5, 2])[0]
    rows = [_texts(row(random_, number + i)) for i in range(random_.choice([1, 1, 2, 5]))]
    old = [{k: v and f"{v}" for k, v in _before(random_, one).items()} | ({"id": "99"} if random_.random() < 0.2 else {}) for one in rows]
    old = [{name: one[name] for name in rows[0] if name in one} for one in old]
    is_item = random_.random() < 0.1
    types = {"sku": "varchar(9)"} if is_item else dict.fromkeys(rows[0], "varchar(255)")
    return {
        "data": [{"sku": "a"} for _ in rows] if is_item else rows,
        "database": "shop",
        "es": 1700000000000 + number,
        "id": number,
        "isDdl": False,
        "mysqlType": types,
        "old": old if kind == "UPDATE" and not is_item else None,
        "pkNames": ["sku"] if is_item else ["id", "part"],
        "sql": "",
        "sqlType": dict.fromkeys(types, 12),
        "table": "items" if is_item else "orders",
        "ts": 1700000000150 + number,
        "type": kind,
    }


def golden_gate(random_: random.Random, number: int, *, whole: bool = True) -> Row:
    kind = random_.choices(["I", "U", "D"], [4, 5, 2])[0]
    now = row(random_, number)
    was = now | ({"id": 99} if random_.random() < 0.1 else {})
    if kind == "U" and not whole:
        now = {name: value for name, value in now.items() if name in ("id", "part") or random_.random() < 0.5}
        was = {name: was[name] for name in ("id", "part")}
    own = {"table": random_.choices(["SHOP.ORDERS", "SHOP.ITEMS"], [9, 1])[0], "op_type": kind, "op_ts": "2026-11-27 10:00:00.000000"}
    rows = ({"before": was} if kind != "I" else {}) | ({"after": now} if kind != "D" else {})
    return {**own, "pos": f"{number:020d}", "primary_keys": ["id", "part"], "tokens": {"R": f"AADPkvAAE{number}"}, **rows}


def _texts(made: Row) -> Row:
    return {name: None if value is None else str(value).lower() if isinstance(value, bool) else str(value) for name, value in made.items()}


MADE: dict[str, Callable[..., Row]] = {"maxwell": maxwell, "canal": canal, "goldengate": golden_gate}


def lines(dialect: str, random_: random.Random, count: int, style: tuple[str, str] = (",", ":"), **how: bool) -> Iterator[bytes]:
    """A feed of a dialect."""
    for number in range(count):
        yield json.dumps(MADE[dialect](random_, number, **how), separators=style, ensure_ascii=False).encode()

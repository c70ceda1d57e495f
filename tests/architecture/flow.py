"""How a table passes through ``ingest`` and a node through ``resolve``: which files are entered, how often, and how often a call leads up.

``python tests/architecture/flow.py`` runs a small topology in this process and follows, in its second run, every call of the package that has the table (or node)
among its arguments, or goes to an object that holds it. A file is *entered* when such a call comes from another file; the same call from the same line
counts once. An entry is a *climb* if the file stands above the one that calls: in a higher room (``checker.ROOMS``), or in the same one and imports it.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

from checker import PACKAGE, ROOMS, ROOT
from count import imports, reached

from rejoin import Topology, condition, debezium, snapshot
from rejoin.plan.model.plan import Node, Table
from rejoin.plan.model.steps import Verb
from rejoin.steps.run.attempt import Attempt
from rejoin.testing import Driver

HOME = str(ROOT / PACKAGE) + "/"
TARGETS = {Verb.INGEST: "orders", Verb.RESOLVE: "orders_enriched"}


@dataclass(frozen=True)
class Entry:
    """A call from one file into another that carries what is followed."""

    caller: str
    line: int
    file: str
    function: str


def followed() -> dict[Verb, list[Entry]]:
    """The entries of both steps, in the order of the calls."""
    with Driver(_topology()) as shop:
        shop.run(
            orders="id | customer | product | total\n1 | 7 | a | 12.50\n2 | NULL | b | 3.00",
            customers="id | name\n7 | Ann\n8 | Bob",
            products="id | title\na | Pen\nb | Cup",
        )
        with _watched() as entries:
            shop.run(orders="id | customer | product | total\n1 | 8 | a | 12.50\n3 | 7 | b | 2.00\n- 2", customers="id | name\n7 | Anna")
    return entries


def _topology() -> Topology:
    shop = Topology("shop")
    orders = shop.table(
        "orders", key="id", schema="id BIGINT, customer BIGINT, product STRING, total DECIMAL(10,2)", source=debezium("landing/orders"),
    )  # fmt: skip
    orders.expect(condition("total >= 0"), severity="quarantine")
    customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
    products = shop.table("products", key="id", schema="id STRING, title STRING", source=snapshot("landing/products"))
    named = orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name"])
    named.join(products, foreign_key="product", select=["left.*", "right.title"]).named("orders_enriched")
    return shop


@contextmanager
def _watched() -> Iterator[dict[Verb, list[Entry]]]:
    """Follows what is executed within."""
    found: dict[Verb, dict[Entry, None]] = {verb: {} for verb in TARGETS}
    execute, current = Attempt.execute, list[Verb]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME) and _carries(frame, TARGETS[current[0]]):
            if (entry := _entry(frame)) is not None:
                found[current[0]][entry] = None

    def watching(attempt, engine, step):
        if TARGETS.get(step.verb) != step.target:
            return execute(attempt, engine, step)
        current[:] = [step.verb]
        sys.setprofile(profile)
        try:
            return execute(attempt, engine, step)
        finally:
            sys.setprofile(None)

    Attempt.execute = watching
    entries = {}
    try:
        yield entries
    finally:
        Attempt.execute = execute
        entries.update({v: list(e) for v, e in found.items()})


def _carries(frame: FrameType, name: str) -> bool:
    code = frame.f_code
    if code.co_name.startswith("<") and code.co_name != "<lambda>":
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    given = [frame.f_locals[n] for n in code.co_varnames[:count] if n in frame.f_locals]
    if code.co_varnames[:1] == ("self",) and given:
        own, given = given[0], given[1:]
        if isinstance(own, Table | Node):
            return any(_is(v, name) for v in given)
        given += list(getattr(own, "__dict__", {}).values())
    return any(_is(v, name) for v in given)


def _is(v, name):
    return isinstance(v, Table | Node) and v.name == name


def _entry(frame: FrameType) -> Entry | None:
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(HOME):
        caller = caller.f_back
    if caller is None: return None
    one, two = (f.f_code.co_filename.removeprefix(HOME) for f in (caller, frame))
    return None if one == two else Entry(one, caller.f_lineno, two, frame.f_code.co_qualname)


if __name__ == "__main__":
    graph = imports(ROOT / PACKAGE)
    def module(f): return f.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    def climb(e):
        a, b = module(e.caller), module(e.file)
        ra, rb = (ROOMS.index(x.partition(".")[0]) for x in (a, b))
        return rb < ra or (ra == rb and a in reached(graph, b))
    for verb, entries in followed().items():
        print("==", verb)
        for e in entries: print("  ", "CLIMB" if climb(e) else "     ", f"{e.caller}:{e.line} -> {e.file} {e.function}")
        c = Counter(e.file for e in entries)
        print(len(entries), "entries", len(c), "files", sum(map(climb, entries)), "climbs", c.most_common(12))

"""How a table passes through ``ingest`` and a node through ``resolve``: ``python tests/architecture/flow.py`` prints it, ``... flow.py PAGE`` draws it on a page.

A small topology is run in this process, and in its second run every call of the package is followed that is given the table (or the node) as an argument.
Such calls are *stops*, each once for every line that calls; what the table itself is asked is none. A file is *entered* when a stop is in another file
than the stop before. An entry is a *climb* if the file stands above the one before: in a higher room (``checker.ROOMS``), or in the same one and imports it.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType

from checker import PACKAGE, ROOMS, ROOT
from count import Graph, imports, reached

from rejoin import Topology, condition, debezium, limits, snapshot
from rejoin.context.outcome import Outcome
from rejoin.engines.relation import Engine
from rejoin.plan.model.plan import Node, Table
from rejoin.plan.model.step_results import Result
from rejoin.plan.model.steps import Step, Verb
from rejoin.steps.run.attempt import Attempt
from rejoin.testing import Driver

HOME = f"{ROOT / PACKAGE}/"
TARGETS = {Verb.INGEST: "orders", Verb.RESOLVE: "orders_enriched"}
WIDTH = 9
"""How far apart the rooms of a picture are, in letters."""


@dataclass(frozen=True)
class Stop:
    """A call that is given what is followed: from a line of a file, and in which file and function it is."""

    caller: str
    line: int
    file: str
    function: str


@dataclass(frozen=True)
class Flow:
    """The files that are entered, in their order, and which of these entries are climbs."""

    entered: tuple[str, ...]
    climbs: tuple[bool, ...]

    @property
    def times(self) -> dict[str, int]:
        """How often each file is entered."""
        return dict(Counter(self.entered))


def flows() -> dict[Verb, Flow]:
    """Both flows, as the package is now."""
    graph = imports(ROOT / PACKAGE)
    return {verb: flow(stops, graph) for verb, stops in followed().items()}


def flow(stops: Sequence[Stop], graph: Graph) -> Flow:
    """The flow of some stops; ``graph``: module -> the modules that it imports."""
    path = [stops[0].caller, *(s.file for s in stops)]
    steps = [(one, two) for one, two in pairwise(path) if one != two]
    return Flow(tuple(two for _, two in steps), tuple(_above(_module(two), _module(one), graph) for one, two in steps))


def _above(one: str, two: str, graph: Graph) -> bool:
    rooms = [ROOMS.index(module.partition(".")[0]) for module in (one, two)]
    return rooms[0] < rooms[1] or (rooms[0] == rooms[1] and two in reached(graph, one))


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def followed() -> dict[Verb, list[Stop]]:
    """The stops of both steps, in the order of the calls, with the limits of a user."""
    with _usual_limits(), Driver(_topology()) as shop:
        shop.run(
            orders="id | customer | product | total\n1 | 7 | a | 12.50\n2 | NULL | b | 3.00",
            customers="id | name\n7 | Ann\n8 | Bob",
            products="id | title\na | Pen\nb | Cup",
        )
        with _watched() as stops:
            shop.run(orders="id | customer | product | total\n1 | 8 | a | 12.50\n3 | 7 | b | 2.00\n- 2", customers="id | name\n7 | Anna")
    return stops


def _topology() -> Topology:
    shop = Topology("shop")
    columns = "id BIGINT, customer BIGINT, product STRING, total DECIMAL(10,2)"
    orders = shop.table("orders", key="id", schema=columns, source=debezium("landing/orders"))
    orders.expect(condition("total >= 0"), severity="quarantine")
    customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
    products = shop.table("products", key="id", schema="id STRING, title STRING", source=snapshot("landing/products"))
    named = orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name"])
    named.join(products, foreign_key="product", select=["left.*", "right.title"]).named("orders_enriched")
    return shop


@contextmanager
def _usual_limits() -> Iterator[None]:
    before, limits.in_force = limits.in_force, limits.Limits()
    try:
        yield
    finally:
        limits.in_force = before


@contextmanager
def _watched() -> Iterator[dict[Verb, list[Stop]]]:
    """The stops of what is executed within."""
    stops: dict[Verb, list[Stop]] = {verb: [] for verb in TARGETS}
    execute = Attempt.execute

    def watched(attempt: Attempt, engine: Engine, step: Step) -> Outcome[Result]:
        if TARGETS.get(step.verb) != step.target:
            return execute(attempt, engine, step)
        before = sys.getprofile()
        sys.setprofile(_noting(step.target, stops[step.verb]))
        try:
            return execute(attempt, engine, step)
        finally:
            sys.setprofile(before)

    Attempt.execute = watched  # type: ignore[method-assign]
    try:
        yield stops
    finally:
        Attempt.execute = execute  # type: ignore[method-assign]


def _noting(name: str, stops: list[Stop]) -> Callable[[FrameType, str, object], None]:
    """Notes the calls that are given the table or node of a name."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME) and _is_given(frame, name):
            stop = _stop(frame)
            if stop is not None and stop not in stops:
                stops.append(stop)

    return note


def _is_given(frame: FrameType, name: str) -> bool:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    given = [frame.f_locals.get(n) for n in code.co_varnames[:count]]
    asked = code.co_varnames[:1] == ("self",) and isinstance(given[0], Table | Node)
    return not asked and any(isinstance(value, Table | Node) and value.name == name for value in given)


def _stop(frame: FrameType) -> Stop | None:
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(HOME):
        caller = caller.f_back
    if caller is None:
        return None
    one, two = (f.f_code.co_filename.removeprefix(HOME) for f in (caller, frame))
    return Stop(one, caller.f_lineno, two, frame.f_code.co_qualname)


def picture(of: Flow) -> str:
    """A line for every file that is entered, in their order, under its room; ``^`` marks a climb."""
    rooms = [room for room in ROOMS if any(file.startswith(f"{room}/") for file in of.entered)]
    lines = ["".join(f"{room:<{WIDTH}}" for room in rooms).rstrip(), ""]
    for file, climb in zip(of.entered, of.climbs, strict=True):
        room, _, name = file.removesuffix(".py").partition("/")
        lines.append(" " * (WIDTH * rooms.index(room)) + name + (" ^" if climb else ""))
    return "\n".join(lines)


def drawn(page: str, found: Mapping[Verb, Flow]) -> str:
    """A page with both pictures in their places."""
    for verb, of in found.items():
        said = f"{len(of.entered)} entries of {len(of.times)} files, {sum(of.climbs)} climbs."
        text = f"`{verb}.{TARGETS[verb]}`: {said}\n\n```text\n{picture(of)}\n```"
        page, places = re.subn(rf"(<!-- flow: {verb} -->\n).*?(<!-- end -->)", rf"\1\n{text}\n\n\2", page, flags=re.DOTALL)
        assert places == 1, verb
    return page


if __name__ == "__main__":
    if sys.argv[1:]:
        (page := Path(sys.argv[1])).write_text(drawn(page.read_text(), flows()))
    else:
        for verb, of in flows().items():
            print(f"{verb}: {len(of.entered)} entries of {len(of.times)} files, {sum(of.climbs)} climbs\n\n{picture(of)}\n")

"""The joins that ``rejoin replay`` runs, declared as a user declares them: with the public API only.

Values are texts: ``fk|payload`` on the side that refers to another (``fk1;fk2|payload`` where it refers twice). A joined value is
``left+right``, with the text ``null`` for a missing right side. An empty foreign key refers to nothing. Every table has the key
(scenario, id), and a foreign key always names a row of the same scenario: so any number of scenarios share one topology and never meet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from rejoin.declare.sources import debezium
from rejoin.declare.topology import Relation, Topology
from rejoin.replay.stream_joins import HOWS, SIDES, Variant, declare

OUTPUT = "result"
"""The output's name in every topology here; its columns are those of the tables."""

COLUMNS = ("scenario", "id", "value")

_KINDS = ("inner", "left")
_UNUSED_PLACEHOLDER = "replayed events carry every column"


@dataclass(frozen=True)
class Shape:
    """One way to join.

    ``sides``: the tables that events can be for.
    ``joins``: how many joins there are, each inner or left.
    ``declare``: (topology, the kind of each join) -> the joined relation, not yet named.
    """

    sides: tuple[str, ...]
    joins: int
    declare: Callable[[Topology, tuple[str, ...]], Relation]


def topology(join: str, how: tuple[str, ...], variant: Variant = ()) -> Topology:
    """The topology of a shape: its tables read ``<topology>/<side>/``, its output is ``result``."""
    made = Topology("_".join(["replay", *join.split("-"), *how, *(f"{name[0]}{value}".replace("-", "m") for name, value in variant)]))
    (SHAPES[join].declare(made, how) if join in SHAPES else declare(made, join, how[0], variant)).named(OUTPUT)
    return made


def sides(join: str) -> dict[str, str]:
    """The sides that events can be for, and what each is: ``table`` or ``stream``."""
    return dict.fromkeys(SHAPES[join].sides, "table") if join in SHAPES else dict(zip(("left", "right"), SIDES[join], strict=True))


# --- the shapes -------------------------------------------------------------------------------------------------------


def fk(on: Topology, how: tuple[str, ...]) -> Relation:
    """A row and the one it refers to: left -(fk)-> right."""
    return _join(_table(on, "left"), _table(on, "right"), how[0], first_part("value"), [JOINED])


def chain(on: Topology, how: tuple[str, ...]) -> Relation:
    """From hop to hop: left -(fk)-> mid; that result -(fk inside the part that mid brought)-> right."""
    half = _join(_table(on, "left"), _table(on, "mid"), how[0], first_part("value"), [JOINED, "right.value AS mid"])
    after_plus = "substr(value, instr(value, '+') + 1)"
    return _join(half, _table(on, "right"), how[1], f"CASE WHEN mid IS NOT NULL THEN {first_part(after_plus)} END", [JOINED])


def chain_right(on: Topology, how: tuple[str, ...]) -> Relation:
    """The chain from its far end: left -(fk)-> the result of (mid -(fk)-> right)."""
    made = _join(_table(on, "mid"), _table(on, "right"), how[1], first_part("value"), [JOINED]).named("mid_with_right")
    return _join(_table(on, "left"), made, how[0], first_part("value"), [JOINED])


def star(on: Topology, how: tuple[str, ...]) -> Relation:
    """Two references: left -(fk1)-> mid and left -(fk2)-> right; both foreign keys are the left row's own, so rejoin makes one node of them."""
    return _twice(_table(on, "left"), _table(on, "mid"), _table(on, "right"), how)


def diamond(on: Topology, how: tuple[str, ...]) -> Relation:
    """The star with one table on both ends."""
    mid = _table(on, "mid")
    return _twice(_table(on, "left"), mid, mid, how)


def self_join(on: Topology, how: tuple[str, ...]) -> Relation:
    """A table that refers to itself: left -(fk)-> left."""
    left = _table(on, "left")
    return _join(left, left, how[0], first_part("value"), [JOINED])


def self_filtered(on: Topology, how: tuple[str, ...]) -> Relation:
    """The same without some rows on the right: left -(fk)-> left without those whose value ends with "!"."""
    left = _table(on, "left")
    return _join(left, left.filter("NOT endswith(value, '!')"), how[0], first_part("value"), [JOINED])


SHAPES = {
    "fk": Shape(("left", "right"), 1, fk),
    "fk-chain": Shape(("left", "mid", "right"), 2, chain),
    "fk-chain-right": Shape(("left", "mid", "right"), 2, chain_right),
    "fk-star": Shape(("left", "mid", "right"), 2, star),
    "fk-diamond": Shape(("left", "mid"), 2, diamond),
    "fk-self": Shape(("left",), 1, self_join),
    "fk-self-filtered": Shape(("left",), 1, self_filtered),
}
SHORT = {f"fk-{kind}": ("fk", (kind,)) for kind in _KINDS}
"""Shapes whose name says the kind of their only join."""
SHORT |= {f"{join}-{how}": (join, (how,)) for join, hows in HOWS.items() for how in hows}


def kinds(join: str) -> list[tuple[str, ...]]:
    """Every ``how`` of a shape."""
    return list(product(_KINDS, repeat=SHAPES[join].joins))


# --- what they are made of --------------------------------------------------------------------------------------------

KEY = ["left.scenario", "left.id"]
JOINED = "concat(left.value, '+', coalesce(right.value, 'null')) AS value"


def first_part(text: str, mark: str = "|", number: int = 1) -> str:
    """SQL: what stands before the first ``mark`` (or between marks, by ``number``); null if that is empty."""
    return f"CAST(nullif(split_part({text}, '{mark}', {number}), '') AS STRING)"


def _table(on: Topology, side: str) -> Relation:
    source = debezium(f"{on.name}/{side}/", placeholder=_UNUSED_PLACEHOLDER, on_bad_record="fail")
    return on.table(side, key=["scenario", "id"], schema="scenario BIGINT, id STRING, value STRING", source=source)


def _join(left: Relation, right: Relation, how: str, foreign_key: str, select: list[str]) -> Relation:
    join = left.join if how == "inner" else left.left_join
    return join(right, foreign_key=["scenario", foreign_key], select=[*KEY, *select])


def _twice(left: Relation, first: Relation, second: Relation, how: tuple[str, ...]) -> Relation:
    keys = "split_part(value, '|', 1)"
    half = _join(left, first, how[0], first_part(keys, ";"), ["left.value", "coalesce(right.value, 'null') AS mid"])
    joined = "concat(left.value, '+', left.mid, '+', coalesce(right.value, 'null')) AS value"
    return _join(half, second, how[1], first_part(keys, ";", 2), [joined])

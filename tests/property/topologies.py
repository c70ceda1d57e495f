"""Random topologies, declared through the public API: shapes, key kinds, sources, filters, selects, inner and left joins.

Every table holds many independent histories: their number is part of every key, as a column of its own (``h``) or packed into the key's
value. A topology is a function of (seed, shape, name), so a failure is repeated by its seed.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import expressions
from expressions import BIGINT, STRING

from rejoin import Topology, debezium, snapshot
from rejoin.declare.declarations import SourceDeclaration
from rejoin.declare.topology import Relation

CSV_NULL: Final = "\\N"
FEED: Final = "debezium"
LENGTHS: Final = {(5, 0): 100, (6, 1): 4_097, (7, 0): 70_000, (8, 1): 0}
"""(history, number of a key in it) -> bytes of the key, where it is a text."""


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a row that name a row of ``target``, in the order of its key."""

    target: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class TableSpec:
    """A table: its columns by type, and what a random row of it needs.

    ``kind``: how keys look (number, text, wide: two columns). ``packed``: the history is part of the first key value, else column ``h``.
    ``own``: key columns without ``h``. ``source``: debezium, csv, jsonl or parquet. ``domain``: how many keys a history has.
    """

    name: str
    kind: str
    packed: bool
    own: tuple[str, ...]
    columns: Mapping[str, str]
    foreign_keys: tuple[ForeignKey, ...]
    source: str
    domain: int

    @property
    def key(self) -> tuple[str, ...]:
        return self.own if self.packed else ("h", *self.own)

    @property
    def payload(self) -> list[str]:
        held = {*self.key, *(c for fk in self.foreign_keys for c in fk.columns)}
        return [c for c in self.columns if c not in held]

    def key_of(self, history: int, number: int) -> tuple[Any, ...]:
        """The key of one row of one history; ``number`` from 0 below ``domain`` (beyond it: a key that never exists)."""
        before = f"{history}-" if self.packed else ""
        if self.kind == "number":
            return (history * 10 + number,) if self.packed else (history, number)
        if self.kind == "text":
            own: tuple[Any, ...] = (_sized(f"{before}{'abcdefgh'[number]}", history, number),)
        else:
            own = (_sized(f"{before}r{number % 2}", history, number % 2), 2023 + number // 2)
        return own if self.packed else (history, *own)


def _sized(text: str, history: int, number: int) -> str:
    """A text of a key: of a few keys an empty one, or one of many bytes."""
    length = LENGTHS.get((history, number))
    return text if length is None else text.ljust(length, "~")[:length]


_OWN: Final = {"number": {"id": BIGINT}, "text": {"code": STRING}, "wide": {"region": STRING, "year": BIGINT}}


def table_specs(rng: random.Random, references: Mapping[str, str]) -> dict[str, TableSpec]:
    """Tables by name; ``references``: table -> the tables that its foreign keys name, one letter each."""
    packed = rng.random() < 0.4
    kinds = {name: rng.choice(["number", "number", "text", "wide"]) for name in references}
    sources = {name: rng.choice([FEED] * 5 + ["csv", "jsonl", "parquet"]) for name in references}
    made = {}
    for name, targets in references.items():
        own = {f"{name}_{column}": type_ for column, type_ in _OWN[kinds[name]].items()}
        columns = own if packed else {"h": BIGINT, **own}
        foreign_keys = []
        for number, target in enumerate(targets, start=1):
            parts = {f"{name}_fk{number}_{column}": type_ for column, type_ in _OWN[kinds[target]].items()}
            columns = {**columns, **parts}
            foreign_keys.append(ForeignKey(target, tuple(parts) if packed else ("h", *parts)))
        payload = {f"{name}_v{i}": rng.choice(expressions.TYPES) for i in range(1, rng.randint(2, 4) + 1)}
        columns = {**columns, **payload}
        domain = rng.randint(3, 5)
        made[name] = TableSpec(name, kinds[name], packed, tuple(own), columns, tuple(foreign_keys), sources[name], domain)
    return made


def _source(spec: TableSpec) -> SourceDeclaration:
    path = f"{spec.name}/"
    # Rows of a snapshot come in any order among the changes; what a whole one says of others is tried in ``integration/test_snapshot_again``.
    return debezium(path, snapshots="additive") if spec.source == FEED else snapshot(path, max_delete_share=1.0, null=CSV_NULL)


@dataclass(frozen=True)
class Rel:
    """A relation and what is known of it. ``columns``: those whose type is known; ``foreign_keys``: by the columns that hold them."""

    relation: Relation
    key: tuple[str, ...]
    columns: Mapping[str, str]
    foreign_keys: tuple[ForeignKey, ...]


class Declared:
    """Declares the tables of a shape, and makes random joins, filters and selects over them."""

    def __init__(self, rng: random.Random, topology: Topology, specs: Mapping[str, TableSpec]) -> None:
        self.rng, self._count = rng, 0
        self.tables = {name: self._table(topology, spec) for name, spec in specs.items()}

    @staticmethod
    def _table(topology: Topology, spec: TableSpec) -> Rel:
        schema = ", ".join(f"{column} {type_}" for column, type_ in spec.columns.items())
        key = spec.key[0] if len(spec.key) == 1 else list(spec.key)
        relation = topology.table(spec.name, key=key, schema=schema, source=_source(spec))
        return Rel(relation, spec.key, spec.columns, spec.foreign_keys)

    def join(self, left: Rel, right: Rel, target: str, nth: int = 0, *, carry: bool = False) -> Rel:
        """``left`` joined, inner or left, by its nth foreign key to ``target``; ``carry``: the right foreign keys come along."""
        fk = [f for f in left.foreign_keys if f.target == target][nth]
        items, columns = self._left_items(left)
        right_items, right_columns = self._right_items(right)
        carried = [self._carried(f) for f in right.foreign_keys] if carry else []
        for was, now in zip(right.foreign_keys, carried, strict=bool(carried)):
            renamed = [(a, b) for a, b in zip(was.columns, now.columns, strict=True) if a != "h"]
            right_items += [f"right.{a} AS {b}" for a, b in renamed]
            right_columns |= {b: right.columns[a] for a, b in renamed}
        parts = [expressions.key_part(self.rng, c, left.columns[c]) if c != "h" else c for c in fk.columns]
        method = left.relation.join if self.rng.random() < 0.5 else left.relation.left_join
        relation = method(right.relation, parts[0] if len(parts) == 1 else parts, [*items, *right_items])
        return Rel(relation, left.key, columns | right_columns, (*left.foreign_keys, *carried))

    def _left_items(self, left: Rel) -> tuple[list[str], dict[str, str]]:
        """All columns; or the key, the foreign keys, some others and an expression."""
        if self.rng.random() < 0.5:
            return ["left.*"], dict(left.columns)
        held = {*left.key, *(c for fk in left.foreign_keys for c in fk.columns)}
        others = [c for c in left.columns if c not in held]
        kept = [c for c in left.columns if c in held] + self.rng.sample(others, len(others) // 2)
        items, columns = [f"left.{c}" for c in kept], {c: left.columns[c] for c in kept}
        return self._with_expressions(items, columns, "left.", left, self.rng.sample(others, min(1, len(others))))

    def _right_items(self, right: Rel) -> tuple[list[str], dict[str, str]]:
        others = [c for c in right.columns if c not in right.key]
        return self._with_expressions([], {}, "right.", right, self.rng.sample(others, min(self.rng.randint(1, 3), len(others))))

    def _with_expressions(
        self, items: list[str], columns: dict[str, str], prefix: str, rel: Rel, names: list[str]
    ) -> tuple[list[str], dict[str, str]]:
        for name in names:
            text, type_ = expressions.selected(self.rng, prefix + name, rel.columns[name])
            alias = self._name()
            items.append(f"{text} AS {alias}")
            columns |= {alias: type_} if type_ else {}
        return items, columns

    def _carried(self, fk: ForeignKey) -> ForeignKey:
        return replace(fk, columns=tuple(c if c == "h" else self._name() for c in fk.columns))

    def _name(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def filtered(self, rel: Rel, share: float = 0.5) -> Rel:
        """With this probability only the rows for which a random condition holds."""
        others = [c for c in rel.columns if c not in rel.key]
        if not others or self.rng.random() >= share:
            return rel
        name = self.rng.choice(others)
        return replace(rel, relation=rel.relation.filter(expressions.condition(self.rng, name, rel.columns[name])))

    def selected(self, rel: Rel) -> Rel:
        """The key (its last column renamed), the foreign keys, and expressions over some others."""
        renamed = self._name()
        kept = [c for c in rel.columns if c in {*rel.key[:-1], *(c for fk in rel.foreign_keys for c in fk.columns)}]
        items, columns = [*kept, f"{rel.key[-1]} AS {renamed}"], {c: rel.columns[c] for c in kept} | {renamed: rel.columns[rel.key[-1]]}
        others = [c for c in rel.columns if c not in {*rel.key, *kept}]
        items, columns = self._with_expressions(items, columns, "", rel, self.rng.sample(others, min(2, len(others))))
        return Rel(rel.relation.select(items), (*rel.key[:-1], renamed), columns, rel.foreign_keys)

    def named(self, rel: Rel, name: str) -> Rel:
        return replace(rel, relation=rel.relation.named(name))


Shape = Callable[[Declared], Any]


@dataclass(frozen=True)
class Generated:
    """A topology and its tables."""

    topology: Topology
    specs: Mapping[str, TableSpec]


def generate(seed: int, shape: str, name: str) -> Generated:
    """The random topology of this seed and shape (a name of ``shapes.SHAPES``)."""
    from shapes import SHAPES

    rng = random.Random(f"{seed} {shape}")
    references, declare = SHAPES[shape]
    specs = table_specs(rng, references)
    topology = Topology(name)
    declare(Declared(rng, topology, specs))
    return Generated(topology, specs)

"""What a group is: by what members belong together, what is known of each, and what is made of them. Part of the plan: frozen, JSON both ways."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

COUNT, COUNT_DISTINCT, COLLECT = "count", "count_distinct", "collect"


@dataclass(frozen=True)
class Value:
    """Something that is computed of a member: its name, its SQL text over ``l``, its type, which is always known."""

    name: str
    sql: str
    type: str


@dataclass(frozen=True)
class Collect:
    """How ``collect`` makes an array of members. ``fields``: those of a struct, one for each value; none where the value is the element. ``order``: the values by which members come
    before their keys, each with whether it descends, null being the smallest. ``where``: the value that is true for the members of a filter, and null for others.
    """

    fields: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    where: str | None


@dataclass(frozen=True)
class Aggregate:
    """A column of a group. ``function``: as SQL names it, ``count_distinct`` for ``count(DISTINCT x)``. ``of``: the names of the values of members that it takes, none for
    ``count(*)``; a value is null for a member that its filter leaves out. ``collect``: what else there is to say of that one.
    """

    name: str
    function: str
    of: tuple[str, ...]
    type: str
    collect: Collect | None = None

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of all values that it needs of a member."""
        if self.collect is None:
            return self.of
        return (*self.of, *(value for value, _ in self.collect.order), *([self.collect.where] if self.collect.where else []))

    def sql(self, values: Mapping[str, str]) -> str:
        """The aggregate over the SQL texts of values, for people."""
        of = ", ".join(values[name] for name in self.of)
        if self.collect is None:
            name, distinct = ("count", "DISTINCT ") if self.function == COUNT_DISTINCT else (self.function, "")
            return f"{name}({distinct}{of or '*'})"
        named = ", ".join(f"{values[value]} AS {name}" for value, name in zip(self.of, self.collect.fields, strict=False))
        order = ", ".join(values[value] + (" DESC" if descending else "") for value, descending in self.collect.order)
        parts = [
            f"struct({named})" if named else of,
            f"ORDER BY {order}" if order else "",
            f"LIMIT {self.collect.limit}" if self.collect.limit else "",
        ]
        where = f" FILTER (WHERE {values[self.collect.where]})" if self.collect.where else ""
        return f"{COLLECT}({' '.join(part for part in parts if part)}){where}"


@dataclass(frozen=True)
class Grouping:
    """How members of a left view become groups. ``keys``: the group's key; null is a key like any other. ``values``: what the aggregates take of a member.

    A member subscribes to its group as a left row to a right one (KIP-213); the subscription has the values, so that a group is computed from its subscriptions alone.
    """

    keys: tuple[Value, ...]
    values: tuple[Value, ...]
    aggregates: tuple[Aggregate, ...]
    null_is_a_key: ClassVar[bool] = True
    """Null names a group, as in GROUP BY; in the foreign key of a join it names nothing."""

    @property
    def name(self) -> str:
        """What its subscription table is called. Members with values of other types get another table."""
        types = [[value.type for value in some] for some in (self.keys, self.values)]
        return f"members_{hashlib.sha256(json.dumps(types).encode('ascii')).hexdigest()[:8]}"

    @property
    def foreign_key(self) -> tuple[str, ...]:
        """The key of the group that a member belongs to."""
        return tuple(key.sql for key in self.keys)

    @property
    def types(self) -> dict[str, str]:
        """The columns of a group."""
        return {key.name: key.type for key in self.keys} | {made.name: made.type for made in self.aggregates}

    @property
    def has_arrays(self) -> bool:
        """Whether members are collected: a group is then about as large as all of them."""
        return any(made.collect is not None for made in self.aggregates)

    @property
    def unlimited(self) -> tuple[Aggregate, ...]:
        """The arrays that are as long as the group."""
        return tuple(made for made in self.aggregates if made.collect is not None and made.collect.limit is None)

    @property
    def made_of(self) -> Iterator[tuple[str, Value]]:
        """What it computes of a member, each with what people call it."""
        yield from ((f"the group key {key.name!r}", key) for key in self.keys)
        for value in self.values:
            users = " and ".join(repr(a.name) for a in self.aggregates if value.name in a.taken)
            yield f"what is aggregated in {users}", value

    @property
    def written(self) -> tuple[dict[str, str], dict[str, str]]:
        """The SQL of the keys, and of the columns that are made of members, by name."""
        values = {value.name: value.sql for value in self.values}
        return {key.name: key.sql for key in self.keys}, {a.name: a.sql(values) for a in self.aggregates}

    def type_of(self, value: str) -> str:
        """The type of a value of members."""
        return next(v.type for v in self.values if v.name == value)


def grouping_of(data: dict[str, Any] | None) -> Grouping | None:
    """The grouping that ``dataclasses.asdict`` made this of."""
    if data is None:
        return None
    aggregates = tuple(Aggregate(**{**a, "of": tuple(a["of"]), "collect": _collect_of(a["collect"])}) for a in data["aggregates"])
    return Grouping(tuple(Value(**k) for k in data["keys"]), tuple(Value(**v) for v in data["values"]), aggregates)


def _collect_of(data: dict[str, Any] | None) -> Collect | None:
    if data is None:
        return None
    return Collect(tuple(data["fields"]), tuple((value, descending) for value, descending in data["order"]), data["limit"], data["where"])

"""Relations while a topology is compiled, and how filters, selects and joins compose and fuse.

A ``Rows`` is a view of one table or node. A ``Star`` is a left view with its joins, and becomes a node when it is
named, or when something needs it as a table. Nothing here reports: expressions that arrive are resolved already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rejoin.plan.model.grouping import Aggregate
from rejoin.plan.model.match import JoinKind, Match, SameKey, Window
from rejoin.plan.model.plan import Table
from rejoin.plan.model.policy import Policy
from rejoin.plan.model.sinks import Sink
from rejoin.plan.sql import types
from rejoin.plan.sql.expressions import LEFT, Expression, Ref, Side, both, column, guarded


@dataclass(frozen=True)
class Timed:
    """What makes a relation a stream. ``time``: its column with the event time; ``on``: the columns by which it is joined with other streams;
    ``lateness``: in microseconds.
    """

    time: str
    on: tuple[str, ...]
    lateness: int

    def under(self, names: Mapping[str, Ref]) -> "Timed | None":
        """The same of a relation that has other columns; None without the event time.

        ``names``: its columns that are columns of this one.
        """
        shown = {ref.column: name for name, ref in reversed(list(names.items()))}
        if self.time not in shown:
            return None
        return Timed(shown[self.time], tuple(shown[name] for name in self.on) if set(self.on) <= set(shown) else (), self.lateness)


@dataclass(eq=False)
class Draft:
    """A node to be. An intermediate result gets its ``name`` (None until then) and its ``policy`` from the output that reads it."""

    name: str | None
    shape: "Shape"
    policy: Policy = field(default_factory=Policy)
    sinks: tuple[Sink, ...] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """Row-wise filter and select over a table or node; expressions are over ``t``. ``complete``: no mistake was found in it."""

    base: Table | Draft
    label: str
    columns: Mapping[str, Expression]
    key: tuple[str, ...]
    where: Expression | None = None
    complete: bool = True
    timed: Timed | None = None


@dataclass(frozen=True, eq=False)
class Arm:
    """One join of a star. ``foreign_key`` is over ``l``."""

    right: Rows
    foreign_key: tuple[Expression, ...]
    kind: JoinKind
    match: Match | None = None


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of the rows of one left view. ``keys``, and ``values``, which the aggregates take, are over ``l``, its rows."""

    keys: Mapping[str, Expression]
    values: Mapping[str, Expression]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, eq=False)
class Star:
    """Joins of one left view; expressions are over ``l``, ``r1``, ``r2`` ... With ``groups`` it has no joins, and ``l`` is a row of a group.

    Filters between and after the joins are all in ``where``, after all joins: every join finds at most one right row and its
    foreign key reads ``l`` only, so a join neither makes nor changes what an earlier filter reads. A foreign key that could fail for a
    row that an earlier filter leaves out is null for that row.
    """

    left: Rows
    arms: tuple[Arm, ...]
    label: str
    columns: Mapping[str, Expression]
    key: tuple[str, ...]
    where: Expression | None = None
    complete: bool = True
    timed: Timed | None = None
    groups: Groups | None = None


Shape = Rows | Star


def side(shape: Shape) -> Side:
    """What an expression over a relation may read."""
    known = {name: made.known for name, made in shape.columns.items()}
    return Side(shape.label, {name: made.type for name, made in shape.columns.items()}, shape.complete, _constant(shape), known)


def null_keys(shape: Shape) -> bool:
    """Whether parts of the key of a relation may be null: a side is missing, or null is the key of a group."""
    if isinstance(shape, Rows):
        return isinstance(shape.base, Draft) and null_keys(shape.base.shape)
    if shape.groups is not None and any(key.plain is None or key.plain.column not in shape.left.key for key in shape.groups.keys.values()):
        return True
    of_pairs = any(isinstance(arm.match, Window) or (arm.match is None and arm.kind.keeps_right) for arm in shape.arms)
    of_rights = any(isinstance(arm.match, SameKey) and arm.kind.keeps_right and null_keys(arm.right) for arm in shape.arms)
    side_missing = of_pairs and any(arm.kind is not JoinKind.INNER for arm in shape.arms)
    return side_missing or of_rights or null_keys(shape.left)


def _constant(shape: Shape) -> frozenset[str]:
    """Columns that are texts, or made of texts, whatever the row."""
    fixed = {name: made for name, made in shape.columns.items() if not made.refs and made.type in (None, types.STRING)}
    return frozenset(name for name, made in fixed.items() if "'" in made.sql or '"' in made.sql)


def rows_of(base: Table | Draft, columns: Side, key: tuple[str, ...]) -> Rows:
    """All rows and columns of a table or node."""
    made = {name: column("t", name, of_type, columns.type_of(name)) for name, of_type in columns.columns.items()}
    return Rows(base, columns.label, made, key, None, columns.complete)


def grouped(members: Rows, groups: Groups, types: Mapping[str, str], label: str, *, complete: bool) -> Star:
    """The groups of a view. ``types``: their columns, first those of their key."""
    columns = {name: column("l", name, kind) for name, kind in types.items()}
    return Star(members, (), label, columns, tuple(groups.keys), None, complete, None, groups)


def filtered(shape: Shape, condition: Expression) -> Shape:
    """The rows of a relation for which a condition over its columns is true."""
    return replace(shape, where=both(shape.where, condition.replace(lambda ref: shape.columns[ref.column])))


def selected(shape: Shape, items: Mapping[str, Expression], key: tuple[str, ...], *, complete: bool) -> Shape:
    """Other columns, made of the columns of a relation."""
    columns = {name: item.replace(lambda ref: shape.columns[ref.column]) for name, item in items.items()}
    plain = {name: item.plain for name, item in items.items() if item.plain is not None}
    timed = None if shape.timed is None else shape.timed.under(plain)
    return replace(shape, columns=columns, key=key, complete=complete, timed=timed)


class Materialised:
    """The stars that became nodes because something reads them as a table; each becomes one node, whoever reads it."""

    def __init__(self) -> None:
        self._drafts: dict[Star, Draft] = {}

    def rows(self, shape: Shape) -> Rows:
        """The relation as a view: itself, or all rows of the node that the star becomes."""
        if isinstance(shape, Rows):
            return shape
        draft = self._drafts.setdefault(shape, Draft(None, shape))
        return replace(rows_of(draft, side(shape), shape.key), timed=shape.timed)

    def star(self, left: Shape, foreign_key: tuple[Expression, ...]) -> Star:
        """The star to which a join with this foreign key (over the columns of ``left``) is added.

        It is ``left`` itself if the foreign key, and the filters that protect it, are made of columns of its left view alone; else
        ``left`` becomes a node, and the join starts a new star on it (a chain).
        """
        if isinstance(left, Star) and left.groups is None and not any(map(stands_alone, left.arms)):
            made = [guarded(part.replace(lambda ref: left.columns[ref.column]), left.where) for part in foreign_key]
            if all(part.aliases <= {"l"} for part in made):
                return left
        return self.alone(left)

    def alone(self, left: Shape) -> Star:
        """A new star on a relation."""
        rows = self.rows(left)
        columns = {name: column("l", name, made.type, made.known) for name, made in rows.columns.items()}
        return Star(rows, (), rows.label, columns, rows.key, None, rows.complete, rows.timed)


@dataclass(frozen=True)
class Join:
    """A checked join: foreign key over the side ``left``, items over both sides, ``key`` the names of the key in the items: of the left key, and
    of the right one where rows of the result are pairs.
    """

    foreign_key: tuple[Expression, ...]
    items: Mapping[str, Expression]
    key: tuple[str, ...]
    kind: JoinKind
    label: str
    complete: bool
    match: Match | None = None


def stands_alone(join: Arm | Join) -> bool:
    """Whether no other join can stand beside it in one star."""
    return join.match is not None or join.kind.keeps_right


def joined(star: Star, right: Rows, join: Join) -> Star:
    """The star with one more join. Columns of the right view stay columns of the view: a left row without a match has null
    for them, whatever the expression that makes them gives for null.
    """
    alias = f"r{len(star.arms) + 1}"

    def made_of(ref: Ref) -> Expression:
        found = right.columns[ref.column] if ref.alias != LEFT else None
        return star.columns[ref.column] if found is None else column(alias, ref.column, found.type, found.known)

    foreign_key = tuple(guarded(part.replace(made_of), star.where) for part in join.foreign_key)
    plain = {name: item.plain for name, item in join.items.items() if item.plain is not None and item.plain.alias == LEFT}
    one_sided = not join.kind.keeps_right and not isinstance(join.match, Window)
    return Star(
        left=star.left,
        arms=(*star.arms, Arm(right, foreign_key, join.kind, join.match)),
        label=join.label,
        columns={name: item.replace(made_of) for name, item in join.items.items()},
        key=join.key,
        where=star.where,
        complete=join.complete,
        timed=star.timed.under(plain) if star.timed is not None and one_sided else None,
    )

"""What a user writes: tables, joins, filters, selects and names. Everything here only records; ``plan.check.compile`` checks.

So a topology file never stops at its first mistake: all of them are reported together, each with the user's own line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict, Unpack

from rejoin.declare.declarations import (
    AggregateDeclaration,
    Declaration,
    Declared,
    ExpectDeclaration,
    FilterDeclaration,
    JoinDeclaration,
    NameDeclaration,
    ReferenceDeclaration,
    SelectDeclaration,
    SinkDeclaration,
    StreamDeclaration,
    TableDeclaration,
    ToDeclaration,
    here,
)

# --- what is written -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows with a key: a table, or what joins, filters and selects make of it. Immutable; every method gives a new one."""

    topology: "Topology"
    declaration: Declaration

    def join(
        self,
        right: "Relation",
        foreign_key: str | list[str] | None = None,
        select: list[str] | None = None,
        name: str | None = None,
        **how: Unpack["How"],
    ) -> "Relation":
        """Left rows with the right row that their foreign key names; a left row without one is left out.

        Two tables without a foreign key are joined by their primary keys. A stream is joined with another within a time, and with a
        table as of some time: see ``How`` and docs/joins.md.

        Args:
            right: the relation whose key the foreign key names.
            foreign_key: a column of the left row or any deterministic SQL expression over it; a list, in the order of
                the right key, where that key has several columns.
            select: the output columns, SQL over ``left.`` and ``right.`` (``left.*``, ``right.name AS customer_name``);
                every key column of the left must stay, and of the right where its rows can be in the result more than once or alone.
                Default: all columns of both sides without a right key that need not stay.
            name: as ``.named(name)``.
            how: see ``How``.
        """
        return self._join(right, foreign_key, "inner", {"select": select, "name": name, **how})

    def left_join(
        self,
        right: "Relation",
        foreign_key: str | list[str] | None = None,
        select: list[str] | None = None,
        name: str | None = None,
        **how: Unpack["How"],
    ) -> "Relation":
        """As ``join``, but a left row without a right row stays, with nulls for the right columns."""
        return self._join(right, foreign_key, "left", {"select": select, "name": name, **how})

    def right_join(
        self,
        right: "Relation",
        foreign_key: str | list[str] | None = None,
        select: list[str] | None = None,
        name: str | None = None,
        **how: Unpack["How"],
    ) -> "Relation":
        """As ``join``, but a right row without a left row stays, with nulls for the left columns, its key among them."""
        return self._join(right, foreign_key, "right", {"select": select, "name": name, **how})

    def full_join(
        self,
        right: "Relation",
        foreign_key: str | list[str] | None = None,
        select: list[str] | None = None,
        name: str | None = None,
        **how: Unpack["How"],
    ) -> "Relation":
        """As ``join``, but rows of both sides stay that have no partner."""
        return self._join(right, foreign_key, "full", {"select": select, "name": name, **how})

    def filter(self, condition: str) -> "Relation":
        """The rows for which a deterministic SQL condition over the (unqualified) columns is true."""
        return self.topology.record(FilterDeclaration(self, condition, here()))

    def select(self, items: list[str]) -> "Relation":
        """Other columns: ``*``, columns, or SQL expressions with ``AS``. Every key column must stay (renaming is fine)."""
        return self.topology.record(SelectDeclaration(self, items, here()))

    def group_by(self, *keys: str) -> "Groups":
        """Groups the rows by columns, or by SQL expressions with ``AS``. ``aggregate`` of the result says which columns a group has; see docs/groups.md."""
        return Groups(self, keys)

    def nest(self, many: "Relation", by: str | list[str], *, name: str, select: list[str], order_by: str | None = None) -> "Relation":
        """Every row with an array of the rows of another relation that belong to it; an empty one for a row without any.

        Short for a left join by key with ``many.group_by(by).aggregate(name="collect(struct(select) ORDER BY order_by)")``.

        Args:
            many: the relation whose rows go into the arrays.
            by: its columns, or expressions with ``AS``, that are the key of this relation, in the order of that key.
            name: what the array is called.
            select: what its elements have: columns of ``many``, ``*``, or SQL expressions with ``AS``.
            order_by: SQL over the columns of ``many``, each with ``DESC`` where it descends; rows that are equal in it come in the order of their key.
        """
        keys, order = [by] if isinstance(by, str) else by, f" ORDER BY {order_by}" if order_by else ""
        groups = many.group_by(*keys).aggregate(**{name: f"collect(struct({', '.join(select)}){order})"})
        return self.left_join(groups, select=["left.*", f"coalesce(right.`{name}`, array()) AS `{name}`"])

    def named(self, name: str, *, refresh: str = "auto", max_change_share: float = 0.5, max_members: int = 100_000) -> "Relation":
        """Makes this relation an output: a table of that name. Joins built on the result read that table.

        Args:
            name: its name in this topology.
            refresh: ``"auto"`` recomputes the output where that is cheaper than following the changes, ``"incremental"`` does
                so only where its definition is new, ``"full"`` always, ``"incremental_strict"`` never (the run stops instead).
            max_change_share: a run that would change more than this share of the output's rows stops before it is visible.
            max_members: a run that would put more rows than this into one array stops, too. It holds for the arrays of this output and of the groups that
                only this output is made of; a ``collect`` with LIMIT is not counted.
        """
        return self.topology.record(NameDeclaration(self, name, refresh, max_change_share, max_members, here()))

    def to(self, *sinks: SinkDeclaration) -> "Relation":
        """Delivers the changes of this output, a named relation, to ``kafka(...)``, ``opensearch(...)`` and ``postgres(...)`` after every run. Returns the output."""
        self.topology.record(ToDeclaration(self, sinks, here()))
        return self

    def expect(self, *expectations: object, severity: str = "fail", rows: str = "changed", max_share: float = 0.05) -> "Relation":
        """Says what must be true of this table or named output in every run, and returns it.

        Args:
            expectations: ``not_null(...)`` and the others of ``rejoin.declare.expectations``, or expectations of Great Expectations.
            severity: ``"fail"`` stops the run, ``"quarantine"`` holds bad rows back (the last good version of the key stays), ``"warn"`` reports.
            rows: ``"changed"`` looks at the rows that a run would change, ``"all"`` at the whole table in every run.
            max_share: severity ``"quarantine"`` stops the run if more than this share of the rows (and more than ten) would be held back.
        """
        self.topology.record(ExpectDeclaration(self, expectations, severity, rows, max_share, here()))
        return self

    def _join(self, right: "Relation", foreign_key: object, kind: str, options: Mapping[str, object]) -> "Relation":
        how = {n: v for n, v in options.items() if n not in ("select", "name") and v is not None}
        joined = self.topology.record(JoinDeclaration(self, right, foreign_key, options["select"], kind, how, here()))
        return joined if options["name"] is None else joined.named(str(options["name"]))


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of a relation by their keys, as GROUP BY has them: null is a key, too, and a group is there while it has a row."""

    members: Relation
    keys: tuple[str, ...]

    def aggregate(self, /, **columns: str) -> Relation:
        """A row for every group: its key, and the columns that are given, each by one aggregate: ``n="count(*)"``, ``paid="sum(amount) FILTER (WHERE paid)"``.

        There are ``count``, ``count(DISTINCT x)``, ``sum``, ``avg``, ``min``, ``max``, ``bool_and``, ``bool_or``, ``min_by``, ``max_by``
        and ``collect``: an array of members, such as ``lines="collect(struct(line, product) ORDER BY line)"``.
        """
        return self.members.topology.record(AggregateDeclaration(self.members, self.keys, columns, here()))


class How(TypedDict, total=False):
    """How streams are joined. Times are texts such as ``"10 seconds"``, ``"1 hour"`` or ``"250 milliseconds"``, or ``timedelta``.

    With a stream: ``within`` so much time of each other, or from ``before`` the left record to ``after`` it, both ends included; ``on``, the columns
    that are equal, where they are not the ``key`` of both (a name, or ``"left name = right name"``, or a list of them); ``unmatched="at_once"``
    shows a record without partner until one comes, instead of once none can come; ``watermark="each"`` waits until both streams have passed
    the end of its window, instead of one of them; ``clock``, those of the columns ``on`` whose every value has a time of its
    own, such as a tenant or a device that may lag behind the others (it reads the times of both streams as a whole).

    With a table: ``as_of="event_time"``, the row that was valid at the time of the record, corrected if a version of it comes late;
    ``as_of="arrival"`` or ``"run"``, the row that is there in the run which reads the record, never corrected.

    ``by``: the name of a kind of join that an installed package brings (docs/extending.md).
    """

    on: str | list[str]
    within: str | timedelta
    before: str | timedelta
    after: str | timedelta
    unmatched: str
    watermark: str
    clock: str | list[str]
    as_of: str
    by: str


class Topology:
    """A set of tables and the outputs made of them.

    Args:
        name: lower-case letters, digits and underscores; it is part of table names and of the run's records.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.place = here()
        self._relations: list[Relation] = []

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Everything that was declared, in order."""
        return tuple(self._relations)

    def table(
        self,
        name: str,
        key: str | list[str],
        schema: str,
        source: object,
        *,
        optional: str | list[str] | tuple[str, ...] = (),
    ) -> Relation:
        """Declares a source table.

        Args:
            name: its name in this topology.
            key: the primary key column, or a list of columns.
            schema: ``"order_id BIGINT, total DECIMAL(10,2)"``; columns of the source that are not named are not kept.
            source: ``snapshot(...)``, ``debezium(...)``, ``feed(...)``, or a source of a package's own.
            optional: columns that the source may lack (not yet, or no longer, there); they are null then. If any other column is missing, the run stops.
        """
        return self.record(TableDeclaration(name, key, schema, source, here(), optional))

    def stream(
        self,
        name: str,
        *,
        event_time: str,
        schema: str,
        source: object,
        id: str | list[str] | None = None,  # noqa: A002 -- the word for it
        key: str | list[str] | None = None,
        lateness: str | timedelta = "0 seconds",
        retention: str | timedelta | None = None,
    ) -> Relation:
        """Declares a stream: records with a time, which are added and never change.

        Args:
            name: its name in this topology.
            event_time: when it happened, TIMESTAMP or TIMESTAMP_NTZ: a column, or an expression over them such as ``timestamp_millis(ts)``, which is
                computed as a record is read and becomes a column ``event_time`` (or another, with ``AS``).
            schema: as for a table.
            source: ``records(...)``, ``debezium(...)`` or ``feed(...)``.
            id: the column, or columns, that identify a record: one that is delivered again is a duplicate. None (only for ``records(...)``): the place where it
                was read identifies it, and the stream has that place as a column ``record``.
            key: the column, or columns, by which it is joined with other streams. Values may repeat; a record whose key is null has no partner.
            lateness: how much older than the newest record of its stream a late record may be. A result without a partner waits so long before it is shown.
            retention: how much older than the newest record of its stream a record may be; older ones are quarantined (``TOO_LATE``). Compactions
                then delete stored records that no later record can meet, if everything that reads the stream allows it. None: records of any age are taken and kept.
        """
        declared = StreamDeclaration(key, event_time, lateness, retention)
        return self.record(TableDeclaration(name, id, schema, source, here(), (), declared))

    def relation(self, name: str) -> Relation:
        """The table or output of that name; it may be declared further down in the file."""
        return self.record(ReferenceDeclaration(name, here()))

    def record(self, declaration: Declaration) -> Relation:
        """Adds a declaration; the methods of ``Topology`` and ``Relation`` call this, a topology file has no need to."""
        relation = Relation(self, declaration)
        self._relations.append(relation)
        return relation


def inputs(declaration: Declaration) -> list[Declared]:
    """The relations that a declaration rests on."""
    match declaration:
        case JoinDeclaration():
            return [relation for relation in (declaration.left, declaration.right) if isinstance(relation, Relation)]
        case FilterDeclaration() | SelectDeclaration() | AggregateDeclaration() | NameDeclaration() | ToDeclaration():
            return [declaration.input]
        case TableDeclaration() | ReferenceDeclaration() | ExpectDeclaration():
            return []

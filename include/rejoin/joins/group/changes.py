"""Groups: changed members say which groups a run can change. These are computed from all of their members, or, where every aggregate has an inverse, the large
ones from their totals before the run and the members that have come and gone (``totals``).
"""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import cached_property, partial

from rejoin import crash
from rejoin.engines.relation import KeySpread, LocalRelation, Relation
from rejoin.errors import GroupTooLarge
from rejoin.joins.group import statements, totals
from rejoin.joins.kind import JoinResults, KindOfJoin
from rejoin.lake import table_names
from rejoin.lake.ledger.records import Write
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.write.writer import Writer
from rejoin.limits import limits
from rejoin.plan.model.grouping import Grouping
from rejoin.statements.own_columns import numbered


class Members(StrEnum):
    """What the groups that can have changed are computed from."""

    READ = "read"
    """All of their members."""
    FOLLOWED = "followed"
    """The same, but those with stored totals from these and from the members that have come and gone."""


class GroupKind(KindOfJoin):
    """The groups that members have left or have, before and after a change of theirs."""

    _kept: tuple[Relation, ...] = ()
    """``Totals`` that ``beside`` stores."""

    @property
    def grouping(self) -> Grouping:
        """How members become groups."""
        assert self.node.grouping is not None
        return self.node.grouping

    @cached_property
    def _fks(self) -> list[str]:
        return numbered("fk", len(self.grouping.keys))

    @cached_property
    def _sent(self) -> Relation | None:
        """The subscriptions that this run has changed; None if there are none."""
        return self.work.now.sent(self.node, self.grouping, self.facts.run.number) if self.facts.sent(self.node) else None

    def follow(self) -> JoinResults:
        touched, column = self._touched(), totals.without_inverse(self.grouping)
        found = self._by_totals(touched) if column is None else self._by_members(touched, f"only all members tell {column}")
        keys = LookupKeys(self.named(touched.rows, touched.rows.columns, self.node.key), touched.at_most)
        held = self.held()
        return replace(found, stored=((self.node.key, keys),), held=None if held is None else self.among(held, keys.rows))

    def everything(self) -> Relation:
        text = statements.members(self.sql, self.spoken, self.left_key)
        members = self.engine.query(text, lefts=self.work.now.current(self.left))
        if totals.without_inverse(self.grouping) is not None:
            return self._groups(members, self.facts.now.rows(self.left))
        return self._told(self._totals(members, self.facts.now.rows(self.left)))

    def beside(self, writer: Writer) -> tuple[Write, ...]:
        name, whole = table_names.totals(self.node, self.grouping), self.facts.recomputed(self.node) is not None
        text = totals.kept(self.sql, self.grouping, self.facts.run.number)
        rows = [self.engine.query(text, totals=made).here() for made in self._kept]
        if not any(found.num_rows for found in rows) and not (whole and rows and self.work.before.has(name)):
            return ()
        crash.point(f"resolve.{self.node.name}:totals")
        put = writer.replace if whole else writer.append
        return (put(name, self.together([LocalRelation(found) for found in rows], "*"), self._fks),)

    def _touched(self) -> LookupKeys:
        """The keys of the groups that can have changed (columns ``fk_1``..), each once."""
        again = self.held() if self.facts.judged_again(self.node) else None
        given = [
            (n, rows, columns)
            for n, rows, columns in (("sent", self._sent, self._fks), ("again", again, self.node.key))
            if rows is not None
        ]
        if not given:
            return LookupKeys(self.named(self.work.before.none(self.node.name), self.node.key, self._fks), 0)
        text = statements.touched(self.sql, [(n, columns) for n, _, columns in given], len(self._fks))
        at_most = self.facts.sent(self.node) + (self.held_rows if again is not None else 0)
        return LookupKeys(self.computed(self.engine.query(text, **{n: rows for n, rows, _ in given}), at_most), at_most)

    def _by_members(self, touched: LookupKeys, why: str) -> JoinResults:
        """The groups with some keys, from all of their members. Arrays are about as large as all members, so what they were is told by what these were."""
        now, before = self.work.now, None
        if self.grouping.has_arrays:
            members, before = now.members_and_before(self.node, self.grouping, touched, self.facts.run.number)
        else:
            members = now.members(self.node, self.grouping, touched)
        found = now.reads[-1].rows
        state, values = self._groups(members, found), (found or 0) * len(self.grouping.values)
        known = None if before is None or found is None else partial(self._groups, before, 0)
        return self._found(state, touched, Members.READ, why, before=known, values=values)

    def _by_totals(self, touched: LookupKeys) -> JoinResults:
        """The same, where every aggregate has an inverse."""
        now = self.work.now
        found = self.work.before.totals(self.node, self.grouping, touched)
        known, count = (None, 0) if found is None else self.fetched(found)
        if known is None or not count:
            read = self._totals(now.members(self.node, self.grouping, touched), touched.at_most)
            return self._found(self._told(read), touched, Members.READ, "no totals of these groups are stored")
        rest = LookupKeys(self.beyond(touched.rows, self._fks, known, self._fks), touched.at_most)
        read = self._totals(now.members(self.node, self.grouping, rest), touched.at_most)
        followed = self.computed(self._followed(known), count)
        self._kept = (*self._kept, followed)
        every = self.together([read, followed], self.sql.names(totals.columns(self.grouping)))
        return self._found(self._told(every), touched, Members.FOLLOWED, f"{count:,} of the groups have stored totals")

    def _found(
        self,
        state: Relation,
        touched: LookupKeys,
        members: Members,
        why: str,
        before: Callable[[], Relation] | None = None,
        values: int = 0,
    ) -> JoinResults:
        told = {"members": members.value, "members_why": why}
        spread = KeySpread(touched.rows, self._fks, touched.at_most, self.hidden(), nulls=True)
        return JoinResults(state, None, None, touched.at_most, before=before, values=values, spread=spread, told=told)

    def _groups(self, members: Relation, at_most: int | None) -> Relation:
        """``state`` of groups of which these are all members, so many at most where that is known.

        Raises:
            GroupTooLarge: an array would be longer than it may.
        """
        most = self.node.policy.max_members
        if self.grouping.unlimited and (at_most is None or at_most > most):
            for column, found in self.engine.one(statements.longest(self.sql, self.grouping), members=members).items():
                if found is not None and found > most:
                    raise GroupTooLarge(
                        f"column {column!r} of {self.node.name!r} would have an array of {found:,} elements in run {self.facts.run.number}; nothing was committed",
                        expected=f"at most {most:,} (max_members)",
                        next_step="give collect a LIMIT or a FILTER, or raise max_members where the output is named, if readers and memory can take such an array",
                    )
        return self.engine.query(statements.groups(self.sql, self.spoken, len(self.left_key)), members=members)

    def _totals(self, members: Relation, at_most: int) -> Relation:
        """``Totals`` of members, computed once. Those of large groups are kept."""
        made = self.computed(self.engine.query(totals.of_members(self.sql, self.grouping), members=members), at_most)
        large = self.engine.query(f"SELECT * FROM totals WHERE n > {limits().large_group}", totals=made)
        self._kept = (*self._kept, large)
        return made

    def _followed(self, known: Relation) -> Relation:
        """``Totals`` of groups after this run, which are ``known`` as they were before it."""
        if self._sent is None:
            return known
        sums, values = totals.of_members(self.sql, self.grouping), [value.name for value in self.grouping.values]
        come = self.engine.query(totals.of_these(self.sql, self._fks, [*self._fks, *values], op="S"), sent=self._sent, known=known)
        pks = numbered("pk", len(self.left_key))
        keys = self.engine.query(totals.of_these(self.sql, self._fks, [*self._fks, *pks]), sent=self._sent, known=known)
        gone = self.work.before.members(self.node, self.grouping, LookupKeys(keys, self.facts.sent(self.node)), by=(*self._fks, *pks))
        added = {"come": self.engine.query(sums, members=come), "gone": self.engine.query(sums, members=gone)}
        return self.engine.query(totals.followed(self.sql, self.grouping), known=known, **added)

    def _told(self, of_groups: Relation) -> Relation:
        """``state`` of ``Totals``."""
        return self.engine.query(statements.told(self.sql, self.node), totals=of_groups)

"""The star: changed left rows and responses say which results a run can change (KIP-213: ResponseJoin)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from rejoin.engines.relation import KeySpread, LocalRelation, Relation
from rejoin.joins.foreign_key import resolve as star
from rejoin.joins.foreign_key.right_rows import filled, lacking
from rejoin.joins.kind import JoinResults, KindOfJoin
from rejoin.lake.read.lookups import LookupKeys
from rejoin.limits import limits
from rejoin.statements.own_columns import numbered


class StarJoin(KindOfJoin):
    """Affected left rows are paired with the right rows that responses tell; what none tells is looked up."""

    def follow(self) -> JoinResults:
        facts, node = self.facts, self.node
        at_most, responses, again = facts.affected(node), facts.answers(node), facts.judged_again(node)
        told = {i: facts.right_changed(node, e) for i, e in enumerate(node.edges, start=1) if facts.responded(node, e).responses}
        answers = {i: rows for i in told if (rows := self.work.now.responses(node, node.edges[i - 1])) is not None}
        sides = self._changes()
        # Only a changed right row, and only by a response, makes a left row affected that did not change itself.
        touched = self._touched(sides, answers, self.held() if again else None, moved=any(told[i] for i in answers))
        if touched is not None:
            found = self.work.now.lookup(self.left, LookupKeys(touched, responses + self.held_rows))
            sides["lefts"] = self.sifted(found, left=True)
        paired = self.computed(self._apart(self._paired(sides, answers), sides, touched, at_most), at_most)
        missing = lacking(self.engine, len(node.edges), paired)
        state = filled(self.work, self.work.now, self.spoken.edges, paired, missing)
        results = self._results(state, self._keys(sides, touched, paired, at_most))
        few = paired.local is not None and not node.two_sided
        return replace(results, stale=missing["stale"], before=partial(self._before, sides) if few else None)

    def _results(self, state: Relation, lefts: LookupKeys) -> JoinResults:
        """The results that can change: those of the affected left rows, whose ``state`` and keys are known."""
        held = self.work.before.held(self.node.name, lefts) if self.held_rows else None
        spread = KeySpread(lefts.rows, self.mine, lefts.at_most, self.hidden(), nulls=self.node.null_keys)
        return JoinResults(state, ((self.mine, lefts),), held, lefts.at_most, spread=spread)

    def _changes(self) -> dict[str, Relation]:
        """The changes of the left table, if there are any."""
        changes = self.left_changes()
        return {} if changes is None else {"changes": self.sifted(changes, left=True, column="_after")}

    def _paired(self, sides: Mapping[str, Relation], answers: Mapping[int, Relation]) -> Relation:
        """What ``star.pair`` gives."""
        named = {self.node.edges[i - 1].name: f"answers_{i}" for i in answers}
        text = star.pair(self.sql, self.spoken, self.left_key, named, changed="changes" in sides, looked_up="lefts" in sides)
        return self.engine.query(text, **sides, **_inputs(answers))

    def _apart(self, paired: Relation, sides: Mapping[str, Relation], touched: Relation | None, at_most: int) -> Relation:
        """``paired``, of which ranges of the left key may be computed apart."""

        def lies() -> KeySpread:
            return KeySpread(self._affected(sides, touched), self.mine, at_most, nulls=self.node.null_keys)

        return self.engine.apart(paired, numbered("pk", len(self.left_key)), lies)

    def _before(self, sides: Mapping[str, Relation]) -> Relation:
        """``state`` of the same left rows before this run."""
        text = star.lefts_before(self.sql, self.left_key, changed="changes" in sides, looked_up="lefts" in sides)
        pair = star.pair(self.sql, self.spoken, self.left_key, {}, changed=False, looked_up=True)
        state = LocalRelation(self.engine.query(pair, lefts=self.engine.query(text, **sides)).here())
        edges = self.spoken.edges
        return filled(self.work, self.work.before, edges, state, lacking(self.engine, len(edges), state))

    def _keys(self, sides: Mapping[str, Relation], touched: Relation | None, paired: Relation, at_most: int) -> LookupKeys:
        """Those of the affected left rows: not of ``paired``, which would look up the left rows once more, unless it is at hand."""
        keys = LookupKeys(self._affected(sides, touched), at_most)
        if paired.local is None:
            return keys
        return replace(keys, here=paired.local.select(numbered("pk", len(self.left_key))).rename_columns(list(self.mine)))

    def _affected(self, sides: Mapping[str, Relation], touched: Relation | None) -> Relation:
        """What ``star.affected`` gives."""
        given = {n: r for n, r in (("changes", sides.get("changes")), ("touched", touched)) if r is not None}
        text = star.affected(self.sql, self.left_key, self.mine, changed="changes" in given, told="touched" in given)
        return self.engine.query(text, **given)

    def _touched(
        self, sides: Mapping[str, Relation], answers: Mapping[int, Relation], again: Relation | None, *, moved: bool
    ) -> Relation | None:
        """The keys of left rows that have to be looked up; None if there are none.

        Args:
            sides: the changed left rows.
            answers: the responses, by the numbers of the edges.
            again: keys of the node that are judged again.
            moved: responses are about left rows that did not change.
        """
        if not moved and again is None:  # without changes, what is left are right rows of a right or full join that have no left row
            return None if "changes" in sides else self.work.now.none(self.left)
        given = {**sides, **_inputs(answers)}
        if again is not None:
            given["again"] = self.named(again, self.mine, self.left_key)
        flags = {"changed": "changes" in sides, "again": again is not None, "nulls": self.plan.null_keys(self.left)}
        return self.engine.query(star.touched(self.sql, list(_inputs(answers)), self.left_key, **flags), **given)

    def spread(self) -> KeySpread | None:
        return self.lying(self.left, sum(self.facts.now.rows(edge.right.table) for edge in self.node.edges))

    def everything(self) -> Relation:
        lefts = self.sifted(self.work.now.current(self.left), left=True)
        text = star.pair(self.sql, self.spoken, self.left_key, {}, changed=False, looked_up=True)
        state = self.engine.query(text, lefts=lefts)
        for number, edge in enumerate(self.spoken.edges, start=1):
            rights, key = self.work.now.current(edge.right.table), self.plan.key_of(edge.right.table)
            if self.facts.now.rows(edge.right.table) <= limits().broadcast_keys:
                rights = self.engine.everywhere(rights)  # no shuffle by the foreign key, so no task of the most frequent one
            state = self.engine.query(star.fill(self.sql, state.columns, number, edge, key), state=state, rights=rights)
        return state


def _inputs(answers: Mapping[int, Relation]) -> dict[str, Relation]:
    """Responses by what a statement calls them."""
    return {f"answers_{number}": rows for number, rows in answers.items()}

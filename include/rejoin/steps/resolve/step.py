"""resolve: what changed becomes net changes of an output, by following the changes or by recomputing all of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoin import crash
from rejoin.context.new_output import CHANGED, COUNTS, applied, load, loading
from rejoin.context.outcome import Outcome
from rejoin.context.uncomputable_rows import UncomputableRows, can_sift
from rejoin.context.work import Work, left_changes
from rejoin.engines.relation import LocalRelation, Relation
from rejoin.errors import ChangeTooLarge, RefreshRefused
from rejoin.joins.foreign_key import resolve as star
from rejoin.joins.kind import JoinResults
from rejoin.joins.outer.changes import Outer
from rejoin.joins.registry import kind_of
from rejoin.lake import table_names
from rejoin.lake.iceberg.schema_evolution import wider
from rejoin.lake.read.lookups import LookupKeys
from rejoin.limits import limits
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.match import AsOf, Window
from rejoin.plan.model.plan import Node
from rejoin.plan.model.policy import Fuse, Refresh
from rejoin.plan.model.step_results import Changed, Ending, Resolved
from rejoin.plan.model.steps import Verb
from rejoin.statements.dialect import aggregated, counted
from rejoin.statements.own_columns import PLACE, RUN, numbered
from rejoin.steps.resolve import statements
from rejoin.steps.resolve.old_rows import earlier
from rejoin.steps.resolve.right_rows import filled, lacking, lacks
from rejoin.steps.validate import held_rows

Kept = Callable[[], Relation | None]


@dataclass(frozen=True)
class Affected:
    """What a run can change of an output.

    Args:
        keys: of its rows, at least; in this process too if the rows that are paired are.
        paired: what their left rows are in: the inputs of ``star.pair``.
    """

    keys: LookupKeys
    paired: Mapping[str, Relation]


class Resolving:
    """One attempt to resolve a node."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts, self._writer = work, work.facts, work.writer
        self._engine, self._sql = work.engine, work.engine.sql
        self._sieve: UncomputableRows | None = None

    def run(self, node: Node) -> Outcome[Resolved]:
        try:
            return self._resolved(node)
        except Exception as error:
            if not can_sift(error, self._at_most(node)):
                raise
        # Once more, now looking at every row: what was written so far is garbage.
        self._writer, self._sieve = self._writer.again(), UncomputableRows(self._work, node, Verb.RESOLVE)
        return self._resolved(node)

    def _at_most(self, node: Node) -> int:
        """How many rows are computed."""
        if self._facts.recomputed(node):
            return self._facts.now.rows(node.left.table) + self._facts.before.rows(node.name)
        return self._facts.affected(node)

    def _lefts(self, rows: Relation, key: tuple[str, ...], column: str) -> Relation:
        return rows if self._sieve is None else self._sieve.lefts(rows, key, column)

    def _joined(self, node: Node, state: Relation) -> Relation:
        """``resolve.join``; without a new row for what cannot be computed."""
        statement = statements.join(self._sql, self._engine.node(node), fingerprint(self._facts.plan, node))
        if self._sieve is None:
            return self._engine.query(statement, state=state)
        return self._sieve.joined(state, numbered("pk", len(node.key)), lambda rows: self._engine.query(statement, state=rows))

    def _resolved(self, node: Node) -> Outcome[Resolved]:
        if why := self._facts.recomputed(node):
            return self._recompute(node, why)
        kind = kind_of(self._work, node, self._sieve)
        done, rows = self._follow(node) if kind is None else self._matched(node, kind.follow()), self._facts.now.rows(node.left.table)
        return replace(done, detail={"refresh": "incremental", "why": f"{self._facts.affected(node):,} of {rows:,} rows are affected"})

    def _matched(self, node: Node, found: JoinResults, stale: int = 0) -> Outcome[Resolved]:
        """Writes what changes of the results that were found, with so many stale responses."""
        made = self._joined(node, found.state)
        difference = self._compared(node, made, found.old, everything=True)
        return self._write_output(node, difference, stale, found.at_most, lambda: found.held)

    def _follow(self, node: Node) -> Outcome[Resolved]:
        responses = {
            e.name: r
            for e in node.edges
            if self._facts.responded(node, e).responses and (r := self._work.now.responses(node, e)) is not None
        }
        changes, key = left_changes(self._work, node), self._facts.plan.key_of(node.left.table)
        inputs = {f"answers_{i}": responses[e.name] for i, e in enumerate(node.edges, start=1) if e.name in responses}
        if changes is not None:
            inputs["changes"] = self._lefts(changes, key, "_after")
        # Only a changed right row, and only by a response, makes a left row affected that did not change itself.
        moved = any(e.name in responses and self._facts.right_changed(node, e) for e in node.edges)
        again = self._held(node, None) if self._facts.judged_again(node) else None
        touched = self._touched(node, inputs, again) if moved or again is not None else None
        if changes is None and touched is None:  # what is left are right rows of a right or full join that have no left row
            touched = self._work.now.none(node.left.table)
        if touched is not None:
            at_most = self._facts.answers(node) + self._facts.held(node)
            inputs["lefts"] = self._lefts(self._work.now.lookup(node.left.table, LookupKeys(touched, at_most)), key, "_row")
        answers = {e.name: f"answers_{i}" for i, e in enumerate(node.edges, start=1) if e.name in responses}
        flags = {"changed": changes is not None, "looked_up": touched is not None}
        paired = self._engine.query(star.pair(self._sql, self._engine.node(node), key, answers, **flags), **inputs)
        # Not the keys of ``paired``, which would look up the left rows once more.
        sides = {n: r for n, r in (("changes", inputs.get("changes")), ("touched", touched)) if r is not None}
        left = self._facts.plan.left_key(node)
        which = star.affected(self._sql, key, left, changed=changes is not None, told=touched is not None)
        keys = LookupKeys(self._engine.query(which, **sides), self._facts.affected(node))
        if limits().small(keys.at_most):
            kept = LocalRelation(paired.here())
            here = kept.arrow.select(numbered("pk", len(key))).rename_columns(list(left))
            return self._difference(node, kept, kept, lacking(node, kept.arrow), Affected(replace(keys, here=here), inputs))
        affected = Affected(keys, inputs)
        if not moved or len(node.edges) == 1:
            outcome = self._at_once(node, paired, affected)
            if outcome is not None:
                return outcome
        return self._in_two(node, paired, affected)

    def _touched(self, node: Node, inputs: Mapping[str, Relation], again: Relation | None) -> Relation:
        """The keys of left rows that have to be looked up. ``again``: keys of the node that are judged again."""
        key, given = self._facts.plan.key_of(node.left.table), dict(inputs)
        if again is not None:
            left = self._facts.plan.left_key(node)
            given["again"] = self._engine.query(f"SELECT {self._sql.renamed(left, key)} FROM held", held=again)
        answers = [name for name in inputs if name != "changes"]
        flags = {"changed": "changes" in inputs, "again": again is not None, "nulls": self._facts.plan.null_keys(node.left.table)}
        statement = star.touched(self._sql, answers, key, **flags)
        return self._engine.query(statement, **given)

    def _recompute(self, node: Node, why: str) -> Outcome[Resolved]:
        """Recomputes the output and compares it with what is there: the same changes, whatever has changed."""
        redefined = self._facts.rebuilt(node) and node.name not in self._facts.plan.repair
        if redefined and self._work.before.has(node.name) and node.policy.refresh is Refresh.INCREMENTAL_STRICT:
            raise RefreshRefused(
                f"output {node.name!r} would have to be recomputed in run {self._facts.run.number}: {why}; nothing was committed",
                expected="refresh='incremental_strict' never recomputes",
                next_step="run once with --refresh full (in Airflow: Refresh in the form of a trigger), or give the new definition a new name",
            )
        key = self._facts.plan.key_of(node.left.table)
        kind = kind_of(self._work, node, self._sieve)
        state = self._starred(node, key) if kind is None else kind.everything()
        unsettled = kind.unsettled if kind is not None else lambda rows: rows
        made, old, gone = self._joined(node, state), None, list[pa.Field]()
        if self._work.before.has(node.name):
            self._writer.widen(
                node.name, pa.schema(list(made.schema.field("new").type))
            )  # before old rows are compared as rows of the new definition
            gone = self._work.before.left_behind(node)
            old = unsettled(self._work.before.current(node.name, [f.name for f in gone]))
        at_most = self._facts.now.rows(node.left.table) + self._facts.before.rows(node.name)
        every = self._compared(node, made, old, everything=True, gone=gone)
        held = self._held(node, None)
        outcome = self._write_output(node, every, 0, at_most, lambda: None if held is None else unsettled(held))
        return replace(outcome, detail={"refresh": "full", "why": why})

    def _starred(self, node: Node, key: tuple[str, ...]) -> Relation:
        """``state`` of every left row, and of every right row that is in the output alone."""
        lefts, spoken = self._lefts(self._work.now.current(node.left.table), key, "_row"), self._engine.node(node)
        state = self._engine.query(star.pair(self._sql, spoken, key, {}, changed=False, looked_up=True), lefts=lefts)
        for number, edge in enumerate(spoken.edges, start=1):
            rights, right_key = self._work.now.current(edge.right.table), self._facts.plan.key_of(edge.right.table)
            if self._facts.now.rows(edge.right.table) <= limits().broadcast_keys:
                rights = self._engine.everywhere(rights)  # no shuffle by the foreign key, so no task of the most frequent one
            state = self._engine.query(star.fill(self._sql, state.columns, number, edge, right_key), state=state, rights=rights)
        return Outer(self._work, node).everything(state) if node.two_sided else state

    def _compared(self, node: Node, made: Relation, old: Relation | None, *, everything: bool, gone: Sequence[pa.Field] = ()) -> Relation:
        """``resolve.difference``. Old values that are stored in a wider type are compared in that one: they may not fit into the new one."""
        stored = self._work.before.schema(node.name) if self._work.before.has(node.name) else pa.schema([])
        types = {n: self._engine.type(kind) for n, kind in wider(made.schema.field("new").type, stored).items()}
        lost = [(f.name, self._engine.type(f.type)) for f in gone]
        statement = statements.difference(self._sql, node, types, stored=old is not None, everything=everything, gone=lost)
        return self._engine.query(statement, made=made, **({} if old is None else {"old": old}))

    def _at_once(self, node: Node, paired: Relation, affected: Affected) -> Outcome[Resolved] | None:
        """In one pass, if every affected row turns out to have valid responses; else None, and what was written is garbage."""
        observed, seen = self._engine.counted(paired, lacks(node))
        outcome = self._difference(node, paired, observed, {}, affected)
        if not any(seen().values()):
            return outcome
        self._writer = self._writer.again()
        return None

    def _in_two(self, node: Node, paired: Relation, affected: Affected) -> Outcome[Resolved]:
        """First find which right rows no valid response brought, then look them up."""
        with self._engine.kept(paired) as kept:
            found = self._engine.one(aggregated(self._sql, lacks(node), "state"), state=kept)
            return self._difference(node, kept, kept, {k: int(str(v)) for k, v in found.items()}, affected)

    def _difference(
        self, node: Node, paired: Relation, state: Relation, missing: Mapping[str, int], affected: Affected
    ) -> Outcome[Resolved]:
        """Writes what changes.

        Args:
            node: the node.
            paired: what ``star.pair`` gives.
            state: the same, possibly observed: it may stand only once in what is executed.
            missing: how many rows lack each edge's right row (``lacks_<i>``), and how many ``stale`` responses there are.
            affected: what can change.
        """
        state = filled(self._work, self._work.now, node, state, missing, paired)
        stale = missing.get("stale", 0)
        if node.two_sided:
            return self._matched(node, Outer(self._work, node).follow(state, affected.keys), stale)
        made, keys = self._joined(node, state), affected.keys
        if keys.here is not None:
            made = self._engine.together(made)
        difference = self._compared(node, made, self._old(node, affected), everything=False)
        return self._write_output(node, difference, stale, keys.at_most, lambda: self._held(node, keys))

    def _old(self, node: Node, affected: Affected) -> Relation:
        """``Relation`` of the output before this run."""
        keys = affected.keys
        at_hand = self._engine.in_process and keys.here is not None and self._sieve is None
        if at_hand and keys.at_most * len(node.columns) > limits().read_values:
            return earlier(self._work, node, affected.paired, keys, self._held(node, keys))
        return self._work.before.lookup(node.name, keys)

    def _held(self, node: Node, keys: LookupKeys | None) -> Relation | None:
        """The keys that are held back, of some keys or of all."""
        return self._work.before.held(node.name, keys) if self._facts.held(node) else None

    def _write_candidates(self, node: Node, difference: Relation, stale: int, at_most: int, kept: Kept) -> Outcome[Resolved]:
        """For a node that can hold rows back: leaves to ``validate`` what becomes of the changes."""
        aside = self._sieve.aside(difference.schema) if self._sieve is not None and self._sieve.why else None
        held = kept()
        inputs = {n: r for n, r in (("difference", difference), ("aside", aside), ("held", held)) if r is not None}
        flags = {"aside": aside is not None, "held": held is not None, "nulls": node.null_keys_aside}
        marked = self._engine.query(held_rows.candidates(self._sql, node.key, **flags), **inputs)
        counts = COUNTS | counted({"held_before": "_held", "uncomputable": "_why IS NOT NULL"})
        observed, seen = self._engine.counted(marked, counts)
        rows = self._engine.picked(observed, [*node.key, "_op", "_before", "_after", PLACE, "_held", "_why"], held_rows.IS_CANDIDATE)
        written = self._writer.append(table_names.candidates(node.name), self._engine.small(rows, at_most), node.key, transient=True)
        made = Resolved.of({"stale": stale, **seen()}, Ending.PROPOSED)
        return self._withheld(node, made) or Outcome(made, (written,))

    def _write_output(self, node: Node, difference: Relation, stale: int, at_most: int, kept: Kept) -> Outcome[Resolved]:
        """Writes changes. ``kept``: the keys held back, of those that were compared."""
        if self._facts.may_hold(node):
            return self._write_candidates(node, difference, stale, at_most, kept)
        run = self._sql.cast(str(self._facts.run.number), "BIGINT")
        changes = self._engine.query(f"SELECT {run} AS {RUN}, * FROM difference", difference=difference)
        if loading(self._work, node):
            counts, writes = load(self._work, self._writer, node, changes, at_most)
            return Outcome(Resolved.of({"stale": stale, **counts}), writes)
        observed, seen = self._engine.counted(changes, COUNTS)
        rows = self._engine.picked(observed, [RUN, "_op", *node.key, "_before", "_after", PLACE], CHANGED)
        log = self._writer.log(node, self._engine.small(rows, at_most))
        crash.point(f"resolve.{node.name}:changes")
        made = Resolved.of({"stale": stale, **seen()})
        if withheld := self._withheld(node, made):
            return withheld
        return Outcome(made, applied(self._work, node, log, made))

    def _withheld(self, node: Node, made: Changed) -> Outcome[Resolved] | None:
        """The outcome of an output that is left as it is, since too much of it would change; None if it goes on.

        Raises:
            ChangeTooLarge: too much would change, and nobody has said what to do then.
        """
        rows, policy = self._facts.before.live(node.name), node.policy
        of_streams = isinstance(node.match, AsOf | Window)  # they add up: only what is taken back tells of a mistake
        changes = made.updated + made.deleted if of_streams else made.changes
        if (
            self._facts.rebuilt(node)
            or self._facts.plan.repair  # no input is read: whatever changes was wrong, or was made of what was wrong
            or rows < limits().fuse_rows
            or changes <= policy.max_change_share * rows
            or policy.fuse in (Fuse.APPLY, Fuse.RECOMPUTE)
        ):
            return None
        if policy.fuse is Fuse.SKIP:
            return Outcome(Resolved(ending=Ending.KEPT, withheld=changes))
        raise ChangeTooLarge(
            f"run {self._facts.run.number} would change {changes:,} of {rows:,} rows of output {node.name!r}; nothing was committed",
            expected=f"at most {policy.max_change_share:.0%} of its rows (max_change_share)",
            next_step="look at the input; then run again with --fuse (in Airflow: If too much would change, in the form of a trigger) "
            "apply (go on), recompute (go on, from all rows) or skip (leave this output)",
        )

"""resolve: the results of a join that a run can change become net changes of an output."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from rejoin import crash
from rejoin.context.new_output import CHANGED, COUNTS, applied, load
from rejoin.context.outcome import Outcome
from rejoin.context.uncomputable_rows import UncomputableRows, can_sift
from rejoin.context.work import Work
from rejoin.engines.relation import Relation
from rejoin.errors import ChangeTooLarge, RefreshRefused
from rejoin.joins.kind import JoinResults, KindOfJoin
from rejoin.joins.registry import kind_of
from rejoin.lake import table_names
from rejoin.lake.iceberg.plan_columns import spark_name
from rejoin.lake.iceberg.schema_evolution import wider
from rejoin.limits import limits
from rejoin.plan.model.match import AsOf, Window
from rejoin.plan.model.plan import Node
from rejoin.plan.model.policy import Fuse, Refresh
from rejoin.plan.model.step_results import Changed, Ending, Resolved
from rejoin.plan.model.steps import Verb
from rejoin.statements.dialect import counted
from rejoin.statements.own_columns import PLACE, RUN, numbered
from rejoin.steps.resolve import statements
from rejoin.steps.resolve.old_rows import Way, chosen, made_again
from rejoin.steps.validate import held_rows


class Resolving:
    """One attempt to resolve a node."""

    def __init__(self, work: Work, node: Node) -> None:
        self._work, self._facts, self._writer, self._node = work, work.facts, work.writer, node
        self._engine, self._sql = work.engine, work.engine.sql
        self._why, self._affected = work.facts.recomputed(node), work.facts.affected(node)
        self._rebuilt, self._may_hold = work.facts.rebuilt(node), work.facts.may_hold(node)
        self._sieve: UncomputableRows | None = None

    def run(self) -> Outcome[Resolved]:
        """Writes what changes of the output.

        Raises:
            RefreshRefused: it would have to be recomputed, and its policy forbids that.
            ChangeTooLarge: too much would change, and nobody has said what to do then.
        """
        try:
            return self._resolved()
        except Exception as error:
            if not can_sift(error, self._rows() if self._why else self._affected):
                raise
        # Once more, now looking at every row: what was written so far is garbage.
        self._writer, self._sieve = self._writer.again(), UncomputableRows(self._work, self._node, Verb.RESOLVE)
        return self._resolved()

    def _resolved(self) -> Outcome[Resolved]:
        kind = kind_of(self._work, self._node, self._sieve)
        with kind.keeping:
            found = kind.follow() if self._why is None else self._everything(kind)
            way = chosen(self._work, self._node, found, sifted=self._sieve is not None)
            made = self._joined(kind, found)
            done = self._write_output(self._difference(kind, found, made, way.way), found)
            beside = kind.beside(self._writer)
        rows = self._facts.now.rows(self._node.left.table)
        refresh, why = ("full", self._why) if self._why else ("incremental", f"{self._affected:,} of {rows:,} rows are affected")
        detail = {"refresh": refresh, "why": why, "old_rows": way.way.value, "old_rows_why": way.why, **found.told}
        return replace(done, writes=(*done.writes, *beside), detail=detail)

    def _rows(self) -> int:
        """How many rows a recomputation looks at."""
        return self._facts.now.rows(self._node.left.table) + self._facts.before.rows(self._node.name)

    def _everything(self, kind: KindOfJoin) -> JoinResults:
        """All results, with the same changes whatever has changed."""
        redefined = self._rebuilt and self._node.name not in self._facts.plan.repair
        if redefined and self._work.before.has(self._node.name) and self._node.policy.refresh is Refresh.INCREMENTAL_STRICT:
            raise RefreshRefused(
                f"output {self._node.name!r} would have to be recomputed in run {self._facts.run.number}: {self._why}; nothing was committed",
                expected="refresh='incremental_strict' never recomputes",
                next_step="run once with --refresh full (in Airflow: Refresh in the form of a trigger), or give the new definition a new name",
            )
        held = kind.held()
        return JoinResults(kind.everything(), None, None if held is None else kind.unsettled(held), self._rows(), spread=kind.spread())

    def _joined(self, kind: KindOfJoin, found: JoinResults) -> Relation:
        """``resolve.join``; without a new row for what cannot be computed."""
        statement = statements.join(self._sql, kind.spoken, kind.fingerprint)
        if self._sieve is not None:
            keys = numbered("pk", len(self._node.key))
            return self._sieve.joined(found.state, keys, lambda rows: self._engine.query(statement, state=rows))
        made = self._engine.query(statement, state=found.state)
        return self._engine.together(made) if limits().small(found.at_most) else made

    def _difference(self, kind: KindOfJoin, found: JoinResults, made: Relation, way: Way) -> Relation:
        """What the results change: new rows beside the old ones."""
        before, name = self._work.before, self._node.name
        match way:
            case Way.NONE:
                return self._compared(made, None)
            case Way.ALL:
                # Before old rows are compared as rows of the new definition.
                self._writer.widen(name, pa.schema(list(made.schema.field("new").type)))
                gone = before.left_behind(self._node)
                return self._compared(made, kind.unsettled(before.current(name, [f.name for f in gone])), gone)
            case Way.READ:
                return self._compared(made, kind.in_scope(before.lookup_any(name, found.stored or ())))
            case Way.MADE:
                return self._compared(made, made_again(self._work, self._node, found))

    def _compared(self, made: Relation, old: Relation | None, gone: Sequence[pa.Field] = ()) -> Relation:
        """``resolve.difference``. Old values that are stored in a wider type are compared in that one: they may not fit into the new one."""
        stored = self._work.before.schema(self._node.name) if old is not None else pa.schema([])
        types = {n: spark_name(kind) or "" for n, kind in wider(made.schema.field("new").type, stored).items()}
        lost = [(f.name, spark_name(f.type) or "") for f in gone]
        statement = statements.difference(self._sql, self._node, types, stored=old is not None, gone=lost)
        if old is None:
            return self._engine.query(statement, made=made)
        compared = self._engine.query(statement, made=made, old=old)
        return self._engine.keyed(compared, self._node.key, {"made": numbered("pk", len(self._node.key)), "old": self._node.key})

    def _write_candidates(self, difference: Relation, found: JoinResults) -> Outcome[Resolved]:
        """For a node that can hold rows back: leaves to ``validate`` what becomes of the changes."""
        node = self._node
        aside = self._sieve.aside(difference.schema) if self._sieve is not None and self._sieve.why else None
        inputs = {n: r for n, r in (("difference", difference), ("aside", aside), ("held", found.held)) if r is not None}
        flags = {"aside": aside is not None, "held": found.held is not None, "nulls": node.null_keys_aside}
        marked = self._engine.query(held_rows.candidates(self._sql, node.key, **flags), **inputs)
        counts = COUNTS | counted({"held_before": "_held", "uncomputable": "_why IS NOT NULL"})
        observed, seen = self._engine.counted(marked, counts)
        rows = self._engine.picked(observed, [*node.key, "_op", "_before", "_after", PLACE, "_held", "_why"], held_rows.IS_CANDIDATE)
        rows = self._engine.ranged(self._engine.small(rows, found.at_most), node.key, found.spread)
        written = self._writer.append(table_names.candidates(node.name), rows, node.key, transient=True)
        made = Resolved.of({"stale": found.stale, **seen()}, Ending.PROPOSED)
        return self._withheld(made) or Outcome(made, (written,))

    def _write_output(self, difference: Relation, found: JoinResults) -> Outcome[Resolved]:
        """Writes changes."""
        node = self._node
        if self._may_hold:
            return self._write_candidates(difference, found)
        run = self._sql.cast(str(self._facts.run.number), "BIGINT")
        changes = self._engine.query(f"SELECT {run} AS {RUN}, * FROM difference", difference=difference)
        if not self._work.before.has(node.name):
            counts, writes = load(self._work, self._writer, node, changes, found.at_most, found.spread)
            return Outcome(Resolved.of({"stale": found.stale, **counts}), writes)
        observed, seen = self._engine.counted(changes, COUNTS)
        rows = self._engine.picked(observed, [RUN, "_op", *node.key, "_before", "_after", PLACE], CHANGED)
        log = self._writer.log(node, self._engine.ranged(self._engine.small(rows, found.at_most), node.key, found.spread))
        crash.point(f"resolve.{node.name}:changes")
        made = Resolved.of({"stale": found.stale, **seen()})
        if withheld := self._withheld(made):
            return withheld
        return Outcome(made, applied(log, made, rebuilt=self._rebuilt))

    def _withheld(self, made: Changed) -> Outcome[Resolved] | None:
        """The outcome of an output that is left as it is, since too much of it would change; None if it goes on.

        Raises:
            ChangeTooLarge: too much would change, and nobody has said what to do then.
        """
        node = self._node
        rows, policy = self._facts.before.live(node.name), node.policy
        of_streams = isinstance(node.match, AsOf | Window)  # they add up: only what is taken back tells of a mistake
        changes = made.updated + made.deleted if of_streams else made.changes
        if (
            self._rebuilt
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

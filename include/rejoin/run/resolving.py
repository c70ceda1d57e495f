"""resolve: what changed becomes net changes of an output, by following the changes or by recomputing all of it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from rejoin import crash
from rejoin.errors import ChangeTooLarge, RefreshRefused
from rejoin.lake import names, probe
from rejoin.lake.access import BROADCAST_KEYS, Keys
from rejoin.lake.local import LocalRows, collected
from rejoin.plan.fingerprint import fingerprint
from rejoin.plan.model import Fuse, Node, Refresh
from rejoin.plan.results import Changed, Ending, Resolved
from rejoin.plan.steps import Verb
from rejoin.run.joining import left_changes
from rejoin.run.output import OPS, apply, counted
from rejoin.run.sifting import Sieve, can_sift
from rejoin.run.work import Outcome, Work, small
from rejoin.stages import hold, resolve
from rejoin.stages.columns import numbered
from rejoin.stages.frames import null_struct, renamed

FUSE_ROWS = 1_000
"""Outputs with fewer rows have no fuse: a few changes are a large share of them."""


class Resolving:
    """One attempt to resolve a node."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts, self._writer = work, work.facts, work.writer
        self._sieve: Sieve | None = None

    def run(self, node: Node) -> Outcome[Resolved]:
        try:
            return self._resolved(node)
        except Exception as error:
            if not can_sift(error, self._at_most(node)):
                raise
        # Once more, now looking at every row: what was written so far is garbage.
        self._writer, self._sieve = self._writer.again(), Sieve(self._work, node, Verb.RESOLVE)
        return self._resolved(node)

    def _at_most(self, node: Node) -> int:
        """How many rows are computed."""
        if self._facts.recomputed(node):
            return self._facts.now.rows(node.left.table) + self._facts.before.rows(node.name)
        return self._facts.affected(node)

    def _lefts(self, frame: DataFrame, key: tuple[str, ...], column: str) -> DataFrame:
        return frame if self._sieve is None else self._sieve.lefts(frame, key, column)

    def _joined(self, node: Node, frame: DataFrame) -> DataFrame:
        """``resolve.join``; without a new row for what cannot be computed."""
        made_by = partial(resolve.join, node, fingerprint=fingerprint(self._facts.plan, node))
        if self._sieve is None:
            return made_by(frame)
        rows, keys = collected(frame), numbered("pk", len(node.key))
        made = made_by(self._sieve.sifted(rows, keys, made_by).frame(self._work.spark))
        self._sieve.check()
        lost = LocalRows(rows.arrow.select(keys), StructType([rows.schema[k] for k in keys])).frame(self._work.spark)
        lost = lost.join(made, on=keys, how="left_anti")
        return made.unionByName(lost.withColumn("new", null_struct(made, "new")))

    def _resolved(self, node: Node) -> Outcome[Resolved]:
        if why := self._facts.recomputed(node):
            return self._recompute(node, why)
        done, rows = self._follow(node), self._facts.now.rows(node.left.table)
        return replace(done, detail={"refresh": "incremental", "why": f"{self._facts.affected(node):,} of {rows:,} rows are affected"})

    def _follow(self, node: Node) -> Outcome[Resolved]:
        responses = {
            e.name: r
            for e in node.edges
            if self._facts.responded(node, e).responses and (r := self._work.now.responses(node, e)) is not None
        }
        changes, key = left_changes(self._work, node), self._facts.plan.key_of(node.left.table)
        changes = None if changes is None else self._lefts(changes, key, "_after")
        # Only a changed right row, and only by a response, makes a left row affected that did not change itself.
        moved = any(e.name in responses and self._facts.right_changed(node, e) for e in node.edges)
        again = self._held(node, None) if self._facts.judged_again(node) else None
        lefts = touched = None
        if moved or again is not None:
            at_most = self._facts.answers(node) + self._facts.held(node)
            touched = resolve.touched(changes, responses, key, None if again is None else renamed(again, node.key, key))
            lefts = self._lefts(self._work.now.lookup(node.left.table, Keys(touched, at_most)), key, "_row")
        paired = resolve.pair(node, changes, lefts, responses, key)
        # Not the keys of ``paired``, which would look up the left rows once more.
        keys = Keys(renamed(resolve.affected(changes, touched, key), key, node.key), self._facts.affected(node))
        if keys.at_most <= probe.LOCAL_ROWS:
            rows = collected(paired)
            kept, here = rows.frame(self._work.spark), rows.arrow.select(numbered("pk", len(key))).rename_columns(list(node.key))
            return self._difference(node, kept, kept, _lacking(node, rows), replace(keys, here=here))
        if not moved or len(node.edges) == 1:
            outcome = self._at_once(node, paired, keys)
            if outcome is not None:
                return outcome
        return self._in_two(node, paired, keys)

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
        paired = resolve.pair(node, None, self._lefts(self._work.now.current(node.left.table), key, "_row"), {}, key)
        for number, edge in enumerate(node.edges, start=1):
            right, right_key = self._work.now.current(edge.right.table), self._facts.plan.key_of(edge.right.table)
            if self._facts.now.rows(edge.right.table) <= BROADCAST_KEYS:
                right = F.broadcast(right)  # no shuffle by the foreign key, so no task of the most frequent one
            paired = resolve.fill(paired, number, edge, right, right_key)
        made = self._joined(node, paired)
        old, gone = None, list[StructField]()
        if self._work.before.has(node.name):
            row = made.schema["new"].dataType
            assert isinstance(row, StructType)
            self._writer.widen(node.name, row)  # before old rows are compared as rows of the new definition
            gone = self._work.before.left_behind(node)
            old = self._work.before.current(node.name, gone)
        at_most = self._facts.now.rows(node.left.table) + self._facts.before.rows(node.name)
        outcome = self._write_output(node, resolve.difference(node, made, old, everything=True, gone=gone), 0, at_most, None)
        return replace(outcome, detail={"refresh": "full", "why": why})

    def _at_once(self, node: Node, paired: DataFrame, keys: Keys) -> Outcome[Resolved] | None:
        """In one pass, if every affected row turns out to have valid responses; else None, and what was written is garbage."""
        seen = Observation()
        outcome = self._difference(node, paired, paired.observe(seen, *_lacks(node)), {}, keys)
        lacking = {k: int(v) for k, v in seen.get.items()}
        if not any(lacking.values()):
            return outcome
        self._writer = self._writer.again()
        return None

    def _in_two(self, node: Node, paired: DataFrame, keys: Keys) -> Outcome[Resolved]:
        """First find which right rows no valid response brought, then look them up."""
        kept = paired.persist()
        try:
            row = kept.agg(*_lacks(node)).first()
            assert row is not None
            return self._difference(node, kept, kept, {k: int(v) for k, v in row.asDict().items()}, keys)
        finally:
            kept.unpersist()

    def _difference(self, node: Node, paired: DataFrame, frame: DataFrame, lacking: Mapping[str, int], keys: Keys) -> Outcome[Resolved]:
        """Writes what changes.

        Args:
            node: the node.
            paired: the frame of ``resolve.pair``.
            frame: the same, possibly observed: it may stand only once in what is executed.
            lacking: how many rows lack each edge's right row (``lacks_<i>``), and how many ``stale`` responses there are.
            keys: of the output rows that can change, at least; on the driver too if ``paired`` is.
        """
        for number, edge in enumerate(node.edges, start=1):
            right, key = edge.right.table, self._facts.plan.key_of(edge.right.table)
            if lacks := lacking.get(f"lacks_{number}"):
                rights = self._work.now.lookup(right, Keys(resolve.missing(paired, number, edge, key), lacks))
                frame = resolve.fill(frame, number, edge, rights, key)
            elif f"r{number}" not in frame.columns:
                frame = resolve.absent(frame, number, edge, self._work.now.current(right))
        made = self._joined(node, frame)
        if keys.here is not None:
            made = made.coalesce(1)  # Spark forgets, after calling Python for the hash, that there is one partition only
        made_of = resolve.difference(node, made, self._work.before.lookup(node.name, keys), everything=False)
        return self._write_output(node, made_of, lacking.get("stale", 0), keys.at_most, keys)

    def _held(self, node: Node, keys: Keys | None) -> DataFrame | None:
        """The keys that are held back, of some keys or of all."""
        return self._work.before.held(node.name, keys) if self._facts.held(node) else None

    def _write_candidates(self, node: Node, difference: DataFrame, stale: int, at_most: int, keys: Keys | None) -> Outcome[Resolved]:
        """For a node that can hold rows back: leaves to ``validate`` what becomes of the changes. ``keys``: those of ``difference`` at least, None: all."""
        seen = Observation()
        aside = self._sieve.aside(difference.schema) if self._sieve is not None and self._sieve.why else None
        difference = hold.uncomputable(difference, aside, node.key)
        marked = hold.candidates(difference, self._held(node, keys), node.key, everything=keys is None)
        observed = marked.observe(
            seen,
            *counted(OPS | {"unchanged": "N"}),
            F.count(F.when(F.col("_held"), 1)).alias("held_before"),
            F.count("_why").alias("uncomputable"),
        )
        rows = observed.where(hold.IS_CANDIDATE).select(*node.key, "_op", "_before", "_after", "_held", "_why")
        written = self._writer.append(names.candidates(node.name), small(rows, at_most), node.key, transient=True)
        made = Resolved.of({"stale": stale, **seen.get}, Ending.PROPOSED)
        return self._withheld(node, made) or Outcome(made, (written,))

    def _write_output(self, node: Node, difference: DataFrame, stale: int, at_most: int, keys: Keys | None) -> Outcome[Resolved]:
        if self._facts.may_hold(node):
            return self._write_candidates(node, difference, stale, at_most, keys)
        seen = Observation()
        observed = difference.observe(seen, *counted(OPS | {"unchanged": "N"}))
        rows = observed.where("_op <> 'N'").withColumn("_run", F.lit(self._facts.run.number).cast("bigint"))
        written = small(rows.select("_run", "_op", *node.key, "_before", "_after"), at_most)
        log = self._writer.append(names.changes(node.name), written, node.key)
        crash.point(f"resolve.{node.name}:changes")
        made = Resolved.of({"stale": stale, **seen.get})
        if withheld := self._withheld(node, made):
            return withheld
        located = self._work.before.located.get(node.name)
        return Outcome(made, apply(self._work, self._writer, node, written, log, made, located))

    def _withheld(self, node: Node, made: Changed) -> Outcome[Resolved] | None:
        """The outcome of an output that is left as it is, since too much of it would change; None if it goes on.

        Raises:
            ChangeTooLarge: too much would change, and nobody has said what to do then.
        """
        rows, policy, changes = self._facts.before.live(node.name), node.policy, made.changes
        if (
            self._facts.rebuilt(node)
            or self._facts.plan.repair  # no input is read: whatever changes was wrong, or was made of what was wrong
            or rows < FUSE_ROWS
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


def _lacking(node: Node, paired: LocalRows) -> dict[str, int]:
    """What ``_lacks`` counts, of a frame that is on the driver."""
    numbers = range(1, len(node.edges) + 1)
    found = {name: pc.sum(paired.arrow[name]).as_py() or 0 for i in numbers for name in (f"lacks_{i}", f"stale_{i}")}
    return {f"lacks_{i}": found[f"lacks_{i}"] for i in numbers} | {"stale": sum(found[f"stale_{i}"] for i in numbers)}


def _lacks(node: Node) -> list[Column]:
    """Counts over the frame of ``resolve.pair``."""
    numbers = range(1, len(node.edges) + 1)
    lacks = [F.count(F.when(F.col(f"lacks_{i}"), 1)).alias(f"lacks_{i}") for i in numbers]
    stale = sum((F.count(F.when(F.col(f"stale_{i}"), 1)) for i in numbers), F.lit(0)).alias("stale")
    return [*lacks, stale]

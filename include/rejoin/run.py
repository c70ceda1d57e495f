"""Where IO meets the stages: each method reads what its stage needs, calls the stage, writes what it returns, and counts.

An ``Attempt`` is one try at one step of an open run. Everything it writes goes to branches of its own; nothing counts before the ledger has
registered it.
"""

import uuid
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from rejoin import crash, sources
from rejoin.checks import Counts, Kinds, check_conservation, check_deletes, check_policy, check_rows, count_kinds, no_input
from rejoin.errors import ChangeTooLarge, RefreshRefused
from rejoin.lake import names, probe
from rejoin.lake.files import Sizes
from rejoin.lake.ledger import Ledger, Run, Write
from rejoin.lake.local import LocalRows, collected
from rejoin.lake.reader import BROADCAST_KEYS, Keys, Reader
from rejoin.lake.refs import Refs
from rejoin.lake.tables import source_ddl
from rejoin.lake.writer import Writer
from rejoin.plan.fingerprint import fingerprint
from rejoin.plan.model import Edge, Fuse, Node, Refresh, SnapshotSource, Table
from rejoin.plan.steps import Step, Verb
from rejoin.refresh import why_recompute
from rejoin.stages import ingest, resolve, respond, subscribe
from rejoin.stages.frames import numbered, renamed
from rejoin.stages.ingest import Fate

FUSE_ROWS = 1_000
"""Outputs with fewer rows have no fuse: a few changes are a large share of them."""


@dataclass(frozen=True)
class Outcome:
    """What an attempt counted and wrote, and how it was done."""

    counts: Counts
    writes: tuple[Write, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)


class Attempt:
    """One try at one step.

    Args:
        ledger: the topology's ledger.
        refs: the branches of its tables.
        run: the open run; its pinned plan is what is executed.
        root: where relative source paths start.
    """

    def __init__(self, ledger: Ledger, refs: Refs, run: Run, root: str) -> None:
        self.id = uuid.uuid4().hex[:10]
        self._ledger, self._refs, self._run, self._root = ledger, refs, run, root
        self._plan = run.plan
        self._base = ledger.states(run.base)
        self._steps = ledger.steps(run.number)
        self._written = {w.table: w.snapshot_id for w in ledger.writes(run.number).values()}
        self._before_sizes, self._sizes = Sizes(refs, self._base), Sizes(refs, self._base | self._written)

    def nothing_to_do(self, step: Step) -> Outcome | None:
        """The outcome of a step that has no input, so that a run without changes starts no Spark at all; None if it has some."""
        match step.verb:
            case Verb.INGEST:
                idle = self._ledger.pins(self._run.number)[step.target] is None and step.target in self._base
                return Outcome(no_input()) if idle else None
            case Verb.SUBSCRIBE:
                node = self._plan.node(step.target)
                return None if self._left_changed(node) else Outcome({"subscribed": 0, "unsubscribed": 0})
            case Verb.RESPOND:
                node, edge = self._edge(step.target)
                asked = self._sent_something(node) or self._right_changed(node, edge)
                if asked and (why := self._instead(node, edge)):
                    return Outcome({"responses": 0, "left_out": 1}, detail={"left_out": why})
                return None if asked else Outcome({"responses": 0})
            case Verb.RESOLVE:
                node = self._plan.node(step.target)
                if self._left_changed(node) or any(self._responded(node, e) or self._left_out(node, e) for e in node.edges):
                    return None
                return Outcome(dict.fromkeys(("stale", "inserted", "updated", "deleted", "unchanged", "changes"), 0))
            case _:
                raise ValueError(f"step {step.id} is not a Spark stage")

    def execute(self, spark: SparkSession, step: Step) -> Outcome:
        """Does the work of a step that has something to do; registers nothing."""
        self._spark = spark
        self._before = Reader(spark, self._plan, self._base, self._refs)
        self._now = Reader(spark, self._plan, self._base | self._written, self._refs)
        self._writer = Writer(spark, self._refs, self._base, self._run.number, self.id)
        match step.verb:
            case Verb.INGEST:
                with sources.coded_errors():
                    outcome = self._ingest(self._plan.table(step.target))
            case Verb.SUBSCRIBE:
                outcome = self._subscribe(self._plan.node(step.target))
            case Verb.RESPOND:
                outcome = self._respond(*self._edge(step.target))
            case _:
                outcome = self._resolve(self._plan.node(step.target))
        crash.point(f"{step.id}:written")
        reads = [asdict(read) for read in (*self._before.reads, *self._now.reads)]
        return replace(outcome, detail={**outcome.detail, "reads": reads})

    # --- ingest -------------------------------------------------------------------------------------------------------

    def _ingest(self, table: Table) -> Outcome:
        pinned = self._ledger.pins(self._run.number)[table.name]
        if pinned is None:  # the table's first run, and nothing to read yet
            return Outcome(no_input(), (self._touch(table),))
        events = sources.read(self._spark, table, sources.Pin.from_dict(pinned), self._root)
        kinds = count_kinds(table, events)
        check_policy(table, kinds.read, kinds.quarantined, events, self._run.number)
        if isinstance(table.source, SnapshotSource):
            return self._ingest_snapshot(table, events, kinds)
        return self._ingest_feed(table, events, kinds)

    def _ingest_feed(self, table: Table, events: DataFrame, kinds: Kinds) -> Outcome:
        facts = events.where("_kind IN ('upsert', 'delete')")
        truncated = kinds.truncated is not None
        keys = None if truncated else _keys_of(table, facts, kinds)
        stored = self._before.versions(table.name, keys, before=kinds.incomplete > 0)
        if kinds.truncated is not None:
            facts = ingest.truncation(table, facts, stored, kinds.truncated)
        classified = ingest.feed(table, facts, stored)
        if kinds.incomplete:
            classified = ingest.unsettled(table, classified, stored)
        made = ingest.versions(table, classified, keep_unchanged=True)
        at_most = kinds.read + (self._before_sizes.rows(table.name) if truncated else 0)
        return self._store(table, made, kinds, refused=events.where("_kind = 'quarantined'"), at_most=at_most)

    def _ingest_snapshot(self, table: Table, events: DataFrame, kinds: Kinds) -> Outcome:
        check_rows(table, kinds, self._run.number)
        rows, refused = events.where("_kind = 'upsert'"), events.where("_kind = 'quarantined'")
        stored = self._before.versions(table.name, None, before=False)
        readable = kinds.quarantined_without_key == 0
        classified = ingest.snapshot(table, rows, refused.where(f"`{table.key[0]}` IS NOT NULL"), stored, deletes=readable)
        made = ingest.versions(table, classified, keep_unchanged=False)
        outcome = self._store(table, made, kinds, refused, at_most=kinds.read + self._before_sizes.rows(table.name))
        check_deletes(table, outcome.counts, self._run.number)
        return outcome

    def _store(self, table: Table, made: DataFrame, kinds: Kinds, refused: DataFrame, at_most: int) -> Outcome:
        """Appends the new versions and the refused records; counts every record's fate and checks that none is lost (I4)."""
        seen = Observation()
        real = F.col("_arrival").isNotNull()
        effective = F.col("_op").isin("I", "U") | ((F.col("_op") == "D") & F.col("_before").isNotNull())
        fates = [F.count(F.when(real & (F.col("_fate") == str(fate)), 1)).alias(str(fate)) for fate in Fate]
        others = {
            "changes": effective,
            "deleted": effective & (F.col("_op") == "D"),
            "implied": effective & ~real,
            "live": F.col("_row").isNotNull() & F.col("_fate").isin(str(Fate.APPLIED), str(Fate.NOOP)),
        }
        observed = made.observe(seen, *fates, *(F.count(F.when(c, 1)).alias(n) for n, c in others.items()))
        rows = _small(ingest.table_rows(table, observed, self._run.number), at_most)
        writes = [self._writer.append(table.name, rows, table.key)]
        counts = {"read": kinds.read, "skipped": kinds.skipped, "truncates": kinds.truncates, **{k: int(v) for k, v in seen.get.items()}}
        late = counts[Fate.QUARANTINED]
        counts[Fate.QUARANTINED] += kinds.quarantined
        check_conservation(table, counts, self._run.number)
        if counts[Fate.QUARANTINED]:
            bad = refused.unionByName(made.where(F.col("_fate") == str(Fate.QUARANTINED)), allowMissingColumns=True) if late else refused
            check_policy(table, kinds.read, counts[Fate.QUARANTINED], bad, self._run.number)
            writes.append(self._quarantine(table, bad))
        return Outcome(counts, tuple(writes))

    def _quarantine(self, table: Table, bad: DataFrame) -> Write:
        rows = bad.select(*table.key, F.lit(self._run.number).cast("bigint").alias("_run"), "_code", "_reason", "_file", "_line", "_raw")
        return self._writer.append(names.quarantine(table.name), rows, table.key)

    def _touch(self, table: Table) -> Write:
        return self._writer.touch(table.name, self._spark.createDataFrame([], source_ddl(table)).schema, table.key)

    # --- subscribe and respond ------------------------------------------------------------------------------------------

    def _subscribe(self, node: Node) -> Outcome:
        changes, key = self._left_changes(node), self._plan.key_of(node.left.table)
        assert changes is not None
        counts, writes = {"subscribed": 0, "unsubscribed": 0}, []
        for edge in node.edges:
            seen = Observation()
            rows = subscribe.subscribe(node.left, edge, changes, key, self._run.number)
            ops = {"subscribed": "S", "unsubscribed": "D"}
            observed = rows.observe(seen, *(F.count(F.when(F.col("_op") == op, 1)).alias(n) for n, op in ops.items()))
            put = self._writer.replace if self._rebuilt(node) else self._writer.append
            small = _small(observed, 2 * self._left_rows(node))
            writes.append(put(names.subscriptions(node, edge), small, _subscription_key(edge, key)))
            counts = {n: counts[n] + int(seen.get[n]) for n in counts}
        return Outcome(counts, tuple(writes))

    def _respond(self, node: Node, edge: Edge) -> Outcome:
        run, pks = self._run.number, len(self._plan.key_of(node.left.table))
        right, key = edge.right.table, self._plan.key_of(edge.right.table)
        sent = self._now.sent(node, edge, run) if self._sent_something(node) else None
        changes = self._changes(right) if self._right_changed(node, edge) else None
        answers, at_most = [], 0
        if sent is not None:
            counts = self._counts(Verb.SUBSCRIBE, node.name)
            at_most = counts["subscribed"] + counts["unsubscribed"]
            rights = self._now.lookup(right, Keys(respond.wanted(edge, sent, key), counts["subscribed"]))
            answers.append(respond.answer_subscriptions(edge, sent, rights, key, pks))
        if changes is not None:
            moved = respond.moved(edge, changes, key)
            subscribers = self._now.subscribers(node, edge, Keys(moved, self._changed(right)))
            told = self._now.reads[-1].rows
            at_most += probe.LOCAL_ROWS + 1 if told is None else told
            answers.append(respond.answer_right_changes(edge, moved, subscribers, pks, run))
        responses = answers[0] if len(answers) == 1 else answers[0].unionByName(answers[1])
        seen = Observation()
        observed = responses.observe(seen, F.count(F.lit(1)).alias("responses"))
        write = self._writer.append(names.responses(node, edge), _small(observed, at_most), numbered("pk", pks), transient=True)
        return Outcome({"responses": int(seen.get["responses"])}, (write,))

    # --- resolve --------------------------------------------------------------------------------------------------------

    def _resolve(self, node: Node) -> Outcome:
        if why := self._recomputed(node):
            return self._resolve_all(node, why)
        done, rows = self._resolve_changes(node), self._sizes.rows(node.left.table)
        return replace(done, detail={"refresh": "incremental", "why": f"{self._affected(node):,} of {rows:,} rows are affected"})

    def _resolve_changes(self, node: Node) -> Outcome:
        responses = {e.name: r for e in node.edges if self._responded(node, e) and (r := self._now.responses(node, e)) is not None}
        changes, key = self._left_changes(node), self._plan.key_of(node.left.table)
        # Only a changed right row, and only by a response, makes a left row affected that did not change itself.
        moved = any(e.name in responses and self._right_changed(node, e) for e in node.edges)
        lefts = None
        if moved:
            lefts = self._now.lookup(node.left.table, Keys(resolve.touched(changes, responses, key), self._answers(node)))
        paired = resolve.pair(node, changes, lefts, responses, key)
        if self._affected(node) <= probe.LOCAL_ROWS:
            rows = collected(paired)
            kept = rows.frame(self._spark)
            return self._difference(node, kept, kept, _lacking(node, rows))
        if not moved or len(node.edges) == 1:
            outcome = self._resolve_at_once(node, paired)
            if outcome is not None:
                return outcome
        return self._resolve_in_two(node, paired)

    def _resolve_all(self, node: Node, why: str) -> Outcome:
        """Recomputes the output and compares it with what is there: the same changes, whatever has changed."""
        if self._rebuilt(node) and self._before.has(node.name) and node.policy.refresh is Refresh.INCREMENTAL_STRICT:
            raise RefreshRefused(
                f"output {node.name!r} would have to be recomputed in run {self._run.number}: {why}; nothing was committed",
                expected="refresh='incremental_strict' never recomputes",
                next_step="run once with --refresh full, or give the new definition a new name",
            )
        key = self._plan.key_of(node.left.table)
        paired = resolve.pair(node, None, self._now.current(node.left.table), {}, key)
        for number, edge in enumerate(node.edges, start=1):
            right, right_key = self._now.current(edge.right.table), self._plan.key_of(edge.right.table)
            if self._sizes.rows(edge.right.table) <= BROADCAST_KEYS:
                right = F.broadcast(right)  # no shuffle by the foreign key, so no task of the most frequent one
            paired = resolve.fill(paired, number, edge, right, right_key)
        made = resolve.join(node, paired, fingerprint(self._plan, node))
        old = self._before.current(node.name) if self._before.has(node.name) else None
        at_most = self._sizes.rows(node.left.table) + self._before_sizes.rows(node.name)
        outcome = self._write_output(node, resolve.difference(node, made, old, everything=True), 0, at_most)
        return replace(outcome, detail={"refresh": "full", "why": why})

    def _resolve_at_once(self, node: Node, paired: DataFrame) -> Outcome | None:
        """In one pass, if every affected row turns out to have valid responses; else None, and what was written is garbage."""
        seen = Observation()
        outcome = self._difference(node, paired, paired.observe(seen, *_lacks(node)), {})
        lacking = {k: int(v) for k, v in seen.get.items()}
        if not any(lacking.values()):
            return outcome
        self._writer = self._writer.again()
        return None

    def _resolve_in_two(self, node: Node, paired: DataFrame) -> Outcome:
        """First find which right rows no valid response brought, then look them up."""
        kept = paired.persist()
        try:
            row = kept.agg(*_lacks(node)).first()
            assert row is not None
            return self._difference(node, kept, kept, {k: int(v) for k, v in row.asDict().items()})
        finally:
            kept.unpersist()

    def _difference(self, node: Node, paired: DataFrame, frame: DataFrame, lacking: Counts) -> Outcome:
        """Writes what changes.

        Args:
            node: the node.
            paired: the frame of ``resolve.pair``.
            frame: the same, possibly observed: it may stand only once in what is executed.
            lacking: how many rows lack each edge's right row (``lacks_<i>``), and how many ``stale`` responses there are.
        """
        for number, edge in enumerate(node.edges, start=1):
            right, key = edge.right.table, self._plan.key_of(edge.right.table)
            if lacks := lacking.get(f"lacks_{number}"):
                rights = self._now.lookup(right, Keys(resolve.missing(paired, number, edge, key), lacks))
                frame = resolve.fill(frame, number, edge, rights, key)
            elif f"r{number}" not in frame.columns:
                frame = resolve.absent(frame, number, edge, self._now.current(right))
        made = resolve.join(node, frame, fingerprint(self._plan, node))
        affected = renamed(paired, numbered("pk", len(node.key)), node.key)
        old = self._before.lookup(node.name, Keys(affected, self._affected(node)))
        return self._write_output(
            node, resolve.difference(node, made, old, everything=False), lacking.get("stale", 0), self._affected(node)
        )

    def _write_output(self, node: Node, difference: DataFrame, stale: int, at_most: int) -> Outcome:
        seen = Observation()
        ops = {"inserted": "I", "updated": "U", "deleted": "D", "unchanged": "N"}
        observed = difference.observe(seen, *(F.count(F.when(F.col("_op") == op, 1)).alias(n) for n, op in ops.items()))
        rows = observed.where("_op <> 'N'").withColumn("_run", F.lit(self._run.number).cast("bigint"))
        small = _small(rows.select("_run", "_op", *node.key, "_before", "_after"), at_most)
        log = self._writer.append(names.changes(node.name), small, node.key)
        crash.point(f"resolve.{node.name}:changes")
        counts = {"stale": stale, **{k: int(v) for k, v in seen.get.items()}}
        counts["changes"] = counts["inserted"] + counts["updated"] + counts["deleted"]
        if self._blown(node, counts["changes"]):
            return Outcome({**dict.fromkeys(counts, 0), "held": counts["changes"]})
        columns, inserts = [p.name for p in node.columns], counts["updated"] + counts["deleted"] == 0
        if counts["changes"] == 0 and self._before.has(node.name) and not self._rebuilt(node):
            return Outcome(counts, (log,))
        here = small if isinstance(small, LocalRows) else None
        output = self._writer.upsert(node.name, here, log, columns, node.key, only_inserts=inserts)
        return Outcome(counts, (log, output))

    def _blown(self, node: Node, changes: int) -> bool:
        """Whether an output is left as it is, since too much of it would change.

        Raises:
            ChangeTooLarge: too much would change, and nobody has said what to do then.
        """
        rows, policy = self._before_sizes.live(node.name), node.policy
        if (
            self._rebuilt(node)
            or rows < FUSE_ROWS
            or changes <= policy.max_change_share * rows
            or policy.fuse in (Fuse.APPLY, Fuse.RECOMPUTE)
        ):
            return False
        if policy.fuse is Fuse.SKIP:
            return True
        raise ChangeTooLarge(
            f"run {self._run.number} would change {changes:,} of {rows:,} rows of output {node.name!r}; nothing was committed",
            expected=f"at most {policy.max_change_share:.0%} of its rows (max_change_share)",
            next_step="look at the input; then run again with --fuse apply (go on), recompute (go on, from all rows) or skip (leave this output)",
        )

    # --- what happened before in this run ---------------------------------------------------------------------------------

    def _rebuilt(self, node: Node) -> bool:
        return node.name in self._run.rebuild

    def _instead(self, node: Node, edge: Edge) -> str | None:
        """Why an edge need not respond: the node will be recomputed."""
        told = self._changed(edge.right.table) if self._right_changed(node, edge) else 0
        if told and not self._rebuilt(node):
            subscriptions = self._sizes.rows(names.subscriptions(node, edge))
            told = int(told * max(1.0, subscriptions / max(1, self._sizes.rows(edge.right.table))))
        return self._why_recompute(node, (0 if self._rebuilt(node) else self._changed(node.left.table)) + told)

    def _recomputed(self, node: Node) -> str | None:
        """Why a node is recomputed in this run; None if its changes are followed."""
        reasons = [self._steps[f"{Verb.RESPOND}.{node.name}.{e.name}"].detail.get("left_out") for e in node.edges]
        left_out = next((str(r) for r in reasons if r), None)
        return left_out or self._why_recompute(node, 0 if self._rebuilt(node) else self._affected(node))

    def _why_recompute(self, node: Node, affected: int) -> str | None:
        rows = self._sizes.rows(node.left.table)
        return why_recompute(node.policy, rebuilt=self._rebuilt(node), affected=affected, rows=rows)

    def _left_out(self, node: Node, edge: Edge) -> bool:
        return "left_out" in self._counts(Verb.RESPOND, f"{node.name}.{edge.name}")

    def _left_changed(self, node: Node) -> bool:
        return self._rebuilt(node) or self._changed(node.left.table) > 0

    def _right_changed(self, node: Node, edge: Edge) -> bool:
        """Whether subscribers have to be told; a rebuilt node subscribes anew to everything."""
        return not self._rebuilt(node) and self._changed(edge.right.table) > 0

    def _left_changes(self, node: Node) -> DataFrame | None:
        """What the node has to look at on its left: this run's changes, or every row if its definition is new."""
        if not self._rebuilt(node):
            return self._changes(node.left.table)
        rows = self._now.current(node.left.table)
        nothing = F.lit(None).cast(rows.schema["_row"].dataType)
        key = self._plan.key_of(node.left.table)
        return rows.select(*key, F.lit("I").alias("_op"), nothing.alias("_before"), F.col("_row").alias("_after"))

    def _changes(self, name: str) -> DataFrame | None:
        return self._now.changes(name, self._run.number) if self._changed(name) else None

    def _changed(self, name: str) -> int:
        """How many rows of a source table or output this run has changed."""
        return self._counts(Verb.INGEST if self._plan.is_table(name) else Verb.RESOLVE, name)["changes"]

    def _left_rows(self, node: Node) -> int:
        """How many rows ``_left_changes`` has, at most."""
        return self._sizes.rows(node.left.table) if self._rebuilt(node) else self._changed(node.left.table)

    def _answers(self, node: Node) -> int:
        return sum(self._counts(Verb.RESPOND, f"{node.name}.{e.name}")["responses"] for e in node.edges)

    def _affected(self, node: Node) -> int:
        """How many output rows this run can change, at most."""
        return self._left_rows(node) + self._answers(node)

    def _sent_something(self, node: Node) -> bool:
        counts = self._counts(Verb.SUBSCRIBE, node.name)
        return counts["subscribed"] + counts["unsubscribed"] > 0

    def _responded(self, node: Node, edge: Edge) -> bool:
        return self._counts(Verb.RESPOND, f"{node.name}.{edge.name}")["responses"] > 0

    def _counts(self, verb: Verb, target: str) -> Counts:
        """What an earlier step of this run counted."""
        return self._steps[f"{verb}.{target}"].counts

    def _edge(self, target: str) -> tuple[Node, Edge]:
        node_name, edge_name = target.split(".")
        node = self._plan.node(node_name)
        return node, next(e for e in node.edges if e.name == edge_name)


def _small(frame: DataFrame, at_most: int) -> DataFrame | LocalRows:
    """The frame computed now and kept on the driver, if it is small enough."""
    return collected(frame) if at_most <= probe.LOCAL_ROWS else frame


def _lacking(node: Node, paired: LocalRows) -> Counts:
    """What ``_lacks`` counts, of a frame that is on the driver."""
    numbers = range(1, len(node.edges) + 1)
    found = {name: pc.sum(paired.arrow[name]).as_py() or 0 for i in numbers for name in (f"lacks_{i}", f"stale_{i}")}
    return {f"lacks_{i}": found[f"lacks_{i}"] for i in numbers} | {"stale": sum(found[f"stale_{i}"] for i in numbers)}


def _keys_of(table: Table, facts: DataFrame, kinds: Kinds) -> Keys:
    """The keys whose stored versions matter: those of the events, and the old keys of rows that changed their key."""
    keys = facts.select(*table.key)
    if kinds.adopted:
        keys = keys.union(facts.where("_old_key IS NOT NULL").select(*(F.col(f"_old_key.`{k}`") for k in table.key)))
    return Keys(keys.distinct(), kinds.read + kinds.adopted)


def _lacks(node: Node) -> list[Column]:
    """Counts over the frame of ``resolve.pair``."""
    numbers = range(1, len(node.edges) + 1)
    lacks = [F.count(F.when(F.col(f"lacks_{i}"), 1)).alias(f"lacks_{i}") for i in numbers]
    stale = sum((F.count(F.when(F.col(f"stale_{i}"), 1)) for i in numbers), F.lit(0)).alias("stale")
    return [*lacks, stale]


def _subscription_key(edge: Edge, key: tuple[str, ...]) -> list[str]:
    return [*numbered("fk", len(edge.foreign_key)), *numbered("pk", len(key))]

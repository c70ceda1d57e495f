"""What a run is and what its earlier steps have counted: everything that decides what a step has to do, without Spark."""

from typing import TypeVar

from rejoin.context.refresh import why_recompute
from rejoin.lake import table_names
from rejoin.lake.ledger.records import AttemptContext, Run
from rejoin.lake.read.table_sizes import Sizes
from rejoin.plan.model.expectations import can_hold
from rejoin.plan.model.match import Window
from rejoin.plan.model.plan import Edge, Node, Table
from rejoin.plan.model.policy import Refresh
from rejoin.plan.model.step_results import Ending, Ingested, Resolved, Responded, Result, Subscribed, Validated
from rejoin.plan.model.steps import Verb, step_id
from rejoin.plan.sql.defining_query import upstream

R = TypeVar("R", bound=Result)


class Facts:
    """Facts of one open run.

    Args:
        run: the run; its pinned plan is what is executed.
        known: what the ledger knows of it: its steps that have ended, nodes that earlier runs have left out and that keep what they saw.
        before: sizes of the tables as of the run's base.
        now: sizes of the tables as of this run.
    """

    def __init__(self, run: Run, known: AttemptContext, before: Sizes, now: Sizes) -> None:
        self.run, self.plan, self.before, self.now = run, run.plan, before, now
        self._steps, self._behind, self.generations = known.steps, known.behind, known.generations
        self.read_before = known.since
        """All that is stored was read before that, in seconds since the epoch; None if nothing is."""

    def subscribed(self, node: Node) -> Subscribed:
        """What the node's subscribing came to, in this run."""
        return self._result(Subscribed, Verb.SUBSCRIBE, node.name)

    def responded(self, node: Node, edge: Edge) -> Responded:
        """What responding on an edge came to."""
        return self._result(Responded, Verb.RESPOND, f"{node.name}.{edge.name}")

    def resolved(self, node: Node) -> Resolved:
        """What the node's resolving came to."""
        return self._result(Resolved, Verb.RESOLVE, node.name)

    def _result(self, kind: type[R], verb: Verb, target: str) -> R:
        step = self._steps[step_id(verb, target)]
        return kind.of(step.counts, step.ending)

    def edge(self, target: str) -> tuple[Node, Edge]:
        """The node and edge of a step's target ``node.edge``."""
        node_name, edge_name = target.split(".")
        node = self.plan.node(node_name)
        return node, next(e for e in node.edges if e.name == edge_name)

    def skipped(self, target: str) -> bool:
        """Whether the run leaves out the node of a step's target."""
        return self.plan.node(target.partition(".")[0]).policy.refresh is Refresh.SKIP

    def waits_for(self, target: str) -> list[str]:
        """The tables that are incomplete, so that the node of a step's target stays as it is: as far as ingests have ended, so later steps may know more."""
        node = self.plan.node(target.partition(".")[0])
        reads = {name for n in (*upstream(self.plan, node), node) for name in n.reads}
        return [t.name for t in self.plan.tables if t.name in reads and self._incomplete(t)]

    def _incomplete(self, table: Table) -> bool:
        ended = self._steps.get(step_id(Verb.INGEST, table.name))
        return ended is not None and ended.ending is Ending.INCOMPLETE

    def rebuilt(self, node: Node) -> bool:
        """Whether everything of the node is made anew: its definition is new, or the run repairs it."""
        return node.name in self.run.rebuild

    def since(self, node: Node) -> int | None:
        """The run after which everything on its left is new to a node that was left out since and keeps what it saw; None if it was not."""
        late = self._behind.get(node.name)
        return None if late is None else late.since

    def changed(self, name: str) -> int:
        """How many rows of a source table or output this run has changed."""
        if self.plan.is_table(name):
            return self._result(Ingested, Verb.INGEST, name).changes
        return self._result(Validated, Verb.VALIDATE, name).changes

    def left_changed(self, node: Node) -> bool:
        """Whether the node has something to look at on its left."""
        return self._at_all(node) or self.changed(node.left.table) > 0

    def right_changed(self, node: Node, edge: Edge) -> bool:
        """Whether subscribers have to be told; a rebuilt node looks at everything anyway."""
        return not self.rebuilt(node) and self.changed(edge.right.table) > 0

    def left_rows(self, node: Node) -> int:
        """How many left rows the node looks at, at most: this run's changes, or every row if its definition is new or it was left out."""
        return self.now.rows(node.left.table) if self._at_all(node) else self.changed(node.left.table)

    def _at_all(self, node: Node) -> bool:
        """Whether it looks at left rows that this run has not changed."""
        return self.rebuilt(node) or node.name in self._behind

    def rights_changed(self, node: Node) -> int:
        """How many right rows this run has changed that can change results whatever the left rows do."""
        if self.rebuilt(node) or node.keeps_what_it_saw or not (node.match is not None or node.two_sided):
            return 0
        return self.changed(node.edges[0].right.table)

    def sent(self, node: Node) -> int:
        """How many subscriptions this run has changed."""
        if node.match is not None:
            return 0
        return self.subscribed(node).sent

    def answers(self, node: Node) -> int:
        """How many responses the node got."""
        return sum(self.responded(node, e).responses for e in node.edges) if node.match is None else 0

    def deferred(self, node: Node) -> str | None:
        """Why an edge did not respond though it had reason to; None if all did their work."""
        of_edges = [self._steps[step_id(Verb.RESPOND, f"{node.name}.{e.name}")] for e in node.edges if node.match is None]
        return next((str(s.detail["left_out"]) for s in of_edges if s.ending is Ending.DEFERRED), None)

    def affected(self, node: Node) -> int:
        """How many output rows this run can change, at most. Without changes on the right, only changed left rows got responses."""
        moved = any(self.right_changed(node, e) for e in node.edges)
        again = self.held(node) if self.judged_again(node) else 0
        return self.left_rows(node) + (self.answers(node) if moved else 0) + self.rights_changed(node) + again

    # --- rows that are held back ---------------------------------------------------------------------------------------------

    def held(self, of: Table | Node) -> int:
        """How many rows of a table or node are held back before this run, at most. Those of a table without expectations came back when it
        lost the last one; what is in its quarantine are records that could not be read.
        """
        if isinstance(of, Table) and not can_hold(of.expectations) and not self.asked_again(of.name):
            return 0
        return self.before.rows(table_names.quarantine(of.name))

    def may_hold(self, node: Node) -> bool:
        """Whether rows of the node can be, or are, held back: then ``validate`` writes it, not ``resolve``."""
        return can_hold(node.expectations) or self.held(node) > 0

    def asked_again(self, name: str) -> bool:
        """Whether the expectations are others than in the last run, or a replay was asked for: of this run, or of one that left the node out."""
        return name in self.plan.replay or (name in self._behind and self._behind[name].asked)

    def judged_again(self, of: Table | Node) -> bool:
        """Whether this run judges rows that are held back, even if nothing has changed."""
        return self.asked_again(of.name) and self.held(of) > 0

    def to_be_judged(self, node: Node) -> bool:
        """Whether ``validate`` has rows or a table to judge."""
        made = self.resolved(node)
        if made.ending is not Ending.DONE:
            return made.ending is Ending.PROPOSED
        return bool(node.expectations) and (made.changes > 0 or self.asked_again(node.name) or watched(node))

    # --- follow the changes or recompute ------------------------------------------------------------------------------------

    def instead(self, node: Node, edge: Edge) -> str | None:
        """Why an edge need not respond: the node will be recomputed."""
        return self._why(node, self.told(node, edge) + (0 if self.rebuilt(node) else self.changed(node.left.table)))

    def told(self, node: Node, edge: Edge) -> int:
        """About how many subscribers an edge has to tell of changed right rows, by the average number of them."""
        if not self.right_changed(node, edge):
            return 0
        subscriptions, rights = self.now.rows(table_names.subscriptions(node, edge)), self.now.rows(edge.right.table)
        return int(self.changed(edge.right.table) * max(1.0, subscriptions / max(1, rights)))

    def recomputed(self, node: Node) -> str | None:
        """Why a node is recomputed in this run; None if its changes are followed."""
        return self.deferred(node) or self._why(node, 0 if self.rebuilt(node) else self.affected(node))

    def _why(self, node: Node, affected: int) -> str | None:
        if node.name in self.plan.repair:
            return "the run repairs it"
        if node.keeps_what_it_saw and not self.rebuilt(node):
            return None  # to recompute it would take today's right rows for all that earlier runs have read
        if isinstance(node.match, Window) and self.judged_again(node):
            return "rows that are held back are judged again"  # their pairs lie at any time
        return why_recompute(node.policy, rebuilt=self.rebuilt(node), affected=affected, rows=self.now.rows(node.left.table))


def watched(of: Table | Node) -> bool:
    """Whether something is expected that can cease to be true without any change."""
    return any(e.type == "fresh" for e in of.expectations)

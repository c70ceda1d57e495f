"""respond: the subscriptions of a run, and changed right rows, become responses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rejoin.context.outcome import Outcome
from rejoin.context.work import Work
from rejoin.engines.relation import Engine, KeySpread, Relation
from rejoin.joins.foreign_key import respond
from rejoin.lake import table_names
from rejoin.lake.read.lookups import LookupKeys
from rejoin.limits import limits
from rejoin.plan.model.plan import Edge, Node
from rejoin.plan.model.step_results import Responded
from rejoin.statements.relations import subscription_key


@dataclass(frozen=True)
class _Answers:
    """Responses with ``fk_1``.., how many they are at most, and how the subscriptions lie that they answer."""

    responses: Relation
    at_most: int
    lies: Callable[[], KeySpread]


class Responding:
    """One attempt to respond."""

    def __init__(self, work: Work) -> None:
        self._work, self._facts, self._writer = work, work.facts, work.writer
        self._engine, self._sql = work.engine, work.engine.sql

    def run(self, node: Node, edge: Edge) -> Outcome[Responded]:
        """Writes the responses on an edge of a node."""
        spoken = next(e for e in self._engine.node(node).edges if e.name == edge.name)
        found = []
        if self._facts.sent(node):
            found.append(self._answered(node, spoken))
        if self._facts.right_changed(node, edge):
            found.append(self._told(node, spoken))
        at_most, key, fks, pks = sum(one.at_most for one in found), *self._keys(node, edge)
        responses = _together(self._engine, "*", [one.responses for one in found])
        observed, seen = self._engine.counted(responses, {"responses": "count(*)"})

        def lies() -> KeySpread:
            spreads = [one.lies() for one in found]
            keys = _together(self._engine, self._sql.names(key), [spread.keys for spread in spreads])
            return replace(spreads[0], keys=keys, rows=sum(spread.rows for spread in spreads))

        apart = self._engine.apart(self._engine.small(observed, at_most), key, lies)
        rows = self._engine.gathered(apart, pks, at_most)
        write = self._writer.append(table_names.responses(node, edge), rows, pks, transient=True, without=fks)
        return Outcome(Responded(responses=seen()["responses"]), (write,))

    def _answered(self, node: Node, edge: Edge) -> _Answers:
        """The answers to this run's subscriptions."""
        right, right_key, (key, _, pks) = edge.right.table, self._facts.plan.key_of(edge.right.table), self._keys(node, edge)
        sent = self._work.now.sent(node, edge, self._facts.run.number)
        assert sent is not None  # the node has sent some
        wanted = self._engine.query(respond.wanted(self._sql, edge, right_key), subscriptions=sent)
        wanted = self._engine.keyed(wanted, key, {"subscriptions": key})  # a range of subscriptions asks for the right rows of its own
        rights = self._work.now.lookup(right, LookupKeys(wanted, self._facts.subscribed(node).subscribed))
        answers = self._engine.query(respond.answer_subscriptions(self._sql, edge, right_key, len(pks)), subscriptions=sent, rights=rights)
        made, at_most = self._engine.keyed(answers, key, {"subscriptions": key, "rights": right_key}), self._facts.subscribed(node).sent
        return _Answers(made, at_most, lambda: self._spread(node, edge, sent, at_most))

    def _told(self, node: Node, edge: Edge) -> _Answers:
        """What subscribers are told of changed right rows."""
        right, run, (key, fks, pks) = edge.right.table, self._facts.run.number, self._keys(node, edge)
        changes = self._work.now.changes(right, run)
        assert changes is not None  # the right side has some
        moved = self._engine.query(respond.moved(self._sql, edge, self._facts.plan.key_of(right)), changes=changes)
        subscribers = self._work.now.subscribers(node, edge, LookupKeys(moved, self._facts.changed(right)))
        found, table = self._work.now.reads[-1].rows, table_names.subscriptions(node, edge)
        told = self._engine.query(respond.answer_right_changes(self._sql, edge, len(pks), run), subscribers=subscribers, moved=moved)
        made = self._engine.keyed(told, key, {"subscribers": key, "moved": fks})

        def lies() -> KeySpread:
            every = self._work.now.every(table, key)  # to find those of the changed keys first takes as long as a range does
            return self._spread(node, edge, every, self._work.now.stored(table) if found is None else found)

        return _Answers(made, limits().large if found is None else found, lies)

    def _spread(self, node: Node, edge: Edge, subscriptions: Relation, rows: int) -> KeySpread:
        key, _, _ = self._keys(node, edge)
        return KeySpread(subscriptions, key, rows, nulls=self._facts.plan.null_keys(node.left.table))

    def _keys(self, node: Node, edge: Edge) -> tuple[list[str], list[str], list[str]]:
        """The key by which subscriptions lie, and its two parts: of the foreign and of the primary key."""
        key, parts = subscription_key(edge, self._facts.plan.key_of(node.left.table)), len(edge.foreign_key)
        return key, key[:parts], key[parts:]


def _together(engine: Engine, columns: str, some: Sequence[Relation]) -> Relation:
    """Some columns of the rows of all."""
    inputs = {f"rows_{number}": rows for number, rows in enumerate(some)}
    return engine.query(" UNION ALL ".join(f"SELECT {columns} FROM {name}" for name in inputs), **inputs)

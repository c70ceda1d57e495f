"""Reads of what left rows are subscribed to: right rows, and groups with the values and totals of their members."""

from collections.abc import Mapping, Sequence

from rejoin.engines.relation import Engine, Relation
from rejoin.lake import table_names
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.read.lookups import LookupKeys, Lookups
from rejoin.lake.read.version_rows import latest
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.statements.own_columns import HASH, RUN, numbered
from rejoin.statements.relations import subscription_key


class SubscriptionReader(Lookups):
    """The subscriptions of one topology as of one run.

    Args:
        engine: who works on what is read.
        plan: the plan that says which columns a table has.
        states: table -> snapshot id. A table that is not there was never written.
        refs: the tables.
    """

    def __init__(self, engine: Engine, plan: Plan, states: Mapping[str, int], refs: Refs) -> None:
        super().__init__(engine, plan.topology, states, refs)
        self._plan = plan

    def subscribers(self, node: Node, to: Edge | Grouping, keys: LookupKeys | None) -> Relation:
        """Live ``Subscriptions`` to the given foreign keys (columns ``fk_1``..; None: all)."""
        return self._subscriptions(node, to, keys, [HASH])

    def members(self, node: Node, grouping: Grouping, keys: LookupKeys, by: Sequence[str] = ()) -> Relation:
        """``fk_1``.., ``pk_1``.. and ``v_1``.. of all members of the groups with the given keys (columns ``fk_1``.., or ``by``, those of their subscriptions)."""
        return self._subscriptions(node, grouping, keys, [value.name for value in grouping.values], by)

    def members_and_before(self, node: Node, grouping: Grouping, keys: LookupKeys, run: int) -> tuple[Relation, Relation]:
        """``members``, and what they were before the run that this reader is of."""
        name, key, columns = self._sent(node, grouping, [value.name for value in grouping.values])
        found = self.having(name, key[: len(grouping.keys)], keys, columns, nulls=True)
        before = self.engine.query(f"SELECT * FROM found WHERE {RUN} < {run}", found=found)
        return self._live(name, found, columns, key), self._live(name, before, columns, key)

    def totals(self, node: Node, grouping: Grouping, keys: LookupKeys) -> Relation | None:
        """The ``Totals`` that are stored of the groups with the given keys (columns ``fk_1``..); None if there never were any."""
        name, fks = table_names.totals(node, grouping), numbered("fk", len(grouping.keys))
        if not self.has(name):
            return None
        newest = self._latest(name, self.having(name, fks, keys, self.columns(name), nulls=True), fks)
        return self.engine.query("SELECT * FROM newest WHERE _op = 'S'", newest=newest)

    def subscribed(self, node: Node, edge: Edge, keys: LookupKeys) -> Relation:
        """Those of the given foreign keys (columns ``fk_1``..) that have a live subscription."""
        fks = self.engine.sql.names(numbered("fk", len(edge.foreign_key)))
        return self.engine.query(f"SELECT DISTINCT {fks} FROM live", live=self._subscriptions(node, edge, keys, []))

    def _subscriptions(
        self, node: Node, to: Edge | Grouping, keys: LookupKeys | None, also: Sequence[str], by: Sequence[str] = ()
    ) -> Relation:
        name, key, columns = self._sent(node, to, also)
        found = self.having(name, by or key[: len(to.foreign_key)], keys, columns, nulls=to.null_is_a_key)
        return self._live(name, found, columns, key)

    def _sent(self, node: Node, to: Edge | Grouping, also: Sequence[str]) -> tuple[str, list[str], list[str]]:
        """A table of subscriptions: its name, its key, and the columns to read."""
        key = subscription_key(to, self._plan.key_of(node.left.table))
        return table_names.subscriptions(node, to), key, [*key, RUN, "_op", *also]

    def _live(self, name: str, found: Relation, columns: Sequence[str], key: Sequence[str]) -> Relation:
        newest = self._latest(name, found, key)
        return self.engine.query(f"SELECT {self.engine.sql.names(columns)} FROM newest WHERE _op = 'S'", newest=newest)

    def sent(self, node: Node, to: Edge | Grouping, run: int) -> Relation | None:
        """The ``Subscriptions`` that a run sent; None if there are none."""
        name = table_names.subscriptions(node, to)
        return self.of_run(name, run) if self.has(name) else None

    def _latest(self, name: str, rows: Relation, key: Sequence[str]) -> Relation:
        """The newest version of each key, without a shuffle where each key has one version only."""
        return rows if self.unique(name, key[0]) else self.engine.query(latest(self.engine.sql, rows.columns, key), found=rows)

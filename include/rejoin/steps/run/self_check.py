"""What every run checks on itself, whatever the user expects: an output is its old rows and the run's changes, and left rows are subscribed.

Counts come from metadata. Rows are looked up for a bounded number of keys, so the cost follows the change (ADR 0006); not by the bounds of
files, which the run's own lookups went by. No Spark.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.context.facts import Facts
from rejoin.errors import InvariantBroken
from rejoin.lake import table_names
from rejoin.lake.iceberg.data_file import check_years
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.ledger.records import Run
from rejoin.lake.query.json_values import plain
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.read.table_sizes import Sizes
from rejoin.limits import limits
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Edge, Node
from rejoin.plan.model.step_results import Changed
from rejoin.statements.own_columns import HASH, RUN, numbered

SAMPLE = 100
"""So many keys of an output's changes, and of an edge's subscriptions, are looked up."""
Key = tuple[Any, ...]


class SelfCheck:
    """The checks of one run.

    Args:
        refs: the tables.
        run: the run.
        before: table -> snapshot id of the base.
        now: the same with what the run has written.
    """

    def __init__(self, refs: Refs, run: Run, before: Mapping[str, int], now: Mapping[str, int]) -> None:
        self._refs, self._run, self._before, self._now = refs, run, before, now

    def node(self, node: Node, made: Changed, facts: Facts) -> dict[str, Any]:
        """Checks a node's new state. Returns how many keys were looked up, or why none could be.

        Raises:
            InvariantBroken: a check failed.
            NotComputable: a row has a date or time that only Spark can tell.
        """
        done: dict[str, Any] = {}
        if made.changes:
            done["changes"] = self._changes(node, made)
        for to in node.subscribes_to:
            if facts.sent(node):
                done[f"subscriptions.{to.name}"] = self._subscriptions(node, to)
        return done

    def _changes(self, node: Node, made: Changed) -> int | str:
        """The changes folded over the old rows are the new rows: their number, and key by key for a sample; no key has two rows."""
        before, now = (Sizes(lambda: self._refs, states).live(node.name) for states in (self._before, self._now))
        expected = before + made.inserted - made.deleted
        if now != expected:
            raise self._broken(f"output {node.name!r} has {now:,} rows", f"{expected:,}: {before:,} before, and this run's changes")
        key, columns = list(node.key), [*(p.name for p in node.columns), HASH]
        loaded = node.name not in self._before  # its changes are a reference to these very rows
        changes = self._sample(node.name, columns) if loaded else self._sample(table_names.changes(node.name), [*key, "_op", "_after"])
        if isinstance(changes, duckdb_lookup.TooLarge):
            return changes.why
        found = self._having(node.name, key, changes, columns, looked_up=not loaded)
        if isinstance(found, duckdb_lookup.TooLarge):
            return found.why
        check_years(node.name, found)
        rows = [(_key(r, key), _key(r, columns)) for r in found.to_pylist()]
        after = changes.to_pylist() if loaded else [r["_after"] for r in changes.to_pylist() if r["_op"] != "D"]
        wanted = {_key(r, key): _key(r, columns) for r in after}
        if len(rows) != len(wanted) or not all(k in wanted and _same(row, wanted[k]) for k, row in rows):
            raise self._broken(
                f"output {node.name!r} has {len(rows)} rows for {changes.num_rows} changed keys that were looked up, or others than were written",
                f"the {len(wanted)} rows that the changes say, one a key",
            )
        return len(changes)

    def _subscriptions(self, node: Node, to: Edge | Grouping) -> int | str:
        """A sample of this run's subscriptions has the left rows that made them, as they are now: a subscription copies its row's hash in the same run."""
        pks, key = numbered("pk", len(self._run.plan.key_of(node.left.table))), list(self._run.plan.key_of(node.left.table))
        sent = self._sample(table_names.subscriptions(node, to), [*pks, "_op", HASH])
        if isinstance(sent, duckdb_lookup.TooLarge):
            return sent.why
        asked = sent.filter(pc.equal(sent["_op"], "S"))
        of_table = self._run.plan.is_table(node.left.table)
        columns = [*key, HASH, *([RUN, "_op"] if of_table else [])]
        loaded = node.left.table not in self._before
        found = self._having(node.left.table, key, asked.select(pks).rename_columns(key), columns, looked_up=not loaded)
        if isinstance(found, duckdb_lookup.TooLarge):
            return found.why
        newest: dict[Key, dict[str, Any]] = {}
        for row in sorted(found.to_pylist(), key=lambda r: r.get(RUN, 0)):
            newest[_key(row, key)] = row
        lefts = {k: r[HASH] for k, r in newest.items() if r.get("_op") != "D"}
        wrong = sum(lefts.get(_key(r, pks)) != r[HASH] for r in asked.to_pylist())
        if wrong:
            raise self._broken(
                f"{wrong} of {asked.num_rows} subscriptions of {node.name!r} on {to.name!r} that were looked up have no left row, or another one",
                "one live left row each (I8)",
            )
        return len(asked)

    def _sample(self, table: str, columns: Sequence[str]) -> pa.Table | duckdb_lookup.TooLarge:
        """Some rows that this run wrote."""
        snapshot = self._now[table]
        return duckdb_lookup.of_run(self._refs.require(table, snapshot), snapshot, self._run.number, columns, sample=SAMPLE)

    def _having(
        self, table: str, key: Sequence[str], rows: pa.Table, columns: Sequence[str], *, looked_up: bool
    ) -> pa.Table | duckdb_lookup.TooLarge:
        """``looked_up``: the run has looked rows of the table up by the bounds of files, which are not asked here then."""
        snapshot = self._now[table]
        existing = self._refs.require(table, snapshot)
        many = len(files_of(existing, snapshot).data) > limits().opened_files
        return duckdb_lookup.having(existing, snapshot, key, rows.select(list(key)), columns, pruned=many or not looked_up)

    def _broken(self, what: str, expected: str) -> InvariantBroken:
        return InvariantBroken(
            f"{what} in run {self._run.number}; nothing was committed",
            expected=expected,
            next_step="compare with `rejoin verify`; `rejoin repair` recomputes an output that was edited by hand, unless a key has two rows",
        )


def _key(row: Mapping[str, Any], columns: Sequence[str]) -> Key:
    return tuple(row[c] for c in columns)


def _same(row: Key, other: Key) -> bool:
    """Whether two rows have the same values, NaN being one, also within nested values."""
    return all(a == b or plain(a) == plain(b) for a, b in zip(row, other, strict=True))

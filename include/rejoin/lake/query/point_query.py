"""Reads without Spark, for people and pages: one key's row, one run's changes, the refused records. PyIceberg on the ledger's snapshot ids."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, LessThanOrEqual, StartsWith
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

from rejoin.errors import RunUnknown, UnknownTable
from rejoin.lake import table_names
from rejoin.lake.iceberg import column_bounds
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.runs import RunKind, RunState
from rejoin.lake.query.key_values import equal, literal
from rejoin.lake.read.first_load import load_of
from rejoin.limits import limits
from rejoin.plan.model.plan import Edge, Node, Plan
from rejoin.statements.load_reference import LOADED
from rejoin.statements.own_columns import HASH, numbered

Row = dict[str, Any]


class PointQuery:
    """Reads of one committed run.

    Args:
        ledger: the topology's ledger.
        refs: its tables.
        run: a committed run; None: the newest.

    Raises:
        RunUnknown: the run was not committed, or nothing was.
    """

    def __init__(self, ledger: Ledger, refs: Refs, run: int | None = None) -> None:
        wanted = ledger.head() if run is None else run
        if wanted is None or ledger.run(wanted).state != RunState.COMMITTED:
            what = "no run was committed yet" if wanted is None else f"run {wanted} was not committed"
            raise RunUnknown(f"topology {ledger.topology!r}: {what}", next_step="see `rejoin history`")
        self.run, self._ledger = wanted, ledger
        self.plan: Plan = ledger.run(wanted).plan
        self._states = ledger.states(wanted)
        self._refs = refs

    def get(self, name: str, key: tuple[str | None, ...]) -> Row | None:
        """The row of a source table or output with this key (texts, in key order; None: null), without bookkeeping columns; None if there is none.

        Raises:
            UnknownTable: no such table, another number of key columns, or a text that is no value of its column.
            SnapshotExpired: the run is beyond retention.
        """
        columns = self._columns(name)
        rows = self._having(name, name, key)
        if not rows:
            return None
        newest = max(rows, key=lambda row: int(row["_run"]))
        return None if newest.get("_op") == "D" else {c: newest.get(c) for c in columns}

    def history(self, name: str, key: tuple[str | None, ...], most: int) -> list[Row]:
        """The newest changes of the row with this key, newest first: ``{"run", "op", "before", "after"}`` (rows without bookkeeping).

        Of an output all its net changes; of a source table the versions that compaction has left, each with the values before it.

        Raises:
            As ``get``.
        """
        columns = self._columns(name)
        if not self.plan.is_table(name):
            rows = [r for r in self._having(name, table_names.changes(name), key) if r["_op"] != LOADED]
            found = [(r["_run"], r["_op"], plain(r["_before"]), plain(r["_after"])) for r in rows]
            found += self._loaded_row(name, key, found)
        else:
            rows = self._having(name, name, key)
            key_columns = self.plan.key_of(name)
            found = [
                (
                    r["_run"],
                    r["_op"],
                    None if r["_before"] is None else {c: r[c] if c in key_columns else r["_before"].get(c) for c in columns},
                    None if r["_op"] == "D" else {c: r.get(c) for c in columns},
                )
                for r in rows
            ]
        newest = sorted(found, key=lambda r: -int(r[0]))[:most]
        return [dict(zip(("run", "op", "before", "after"), r, strict=True)) for r in newest]

    def _loaded_row(self, name: str, key: tuple[str | None, ...], later: list[tuple[int, str, Row | None, Row | None]]) -> list[Any]:
        """The insert of a row with this key by the run that loaded the output, if it had it then. ``later``: all other changes of it."""
        log = table_names.changes(name)
        load = load_of(self._refs.require(log, self._states[log]), self._states[log]) if log in self._states else None
        if load is None:
            return []
        after = min(later, key=lambda r: r[0])[2] if later else next((plain(r) for r in self._having(name, name, key)), None)
        return [] if after is None else [(load, "I", None, after)]

    def changes(self, name: str, run: int) -> Iterator[Row]:
        """What a run changed in an output: ``{"op", "before", "after"}`` in key order.

        Of an output that has left the topology, too, as long as the run had it.

        Raises:
            UnknownTable: not an output.
        """
        plan = next((p for p in (self.plan, self._ledger.run(run).plan) if name in {n.name for n in p.nodes}), None)
        if plan is None and self.plan.is_table(name):
            raise UnknownTable(
                f"{name!r} is a source table: what a run changed is kept of outputs only",
                expected=", ".join(n.name for n in self.plan.nodes),
                next_step=f"`rejoin get {name} KEY --as-of N`",
            )
        if plan is None:
            raise self._unknown(name, [n.name for n in self.plan.nodes])
        if name not in self._states:
            return
        from rejoin.lake.read import change_feed  # loads DuckDB, which no other question needs
        from rejoin.lake.read.duckdb_scan import field_types

        log, output = (
            change_feed.TableAt(self._refs.require(n, self._states[n]), self._states[n]) for n in (table_names.changes(name), name)
        )
        columns = [c for c in field_types(log.table.schema(), "_after") if c != HASH]
        for batch in change_feed.changes(log, output, change_feed.RunRange(run - 1, run, net=False), plan.key_of(name), columns):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                yield {"op": row["_op"], "before": row["_before"], "after": row["_after"]}

    def stored(self, name: str, key: Sequence[Any]) -> list[Row]:
        """The stored rows of a source table (its versions) or output with this key (texts or values), bookkeeping columns included.

        Raises:
            As ``get``.
        """
        self._columns(name)
        return self._having(name, name, key)

    def kept_aside(self, name: str, key: Sequence[Any]) -> list[Row]:
        """What ``quarantine`` tells, of one key (texts or values). Raises as ``get`` does."""
        return self._having(name, table_names.quarantine(name), key)

    def foreign_key(self, node: Node, edge: Edge, key: Sequence[Any]) -> tuple[Any, ...] | None:
        """The foreign key by which the left row with this key (texts or values) is subscribed to its right row; None if it is to none."""
        primary, foreign = numbered("pk", len(self.plan.left_key(node))), numbered("fk", len(edge.foreign_key))
        rows = self._having(node.left.table, table_names.subscriptions(node, edge), key, primary)
        newest = {tuple(r[c] for c in foreign): str(r["_op"]) for r in sorted(rows, key=lambda r: int(r["_run"]))}
        return next((fk for fk, op in newest.items() if op == "S"), None)

    def having(self, table: str, values: Mapping[str, Any], span: tuple[str, Any, Any] | None = None) -> pa.Table | None:
        """All of the rows with some values in some columns, and a time within a span (its column, first and last); None: none, or too many to read."""
        ends = [] if span is None else [GreaterThanOrEqual(span[0], span[1]), LessThanOrEqual(span[0], span[2])]  # type: ignore[call-arg, arg-type]
        condition = And(AlwaysTrue(), AlwaysTrue(), *map(equal, values, values.values()), *ends)
        reading, files = self._planned(table, condition, ("*",)) if table in self._states else (None, ())
        found = list(files)
        few = sum(f.file.record_count for f in found) <= limits().searched_rows
        return reading.to_table(found) if reading is not None and few else None

    def _having(self, name: str, stored: str, key: Sequence[Any], columns: Sequence[str] = ()) -> list[Row]:
        """The rows of the table ``stored`` with a key (texts or values) of ``name``. ``columns``: what ``stored`` calls the key columns."""
        names_ = self.plan.key_of(name)
        if len(key) != len(names_):
            raise UnknownTable(
                f"the key of {name!r} has {len(names_)} column(s): {', '.join(names_)}", next_step=f"rejoin get {name} {' '.join(names_)}"
            )
        types = self._key_types(name)
        try:
            first, *others = (equal(c, literal(v, types[n])) for c, n, v in zip(columns or names_, names_, key, strict=True))
            return self._scan(stored, reduce(And, others, first))
        except ValueError as error:
            raise self._misfit(name) from error

    def _misfit(self, name: str) -> UnknownTable:
        wanted = ", ".join(f"{column} {type_}" for column, type_ in self._key_types(name).items())
        return UnknownTable(f"a key value does not fit the key of {name!r}", expected=wanted)

    def changed_key(self, name: str) -> tuple[Any, ...] | None:
        """The key of one row that this run inserted or updated in an output; None if there is none. Reads no more files than it has to."""
        table, key = table_names.changes(name), self.plan.key_of(name)
        if table not in self._states:
            return None
        found = self._batches(table, equal("_run", self.run), (*key, "_op"))
        rows = (row for batch in found for row in batch.to_pylist() if row["_op"] != "D")
        row = next(rows, None)
        if row is not None and row["_op"] == LOADED:
            row = next((r for batch in self._batches(name, equal("_run", self.run), key) for r in batch.to_pylist()), None)
        return None if row is None else tuple(row[k] for k in key)

    def search(self, name: str, text: str, most: int) -> list[tuple[Any, ...]] | None:
        """Keys of a source table or output with a column that is ``text``, or begins with it where it is a STRING; deleted ones too. At most
        so many. None: more than ``searched_rows`` would have to be read.

        Raises:
            UnknownTable: no such table.
            SnapshotExpired: the run is beyond retention.
        """
        self._columns(name)
        key, found = self.plan.key_of(name), dict[tuple[Any, ...], None]()
        for column, type_ in self._key_types(name).items() if name in self._states else ():
            try:
                starts: BooleanExpression = StartsWith(column, text)  # type: ignore[call-arg, arg-type]  # as in ``equal``
                condition = starts if type_ == "STRING" else equal(column, literal(text, type_))
                reading, planned = self._planned(name, condition, key)
                files = list(planned)
            except ValueError:  # no value of this column
                continue
            if sum(f.file.record_count for f in files) > limits().searched_rows:
                return None
            for file in files:
                for batch in reading.to_record_batches([file]) if len(found) < most else ():
                    found |= dict.fromkeys(tuple(row.values()) for row in batch.select(list(key)).to_pylist())
        return sorted(found, key=lambda k: tuple(map(str, k)))[:most]

    def put_aside(self, name: str) -> Counter[str]:
        """How many rows and records of a table or output this run has put into quarantine, by code."""
        table = table_names.quarantine(name)
        found = self._batches(table, equal("_run", self.run), ("_op", "_code")) if table in self._states else iter(())
        return Counter(row["_code"] for batch in found for row in batch.to_pylist() if row.get("_op") != "R")

    def quarantine(self, name: str) -> list[Row]:
        """All rows of what is kept aside of a table or output, those that were released or dropped later included."""
        return self._scan(table_names.quarantine(name), AlwaysTrue())

    def _key_types(self, name: str) -> dict[str, str | None]:
        types = {c.name: c.type for c in self.plan.columns_of(name)}
        return {key: types[key] for key in self.plan.key_of(name)}

    def _columns(self, name: str) -> list[str]:
        if name not in self.plan.names:
            raise self._unknown(name, self.plan.names)
        return [c.name for c in self.plan.columns_of(name)]

    def _scan(self, table: str, condition: BooleanExpression) -> list[Row]:
        if table not in self._states:
            return []
        reading, files = self._planned(table, condition, ("*",))
        rows: list[Row] = reading.to_table(files).to_pylist(maps_as_pydicts="strict")
        return rows

    def _batches(self, table: str, condition: BooleanExpression, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows that meet a condition, file by file."""
        reading, files = self._planned(table, condition, columns)
        for file in files:
            yield from reading.to_record_batches([file])

    def _planned(self, table: str, condition: BooleanExpression, columns: tuple[str, ...]) -> tuple[ArrowScan, Iterable[FileScanTask]]:
        existing: Table = self._refs.require(table, self._states[table])
        scan = existing.scan(row_filter=condition, selected_fields=columns, snapshot_id=self._states[table])
        # PyIceberg leaves files out by their bounds: not by such as may not hold.
        planned = scan if column_bounds.exact(existing, self._states[table]) else existing.scan(snapshot_id=self._states[table])
        return ArrowScan(existing.metadata, existing.io, scan.projection(), scan.row_filter), planned.plan_files()

    def _unknown(self, name: str, known: Sequence[str]) -> UnknownTable:
        """Why a name cannot be asked for: it was one, it is a table of rejoin's own, or there is none of that name."""
        expected, topology = ", ".join(known), self.plan.topology
        runs = [r for r in self._ledger.runs() if r.state == RunState.COMMITTED and r.kind == RunKind.RUN]
        had = [r.number for r in runs if name in r.plan.names]
        if had:
            what = f"{name!r} is not in topology {topology!r} as of run {self.run}; run {had[-1]} was the last that had it"
            return UnknownTable(
                what, expected=expected, next_step=f"`rejoin get {name} KEY --as-of {had[-1]}`, `rejoin changes {name} --run {had[-1]}`"
            )
        if name in self._states:
            return UnknownTable(
                f"{name!r} is a table of rejoin's own, which has no keys to ask for",
                expected=expected,
                next_step="read it as an Iceberg table",
            )
        return UnknownTable(f"topology {topology!r} has no table {name!r}", expected=expected)


def plain(row: Row | None) -> Row | None:
    """A row without bookkeeping columns."""
    return None if row is None else {k: v for k, v in row.items() if not k.startswith("_")}

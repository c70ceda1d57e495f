"""Reads of one cut: every table at the snapshot that the ledger names, never at ``main``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoin.engines.relation import Relation
from rejoin.lake import table_names
from rejoin.lake.iceberg import plan_columns
from rejoin.lake.read.first_load import load_of
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.read.subscriptions import SubscriptionReader
from rejoin.lake.read.version_rows import latest, without
from rejoin.limits import limits
from rejoin.plan.model.plan import Edge, Node, Table, View
from rejoin.statements import load_reference
from rejoin.statements.dialect import text
from rejoin.statements.own_columns import HASH, HELD_CODES, NOT_COMPUTABLE, PLACE, RUN, SOURCE_FILE, numbered

_IS_HELD = f"_code IN ({', '.join(text(code) for code in HELD_CODES)})"


class Reader(SubscriptionReader):
    """The tables of one topology as of one run, in the shapes that stages take."""

    def with_writes(self, writes: Mapping[str, int]) -> "Reader":
        """A reader of the same tables, some at other snapshots."""
        return type(self)(self.engine, self._plan, {**self.states, **writes}, self.refs)

    def changes(self, name: str, run: int) -> Relation | None:
        """``Changes`` of a source table or output that the run made to its used columns; None if it was never written."""
        if self._plan.is_table(name):
            return self._source_changes(name, run)
        table = table_names.changes(name)
        if not self.has(table):
            return None
        loads = load_of(self._table(table), self.states[table], run - 1, run) is not None
        found, sql = self.feed(name) if loads else self.of_run(table, run), self.engine.sql
        sides = ", ".join(
            f"{plan_columns.struct(self.engine, found.schema, side, self._fields(name))} AS {side}" for side in ("_before", "_after")
        )
        return self.engine.query(f"SELECT {sql.names(self._plan.key_of(name))}, _op, {sides} FROM found WHERE {RUN} = {run}", found=found)

    def feed(self, name: str) -> Relation:
        """The stored changes of all runs in an output that was written, with the rows that the first one has loaded."""
        table = table_names.changes(name)
        log = self.every(table, self.columns(table))
        load = load_of(self._table(table), self.states[table])
        if load is None:
            return log
        after, before = (self.schema(table).field(side).type for side in ("_after", "_before"))
        types = {f.name: self.engine.type(f.type) for f in (after.field(i) for i in range(after.num_fields))}
        images = load_reference.Images(types, {before.field(i).name for i in range(before.num_fields)}, set(self.columns(name)))
        every = load_reference.changes(self.engine.sql, self._plan.key_of(name), images)
        return self.engine.query(every, log=log, stored=self.of_run(name, load))

    def versions(self, name: str, keys: LookupKeys | None, *, before: bool) -> Relation | None:
        """``Versions`` of a source table for some keys (None: all keys); None if it was never written.

        ``before``: with the version before; else ``_before`` is not there, and is not read.
        """
        if not self.has(name):
            return None
        key = self._plan.key_of(name)
        newest, sql, schema = self._newest(name, key, keys, before=before), self.engine.sql, self.schema(name)
        extra = f", {self._before_row(name, schema)} AS _before" if before else ""
        row = f"CASE WHEN _op <> 'D' THEN {self._row(name, schema)} END"
        return self.engine.query(f"SELECT {sql.names(key)}, _version, {row} AS _row{extra} FROM newest", newest=newest)

    def newest_version(self, name: str) -> str:
        """The highest source position of a source table; empty if it was never written."""
        if not self.has(name):
            return ""
        found = self.engine.one("SELECT max(_version) AS newest FROM versions", versions=self.every(name, ["_version"]))
        return str(found["newest"] or "")

    def lookup(self, name: str, keys: LookupKeys, *, by: tuple[str, ...] = ()) -> Relation:
        """``Relation`` of a source table or output for the given keys (columns: ``by``, else its key columns)."""
        return self._rows(name, keys, by=by)

    def hashes(self, name: str, keys: LookupKeys) -> Relation:
        """The keys of an output's rows, of those given, each with ``_hash`` and ``_place``."""
        key = self._plan.key_of(name)
        return self.having(name, key, keys, [*key, HASH, PLACE], nulls=self._plan.null_keys(name))

    def lookup_any(self, name: str, wanted: Sequence[tuple[tuple[str, ...], LookupKeys]]) -> Relation:
        """``Relation`` of an output that have one of the keys in one of some sets of columns, each row once.

        Args:
            name: the output.
            wanted: columns of its key and the keys looked for in them.
        """
        sql, found = self.engine.sql, list[Relation]()
        wanted = [(by, self._ranged(name, by, keys)) for by, keys in wanted]
        for at, (by, keys) in enumerate(wanted):
            rows = self.lookup(name, keys, by=by)
            earlier = {f"keys_{i}": before.rows for i, (_, before) in enumerate(wanted[:at])}
            same = [sql.on(columns, "k", "r", nulls=self._plan.null_keys(name)) for columns, _ in wanted[:at]]
            new = [f"NOT EXISTS (SELECT 1 FROM keys_{i} AS k WHERE {on})" for i, on in enumerate(same)]
            found.append(self.engine.query(f"SELECT * FROM rows_ AS r WHERE {' AND '.join(new)}", rows_=rows, **earlier) if new else rows)
        inputs = {f"part_{i}": rows for i, rows in enumerate(found)}
        return self.engine.query(" UNION ALL ".join(f"SELECT * FROM {part}" for part in inputs), **inputs)

    def _ranged(self, name: str, by: Sequence[str], keys: LookupKeys) -> LookupKeys:
        """Keys ``by`` of an output, of which a range of its key needs those of the range only; where null is equal to null, DuckDB cannot tell that."""
        key = self._plan.key_of(name)
        if limits().small(keys.at_most) or tuple(by) != key[: len(by)]:
            return keys
        rows = self.engine.query(f"SELECT {self.engine.sql.names(by)} FROM keys", keys=keys.rows)
        return replace(keys, rows=self.engine.keyed(rows, key, {"keys": by}))

    def between(self, view: View, time: str, spans: Sequence[tuple[int, int]]) -> Relation:
        """``Relation`` of a view's table whose event time, the column ``time`` of the view, is within some spans of microseconds."""
        name, column = view.table, view.stored(time)
        if not self.has(name) or not spans:
            return self.none(name)
        found = self.within(name, column, spans, self.columns(name))
        return self._framed(name, self._latest(name, found, self._plan.key_of(name)) if self._plan.is_table(name) else found)

    def newest(self, view: View, time: str) -> int | None:
        """The newest event time of a view's table, in microseconds; None if it has no rows."""
        return self.largest_time(view.table, view.stored(time)) if self.has(view.table) else None

    def latest(self, table: Table) -> int | None:
        """The newest event time of a stream whose records can be too old, in microseconds; None if none can be."""
        if table.retention is None or table.event_time is None or not self.has(table.name):
            return None
        return self.largest_time(table.name, table.event_time)

    def newest_by(self, view: View, time: str, by: Sequence[str]) -> Relation:
        """``c_1``.. and ``newest``: the newest event time, in microseconds, of every value of the columns ``by`` of a view, from the table as a whole."""
        name, columns, sql = view.table, [view.stored(c) for c in (time, *by)], self.engine.sql
        newest = sql.time_micros(f"max({sql.name(columns[0])})", zoned=bool(self.schema(name).field(columns[0]).type.tz))
        shown = ", ".join(f"{sql.name(c)} AS c_{i}" for i, c in enumerate(columns[1:], start=1))
        keys = sql.names(columns[1:])
        text = f"SELECT {shown}, {newest} AS newest FROM found GROUP BY {keys}"
        return self.engine.query(text, found=self.every(name, columns))

    def micros(self, view: View, time: str) -> str:
        """The event time of ``Relation`` of a view's table, in microseconds, as SQL text."""
        column, sql = view.stored(time), self.engine.sql
        return sql.time_micros(sql.get("_row", column), zoned=bool(self.schema(view.table).field(column).type.tz))

    def current(self, name: str, also: Sequence[str] = ()) -> Relation:
        """``Relation`` of a whole source table or output. ``also``: stored columns that the plan no longer has."""
        return self._rows(name, None, also)

    def none(self, name: str) -> Relation:
        """``Relation`` of a source table or output without any: what they look like."""
        schema = self.schema(name)
        empty = self.engine.rows(schema.empty_table())
        key, row = self.engine.sql.names(self._plan.key_of(name)), self._row(name, schema)
        return self.engine.query(f"SELECT {key}, {row} AS _row FROM found", found=empty)

    def left_behind(self, node: Node) -> list[pa.Field]:
        """The stored columns of an output that its plan no longer has."""
        kept = {RUN, HASH, *(p.name for p in node.columns)}
        return [f for f in self.schema(node.name) if f.name not in kept]

    def responses(self, node: Node, edge: Edge) -> Relation | None:
        """The ``Responses`` of an edge in the open run; None if the edge had nothing to respond to."""
        name, sql = table_names.responses(node, edge), self.engine.sql
        if not self.has(name):
            return None
        found = self.every(name, self.columns(name))
        right = plan_columns.struct(self.engine, found.schema, "right", [(p.name, p.type) for p in edge.right.columns])
        pks = sql.names(numbered("pk", len(self._plan.key_of(node.left.table))))
        return self.engine.query(f"SELECT {pks}, left_hash, {right} AS {sql.name('right')} FROM found", found=found)

    def candidates(self, node: Node) -> Relation | None:
        """The ``Candidates`` of a node in the open run; None if it has none."""
        name = table_names.candidates(node.name)
        return self.every(name, self.columns(name)) if self.has(name) else None

    def held(self, name: str, keys: LookupKeys | None) -> Relation | None:
        """The rows of a table or node that are held back, as its quarantine table has them, for some keys (None: all)."""
        table = table_names.quarantine(name)
        if not self.has(table) or "_op" not in (columns := self.columns(table)):
            return None
        key = self._plan.key_of(name)
        entries = self.engine.query(
            f"SELECT * FROM found WHERE {_IS_HELD}", found=self.having(table, key, keys, columns, nulls=self._plan.null_keys(name))
        )
        return self.engine.query(f"SELECT * FROM ({latest(self.engine.sql, columns, key)}) WHERE _op = 'Q'", found=entries)

    def lefts(self, node: Node) -> Relation:
        """``Relation`` of a node's left table, null where an expression of the node has no value for the row and it is held back for that."""
        rows, keys = self.current(node.left.table), self.uncomputable(node)
        if keys is None:
            return rows
        text = without(self.engine.sql, rows.columns, keys.columns, ["_row"], nulls=self._plan.null_keys(node.left.table))
        return self.engine.query(text, lefts=rows, keys=keys)

    def refused(self, name: str) -> Relation | None:
        """The records of a source table that could not be applied and were neither replayed nor dropped; None if there were never any."""
        table = table_names.quarantine(name)
        if not self.has(table) or "_op" not in (columns := self.columns(table)):
            return None
        records = self.engine.query(f"SELECT * FROM found WHERE NOT {_IS_HELD}", found=self.every(table, columns))
        newest = latest(self.engine.sql, columns, [SOURCE_FILE, "_line"])
        return self.engine.query(f"SELECT * FROM ({newest}) WHERE _op IS DISTINCT FROM 'R'", found=records)

    def uncomputable(self, node: Node, *, right: bool = False) -> Relation | None:
        """The keys, named as those of the left table (or of the right one), that are held back because no expression has a value for them. Where rows
        have a key of both sides, those of rows of that side alone: what cannot be computed of a pair, or of the other side, says nothing of it.
        """
        held, left = self.held(node.name, None), len(self._plan.left_key(node))
        if held is None or node.grouping is not None:  # no key of a group is that of a member
            return None
        sql, key = self.engine.sql, self._plan.key_of(node.edges[0].right.table if right else node.left.table)
        own = node.key[left:] if right and node.two_sided else node.key[:left]
        alone = [f"{sql.name(k)} IS NULL" for k in node.key if k not in own]
        which = " AND ".join([f"_code = {text(NOT_COMPUTABLE)}", *alone])
        return self.engine.query(f"SELECT {sql.renamed(own, key)} FROM held WHERE {which}", held=held)

    def _source_changes(self, name: str, run: int) -> Relation | None:
        if not self.has(name):
            return None
        found, key = self.of_run(name, run), self.engine.sql.names(self._plan.key_of(name))
        after = f"CASE WHEN _op <> 'D' THEN {self._row(name, found.schema)} END"
        framed = f"SELECT {key}, _op, {self._before_row(name, found.schema)} AS _before, {after} AS _after FROM found WHERE _op <> 'N'"
        return self.engine.query(f"SELECT * FROM ({framed}) WHERE _before IS NOT NULL OR _after IS NOT NULL", found=found)

    def _before_row(self, name: str, schema: pa.Schema) -> str:
        """The version before, as all columns of the plan and the hash; the key columns are those of the row."""
        return plan_columns.struct(self.engine, schema, "_before", self._fields(name), self._plan.key_of(name))

    def _rows(self, name: str, keys: LookupKeys | None, also: Sequence[str] = (), by: tuple[str, ...] = ()) -> Relation:
        key = self._plan.key_of(name)
        if self._plan.is_table(name):
            return self._framed(name, self._newest(name, key, keys, before=False, by=by), also)
        found = self.having(name, by or key, keys, [*self.columns(name), PLACE], nulls=self._plan.null_keys(name))
        return self._framed(name, found, also, place=f", {PLACE}")

    def _framed(self, name: str, found: Relation, also: Sequence[str] = (), place: str = "") -> Relation:
        """Stored rows, of a source table the newest of each key, as ``Relation``."""
        key, row = self.engine.sql.names(self._plan.key_of(name)), self._row(name, self.schema(name), also)
        alive = " WHERE _op <> 'D'" if self._plan.is_table(name) else ""
        return self.engine.query(f"SELECT {key}, {row} AS _row{place} FROM found{alive}", found=found)

    def _newest(self, name: str, key: tuple[str, ...], keys: LookupKeys | None, *, before: bool, by: tuple[str, ...] = ()) -> Relation:
        columns = [c for c in self.columns(name) if before or c != "_before"]
        return self._latest(name, self.having(name, by or key, keys, columns), key)

    def _row(self, name: str, schema: pa.Schema, also: Sequence[str] = ()) -> str:
        """All columns of the plan and the hash as one struct; a column that the stored rows do not have yet is null."""
        return plan_columns.row(self.engine, schema, [*self._fields(name), *((column, None) for column in also)])

    def _fields(self, name: str) -> plan_columns.Fields:
        """The columns of a source table or output."""
        if self._plan.is_table(name):
            return [(c.name, c.type) for c in self._plan.table(name).columns]
        return [(p.name, p.type) for p in self._plan.node(name).columns]

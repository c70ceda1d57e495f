"""Reads for a comparison by PyIceberg and Arrow, in this process: no Java. A comparison of many rows is cut by ranges of their key (ADR 0027)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock

import pyarrow as pa

from rejoin.engines.deferred_relation import WHOLE, DeferredRelation
from rejoin.engines.key_ranges import at_once, count, ranges
from rejoin.engines.relation import Engine, KeySpread, LocalRelation, Relation
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.read import plain_scan
from rejoin.lake.read.lookups import Lookups, TableRead
from rejoin.limits import limits
from rejoin.operate.verify.key_cut import KeyCut, key_cut, members
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.operate.verify.range_files import RangeFiles, Streams
from rejoin.plan.model.plan import Node, Plan
from rejoin.statements.own_columns import PLACE, numbered
from rejoin.statements.relations import foreign_key, key_parts, seen


class ArrowReader(PlainReader):
    """See ``PlainReader``. What is asked for again is not read again."""

    def __init__(self, engine: Engine, plan: Plan, states: Mapping[str, int], refs: Refs, generations: Mapping[str, Generations]) -> None:
        super().__init__(engine, plan, states, refs, generations)
        self._known: dict[tuple[str, tuple[str, ...]], Relation] = {}
        self._settled: dict[str, Relation] = {}
        self._apart: dict[tuple[str, int], RangeFiles] = {}
        self._reading = RLock()

    def every(self, name: str, columns: Sequence[str]) -> Relation:
        """All rows, where the engine keeps many."""
        with self._reading:  # ranges are compared side by side
            for (of, there), rows in self._known.items():
                if of == name and set(columns) <= set(there):
                    shown = f"SELECT {self.engine.sql.names(columns)} FROM found"
                    return rows if tuple(columns) == there else self.engine.query(shown, found=rows)
            schema = self.typed(name, columns)
            rows = self.engine.landed(schema, self.streams(name, schema), (), ())
            self._known[name, tuple(columns)] = rows
            return rows

    def streams(self, name: str, schema: pa.Schema) -> Streams:
        """The columns ``schema`` of all rows of a table."""
        self.reads.append(TableRead(name, "files", "a comparison reads by another way than a run", None))
        return plain_scan.streams(self._table(name), self.states[name], schema, self.engine.at_once)

    def typed(self, name: str, columns: Sequence[str]) -> pa.Schema:
        """Some columns of a table, and PLACE, with their types."""
        types = {f.name: f.type for f in self.schema(name)} | {PLACE: pa.int64()}
        return pa.schema([(c, types[c]) for c in columns])

    def settled(self, name: str) -> Relation:
        """``current``, computed once."""
        with self._reading:
            if name not in self._settled:
                self._settled[name] = self.keeping.enter_context(self.engine.kept(self.current(name)))
            return self._settled[name]

    def unfound(self, name: str) -> int:
        """Rows outside of the bounds that are said of their file or of their row group, once for each column."""
        return plain_scan.outside_bounds(self._table(name), self.states[name])

    def parts(self, node: Node) -> Sequence[PlainReader]:
        """One for each range of the key of an output that has so many rows."""
        cut = key_cut(self._plan, node)
        readers = [] if cut is None else self._readers(cut)
        if not readers or node.grouping is None:
            return readers or (self,)
        every = self._readers(members(self._plan, node)) or (self,)
        return [_GroupReader(reader, node, every) for reader in readers]

    def _readers(self, cut: KeyCut) -> "Sequence[_RangeReader]":
        """One for each range; none if there are too few rows for several."""
        rows, beside = self.stored(cut.root), sum(map(self.stored, cut.whole))
        if limits().small(rows):
            return ()
        spread = KeySpread(Lookups.every(self, cut.root, cut.keys[cut.root]), cut.keys[cut.root], rows, beside, nulls=cut.nulls)
        of = cut.root, count(spread, at_once())
        if of not in self._apart:
            folder = self.keeping.enter_context(TemporaryDirectory(prefix="rejoin-verify-"))
            self._apart[of] = RangeFiles(Path(folder), ranges(spread, cut.keys[cut.root], at_once()))
        files = self._apart[of]
        return [_RangeReader(self, cut.keys, files, number) for number in range(len(files))] if len(files) > 1 else ()

    def apart(self, name: str, columns: Sequence[str]) -> Iterator[Relation]:
        for files in self._apart.values():
            if files.has(name, columns):
                yield from (self.of_range(files, name, number, columns) for number in range(len(files)))
                return
        yield self.every(name, columns)

    def of_range(self, files: RangeFiles, name: str, number: int, columns: Sequence[str]) -> Relation:
        """The rows of a range, which lie apart."""
        found = files.rows(name, number, [c for c in columns if c != PLACE])
        for at, column in enumerate(columns):
            found = found.add_column(at, PLACE, pa.nulls(len(found), pa.int64())) if column == PLACE else found
        return DeferredRelation("SELECT * FROM found", {"found": LocalRelation(found)})


class _RangeReader(PlainReader):
    """Reads of one range of keys.

    Args:
        whole: reads what is of no range.
        keys: what is read by ranges, each table with its columns that have the key.
        files: where its rows are.
        number: of the range.
    """

    def __init__(self, whole: ArrowReader, keys: Mapping[str, Sequence[str]], files: RangeFiles, number: int) -> None:
        super().__init__(*whole.as_of)
        self.made_of = whole, keys, files, number
        self._whole, self._keys, self._files, self._number = whole, keys, files, number

    def every(self, name: str, columns: Sequence[str]) -> Relation:
        """All rows of the range, of a table that has its key."""
        if name not in self._keys:
            return self._whole.every(name, columns)
        stored = [c for c in columns if c != PLACE]
        self._files.lay(name, self._keys[name], self._whole.typed(name, stored), partial(self._whole.streams, name))
        return self._whole.of_range(self._files, name, self._number, columns)

    def current(self, name: str, also: Sequence[str] = ()) -> Relation:
        return super().current(name, also) if name in self._keys else self._whole.settled(name)

    def unfound(self, name: str) -> int:
        return self._whole.unfound(name)


class _GroupReader(_RangeReader):
    """Reads of one range of groups.

    Args:
        of: reads what is stored of the range.
        node: the output with the groups.
        members: read all members.
    """

    def __init__(self, of: _RangeReader, node: Node, members: Sequence[PlainReader]) -> None:
        super().__init__(*of.made_of)
        self._node, self._members = node, members

    def current(self, name: str, also: Sequence[str] = ()) -> Relation:
        """Of the members those of the groups of the range."""
        if name != self._node.left.table:
            return super().current(name, also)
        laid, fks = f"members of {self._node.name}", numbered("fk", len(self._node.subscribes_to[0].foreign_key))
        self._files.lay(laid, fks, self._grouped(self._members[0]).schema, self._streams)
        return self._whole.of_range(self._files, laid, self._number, [*self._plan.key_of(name), "_row"])

    def _streams(self, schema: pa.Schema) -> Streams:
        found = [self._batches(reader, schema) for reader in self._members]
        return [chain.from_iterable(found[number :: self.engine.at_once]) for number in range(min(len(found), self.engine.at_once))]

    def _batches(self, reader: PlainReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self._grouped(reader).ordered((), *WHOLE):
            yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    def _grouped(self, reader: PlainReader) -> DeferredRelation:
        """The members that a reader reads, with the keys of their groups."""
        sql, node, name = self.engine.sql, self.engine.node(self._node), self._node.left.table
        (grouping,), key = node.subscribes_to, sql.names(self._plan.key_of(name))
        rows = f"SELECT {key}, _row, {seen(sql, node.left)} AS l FROM (SELECT {key}, _row, _row AS t FROM rows_)"
        text = f"SELECT {key}, _row, {key_parts(sql, grouping)} FROM (SELECT *, {foreign_key(sql, grouping)} AS fk FROM ({rows}))"
        return DeferredRelation(text, {"rows_": reader.current(name)})

"""Tables of Iceberg whose columns are fields: of ``changes(...)``, and of snapshots and records that say what is made of them (``shapes.mapped``).

Changes and records are the rows that were added between two snapshots, and were not there before, whatever the files in which they are. A snapshot compares
rows by what is made of them.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import ChangesSource, Meaning, NamedFields, names_fields
from rejoin.plan.pin import Part, Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.events import BATCH_ROWS, EventKind, Layout
from rejoin.sources.shapes.mapped.arrow_fields import ArrowFields, arrow_fields
from rejoin.sources.shapes.mapped.mapping import Mapping
from rejoin.sources.shapes.mapped.records import Records
from rejoin.sources.shapes.parquet_rows import shown_rows
from rejoin.sources.shapes.snapshot import position_of
from rejoin.sources.transports.iceberg import DOUBLED, Iceberg
from rejoin.sources.transports.table_difference import Change
from rejoin.sources.transports.transport import Transport

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

    from rejoin.sources.transports.iceberg_files import StoredFile
    from rejoin.sources.transports.iceberg_rows import SnapshotRows

_REFUSED = ("_kind", "_code", "_reason", "_raw")


def of_table(table: Table, access: SourceAccess) -> Transport:
    """The transport of a table whose source is one of Iceberg."""
    return (IcebergFields if names_fields(table.source) else Iceberg)(table, access)


class IcebergFields(Iceberg):
    """As ``Iceberg``, of rows whose columns are fields."""

    def __init__(self, table: Table, access: SourceAccess) -> None:
        super().__init__(table, access)
        self._mapping, self._keys = _mapping(table), _mapping(_only_key(table))

    def events(self, pin: Pin, index: int) -> Iterator[pa.RecordBatch]:
        """Rows as they were added; of a snapshot all rows, or what changed."""
        part, layout, line = pin.parts[index], Layout(self.table), 1
        for events in self._events(part):
            columns = {n: a.cast(layout.schema.field(n).type) for n, a in zip(events.schema.names, events.columns, strict=True)}
            if self._mapping.position is not None:
                refused = pc.equal(columns["_kind"], str(EventKind.QUARANTINED))
                columns["_position"] = pc.if_else(refused, pa.scalar(None, pa.string()), position_of(pin.ordinal))
            yield layout.arranged(columns, range(line, line + events.num_rows), part.id, index)
            line += events.num_rows

    def raw(self, part: Part, wanted: Collection[int]) -> Iterator[tuple[int, str]]:
        """Rows as JSON: their fields as texts; of what changed of a snapshot the columns that were made of them."""
        line = 1
        if self._is_compared(part):
            rows, texts = self._events(part), partial(_texts, Layout(self.table))
        else:
            fields, rows = self._added(part)
            texts = partial(_fields_as_json, fields)
        for batch in rows:
            here = sorted(n - line for n in wanted if line <= n < line + batch.num_rows)
            if here:
                yield from zip((n + line for n in here), texts(batch.take(pa.array(here, pa.int64()))), strict=True)
            line += batch.num_rows

    def _is_compared(self, part: Part) -> bool:
        return "from" in part.place and self.table.source.meaning is Meaning.SNAPSHOT

    def _events(self, part: Part) -> Iterator[pa.RecordBatch]:
        if not self._is_compared(part):
            fields, rows = self._added(part)
            return self._made(self._mapping, fields, rows)
        return (self._meaning(change, rows) for change, rows in self._rows(part))

    def _meaning(self, change: Change, rows: pa.RecordBatch) -> pa.RecordBatch:
        """What the rows of a key that changed say. One that could not be read is refused for that, and not for the others of its key."""
        if change is Change.GONE:
            return rows.append_column("_kind", pa.repeat(str(EventKind.DELETE), rows.num_rows))
        if change is Change.ROW:
            return rows
        read = pc.equal(rows["_kind"], str(EventKind.UPSERT))
        said = {"_kind": str(EventKind.QUARANTINED), **DOUBLED}
        columns = {n: rows[n] if n not in said else pc.if_else(read, said[n], rows[n]) for n in (*self.table.key, *_REFUSED)}
        columns["_raw"] = pa.array(_texts(Layout(self.table), rows), pa.string())
        return pa.record_batch(columns)

    def _added(self, part: Part) -> tuple[ArrowFields, Iterator[pa.RecordBatch]]:
        """The fields, and the rows: all of some files, or those that came."""
        to, schema = part.place["to"], self._projected(part.place["to"])
        after, fields = self._rows_of(to), arrow_fields(self._mapping, schema.as_arrow(), part.id)
        if "from" not in part.place:
            return fields, self._of_files(part, after, schema)
        before = self._rows_of(part.place["from"])
        old = before.files.without(after.files)
        new = after.files.without(before.files)
        return fields, _came(after.table(schema, new), before.table(schema, old)) if old else after.batches(schema, new)

    def _made(self, mapping: Mapping, fields: ArrowFields, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        records = Records(mapping, fields.statement, self.table.source.path, 0)
        return (records.events(fields.records(batch, 1), fields.raw) for batch in rows if batch.num_rows)

    # --- what is read of it ---------------------------------------------------------------------------------------------

    @property
    def _reads(self) -> Collection[str]:
        return self._mapping.reads

    @property
    def _key_reads(self) -> Collection[str]:
        return self._keys.reads

    def _declared(self) -> list[list[str]]:
        source = self.table.source
        assert isinstance(source, NamedFields)
        return [*super()._declared(), *map(list, source.columns)]

    def _check_types(self, schema: pa.Schema) -> None:
        arrow_fields(self._mapping, schema, self.table.source.path)

    def _rows_in(self, side: "SnapshotRows", schema: "Schema", files: "Collection[StoredFile]") -> pa.Table:
        return self._table(self._mapping, side, schema, files).select([*(c.name for c in self.table.columns), *_REFUSED])

    def _keys_in(self, side: "SnapshotRows", schema: "Schema", files: "Collection[StoredFile]") -> pa.Table:
        return self._table(self._keys, side, schema.select(*(n for n in schema.column_names if n in self._keys.reads)), files).select(
            list(self.table.key)
        )

    def _table(self, mapping: Mapping, side: "SnapshotRows", schema: "Schema", files: "Collection[StoredFile]") -> pa.Table:
        fields = arrow_fields(mapping, schema.as_arrow(), self.table.source.path)
        return pa.Table.from_batches(self._made(mapping, fields, side.batches(schema, files)), mapping.layout.schema)


def _mapping(table: Table) -> Mapping:
    return Mapping(table, None if table.source.meaning is Meaning.FEED else "")


def _only_key(table: Table) -> Table:
    """The same table, of which nothing but the key is read."""
    source = table.source
    assert isinstance(source, NamedFields)
    made = tuple((name, sql) for name, sql in source.columns if name in table.key)
    alone = (
        replace(source, columns=made) if not isinstance(source, ChangesSource) else replace(source, columns=made, order=(), deleted=None)
    )
    return replace(table, columns=tuple(c for c in table.columns if c.name in table.key), source=alone)


def _fields_as_json(fields: ArrowFields, rows: pa.RecordBatch) -> list[str]:
    return fields.raw(fields.records(rows, 1))


def _texts(layout: Layout, events: pa.RecordBatch) -> list[str]:
    """Rows as quarantine keeps them."""
    if "_raw" not in events.schema.names:
        return shown_rows(layout, events)
    return [raw or shown for raw, shown in zip(events["_raw"].to_pylist(), shown_rows(layout, events), strict=True)]


def _came(rows: pa.Table, before: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows that are there more often than before, in an order that is the same each time."""
    import duckdb  # a cut needs none

    with duckdb.connect() as db:
        db.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        db.register("come", rows)
        db.register("gone", before)
        for batch in db.sql("SELECT * FROM (FROM come EXCEPT ALL FROM gone) ORDER BY ALL").to_arrow_reader(BATCH_ROWS):
            yield batch.cast(rows.schema)

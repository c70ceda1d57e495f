"""Iceberg tables as sources: what other jobs, tools and topologies write. A path ``iceberg://<catalog>/<namespace.table>``.

A run reads what changed between the snapshot that the last run read and the current one: by the difference of both lists of files, which is
exact for any writer and any number of snapshots; a rewrite of files costs reading them and gives no changes. Where that is not known, all rows are
read: in the first run, and where the old snapshot is expired or rolled back, the table is another one, or other columns are declared.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from rejoin.errors import SnapshotExpired, SourceCorrupt, SourceMissing
from rejoin.plan.model.added_columns import delivered
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import Meaning
from rejoin.plan.pin import Part, Pin
from rejoin.sources.access import OWN, SourceAccess
from rejoin.sources.declared_columns import check_drift
from rejoin.sources.events import EventKind, Layout
from rejoin.sources.shapes.parquet_file import check_types
from rejoin.sources.shapes.parquet_rows import event_columns, shown_rows
from rejoin.sources.transports.table_difference import Change, Difference
from rejoin.sources.transports.transport import Taken, Transport, Waiting

if TYPE_CHECKING:  # PyIceberg takes longer to load than a run that finds nothing new takes for everything else
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table.snapshots import Snapshot

    from rejoin.sources.transports.iceberg_files import StoredFile
    from rejoin.sources.transports.iceberg_rows import SnapshotRows

NAME = "iceberg"
_NEWEST = text(
    "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :name"
)
_ONE_PART = 256 << 20
"""So many bytes of files are one part at least."""
DOUBLED = {"_code": "DUPLICATE_KEY", "_reason": "different rows of the source table have this key"}
"""Why a row is refused that is not the only one of its key."""
_AS = {Change.ROW: EventKind.UPSERT, Change.GONE: EventKind.DELETE, Change.DOUBLED: EventKind.QUARANTINED}


class Iceberg(Transport):
    """The current rows of a table as snapshots, or its appended rows as records."""

    def __init__(self, table: Table, access: SourceAccess) -> None:
        super().__init__(table if table.computed_time is None else delivered(table), access)
        where, _, self._name = table.source.path.partition("://")[2].partition("/")
        self._where = where

    def waiting(self, last: Pin | None, taken: Taken) -> Waiting:  # noqa: ARG002 -- files are taken, snapshots are passed
        """What changed since the last pin, or all rows. Reads metadata only; none if it is the same as then.

        Raises:
            SourceMissing: there is no such table, or it has no snapshot.
            SchemaDrift: it lacks a declared column, or has it in a type that cannot be widened.
        """
        if last is not None and last.transport == NAME and self._is_as(last.mark):
            return Waiting(None)
        found = self._found
        now = found.current_snapshot()
        if now is None:
            raise self._missing("has no snapshot yet")
        schema = self._schema(now.snapshot_id)
        names = tuple(field.name for field in found.scan(snapshot_id=now.snapshot_id).projection().fields)
        check_drift(self.table, names, last.columns if last else ())
        self._check_types(schema)
        mark = {"uuid": str(found.metadata.table_uuid), "snapshot": now.snapshot_id, "declared": self._declared()}
        mark["metadata"] = found.metadata_location
        since = self._since(last, mark, now)
        if since == now.snapshot_id:
            return Waiting(None)
        parts = self._all(now.snapshot_id) if since is None else self._changes(since, now.snapshot_id)
        ordinal = (last.ordinal if last else 0) + 1
        return Waiting(Pin(self.table.source.kind, parts, ordinal, 0, names, NAME, mark, since is not None))

    def check(self, part: Part) -> None:
        """Both snapshots are still there.

        Raises:
            SnapshotExpired: one is not.
        """
        for snapshot in (part.place.get("from"), part.place["to"]):
            if snapshot is not None and self._found.snapshot_by_id(snapshot) is None:
                raise SnapshotExpired(
                    f"snapshot {snapshot} of {self.table.source.path!r} was pinned by the cut and is expired",
                    expected="snapshots that stay until the run that reads them has ended",
                    next_step="abandon the run and start another: it reads the whole table; expire the snapshots of that table later",
                )

    def events(self, pin: Pin, index: int) -> Iterator[pa.RecordBatch]:
        """All rows as upserts; of changes also deletes of keys that are gone."""
        part, layout, line = pin.parts[index], Layout(self.table), 1
        for change, rows in self._rows(part):
            if (kinds := self._meant(change)) is None:
                continue
            columns = event_columns(layout, pin.ordinal, rows)
            if kinds is not EventKind.UPSERT:
                columns = {name: columns[name] for name in (*self.table.key, "_position")}
                columns["_kind"] = pa.repeat(pa.scalar(str(kinds)), rows.num_rows)
            if kinds is EventKind.QUARANTINED:
                columns |= {name: pa.repeat(pa.scalar(text), rows.num_rows) for name, text in DOUBLED.items()}
                columns["_raw"] = pa.array(shown_rows(layout, rows), pa.string())
            yield layout.arranged(columns, range(line, line + rows.num_rows), part.id, index)
            line += rows.num_rows

    def raw(self, part: Part, wanted: Collection[int]) -> Iterator[tuple[int, str]]:
        """The rows as JSON."""
        line, layout = 1, Layout(self.table)
        for change, rows in self._rows(part):
            if self._meant(change) is None:
                continue
            here = sorted(n - line for n in wanted if line <= n < line + rows.num_rows)
            yield from zip((n + line for n in here), shown_rows(layout, rows.take(pa.array(here, pa.int64()))), strict=True)
            line += rows.num_rows

    def _meant(self, change: Change) -> EventKind | None:
        """Records are only added: of those with one id the first counts, and nothing is said by one that is gone."""
        if self.table.source.meaning is Meaning.RECORDS:
            return None if change is Change.GONE else EventKind.UPSERT
        return _AS[change]

    # --- what is read of it ---------------------------------------------------------------------------------------------

    @property
    def _reads(self) -> Collection[str]:
        """The names of columns that are read."""
        return [c.name for c in self.table.columns]

    @property
    def _key_reads(self) -> Collection[str]:
        """Those of them that say the key."""
        return self.table.key

    def _declared(self) -> list[list[str]]:
        """What is declared of columns: where it changes, all rows are read again."""
        return [[c.name, str(c.type)] for c in self.table.columns]

    def _check_types(self, schema: pa.Schema) -> None:
        """Raises SchemaDrift if a column cannot be read as declared."""
        check_types(self.table, schema, self.table.source.path)

    def _rows_in(self, side: "SnapshotRows", schema: "Schema", files: "Collection[StoredFile]") -> pa.Table:
        """All rows of some files, with the declared columns."""
        return side.table(schema, files)

    def _keys_in(self, side: "SnapshotRows", schema: "Schema", files: "Collection[StoredFile]") -> pa.Table:
        """Their keys."""
        return side.table(schema.select(*self.table.key), files)

    # --- the table ------------------------------------------------------------------------------------------------------

    def _is_as(self, mark: Mapping[str, Any]) -> bool:
        """Whether nothing has changed since a pin was made, as far as that is told without PyIceberg: a file of metadata never changes."""
        known = mark.get("metadata")
        return known is not None and mark["declared"] == self._declared() and known == self._newest_metadata()

    def _newest_metadata(self) -> str | None:
        """Where a catalog in a SQL database says that the newest metadata of the table is; None: it says nothing, or is of another kind."""
        stated = self.access.catalog_settings(self._where) or {}
        if stated.get("type", "sql" if self._where == OWN else None) != "sql" or "uri" not in stated:
            return None
        namespace, _, name = self._name.rpartition(".")
        asked = {"catalog": stated.get("name", self._where), "namespace": namespace, "name": name}
        try:
            with create_engine(stated["uri"], poolclass=NullPool).connect() as db:
                return db.execute(_NEWEST, asked).scalar()
        except SQLAlchemyError:
            return None  # PyIceberg says what is wrong

    @cached_property
    def _found(self) -> "IcebergTable":
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        from rejoin.sources.transports.iceberg_catalog import catalog

        try:
            return catalog(self.access, self._where).load_table(self._name)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise self._missing("does not exist") from None

    def _missing(self, why: str) -> SourceMissing:
        return SourceMissing(
            f"source table {self.table.source.path!r} of table {self.table.name!r} {why}",
            next_step="check its name and its catalog, or let its job run first",
        )

    def _since(self, last: Pin | None, mark: Mapping[str, Any], now: "Snapshot") -> int | None:
        """The snapshot from which changes are known; None: all rows have to be read."""
        if last is None or last.transport != NAME or any(last.mark[k] != mark[k] for k in ("uuid", "declared")):
            return None
        from pyiceberg.table.snapshots import ancestors_of

        lineage = {snapshot.snapshot_id for snapshot in ancestors_of(now, self._found.metadata)}
        since: int = last.mark["snapshot"]
        return since if since in lineage else None

    def _schema(self, snapshot: int) -> pa.Schema:
        """The columns that are read and that the table has, as Arrow reads them."""
        schema = self._found.scan(snapshot_id=snapshot).projection().as_arrow()
        return pa.schema([field for field in schema if field.name in self._reads])

    def _projected(self, snapshot: int) -> "Schema":
        return self._found.scan(snapshot_id=snapshot).projection().select(*self._schema(snapshot).names)

    # --- parts ----------------------------------------------------------------------------------------------------------

    def _rows_of(self, snapshot: int) -> "SnapshotRows":
        from rejoin.sources.transports.iceberg_files import files_of
        from rejoin.sources.transports.iceberg_rows import SnapshotRows

        try:
            return SnapshotRows(self._found, files_of(self._found, snapshot))
        except (NotImplementedError, ValueError) as error:
            raise SourceCorrupt(
                f"the snapshot {snapshot} of {self.table.source.path!r} cannot be read: {error}",
                expected="data in Parquet or ORC, deletes by position or by values of columns",
                next_step="compact that table (rewrite_data_files with delete-file-threshold=1), or have its writer write so",
            ) from None

    def _all(self, snapshot: int) -> tuple[Part, ...]:
        """All rows, in parts of whole files."""
        parts, files, size = list[Part](), list[str](), 0
        tasks = self._rows_of(snapshot).files.all
        for file in (stored.task.file for stored in tasks):
            files.append(file.file_path)
            size += file.file_size_in_bytes
            if size >= _ONE_PART or file is tasks[-1].task.file:
                parts.append(Part(self._id(snapshot, len(parts)), size, {"to": snapshot, "files": files}))
                files, size = [], 0
        return tuple(parts)

    def _changes(self, since: int, to: int) -> tuple[Part, ...]:
        before, after = self._rows_of(since).files, self._rows_of(to).files
        whole = [*before.without(after), *after.without(before)]
        keys = [field.field_id for field in self._projected(to).fields if field.name in self._key_reads]
        size = sum(file.task.file.file_size_in_bytes for file in whole)
        size += sum((file.task.file.column_sizes or {}).get(i, 0) for file in after.thinned(before) for i in keys)
        return (Part(self._id(to, 0), size, {"from": since, "to": to}),)

    def _id(self, snapshot: int, part: int) -> str:
        return f"{self.table.source.path}@{snapshot}" + (f"/{part}" if part else "")

    def _rows(self, part: Part) -> Iterator[tuple[Change, pa.RecordBatch]]:
        """Rows, and what those of a batch say."""
        to = part.place["to"]
        schema = self._projected(to)
        after = self._rows_of(to)
        if "from" not in part.place:
            yield from ((Change.ROW, batch) for batch in self._of_files(part, after, schema))
            return
        before = self._rows_of(part.place["from"])
        come = self._rows_in(after, schema, after.files.without(before.files))
        gone = self._rows_in(before, schema, before.files.without(after.files))
        others, thinned = after.files.common(before.files), after.files.thinned(before.files)
        seen, left = (self._keys_in(side, schema, thinned) for side in (before, after))
        read_keys, read = (partial(of, after, schema, others) for of in (self._keys_in, self._rows_in))
        yield from Difference(self.table.key, come, gone, (seen, left), read_keys, read).changes()

    def _of_files(self, part: Part, side: "SnapshotRows", schema: "Schema") -> Iterator[pa.RecordBatch]:
        """The rows of a part that is some files."""
        wanted = set(part.place["files"])
        return side.batches(schema, [file for file in side.files.all if file.task.file.file_path in wanted])

"""The transport of files: local paths inside the root, or URIs that ``pyarrow.fs`` opens. A part is one file, its place the checksum of its bytes."""

from collections.abc import Collection, Iterator

import pyarrow as pa

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import CsvFormat, Meaning, RecordsSource, SnapshotSource, names_fields
from rejoin.plan.pin import Part, Pin
from rejoin.sources.events import raw_text
from rejoin.sources.formats.csv_text import csv_records
from rejoin.sources.shapes import registry, snapshot
from rejoin.sources.shapes.mapped import decoder as mapped
from rejoin.sources.shapes.parquet_rows import decode_parquet, raw_rows
from rejoin.sources.stored_files import PinnedFile, check_size, format_of, lines, open_pinned, place, verify
from rejoin.sources.transports.listing import columns_of_records, new_files, parts_of
from rejoin.sources.transports.snapshot_files import beside_snapshots, newest_snapshot
from rejoin.sources.transports.transport import Taken, Transport, Waiting


class Files(Transport):
    """Files of a directory, written once and never changed."""

    def waiting(self, last: Pin | None, taken: Taken) -> Waiting:
        """What is new of changes and records (``listing.new_files``), or the newest snapshot (``snapshot_files.newest_snapshot``)."""
        table, root = self.table, self.access.root
        where = place(root, table.source.path)
        if table.source.meaning is Meaning.SNAPSHOT:
            return Waiting(newest_snapshot(table, root, where, last), beside_snapshots(table, root, where))
        fresh, ignored = new_files(table, root, where, taken)
        if not fresh:
            return Waiting(None, ignored)
        ordinal = (last.ordinal if last else 0) + 1
        columns = columns_of_records(table, root, fresh, last) if table.source.meaning is Meaning.RECORDS else ()
        return Waiting(Pin(table.source.kind, parts_of(fresh), ordinal, columns=columns), ignored)

    def check(self, part: Part) -> None:
        """The file exists and has the pinned size."""
        check_size(self.access.root, pinned(part))

    def events(self, pin: Pin, index: int) -> Iterator[pa.RecordBatch]:
        """Decodes a file; verifies its bytes on the way.

        Raises:
            SourceFileMissing, SourceFileChanged, SourceCorrupt, of Parquet also SchemaDrift.
        """
        return _decoded(self.table, pin, index, self.access.root)

    def raw(self, part: Part, wanted: Collection[int]) -> Iterator[tuple[int, str]]:
        """Reads all of the file, so that its bytes are verified."""
        table, root, file = self.table, self.access.root, pinned(part)
        if names_fields(table.source):
            found = mapped.raw_records(table, file, root)
            return ((line, raw if isinstance(raw, str) else raw_text(raw)) for line, raw in found if line in wanted)
        if table.source.meaning is Meaning.FEED or format_of(file.path) == "json":
            numbered = lines(open_pinned(root, file))
        elif format_of(file.path) == "parquet":
            return raw_rows(table, root, file, wanted)
        else:
            assert isinstance(table.source, SnapshotSource | RecordsSource)
            records = csv_records(lines(open_pinned(root, file)), CsvFormat(null=table.source.null), file.path, lambda _: None)
            numbered = ((line, raw) for line, raw, _ in records)
        return ((line, raw_text(raw)) for line, raw in numbered if line in wanted)


def pinned(part: Part) -> PinnedFile:
    """The file that a part is."""
    return PinnedFile(part.id, part.size, part.place["sha256"])


def _decoded(table: Table, pin: Pin, index: int, root: str) -> Iterator[pa.RecordBatch]:
    file, meaning = pinned(pin.parts[index]), table.source.meaning
    if meaning is Meaning.RECORDS and not file.size:  # no gzip, no Parquet, but no records either
        verify(root, file)
        return iter(())
    if names_fields(table.source):
        return mapped.decode(table, pin.ordinal, file, index, root)
    feed = meaning is Meaning.FEED
    if not feed and format_of(file.path) == "parquet":
        return decode_parquet(table, pin.ordinal, file, index, root)
    pieces = open_pinned(root, file)
    if feed:
        return registry.decode_pieces(table, pin.ordinal, file.path, index, pieces)
    if format_of(file.path) == "csv":
        return snapshot.decode_csv_pieces(table, pin.ordinal, file.path, index, pieces)
    return snapshot.decode_json_pieces(table, pin.ordinal, file.path, index, pieces)

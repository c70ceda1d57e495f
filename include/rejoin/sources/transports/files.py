"""The transport of files: local paths inside the root, or URIs that ``pyarrow.fs`` opens. A part is one file, its place the checksum of its bytes."""

from collections.abc import Collection, Iterator

import pyarrow as pa

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import CsvFormat, DebeziumSource, Meaning, NamedFields, RecordsSource, SnapshotSource, names_fields
from rejoin.plan.pin import Part, Pin
from rejoin.sources.declared_columns import check_records, csv_header, csv_of
from rejoin.sources.events import raw_text
from rejoin.sources.formats.binary_documents import BINARY, binary_columns, binary_documents
from rejoin.sources.formats.csv_text import csv_records
from rejoin.sources.formats.json_documents import document_lines
from rejoin.sources.formats.key_lines import message_lines
from rejoin.sources.shapes import registry, snapshot
from rejoin.sources.shapes.debezium import columns
from rejoin.sources.shapes.mapped import decoder as mapped
from rejoin.sources.shapes.parquet_file import ParquetRows, row_groups
from rejoin.sources.shapes.parquet_rows import decode_parquet, raw_rows
from rejoin.sources.stored_files import PinnedFile, check_size, format_of, lines, open_pinned, place, verify
from rejoin.sources.transports.listing import columns_of_records, new_files
from rejoin.sources.transports.snapshot_files import beside_snapshots, newest_snapshot
from rejoin.sources.transports.transport import Taken, Transport, Waiting


class Files(Transport):
    """Files of a directory, written once and never changed."""

    def waiting(self, last: Pin | None, taken: Taken) -> Waiting:
        """What is new of changes and records (``listing.new_files``), or the newest snapshot (``snapshot_files.newest_snapshot``)."""
        table, root = self.table, self.access.root
        if table.source.meaning is Meaning.SNAPSHOT:
            where = place(root, table.source.path)
            return Waiting(newest_snapshot(table, root, where, last), beside_snapshots(table, root, where))
        fresh, ignored = new_files(table, root, taken)
        if not fresh:
            return Waiting(None, ignored)
        ordinal = (last.ordinal if last else 0) + 1
        columns = columns_of_records(table, root, fresh, last) if table.source.meaning is Meaning.RECORDS else ()
        return Waiting(Pin(table.source.kind, fresh, ordinal, columns=columns), ignored)

    def check(self, part: Part) -> None:
        """The file exists and has the pinned size, and so has that of its keys."""
        for file in (pinned(part), _keys(part)):
            if file is not None:
                check_size(self.access.root, file)

    def events(self, pin: Pin, index: int) -> Iterator[pa.RecordBatch]:
        """Decodes a file; verifies its bytes on the way.

        Raises:
            SourceFileMissing, SourceFileChanged, SourceCorrupt, of Parquet also SchemaDrift.
        """
        return _decoded(self.table, pin, index, self.access.root)

    def pieces(self, part: Part) -> int:
        """Row groups of Parquet."""
        return row_groups(place(self.access.root, part.id)) if _is_parquet(self.table, part.id) else 1

    def events_of_pieces(self, pin: Pin, index: int, pieces: range) -> Iterator[pa.RecordBatch]:
        """Decodes some row groups."""
        return _of_parquet(self.table, pin, index, ParquetRows(self.access.root, pinned(pin.parts[index]), pieces))

    def raw(self, part: Part, wanted: Collection[int]) -> Iterator[tuple[int, str]]:
        """Reads all of the file, so that its bytes are verified."""
        table, root, file = self.table, self.access.root, pinned(part)
        if names_fields(table.source):
            found = mapped.raw_records(table, file, root)
            return ((line, raw if isinstance(raw, str) else raw_text(raw)) for line, raw in found if line in wanted)
        if table.source.meaning is Meaning.FEED or format_of(file.path) == "json":
            numbered = lines(_json_lines(root, part))
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


def _headed(table: Table, file: PinnedFile, root: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a file. SchemaDrift if it is one line of CSV that names other columns: it may be a record that was taken for the header."""
    empty = True
    for batch in batches:
        empty = False
        yield batch
    if empty and file.size and isinstance(table.source, NamedFields) and mapped.kind_of(table.source, file.path) == "csv":
        header = csv_header(place(root, file.path), csv_of(table.source))
        if header:
            check_records(table, file.path, header)


def _is_parquet(table: Table, path: str) -> bool:
    """Whether a file holds rows of Parquet that are events, and not documents of a feed."""
    if isinstance(table.source, NamedFields):
        return mapped.kind_of(table.source, path) == "parquet"
    return table.source.meaning is not Meaning.FEED and format_of(path) == "parquet"


def _keys(part: Part) -> PinnedFile | None:
    """The file of its keys, if it has one."""
    return PinnedFile(**part.place["keys"]) if "keys" in part.place else None


def _json_lines(root: str, part: Part) -> Iterator[bytes]:
    """The documents of a part, a line each, in pieces."""
    file, keys = pinned(part), _keys(part)
    if keys is None:
        return _documents(root, file)
    values, of_keys = (_documents(root, of) for of in (file, keys))
    return message_lines(values, of_keys, file.path, keys.path)


def _documents(root: str, file: PinnedFile) -> Iterator[bytes]:
    """The same of one file, whatever it is written in."""
    if file.path.endswith(BINARY):
        return binary_documents(root, file)
    return document_lines(open_pinned(root, file), file.path)


def _decoded(table: Table, pin: Pin, index: int, root: str) -> Iterator[pa.RecordBatch]:
    part, meaning = pin.parts[index], table.source.meaning
    file = pinned(part)
    if meaning is Meaning.RECORDS and not file.size:  # no gzip, no Parquet, but no records either
        verify(root, file)
        return iter(())
    if _is_parquet(table, file.path):
        return _of_parquet(table, pin, index, ParquetRows(root, file))
    if names_fields(table.source):
        return _headed(table, file, root, mapped.decode(table, pin.ordinal, file, index, root))
    if meaning is Meaning.FEED:
        if file.path.endswith(BINARY) and _keys(part) is None and (found := _by_columns(table, file, index, root)) is not None:
            return found
        return registry.decode_pieces(table, pin.ordinal, file.path, index, _json_lines(root, part))
    if format_of(file.path) == "csv":
        return snapshot.decode_csv_pieces(table, pin.ordinal, file.path, index, open_pinned(root, file))
    return snapshot.decode_json_pieces(table, pin.ordinal, file.path, index, _json_lines(root, part))


def _of_parquet(table: Table, pin: Pin, index: int, rows: ParquetRows) -> Iterator[pa.RecordBatch]:
    decode = mapped.decode_parquet if names_fields(table.source) else decode_parquet
    return decode(table, pin.ordinal, rows, index)


def _by_columns(table: Table, file: PinnedFile, index: int, root: str) -> Iterator[pa.RecordBatch] | None:
    """The events of a file of columns; None if its rows have to be read as lines."""
    if not isinstance(table.source, DebeziumSource):
        return None
    found = binary_columns(root, file)
    return None if found is None else columns.of_file(table, found, file.path, index)

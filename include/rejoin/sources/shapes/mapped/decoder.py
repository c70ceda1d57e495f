"""A file of records whose fields a declaration names -> events: what this process and Spark's workers both call."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

import pyarrow as pa

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import ChangesSource, CsvFormat, Meaning, NamedFields
from rejoin.plan.sql.raw_fields import HEADER
from rejoin.plan.topic_path import names_topic
from rejoin.sources.declared_columns import JSON_SAMPLE, csv_of, installed_of
from rejoin.sources.decode.proven_lines import by_shape
from rejoin.sources.decode.record_runs import batches as record_batches
from rejoin.sources.events import EventKind
from rejoin.sources.formats.csv_text import csv_records
from rejoin.sources.formats.encoded_text import as_utf8
from rejoin.sources.formats.json_documents import document_lines
from rejoin.sources.formats.row_format import rows
from rejoin.sources.shapes import registry
from rejoin.sources.shapes.mapped import parquet_fields
from rejoin.sources.shapes.mapped.csv_fields import TextFields, csv_fields
from rejoin.sources.shapes.mapped.json_fields import JsonFields
from rejoin.sources.shapes.mapped.mapping import Mapping
from rejoin.sources.shapes.mapped.message_fields import MessageFields
from rejoin.sources.shapes.mapped.records import Records
from rejoin.sources.shapes.mapped.statement import Statement
from rejoin.sources.shapes.parquet_file import ParquetRows
from rejoin.sources.shapes.snapshot import position_of
from rejoin.sources.stored_files import PinnedFile, open_pinned, written_as
from rejoin.sources.stored_files import lines as numbered

Line = tuple[int, bytes]


def kind_of(source: NamedFields, path: str) -> str:
    """How a file is written: json, csv, parquet, or the name of an installed format."""
    return written_as(source, path) or "json"


def decode(table: Table, ordinal: int, file: PinnedFile, index: int, root: str) -> Iterator[pa.RecordBatch]:
    """A pinned file that is not Parquet -> record batches of ``events_schema(table)``, one row a record. Raises as ``transports.files.Files.events`` does."""
    mapping = _mapping(table, ordinal)
    layout, installed = mapping.raw_layout(), installed_of(mapping.source)
    pieces = open_pinned(root, file, binary=installed is not None)
    if installed is not None:
        batches = record_batches(layout, file.path, index, rows(installed, pieces, file.path), TextFields(layout))
    elif kind_of(mapping.source, file.path) == "csv":
        batches = csv_fields(layout, csv_of(mapping.source), file.path, index, pieces)
    else:
        batches = by_shape(file.path, index, document_lines(pieces, file.path), JsonFields(mapping))
    return _events(mapping, file.path, index, batches)


def decode_parquet(table: Table, ordinal: int, of: ParquetRows, index: int) -> Iterator[pa.RecordBatch]:
    """The same of a Parquet file, or of some of its rows."""
    mapping = _mapping(table, ordinal)
    opened = parquet_fields.opened(mapping, of)
    records = Records(mapping, opened.fields.statement, of.file.path, index)
    return (records.events(batch, opened.fields.raw) for batch in opened.batches)


def decode_messages(table: Table, ordinal: int, part: str, index: int, pieces: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """Messages of a topic, as lines, some in each piece -> the same. ``part``: as pinned; ``index``: its place in the pin."""
    by_arrival = isinstance(table.source, ChangesSource) and registry.is_by_arrival(table)
    mapping = Mapping(table, "") if by_arrival else _mapping(table, ordinal)
    fields = MessageFields(mapping)
    found = _events(mapping, part, index, by_shape(part, index, pieces, fields), fields.whole)
    return (registry.placed(batch, ordinal) for batch in found) if by_arrival else found


def fields_of_messages(table: Table, lines: Iterable[bytes]) -> tuple[str, ...]:
    """The fields that some messages have, each of them named once."""
    fields = MessageFields(Mapping(table))
    return tuple(dict.fromkeys(name for line in islice(lines, JSON_SAMPLE) for name in fields.names(line)))


def headers(table: Table) -> frozenset[str]:
    """The headers of messages that are read."""
    front = f"{HEADER}."
    return frozenset(name.removeprefix(front) for name in Mapping(table).reads if name.startswith(front))


def decode_lines(table: Table, file: str, lines: Iterable[Line]) -> Iterator[pa.RecordBatch]:
    """The same of texts of records that quarantine has kept, each on the line on which it was: of messages, of JSON and Parquet, which are JSON there, and of
    CSV whose fields the declaration names. Those of other CSV say nothing without their header, and give no events.
    """
    mapping = Mapping(table)
    if names_topic(file):
        yield from _events(mapping, file, 0, MessageFields(mapping).batches(file, 0, iter(lines)))
        return
    if kind_of(mapping.source, file) == "csv":
        written = replace(csv_of(mapping.source), header=False, encoding="utf-8")
        for line, raw in lines if written.names else ():
            yield from _events(mapping, file, 0, _one_csv(mapping, written, file, line, raw))
        return
    if (installed := installed_of(mapping.source)) is not None:
        again = ((line, own, row) for line, raw in lines for _, own, row in rows(installed, iter([raw]), file))
        layout = mapping.raw_layout()
        yield from _events(mapping, file, 0, record_batches(layout, file, 0, again, TextFields(layout)))
        return
    yield from _events(mapping, file, 0, JsonFields(mapping).batches(file, 0, iter(lines)))


def _one_csv(mapping: Mapping, written: CsvFormat, file: str, line: int, raw: bytes) -> Iterator[pa.RecordBatch]:
    """A record that was on that line."""
    for batch in csv_fields(mapping.raw_layout(), written, file, 0, iter([raw])):
        yield batch.set_column(batch.schema.get_field_index("_line"), "_line", pa.array([line] * batch.num_rows, pa.int64()))


def raw_records(table: Table, file: PinnedFile, root: str) -> Iterator[tuple[int, str | bytes]]:
    """The records of a file as they were written, with their lines."""
    mapping = Mapping(table)
    if kind_of(mapping.source, file.path) == "parquet":
        opened = parquet_fields.opened(mapping, ParquetRows(root, file))
        for batch in opened.batches:
            yield from zip(batch["_line"].to_pylist(), opened.fields.raw(batch), strict=True)
    elif (installed := installed_of(mapping.source)) is not None:
        found = rows(installed, open_pinned(root, file, binary=True), file.path)
        yield from ((line, raw) for line, raw, _ in found)
    elif kind_of(mapping.source, file.path) == "csv":
        written = csv_of(mapping.source)
        records = csv_records(numbered(as_utf8(open_pinned(root, file), written.encoding, file.path)), written, file.path, lambda _: None)
        yield from ((line, raw) for line, raw, _ in records)
    else:
        yield from numbered(document_lines(open_pinned(root, file), file.path))


def _mapping(table: Table, ordinal: int) -> Mapping:
    return Mapping(table, None if table.source.meaning is Meaning.FEED else position_of(ordinal))


def _events(
    mapping: Mapping, file: str, index: int, batches: Iterator[pa.RecordBatch], whole: Callable[[str], str] = str
) -> Iterator[pa.RecordBatch]:
    """Events of records with their fields. ``whole``: makes the text of a record that was read of what its batch has of it."""

    def texts(some: pa.RecordBatch) -> list[str]:
        refused = str(EventKind.QUARANTINED)
        return [
            text or "" if kind == refused else whole(text)
            for text, kind in zip(some["_raw"].to_pylist(), some["_kind"].to_pylist(), strict=True)
        ]

    records = Records(mapping, Statement(mapping, frozenset(mapping.reads), {}, frozenset()), file, index)
    return (records.events(batch, texts) for batch in batches if batch.num_rows)

"""One pinned file -> record batches of events: what this process and Spark's workers both call."""

from collections.abc import Iterator

import pyarrow as pa

from rejoin.plan.model.plan import Table
from rejoin.plan.model.record_place import delivered
from rejoin.plan.model.sources import Meaning, meaning_of
from rejoin.sources.pins import Pin, format_of
from rejoin.sources.shapes import registry, snapshot
from rejoin.sources.shapes.parquet_rows import decode_parquet
from rejoin.sources.stream_columns import completed
from rejoin.sources.transports.files import PinnedFile, open_pinned, verify


def decode_file(table: Table, pin_kind: str, ordinal: int, file: PinnedFile, index: int, root: str) -> Iterator[pa.RecordBatch]:
    """Decodes ``file``, the ``index``-th of its pin; verifies its bytes on the way.

    An error (SourceFileMissing, SourceFileChanged, SourceCorrupt, of Parquet also SchemaDrift) can come after batches: then none of them may be used.
    """
    if (given := delivered(table)) != table:
        return completed(table, decode_file(given, pin_kind, ordinal, file, index, root))
    meaning = meaning_of(pin_kind)
    if meaning is Meaning.RECORDS and not file.size:  # no gzip, no Parquet, but no records either
        verify(root, file)
        return iter(())
    feed = meaning is Meaning.FEED
    if not feed and format_of(file.path) == "parquet":
        return decode_parquet(table, ordinal, file, index, root)
    pieces = open_pinned(root, file)
    if feed:
        return registry.decode_pieces(table, file.path, index, pieces)
    if format_of(file.path) == "csv":
        return snapshot.decode_csv_pieces(table, ordinal, file.path, index, pieces)
    return snapshot.decode_json_pieces(table, ordinal, file.path, index, pieces)


def decode_pin(table: Table, pin: Pin, root: str) -> Iterator[pa.RecordBatch]:
    """Decodes all files of a pin, in order."""
    for index, file in enumerate(pin.files):
        yield from decode_file(table, pin.kind, pin.ordinal, file, index, root)

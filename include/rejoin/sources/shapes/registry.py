"""The dialects of change events: bytes of a file -> events. A folder or file each; ``plan.extensions.dialects`` finds them by their name.

A dialect makes, of a table, the decoder of one file: ``lines.LineDialect`` is what most of them need (docs/extending.md).
"""

from collections.abc import Iterator

import pyarrow as pa

from rejoin.plan.extensions.dialects import dialect
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, FeedSource
from rejoin.sources.decode.proven_lines import LineDecoder, by_shape


def decode(table: Table, file: str, index: int, lines: Iterator[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Numbered lines of one file -> record batches of ``events_schema(table)``, one row a line.

    Args:
        table: the table.
        file: path as pinned, for ``_file``.
        index: place of the file in the pin, for ``_arrival``.
        lines: the lines.
    """
    return _decoder(table).batches(file, index, lines)


def decode_pieces(table: Table, file: str, index: int, pieces: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """The same of a whole file as it is read."""
    return by_shape(file, index, pieces, _decoder(table))


def _decoder(table: Table) -> LineDecoder:
    source = table.source
    assert isinstance(source, DebeziumSource | FeedSource)
    made: LineDecoder = dialect(source.dialect)(table)
    return made

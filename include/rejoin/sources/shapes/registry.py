"""The dialects of change events: bytes of a file -> events. A folder or file each; ``plan.extensions.dialects`` finds them by their name.

A dialect makes, of a table, the decoder of one file: ``lines.LineDialect`` is what most of them need (docs/extending.md).
"""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.plan.extensions.dialects import dialect
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import ChangesSource, DebeziumSource, FeedSource, names_fields
from rejoin.sources.decode.proven_lines import LineDecoder, by_shape
from rejoin.sources.events import EventKind


class DialectDecoder(LineDecoder, Protocol):
    """The decoder of one file.

    Attributes:
        by_arrival: its events have no positions: their order is that in which they arrive.
    """

    by_arrival: bool


def decode(table: Table, file: str, index: int, lines: Iterator[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Numbered lines of one file -> record batches of ``events_schema(table)``, one row a line.

    Args:
        table: the table.
        file: path as pinned, for ``_file``.
        index: place of the file in the pin, for ``_arrival``.
        lines: the lines.
    """
    return _decoder(table).batches(file, index, lines)


def decode_pieces(table: Table, ordinal: int, file: str, index: int, pieces: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """The same of a whole file as it is read. ``ordinal``: of its pin; the position of events that have none begins with it."""
    decoder = _decoder(table)
    found = by_shape(file, index, pieces, decoder)
    return (placed(batch, ordinal) for batch in found) if decoder.by_arrival else found


def placed(batch: pa.RecordBatch, ordinal: int) -> pa.RecordBatch:
    """Events whose order is their arrival, with positions. ``ordinal``: of their pin."""
    arrival = pc.utf8_lpad(batch["_arrival"].cast(pa.string()), 20, "0")
    at = pc.binary_join_element_wise(pa.scalar(f"{ordinal:020d}"), arrival, ".")
    fact = pc.is_in(batch["_kind"], pa.array([str(EventKind.UPSERT), str(EventKind.DELETE), str(EventKind.TRUNCATE)]))
    return batch.set_column(batch.schema.get_field_index("_position"), "_position", pc.if_else(fact, at, pa.scalar(None, pa.string())))


def is_by_arrival(table: Table) -> bool:
    """Whether the order of a feed is that in which its records arrive."""
    return not table.source.order if isinstance(table.source, ChangesSource) else _decoder(table).by_arrival


def reads_messages(table: Table) -> bool:
    """Whether a line is a whole message, with its key, for the shape of a table; else it is the value of one. Records of a stream have no keys, unless
    their declaration names fields.
    """
    source = table.source
    return names_fields(source) or (isinstance(source, DebeziumSource | FeedSource) and "value" in _decoder(table).habits.packed)


def _decoder(table: Table) -> DialectDecoder:
    source = table.source
    assert isinstance(source, DebeziumSource | FeedSource)
    made: DialectDecoder = dialect(source.dialect)(table)
    return made

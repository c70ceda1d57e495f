"""Files of rows read by the careful decoders alone, which is what the fast ways of reading are compared with."""

from collections.abc import Iterator

import pyarrow as pa

from rejoin.plan.model.plan import Table
from rejoin.sources.formats.csv_text import csv_records
from rejoin.sources.formats.line_tally import Tally
from rejoin.sources.shapes import snapshot
from rejoin.sources.shapes.snapshot import Lines


def decode_csv(table: Table, ordinal: int, file: str, index: int, lines: Lines) -> Iterator[pa.RecordBatch]:
    """Numbered lines of a CSV file with header -> record batches of ``events_schema(table)``, one row a record."""
    of, tally = snapshot._csv_file(table, ordinal, file, index), Tally(file)
    return tally.checked(of.careful(csv_records(tally.lines(lines), of.written, file, tally.no_records)))


def decode_json(table: Table, ordinal: int, file: str, index: int, lines: Lines) -> Iterator[pa.RecordBatch]:
    """Numbered lines, a JSON object each -> record batches of ``events_schema(table)``, one row a line."""
    return snapshot._JsonFile(table, ordinal).batches(file, index, lines)

"""The columns of a snapshot, or of files of records, against the declared ones: what may be null-filled and what is drift."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from rejoin.errors import BadRecord, SchemaDrift, SnapshotEmpty
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import CsvFormat, InstalledFormat, Meaning, NamedFields, RecordsSource, SnapshotSource, Source
from rejoin.plan.sql.raw_fields import HEADER, as_field, needed
from rejoin.sources.formats.csv_text import named, plain_header
from rejoin.sources.formats.encoded_text import as_utf8
from rejoin.sources.formats.json_documents import document_lines
from rejoin.sources.formats.json_text import loads
from rejoin.sources.formats.row_format import rows
from rejoin.sources.stored_files import Place, corrupt, lines, open_file

# JSON writers may leave null members out, so the first record alone says little.
JSON_SAMPLE = 1000


def csv_of(source: Source) -> CsvFormat:
    """How the files of CSV of a source are written."""
    if isinstance(source, NamedFields) and isinstance(source.format, CsvFormat):
        return source.format
    return CsvFormat(null=source.null if isinstance(source, SnapshotSource | RecordsSource) else "")


def installed_of(source: Source) -> InstalledFormat | None:
    """The format of a source that an installed package brings; None if it has one of rejoin's."""
    return source.format if isinstance(source, NamedFields) and isinstance(source.format, InstalledFormat) else None


def columns_of(files: list[Place], format_: str, source: Source) -> tuple[str, ...]:
    """Column names of a snapshot: header, Parquet schema, or the fields of the first 1,000 records of each file.

    A column that some file of a CSV or Parquet snapshot lacks does not count as found. Files of zero bytes are left out.
    """
    full = [file for file in files if file.info().size > 0]
    if not full:
        raise SnapshotEmpty(
            f"snapshot file {files[0].label!r} is empty: taken as it is, it would delete every row",
            next_step="deliver a complete snapshot under a later name",
        )
    readers: dict[str, Callable[[Place], tuple[str, ...]]] = {
        "csv": partial(csv_header, how=csv_of(source)),
        "parquet": _parquet_names,
    }
    if format_ in readers:
        found = [readers[format_](file) for file in full]
        return tuple(name for name in found[0] if all(name in names for names in found))
    written = installed_of(source)
    return tuple(
        dict.fromkeys(name for file in full for name in (_json_keys(file) if written is None else _installed_names(file, written)))
    )


def check_drift(table: Table, found: tuple[str, ...], before: tuple[str, ...]) -> None:
    """Refuses what lacks a declared column, unless the topology says that it may (``optional``)."""
    if lacking := _lacking(table, found):
        raise drift(
            table,
            "the snapshot" if table.source.meaning is Meaning.SNAPSHOT else "a new file",
            lacking,
            [name for name in found if name not in before],
        )


def _lacking(table: Table, found: Collection[str]) -> list[str]:
    """The declared columns that are not made of these fields, without those that may be absent."""
    made = dict(table.source.columns) if isinstance(table.source, NamedFields) else {}
    needs = {c.name: needed(made.get(c.name, as_field(c.name))) for c in table.columns if c.name not in table.optional}
    return [name for name, of in needs.items() if not all(any(f in found or f.startswith(f"{HEADER}.") for f in some) for some in of)]


def drift(table: Table, what: str, lacking: list[str], others: list[str]) -> SchemaDrift:
    """The error for declared columns that the source does not have; ``others``: columns it has, those that may be new ones of the old."""
    declared = [column.name for column in table.columns]
    new = [name for name in others if name not in declared]
    perhaps = f"; it has, not declared (renamed?): {', '.join(new)}" if new else ""
    return SchemaDrift(
        f"{what} of table {table.name!r} lacks: {', '.join(lacking)}{perhaps}; nothing was committed",
        expected=f"columns {', '.join(declared)}, spelled like this",
        next_step=(
            "deliver the columns again, or declare what the source has; a column that may be absent, and is null then, is declared by "
            f"optional=[{', '.join(map(repr, lacking))}] of the table"
        ),
    )


def csv_header(file: Place, how: CsvFormat) -> tuple[str, ...]:
    """The names of the fields of a file of CSV.

    Raises:
        SourceCorrupt: its first line is no header.
    """
    if not how.header:
        return how.names
    first = b"".join(line for _, line in islice(lines(as_utf8(open_file(file), how.encoding, file.label)), 1))
    header = named(plain_header(first.removesuffix(b"\r"), how) if first else [], how, file.label)
    if header is None:
        raise corrupt(file.label, f"its first line is no CSV header in {how.encoding.upper()}")
    if len(set(header)) != len(header):
        raise corrupt(file.label, "its header names a column twice")
    return tuple(header)


def check_records(table: Table, part: str, found: tuple[str, ...]) -> None:
    """The same of what the first records of a part have."""
    if lacking := _lacking(table, found):
        raise drift(table, f"what {part} has of the rows", lacking, list(found))


def _json_keys(file: Place) -> tuple[str, ...]:
    numbered = lines(document_lines(open_file(file), file.label))
    return names_of(line for _, line in numbered if line.strip())


def _installed_names(file: Place, written: InstalledFormat) -> Iterator[str]:
    for _, _, record in islice(rows(written, open_file(file), file.label), JSON_SAMPLE):
        yield from () if isinstance(record, BadRecord) else record


def names_of(records: Iterable[bytes]) -> tuple[str, ...]:
    """The members of the first records, which are JSON lines."""
    found: dict[str, None] = {}
    for line in islice(records, JSON_SAMPLE):
        try:
            record = loads(line.decode())
        except (BadRecord, UnicodeDecodeError):
            continue  # the reader will quarantine it
        if type(record) is dict:
            found.update(dict.fromkeys(record))
    return tuple(found)


def _parquet_names(file: Place) -> tuple[str, ...]:
    return tuple(parquet_file(file).schema_arrow.names)


def parquet_file(file: Place) -> pq.ParquetFile:
    """An open Parquet file; SourceCorrupt if its footer cannot be read."""
    try:
        # INT96 as the time that it is; checksums, since flipped bits become other values else.
        opened = pq.ParquetFile(file.fs.open_input_file(file.native), coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        if opened.schema_arrow.names:  # read here, as damage may be in the schema
            return opened
        raise corrupt(file.label, "it has no columns")
    except (pa.ArrowException, OSError, ValueError):
        raise corrupt(file.label, "it is no complete Parquet file") from None

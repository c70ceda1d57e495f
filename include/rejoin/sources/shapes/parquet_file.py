"""The rows of Parquet files: whether they fit the declared schema (only casts that lose nothing, else SchemaDrift), and how they are read.

Names and types are checked before anything is read. Allowed are the declared type itself and INT -> BIGINT, FLOAT -> DOUBLE, DECIMAL with more
digits on both sides; 8 and 16 bit integers count as INT.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from rejoin.errors import SchemaDrift, SourceError
from rejoin.plan.model.plan import Table
from rejoin.plan.sql.nested import ARRAY, MAP, STRUCT, Nested, parts_of
from rejoin.sources.declared_columns import parquet_file
from rejoin.sources.decode.values import decimal_of
from rejoin.sources.stored_files import PinnedFile, Place, corrupt, place, verify

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class ParquetRows:
    """The rows of a pinned file, or of some of its row groups.

    Attributes:
        root, file: which.
        groups: their numbers, in order; None: all.
    """

    root: str
    file: PinnedFile
    groups: range | None = None

    def opened(self) -> pq.ParquetFile:
        """The file. Who reads its first row group reads all bytes, to see that they are the pinned ones; who reads others does so where something is wrong.

        Raises:
            SourceFileMissing, SourceFileChanged: the pinned bytes are no longer there.
            SourceCorrupt: the file is damaged.
        """
        if self._first:
            verify(self.root, self.file)
        with self._unchanged():
            return parquet_file(place(self.root, self.file.path))

    def batches(self, opened: pq.ParquetFile, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Some columns in batches, with the types of the file, each with the number of its first row in the file, from 1. Raises as ``opened`` does."""
        groups = range(opened.num_row_groups) if self.groups is None else self.groups
        with self._unchanged():
            try:
                line = 1 + sum(opened.metadata.row_group(i).num_rows for i in range(groups.start))
                for rows in opened.iter_batches(BATCH_ROWS, row_groups=list(groups), columns=columns):
                    yield line, rows
                    line += rows.num_rows
            except (pa.ArrowException, OSError, IndexError):  # where it has fewer groups now
                raise corrupt(self.file.path, "its pages are damaged") from None

    @property
    def _first(self) -> bool:
        return self.groups is None or self.groups.start == 0

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """A changed file is reported as changed, not as what follows from it."""
        try:
            yield
        except SourceError:
            if not self._first:
                verify(self.root, self.file)
            raise


def row_groups(where: Place) -> int:
    """In how many pieces a file can be read: its row groups; 1 if it is damaged or gone, which is told where it is read."""
    try:
        return max(1, int(parquet_file(where).num_row_groups))
    except SourceError:
        return 1


def parquet_rows(table: Table, of: ParquetRows) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The declared columns that a file has (``ParquetRows.batches``); INT96 as microseconds without a zone.

    Raises:
        SourceFileMissing, SourceFileChanged, SourceCorrupt.
        SchemaDrift: a column does not fit.
    """
    opened = of.opened()
    check_parquet(table, opened, of.file)
    names = opened.schema_arrow.names
    yield from of.batches(opened, [c.name for c in table.columns if c.name in names])


def check_parquet(table: Table, opened: pq.ParquetFile, file: PinnedFile) -> None:
    """SchemaDrift if a declared column has a type in ``file`` that cannot be widened."""
    int96 = {column.name for column in opened.schema if column.physical_type == "INT96"}
    check_types(table, opened.schema_arrow, file.path, int96)


def check_types(table: Table, schema: pa.Schema, place: str, int96: Collection[str] = ()) -> None:
    """SchemaDrift if a declared column has a type in ``schema`` that cannot be widened.

    Args:
        table: the table.
        schema: the columns as Arrow reads them.
        place: what errors call the file or table.
        int96: columns that are stored as INT96.
    """
    for column in table.columns:
        positions = schema.get_all_field_indices(column.name)
        if not positions:
            continue
        found = schema.field(positions[0]).type
        good = len(positions) == 1 and (column.type == "TIMESTAMP" if column.name in int96 else fits(found, str(column.type)))
        if not good:
            raise SchemaDrift(
                f"column {column.name!r} of table {table.name!r} has the type {found} in {place!r}, declared is {column.type}",
                expected="the declared type, or one that can be widened to it without loss",
                next_step="deliver the column in its declared type, or change the declared schema of the table",
            )


_NESTED = {STRUCT: (pa.lib.Type_STRUCT,), MAP: (pa.lib.Type_MAP,), ARRAY: (pa.lib.Type_LIST, pa.lib.Type_LARGE_LIST)}


def _parts_fit(found: pa.DataType, made: Nested) -> bool:
    """Whether the parts of a nested type fit; a field that a struct lacks is null."""
    if made.kind == STRUCT:
        types = {field.name: field.type for field in found}
        return all(fits(types[name], of) for name, of in made.parts if name in types)
    inner = (found.key_type, found.item_type) if made.kind == MAP else (found.value_type,)
    return all(fits(kind, of) for kind, (_, of) in zip(inner, made.parts, strict=True))


def fits(found: pa.DataType, declared: str) -> bool:
    if pat.is_dictionary(found):
        found = found.value_type
    if made := parts_of(declared):
        return found.id in _NESTED[made.kind] and _parts_fit(found, made)
    decimal = decimal_of(declared)
    if decimal:
        return bool(pat.is_decimal(found) and found.scale <= decimal[1] and found.precision - found.scale <= decimal[0] - decimal[1])
    tests: dict[str, Callable[[pa.DataType], bool]] = {
        "BOOLEAN": pat.is_boolean,
        "INT": lambda t: pat.is_int8(t) or pat.is_int16(t) or pat.is_int32(t),
        "BIGINT": pat.is_signed_integer,
        "FLOAT": pat.is_float32,
        "DOUBLE": lambda t: pat.is_float32(t) or pat.is_float64(t),
        "STRING": lambda t: pat.is_string(t) or pat.is_large_string(t),
        "BINARY": lambda t: pat.is_binary(t) or pat.is_large_binary(t) or pat.is_fixed_size_binary(t),
        "DATE": pat.is_date32,
        # Spark has no nanoseconds: reading them would round.
        "TIMESTAMP": lambda t: pat.is_timestamp(t) and t.tz is not None and t.unit in ("ms", "us"),
        "TIMESTAMP_NTZ": lambda t: pat.is_timestamp(t) and t.tz is None and t.unit in ("ms", "us"),
    }
    return bool(tests[declared](found))

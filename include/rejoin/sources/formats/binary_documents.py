"""Avro container files and Parquet files of change events -> lines of JSON as Kafka Connect's JSON converter would have written them; and as columns."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from rejoin.sources.declared_columns import parquet_file
from rejoin.sources.formats.avro_bounds import bounds
from rejoin.sources.formats.avro_columns import ColumnReader, Datums
from rejoin.sources.formats.avro_file import AvroFile, Block, avro_file
from rejoin.sources.formats.avro_schema import told
from rejoin.sources.formats.connect_json import document, of_arrow, of_avro
from rejoin.sources.formats.line_chunks import LINES
from rejoin.sources.formats.plain_columns import Place, all_text, plain, plain_type
from rejoin.sources.stored_files import PinnedFile, corrupt, pinned_bytes, place, verify

BINARY = (".avro", ".parquet")
"""Ends of names of files that are read so."""
_AVRO_SCHEMA = b"parquet.avro.schema"
"""Where writers of Parquet by way of Avro leave its schema."""
_WIDER = 3
"""So many times as many rows of Parquet as lines are looked at together: they are smaller, and the statement about them is planned anew each time."""
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Rows:
    """Records of a file that follow each other.

    Attributes:
        count: how many.
        columns: what is wanted of them, plain, a struct each; None: they are not told.
        sure: which of them are certainly what is written.
        written: some of them, in their order -> the lines that they stand for.
    """

    count: int
    columns: pa.StructArray | None
    sure: Flags
    written: Callable[[Sequence[int]], Iterator[bytes]]


@dataclass(frozen=True)
class BinaryColumns:
    """A file by columns.

    Attributes:
        schema: of Connect.
        kind: the struct of a record, plain.
        rows: the places that are wanted of a record -> its rows. Raises ``SourceCorrupt``; what was read before must be thrown away.
    """

    schema: dict[str, Any]
    kind: pa.DataType
    rows: Callable[[Collection[Place]], Iterator[Rows]]


def binary_documents(root: str, file: PinnedFile) -> Iterator[bytes]:
    """The records of a pinned file, each with its schema, a line each, in pieces of some lines.

    Raises:
        SourceFileMissing, SourceFileChanged: the pinned bytes are no longer there.
        SourceCorrupt: the file is damaged. What was read before must be thrown away.
    """
    found = _of_avro(_avro(root, file)) if file.path.endswith(".avro") else _of_parquet(_parquet(root, file), file)
    while lines := list(islice(found, 1_000)):
        yield b"".join(line + b"\n" for line in lines)


def binary_columns(root: str, file: PinnedFile) -> BinaryColumns | None:
    """The same file by columns; None if those of its schema are not told. Raises as ``binary_documents``."""
    if file.path.endswith(".avro"):
        avro = _avro(root, file)
        record = told(avro.schema)
        if record is None:
            return None
        reader = _AvroRows(avro, ColumnReader(record), bounds(record))
        return BinaryColumns(_of_avro_schema(avro.schema, avro.path), reader.kind, lambda _: reader.rows())
    parquet = _parquet(root, file)
    kind = plain_type(pa.struct(list(parquet.schema_arrow)))
    return BinaryColumns(_connect_schema(parquet, file), kind, lambda wanted: _parquet_rows(parquet, file, wanted))


def _of_avro_schema(schema: Any, path: str) -> dict[str, Any]:
    try:
        return of_avro(json.loads(schema) if isinstance(schema, bytes) else schema)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise corrupt(path, "its Avro schema cannot be read") from None


# --- Avro -----------------------------------------------------------------------------------------------------------------


def _avro(root: str, file: PinnedFile) -> AvroFile:
    return avro_file(b"".join(pinned_bytes(root, file)), file.path)


def _of_avro(avro: AvroFile) -> Iterator[bytes]:
    return map(document(_of_avro_schema(avro.schema, avro.path)), avro.records(avro.blocks))


class _AvroRows:
    """The rows of a container file, some blocks at a time."""

    def __init__(self, avro: AvroFile, reader: ColumnReader, ends: Callable[[bytes, int], list[int] | None]) -> None:
        self._avro, self._reader, self._ends = avro, reader, ends
        self._line = document(_of_avro_schema(avro.schema, avro.path))
        self.kind = reader.kind

    def rows(self) -> Iterator[Rows]:
        """All of them."""
        some, count = list[tuple[Block, list[int]]](), 0
        for block in self._avro.blocks:
            ends = self._ends(block.octets, block.count)
            if ends is not None:
                some.append((block, ends))
                count += block.count
            if some and (ends is None or count >= LINES):
                yield from self._told(some)
                some, count = [], 0
            if ends is None:
                lines = self._lines(block)
                yield Rows(len(lines), None, np.zeros(len(lines), np.bool_), lambda rows, lines=lines: map(lines.__getitem__, rows))  # type: ignore[misc]
        if some:
            yield from self._told(some)

    def _told(self, some: list[tuple[Block, list[int]]]) -> Iterator[Rows]:
        octets = b"".join(block.octets for block, _ in some)
        lengths = np.cumsum([0, *(len(block.octets) for block, _ in some)])
        ends = np.concatenate([np.array(of, np.int64) + begin for begin, (_, of) in zip(lengths, some, strict=False)])
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        step = -(-len(ends) // max(round(len(ends) / LINES), 1)) or 1
        for at in range(0, len(ends), step):
            here = slice(at, at + step)
            first, last = int(starts[at]), int(ends[here][-1])
            columns, sure = self._reader.columns(Datums(octets[first:last], starts[here] - first, ends[here] - first))
            yield Rows(len(sure), columns, sure, lambda rows, at=at: self._written(some, [at + row for row in rows]))  # type: ignore[misc]

    def _written(self, some: list[tuple[Block, list[int]]], rows: Sequence[int]) -> Iterator[bytes]:
        """Lines of some records. All of their blocks are read, as one that is damaged is no record."""
        first = 0
        for block, _ in some:
            here = [row - first for row in rows if first <= row < first + block.count]
            if here:
                yield from map(self._lines(block).__getitem__, here)
            first += block.count

    def _lines(self, block: Block) -> list[bytes]:
        return list(map(self._line, self._avro.records([block])))


# --- Parquet --------------------------------------------------------------------------------------------------------------


def _parquet(root: str, file: PinnedFile) -> pq.ParquetFile:
    verify(root, file)
    return parquet_file(place(root, file.path))


def _connect_schema(parquet: pq.ParquetFile, file: PinnedFile) -> dict[str, Any]:
    written = (parquet.schema_arrow.metadata or {}).get(_AVRO_SCHEMA)
    return of_arrow(parquet.schema_arrow) if written is None else _of_avro_schema(written, file.path)


def _of_parquet(parquet: pq.ParquetFile, file: PinnedFile) -> Iterator[bytes]:
    line = document(_connect_schema(parquet, file))
    for group in range(parquet.num_row_groups):
        for rows in _structs(parquet, file, group):
            yield from map(line, _objects(rows))


def _parquet_rows(parquet: pq.ParquetFile, file: PinnedFile, wanted: Collection[Place]) -> Iterator[Rows]:
    line = document(_connect_schema(parquet, file))
    for group in range(parquet.num_row_groups):
        first = 0
        for columns in _structs(parquet, file, group, sorted({".".join(path) for path in wanted})):

            def written(rows: Sequence[int], group: int = group, first: int = first) -> Iterator[bytes]:
                return map(line, _objects(_taken(_structs(parquet, file, group), [first + row for row in rows])))

            yield Rows(len(columns), columns, all_text(columns).to_numpy(zero_copy_only=False), written)
            first += len(columns)


def _structs(parquet: pq.ParquetFile, file: PinnedFile, group: int, columns: Sequence[str] | None = None) -> Iterator[pa.StructArray]:
    """The records of a row group, by itself: of several Arrow cannot put every nested type together."""
    try:
        for batch in parquet.iter_batches(_WIDER * LINES, row_groups=[group], columns=columns):
            yield plain(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)))
    except (pa.ArrowException, OSError):
        raise corrupt(file.path, "its pages are damaged") from None


def _taken(parts: Iterable[pa.StructArray], rows: Sequence[int]) -> pa.StructArray:
    """Some rows, in their order, of all parts together."""
    first, found, numbers = 0, [], np.array(rows)
    for part in parts:
        here = numbers[(numbers >= first) & (numbers < first + len(part))]
        found.append(part.take(pa.array(here - first)))
        first += len(part)
        if first > rows[-1]:
            break
    return pa.concat_arrays(found)


def _objects(rows: pa.StructArray) -> list[Any]:
    """Structs as objects. Octets of a text that are no UTF-8 become halves of surrogates, which no column of texts takes."""
    try:
        return list(rows.to_pylist(maps_as_pydicts="strict"))
    except UnicodeDecodeError:
        return _escaped(rows)


def _escaped(values: pa.Array) -> list[Any]:
    if pat.is_struct(values.type):
        parts = [_escaped(part) for part in values.flatten()]
        names = [field.name for field in values.type]
        objects = (dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True))
        return [found if there else None for found, there in zip(objects, values.is_valid().to_pylist(), strict=True)]
    if pat.is_string(values.type):
        return [None if text is None else text.decode(errors="surrogateescape") for text in values.view(pa.binary()).to_pylist()]
    return list(values.to_pylist())

"""Change events that come as columns -> events, by one statement; what it does not prove is read by the careful decoder, as the line that it stands for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.plan.model.plan import Table
from rejoin.sources.decode.column_shape import document
from rejoin.sources.decode.line_shape import Branch, Part, Path, Shape, at
from rejoin.sources.decode.proven_lines import Judge, computed, together
from rejoin.sources.decode.proven_rows import AT, arranged
from rejoin.sources.events import EventKind
from rejoin.sources.formats.binary_documents import BinaryColumns, Rows
from rejoin.sources.formats.line_chunks import Numbers
from rejoin.sources.formats.plain_columns import only
from rejoin.sources.shapes.debezium.versions import decoder
from rejoin.statements.dialect import DUCKDB

_FEW = 20
"""One in so many records may be read by itself, in its place; of more, all are."""


@dataclass(frozen=True)
class Group:
    """Records of a chunk that have one shape.

    Attributes:
        at: which records of the chunk they are, in their order.
        shape: theirs.
        rows: a struct each, of plain columns (``column_shape``), with what the statement reads of it at least.
        sure: which of them are certainly what is written.
    """

    at: Numbers
    shape: Branch
    rows: pa.StructArray
    sure: np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Chunk:
    """Records that follow each other.

    Attributes:
        first: number of the first one.
        count: how many they are.
        groups: those that come as columns.
        written: some of them, in their order -> the lines that they stand for.
        mixed: some lines may have no schema, so that what is read of one can depend on others (``LineDecoder.by_batch``).
    """

    first: int
    count: int
    groups: Sequence[Group]
    written: Callable[[Sequence[int]], Iterator[bytes]]
    mixed: bool = False


@dataclass(frozen=True)
class Statement:
    """What is computed of rows of a shape. ``reads``: the places that it reads."""

    query: str
    reads: tuple[Path, ...]


def of_file(table: Table, file: BinaryColumns, path: str, index: int) -> Iterator[pa.RecordBatch] | None:
    """The events of a file; None if those of its schema are not told.

    Args:
        table: the table.
        file: its columns.
        path: as pinned.
        index: place of the file in the pin.
    """
    reader, shape = Columns(table, path, index), document(file.schema, file.kind)
    statement = reader.statement(shape)
    if statement is None:
        return None
    rows = file.rows([place[1:] for place in statement.reads])
    return (batch for chunk in _chunks(rows, shape) for batch in reader.events(chunk))


def _chunks(rows: Iterator[Rows], shape: Branch) -> Iterator[Chunk]:
    first = 1
    for some in rows:
        if not some.count:
            continue
        groups = [] if some.columns is None else [Group(np.arange(some.count), shape, _in_document(some.columns), some.sure)]
        yield Chunk(first, some.count, groups, some.written)
        first += some.count


def _in_document(rows: pa.StructArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([rows], ["payload"])


class Columns:
    """Reads the chunks of one file or range, in their order."""

    def __init__(self, table: Table, file: str, index: int) -> None:
        self._careful, self._file, self._index = decoder(table), file, index
        self._known: dict[int, tuple[Branch, Statement | None]] = {}

    def statement(self, shape: Branch) -> Statement | None:
        """How events are made of rows of a shape; None if that is not told."""
        if id(shape) not in self._known:
            judge = self._careful.judge_columns(Shape(shape, (",", ":")))
            self._known[id(shape)] = shape, None if judge is None else _statement(shape, judge)
        return self._known[id(shape)][1]

    def events(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """The events of a chunk, as the careful decoder makes them of its lines."""
        found = [judged for group in chunk.groups if (judged := self._judged(group)) is not None]
        proven = np.zeros(chunk.count, np.bool_)
        for rows, _ in found:
            proven[rows] = True
        slow = np.flatnonzero(~proven)
        if not len(slow):
            yield self._arranged(chunk, *_in_order(found))
        elif not found or (chunk.mixed and self._careful.by_batch):
            yield from self._one_by_one(chunk, range(chunk.count))
        else:
            yield from self._with_others(chunk, *_in_order(found), slow)

    def _judged(self, group: Group) -> tuple[Numbers, pa.Table] | None:
        """Which records of a group are proven, and their events."""
        import duckdb  # a cut needs none

        statement = self.statement(group.shape)
        if statement is None:
            return None
        try:
            found = computed(pa.record_batch([only(group.rows, statement.reads)], names=["j"]), statement.query)
        except (duckdb.ParserException, duckdb.BinderException):  # names in the data that no statement can be made of
            return None
        proven = found["_proven"].to_numpy() & group.sure
        if not proven.all():
            found = found.filter(pa.array(proven))
        return group.at[proven], found.drop_columns(["_proven"])

    def _with_others(self, chunk: Chunk, rows: Numbers, fast: pa.Table, slow: Numbers) -> Iterator[pa.RecordBatch]:
        """Events of proven records, and those of others."""
        if not pc.any(pc.equal(fast["_kind"], str(EventKind.DELETE))).as_py():
            lines = list(self._numbered(chunk, slow.tolist()))
            others = self._careful.beside(fast, self._file, self._index, lines)
            if others is not None:
                layout, lines_of = self._careful.layout, rows + chunk.first
                yield from together([arranged(layout, fast, lines_of, self._file, self._index), *others] if fast.num_rows else others)
                return
        if len(slow) * _FEW > chunk.count:
            yield from self._one_by_one(chunk, range(chunk.count))
            return
        done = 0
        for before, after in zip([-1, *slow.tolist()], [*slow.tolist(), chunk.count], strict=True):
            if before >= 0:
                yield from self._one_by_one(chunk, [before])
            if count := after - before - 1:
                yield self._arranged(chunk, rows[done : done + count], fast.slice(done, count))
                done += count

    def _arranged(self, chunk: Chunk, rows: Numbers, fast: pa.Table) -> pa.RecordBatch:
        return arranged(self._careful.layout, self._careful.in_order(fast), rows + chunk.first, self._file, self._index)

    def _one_by_one(self, chunk: Chunk, rows: Sequence[int]) -> Iterator[pa.RecordBatch]:
        return self._careful.batches(self._file, self._index, self._numbered(chunk, rows))

    def _numbered(self, chunk: Chunk, rows: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        return ((chunk.first + row, line) for row, line in zip(rows, chunk.written(rows), strict=True))


def _in_order(found: Sequence[tuple[Numbers, pa.Table]]) -> tuple[Numbers, pa.Table]:
    """The events of several groups in the order of their records."""
    if len(found) == 1:
        return found[0]
    rows = np.concatenate([rows for rows, _ in found])
    order = np.argsort(rows, kind="stable")
    return rows[order], pa.concat_tables([table for _, table in found]).take(pa.array(order))


def _statement(shape: Branch, judge: Judge) -> Statement:
    shown = ", ".join(f"{text} AS {DUCKDB.name(name)}" for name, text in judge.columns.items())
    query = f"SELECT {AT}, coalesce({' AND '.join(f'({hold})' for hold in judge.holds)}, false) AS _proven, {shown} FROM lines"
    return Statement(query, tuple(_read(shape, (), query)))


def _read(part: Part, path: Path, query: str) -> Iterator[Path]:
    """The places in a part that a statement reads, and perhaps more."""
    if path and at("j", path) not in query:
        return
    inside = (
        [found for name, member in part.members.items() for found in _read(member, (*path, name), query)]
        if isinstance(part, Branch)
        else []
    )
    yield from inside or ([path] if path else [])

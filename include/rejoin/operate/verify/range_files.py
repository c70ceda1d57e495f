"""Rows laid apart by ranges of a key, so that a comparison has those of one range in memory: files of Arrow on this machine, read once from the lake."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.engines.arrow_tables import in_parts
from rejoin.engines.deferred_relation import DeferredRelation, Range
from rejoin.engines.key_ranges import side_by_side
from rejoin.engines.relation import LocalRelation

ROWS = 245_760
"""Rows that are laid apart together."""
Streams = Sequence[Iterable[pa.RecordBatch]]
"""Rows in batches, several such streams."""


@dataclass(frozen=True)
class _Laid:
    """Some rows: their columns, and of each range the files that have its rows."""

    schema: pa.Schema
    files: Mapping[int, Sequence[Path]]


class RangeFiles:
    """Rows of several tables by the same ranges of a key. A row that is in no range is in the last one, so that none is lost.

    Args:
        folder: an empty folder.
        ranges: the ranges.
    """

    def __init__(self, folder: Path, ranges: Sequence[Range]) -> None:
        self._folder, self._ranges = folder, ranges
        self._laid: dict[str, _Laid] = {}
        self._laying, self._numbers = Lock(), count()

    def __len__(self) -> int:
        return len(self._ranges)

    def has(self, name: str, columns: Iterable[str]) -> bool:
        """Whether these columns of a table are here."""
        return name in self._laid and set(columns) <= set(self._laid[name].schema.names)

    def lay(self, name: str, key: Sequence[str], schema: pa.Schema, streams: Callable[[pa.Schema], Streams]) -> None:
        """Lays a table apart by its columns ``key``, unless these columns of it are here; several streams side by side."""
        with self._laying:
            if self.has(name, schema.names):
                return
            given, folder = streams(schema), self._folder / f"{next(self._numbers)}"
            found = side_by_side(lambda at: self._files(folder / str(at), key, schema, given[at]), range(len(given)))
            every = {number: [files[number] for files in found if number in files] for number in range(len(self))}
            self._laid[name] = _Laid(schema, every)

    def rows(self, name: str, number: int, columns: Sequence[str]) -> pa.Table:
        """These columns of the rows of a range."""
        laid = self._laid[name]
        schema = pa.schema([laid.schema.field(c) for c in columns])
        return pa.concat_tables([schema.empty_table(), *(_read(file, schema) for file in laid.files[number])])

    def _files(self, folder: Path, key: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> dict[int, Path]:
        """Writes a stream. Returns a file for each range that has rows."""
        folder.mkdir(parents=True)
        found = dict[int, Path]()
        with ExitStack() as files:
            writers = dict[int, pa.ipc.RecordBatchFileWriter]()
            for some in in_parts(iter(batches), ROWS):
                for number, rows in self._apart(some, key):
                    if number not in writers:
                        found[number] = folder / f"{number}.arrow"
                        writers[number] = files.enter_context(pa.ipc.new_file(str(found[number]), schema))
                    writers[number].write_table(rows)
        return found

    def _apart(self, some: pa.Table, key: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each range. Those of one range alone are not copied."""
        cases = " ".join(f"WHEN {within.over(key)} THEN {number}" for number, within in enumerate(self._ranges))
        which = f"SELECT CAST(CASE {cases} ELSE {len(self) - 1} END AS SMALLINT) AS number FROM rows_"
        (numbers,) = DeferredRelation(which, {"rows_": LocalRelation(some.select(list(dict.fromkeys(key))))}).here().columns
        counts = sorted((found["values"], found["counts"]) for found in pc.value_counts(numbers).to_pylist())
        if len(counts) > 1:
            some = some.combine_chunks().take(pc.array_sort_indices(numbers.combine_chunks()))
        start = 0
        for number, rows in counts:
            yield number, some.slice(start, rows)
            start += rows


def _read(file: Path, schema: pa.Schema) -> pa.Table:
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as reader:
        fields = [reader.schema.get_field_index(name) for name in schema.names]
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=fields)) as reader:
        return reader.read_all().select(schema.names)

"""Rows on their way from one task to the others: files in the lake's store, in the order of a key, so that a range of it is a part of each file."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO, load_file_io

from rejoin.engines import object_stores
from rejoin.engines.arrow_tables import in_parts
from rejoin.lake.config import LakeConfig
from rejoin.lake.locations import native
from rejoin.lake.read.duckdb_scan import scan_of

FOLDER = "_exchange"
"""The folder of a lake's warehouse for them."""
ROWS = 30_000
"""Rows in a row group, of which a range reads all or nothing."""


@dataclass(frozen=True)
class Exchange:
    """The files of one step. Can be sent to a task; only who gets its ``rows`` can ``clear`` them.

    Attributes:
        io: the store.
        location: a folder of the step's own.
    """

    io: FileIO
    location: str
    _files: list[str] = field(default_factory=list)

    @classmethod
    def root(cls, config: LakeConfig, topology: str) -> "Exchange":
        """Where those of all steps of a topology are."""
        location = f"{config.warehouse.rstrip('/')}/{FOLDER}/{topology}"
        return cls(load_file_io(config.pyiceberg_settings(), location), location)

    @classmethod
    def of(cls, config: LakeConfig, topology: str) -> "Exchange":
        """One for a step of a topology."""
        root = cls.root(config, topology)
        return cls(root.io, f"{root.location}/{uuid4().hex}")

    def put(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> str:
        """Writes rows, in their order, to a file. Returns its path."""
        path = f"{self.location}/{uuid4().hex}.parquet"
        with (
            self.io.new_output(path).create() as stream,
            pq.ParquetWriter(stream, schema, compression="lz4", use_dictionary=False) as writer,
        ):
            for some in in_parts(rows, ROWS):
                writer.write_table(some.cast(schema))
        return path

    def rows(self, paths: Iterable[str]) -> str:
        """The rows of some files, as SQL text of DuckDB. ``clear`` deletes the files."""
        self._files.extend(paths := list(paths))
        return f"SELECT * FROM {scan_of(map(self._called, paths))}"

    def clear(self) -> None:
        """Deletes the files; those of tasks that were lost go when the lake is freed of old files."""
        for path in self._files:
            with suppress(OSError):
                self.io.delete(path)

    def _called(self, path: str) -> str:
        local = native(path)
        return object_stores.name(self.io, path) if local is None else local

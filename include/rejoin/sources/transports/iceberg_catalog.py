"""Catalogs of Iceberg, and their tables as they stand: metadata, and a few rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from rejoin.engines.iceberg_nulls import keep_nulls
from rejoin.errors import SourceMissing
from rejoin.sources.access import OWN, SourceAccess
from rejoin.sources.transports.iceberg_files import TableFiles, files_of
from rejoin.sources.transports.iceberg_rows import SnapshotRows


def catalog(access: SourceAccess, at: str) -> Catalog:
    """The catalog of a connection.

    Raises:
        SourceMissing: nothing says where it is.
    """
    stated = access.catalog_settings(at)
    if not stated:
        raise SourceMissing(
            f"nothing says where the catalog {at!r} is",
            expected=f"[sources.{at}] in the lake's .toml file, with the properties of PyIceberg's catalog, or REJOIN_SOURCE_{at.upper()}",
            next_step=f"write it there; iceberg(..., at={OWN!r}) is the catalog of the lake itself",
        )
    keep_nulls()
    # A catalog in SQL has its name in its rows, so it has to be told where the section has another one.
    return load_catalog(**{"name": at, **stated, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})


@dataclass(frozen=True)
class CatalogTable:
    """A table as it stands.

    Attributes:
        name: namespace and table.
    """

    name: str
    _table: Table

    @property
    def schema(self) -> pa.Schema:
        """Its columns now."""
        return self._table.schema().as_arrow()

    @property
    def key(self) -> tuple[str, ...]:
        """Its identifier fields, which its writers promise to be unique."""
        schema = self._table.schema()
        return tuple(field.name for field in schema.fields if field.field_id in schema.identifier_field_ids)

    @cached_property
    def unread(self) -> str:
        """Why no run can read it as it is now; empty if one can."""
        try:
            return "" if self._files is not None else "it has no snapshot yet"
        except (NotImplementedError, ValueError) as error:
            return str(error)

    @property
    def only_grows(self) -> bool:
        """Whether every snapshot that is known has added rows and taken none away."""
        return all(s.summary is not None and s.summary.operation is Operation.APPEND for s in self._table.snapshots())

    @property
    def kept_ms(self) -> int | None:
        """For how many milliseconds the table says that snapshots are kept; None: it does not say."""
        found = self._table.properties.get("history.expire.max-snapshot-age-ms")
        return None if found is None else int(found)

    def rows(self, columns: tuple[str, ...], count: int) -> list[dict[str, Any]]:
        """Some rows of a table that can be read, all of them as a run reads them."""
        if (files := self._files) is None:
            return []
        read, schema, found = SnapshotRows(self._table, files), self._table.schema().select(*columns), list[dict[str, Any]]()
        for file in sorted(files.all, key=lambda stored: stored.task.file.file_size_in_bytes):  # a file is read whole
            for batch in read.batches(schema, [file]):
                found += batch.slice(0, count - len(found)).to_pylist()
            if len(found) >= count:
                break
        return found

    @cached_property
    def _files(self) -> TableFiles | None:
        now = self._table.current_snapshot()
        return None if now is None else files_of(self._table, now.snapshot_id)


def tables(access: SourceAccess, at: str, pattern: str) -> Iterator[CatalogTable]:
    """The tables whose ``namespace.table``, or whose namespace, fits a pattern; not those that rejoin keeps beside its outputs.

    Raises:
        SourceMissing: nothing says where the catalog is.
    """
    found = catalog(access, at)
    for name in _names(found):
        if fnmatchcase(name, pattern) or fnmatchcase(name.rpartition(".")[0], pattern):
            try:
                yield CatalogTable(name, found.load_table(name))
            except NoSuchTableError:  # gone by now
                continue


def _names(found: Catalog) -> Iterator[str]:
    spaces = list(found.list_namespaces())
    for space in spaces:
        spaces += [inner for inner in found.list_namespaces(space) if inner not in spaces]
        yield from (".".join(name) for name in sorted(found.list_tables(space)) if "__" not in name[-1])

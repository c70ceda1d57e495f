"""Catalogs of Iceberg, and their tables as they stand: metadata, and a few rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from rejoin.errors import SourceMissing
from rejoin.sources.access import SourceAccess

OWN = "lake"
"""The catalog of the lake itself."""


def catalog(access: SourceAccess, at: str) -> Catalog:
    """The catalog of a connection.

    Raises:
        SourceMissing: nothing says where it is.
    """
    stated = access.catalog if at == OWN else access.connections.get(at)
    if not stated:
        raise SourceMissing(
            f"nothing says where the catalog {at!r} is",
            expected=f"[sources.{at}] in the lake's .toml file, with the properties of PyIceberg's catalog, or REJOIN_SOURCE_{at.upper()}",
            next_step=f"write it there; iceberg(..., at={OWN!r}) is the catalog of the lake itself",
        )
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

    @property
    def empty(self) -> bool:
        """Whether it has no snapshot."""
        return self._table.current_snapshot() is None

    @property
    def equality_deletes(self) -> bool:
        """Whether its newest snapshot has any, which are not read."""
        now = self._table.current_snapshot()
        return now is not None and now.summary is not None and now.summary.additional_properties.get("total-equality-deletes", "0") != "0"

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
        """Some rows."""
        return list(self._table.scan(selected_fields=columns, limit=count).to_arrow().to_pylist())


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

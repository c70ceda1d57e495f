"""PyIceberg's SQL catalog, which parses the metadata of a table only when it has changed.

A run asks for a table some fifty times, mostly for one that it has seen already; parsing metadata with 200 snapshots takes 9 ms. The catalog's
database is still asked every time, so what other processes committed is seen at once: a metadata file never changes, only its name does.
"""

from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Identifier
from sqlalchemy.engine import make_url

from rejoin.lake.sqlite import is_sqlite, write_ahead


class CachingSqlCatalog(SqlCatalog):
    """Named by ``py-catalog-impl`` in the settings of ``LakeConfig``."""

    def __init__(self, name: str, **properties: str) -> None:
        self._newest: dict[Identifier, tuple[str, TableMetadata]] = {}
        url = make_url(properties["uri"])
        if is_sqlite(url):
            write_ahead(url)
        super().__init__(name, **properties)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """As PyIceberg's; the metadata that it has written need not be read again."""
        done = super().commit_table(table, requirements, updates)
        self._newest[table.name()] = done.metadata_location, done.metadata
        return done

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        identifier = (*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name)
        known = self._newest.get(identifier)
        if known is None or known[0] != orm_table.metadata_location:
            table = super()._convert_orm_to_iceberg(orm_table)
            self._newest[identifier] = table.metadata_location, table.metadata
            return table
        location, metadata = known
        return Table(identifier, metadata, location, self._load_file_io(metadata.properties, location), self)

"""PyIceberg's SQL catalog, which parses the metadata of a table only when it has changed.

A run asks for a table some fifty times, mostly for one that it has seen already; parsing metadata with 200 snapshots takes 9 ms. The catalog's
database is still asked every time, so what other processes committed is seen at once: a metadata file never changes, only its name does.

Nor is metadata copied: PyIceberg makes a deep copy of all snapshots at every commit. An update gives new metadata and leaves the old one as it is.
"""

import time
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate, _apply_table_update, _TableMetadataUpdateContext, _update_table_metadata_log
from pyiceberg.typedef import Identifier
from sqlalchemy import bindparam, select
from sqlalchemy.engine import make_url

from rejoin.lake.ledger.sqlite import is_sqlite, write_ahead

_LOCATION = select(IcebergTables.metadata_location).where(
    IcebergTables.catalog_name == bindparam("catalog"),
    IcebergTables.table_namespace == bindparam("namespace"),
    IcebergTables.table_name == bindparam("name"),
)


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

    def _update_and_stage_table(
        self, current_table: Table | None, table_identifier: Identifier, requirements: Any, updates: Sequence[TableUpdate]
    ) -> StagedTable:
        """As PyIceberg's, for a table that there is, without copying its metadata."""
        if current_table is None:
            return super()._update_and_stage_table(current_table, table_identifier, requirements, tuple(updates))
        base, at = current_table.metadata, current_table.metadata_location
        for requirement in requirements:
            requirement.validate(base)
        made = updated(base, updates)
        made.spec().check_compatible(made.schema())
        made.sort_order().check_compatible(made.schema())
        if made is not base:
            made = _update_table_metadata_log(made, at, base.last_updated_ms)
            if made.last_updated_ms == base.last_updated_ms:
                made = made.model_copy(update={"last_updated_ms": time.time_ns() // 1_000_000})
        provider = load_location_provider(made.location, made.properties)
        location = provider.new_table_metadata_file_location(self._parse_metadata_version(at) + 1)
        io = self._load_file_io(properties=made.properties, location=location)
        return StagedTable(identifier=table_identifier, metadata=made, metadata_location=location, io=io, catalog=self)

    def load_table(self, identifier: str | Identifier) -> Table:
        """As PyIceberg's. Where the table is as it was, one column is asked for instead of an object of SQLAlchemy's, which takes a third of the time."""
        known = self._newest.get(named := Catalog.identifier_to_tuple(identifier))
        if known is None or known[0] != self._location(named):
            table = super().load_table(identifier)
            self._newest[named] = table.metadata_location, table.metadata
            return table
        location, metadata = known
        return Table(named, metadata, location, self._load_file_io(metadata.properties, location), self)

    def _location(self, named: Identifier) -> str | None:
        """Where the newest metadata of a table is; None if there is no such table."""
        with self.engine.connect() as db:
            at = {"catalog": self.name, "namespace": Catalog.namespace_to_string(named[:-1]), "name": named[-1]}
            found: str | None = db.execute(_LOCATION, at).scalar()
        return found


def updated(metadata: TableMetadata, updates: Sequence[TableUpdate]) -> TableMetadata:
    """What updates make of a table's metadata, which stays as it is."""
    context = _TableMetadataUpdateContext()
    return reduce(lambda made, update: _apply_table_update(update, made, context), updates, metadata)

"""Tables of a lake as text tables: for statements that a reader builds of what is stored. A table takes some tens of milliseconds."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table
from statement_tables import table_of

from rejoin.engines.deferred_relation import database
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.write import output_changes
from rejoin.statements.own_columns import PLACE


class StoredTables:
    """A lake in a directory. ``states``: each table at its newest snapshot."""

    def __init__(self, root: Path, topology: str) -> None:
        self.refs, self.states = Refs(lake_config(str(root / "lake")), topology), dict[str, int]()
        self.refs.ensure_namespace()

    def write(self, name: str, text: str) -> None:
        """Makes a table. ``text``: as the inputs of ``check``; the rows of each ``_run`` are a file."""
        rows = table_of(text)
        for run in pc.unique(rows["_run"]).sort():
            self.append(name, rows.filter(pc.equal(rows["_run"], run)))

    def append(self, name: str, rows: pa.Table) -> None:
        """Appends a file to a table, which is made if it is not there."""
        self.refs.create(name, rows.schema, {})
        table = self.table(name)
        table.append(rows)
        self.states[name] = table.metadata.current_snapshot_id or 0

    def hide(self, name: str, where: str) -> None:
        """Hides rows of a table by a file of position deletes."""
        table, base = self.table(name), self.states[name]
        rows = duckdb_lookup.text_of(table, base, [*(f.name for f in table.schema().fields), PLACE])
        with database().cursor() as connection:
            places = connection.sql(f"SELECT {PLACE} FROM ({rows}) WHERE {where}").to_arrow_table()[PLACE]
        hidden = output_changes.deletes(table, base, [places.combine_chunks()], len(places), 9)
        self.states[name] = self.refs.commit_files(name, f"hidden_{base}", base, [], hidden)

    def table(self, name: str) -> Table:
        found = self.refs.table(name)
        assert found is not None
        return found

"""The tables of databases that a plan reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from rejoin.plan.captured_path import CapturedPath, captured_path
from rejoin.plan.model.added_columns import unversioned
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.sources import DebeziumSource


@dataclass(frozen=True)
class CapturedTable:
    """A table of a database.

    Attributes:
        path: its connection and name.
        key: the columns that are the key of its events.
        types: declared column -> declared type.
        placeholder: the text that stands for an unchanged large value.
    """

    path: CapturedPath
    key: tuple[str, ...]
    types: Mapping[str, str]
    placeholder: str

    @property
    def name(self) -> str:
        """Schema and table."""
        return self.path.name


def captured_tables(plan: Plan) -> dict[str, tuple[CapturedTable, ...]]:
    """Connection -> the tables that are captured by it, each once."""
    found: dict[CapturedPath, CapturedTable] = {}
    for table in (t if t.versions_of is None else unversioned(t) for t in plan.tables):
        path = captured_path(table.source.path)
        if path is not None and path not in found:
            assert isinstance(table.source, DebeziumSource)
            types = {column.name: str(column.type) for column in table.columns}
            found[path] = CapturedTable(path, table.key, types, table.source.placeholder)
    return {at: tuple(t for p, t in found.items() if p.at == at) for at in dict.fromkeys(p.at for p in found)}

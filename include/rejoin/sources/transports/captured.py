"""The transport of tables that ``rejoin capture`` reads from a database: the files that it has landed."""

from dataclasses import replace

from rejoin.errors import SourceMissing
from rejoin.plan.captured_path import captured_path
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.stored_files import place
from rejoin.sources.transports.files import Files
from rejoin.sources.transports.transport import Taken, Waiting


class Captured(Files):
    """Files of change events below the root. Whether the database has newer ones, only the next capture finds out."""

    def __init__(self, table: Table, access: SourceAccess) -> None:
        path = captured_path(table.source.path)
        assert path is not None
        self._path = path
        super().__init__(replace(table, source=replace(table.source, path=path.directory)), access)

    def waiting(self, last: Pin | None, taken: Taken) -> Waiting:
        """What was landed and not read yet.

        Raises:
            SourceMissing: nothing was ever captured.
        """
        if not place(self.access.root, self._path.directory).exists():
            raise SourceMissing(
                f"nothing was captured yet of {self._path} (table {self.table.name!r})",
                expected=f"files in {self._path.directory}",
                next_step="run `rejoin capture FILE --once` with the same --root",
            )
        return super().waiting(last, taken)

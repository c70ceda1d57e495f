"""Which transport a source has, by the scheme of its path."""

from rejoin.plan.extensions import transports
from rejoin.plan.model.plan import Table
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.transport import Transport


def transport(table: Table, access: SourceAccess) -> Transport:
    """The transport of a table's source.

    Raises:
        SetupError: it is brought by a package that is not installed here.
    """
    made: Transport = transports.transport(transports.name_of(table.source.path))(table, access)
    return made

"""Which transport a source has, by the scheme of its path."""

import re

from rejoin.plan.extensions import transports
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import FILES
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.transport import Transport

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def name_of(path: str) -> str:
    """The name of the transport of a source with this path."""
    scheme = _SCHEME.match(path)
    return scheme[1].lower() if scheme and transports.is_known(scheme[1].lower()) else FILES


def transport(table: Table, access: SourceAccess) -> Transport:
    """The transport of a table's source.

    Raises:
        SetupError: it is brought by a package that is not installed here.
    """
    made: Transport = transports.transport(name_of(table.source.path))(table, access)
    return made

"""From what a user names to what is there: a directory, or a system by the name of its connection."""

from pathlib import Path

from rejoin.discover.table import Found
from rejoin.errors import SourceMissing
from rejoin.failures import extras
from rejoin.sources.access import SourceAccess

_EXPECTED = "a directory, kafka://<name>[/topic or pattern], capture://<name>[/schema.table or pattern], iceberg://<name>[/namespace or pattern]; or postgresql://..."


def look(access: SourceAccess, place: str) -> Found:
    """The tables of a place.

    Args:
        access: how sources are reached.
        place: a directory, or ``<scheme>://<name of the connection>[/pattern]``.

    Raises:
        SourceMissing: there is nothing, or it is no place.
        SetupError, SourceDenied, SourceDown: nothing says how it is reached; or it lets nobody in, or does not answer.
    """
    scheme, _, rest = place.partition("://")
    at, _, pattern = rest.partition("/")
    if scheme in ("kafka", "capture", "iceberg") and not at:
        raise SourceMissing(f"{place!r} does not name a connection", expected=_EXPECTED)
    if scheme == "kafka":
        extras.require("rejoin discover", "confluent_kafka", "fastavro")
        from rejoin.discover import topics

        return topics.look(access, at, pattern or "*")
    if scheme in ("capture", "postgresql", "postgres"):
        extras.require("rejoin discover", "psycopg2")
        from rejoin.discover import database

        if scheme == "capture":
            return database.look(access.connections, at, pattern or "*")
        return database.look({(at := database.name_in(place)): {"url": place}}, at, "*")
    if scheme == "iceberg":
        from rejoin.discover import iceberg

        return iceberg.look(access, at, pattern or "*")
    from rejoin.discover import directory

    return directory.look(access.root, place)


def shown(place: str) -> str:
    """A place without what may be a secret."""
    return "postgresql://..." if place.startswith(("postgresql://", "postgres://")) else place


def called(place: str) -> str:
    """A word for what is there."""
    if place.startswith(("postgresql://", "postgres://")):
        from rejoin.discover import database

        return database.name_in(place)
    scheme, _, rest = place.partition("://")
    return rest.partition("/")[0] if scheme in ("kafka", "capture", "iceberg") else Path(place).resolve().name

"""SQLite databases that several processes and libraries write at once."""

import sqlite3
import time
from contextlib import closing

from sqlalchemy.engine import URL

from rejoin.errors import SetupError

WAIT = 30.0
"""Seconds to wait for others."""


def is_sqlite(url: URL) -> bool:
    """Whether a database is one of SQLite's."""
    return url.get_backend_name() == "sqlite"


def write_ahead(url: URL) -> None:
    """Gives a database of SQLite (made if there is none) a write-ahead log, for good: then readers and one writer never wait for each other.

    Whoever opens a database may ask for that, as Spark's side of the catalog does. But for the change itself SQLite waits for no lock, whatever
    timeout is set: it has to be made before others write, or tried again.

    Raises:
        SetupError: it cannot be made, is no database, may not be written, or is locked all the time.
    """
    try:
        with closing(sqlite3.connect(str(url.database))) as db:
            _write_ahead(db)
    except sqlite3.DatabaseError as error:
        raise SetupError(
            f"the database {url.database} cannot be used: {error}",
            expected="a database of SQLite, or a directory where one can be made, that this user may write",
            next_step="choose another place for the lake, or let this user write there",
        ) from error


def _write_ahead(db: sqlite3.Connection) -> None:
    until = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)  # nothing tells when the lock is free

"""SQLite databases that several processes and libraries write at once."""

import sqlite3
import time
from contextlib import closing

from sqlalchemy.engine import URL

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
        sqlite3.OperationalError: it is locked all the time, or cannot be made.
    """
    until = time.monotonic() + WAIT
    with closing(sqlite3.connect(str(url.database))) as db:
        while True:
            try:
                db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.02)  # nothing tells when the lock is free

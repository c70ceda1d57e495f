"""The catalog's database has a write-ahead log before Spark asks for one, whoever writes at that moment."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest
from pyiceberg.catalog import load_catalog
from sqlalchemy.engine import make_url

from rejoin.lake.config import lake_config
from rejoin.lake.ledger.sqlite import write_ahead


def journal(database: Path) -> str:
    with closing(sqlite3.connect(database)) as db:
        return str(db.execute("PRAGMA journal_mode").fetchone()[0])


def test_the_catalogs_database_has_a_write_ahead_log_before_spark_asks_for_one(tmp_path: Path) -> None:
    load_catalog("lake", **lake_config(str(tmp_path)).pyiceberg_settings())
    assert journal(tmp_path / "catalog.db") == "wal"


def test_a_write_ahead_log_waits_for_whoever_writes(tmp_path: Path) -> None:
    database = tmp_path / "catalog.db"
    with closing(sqlite3.connect(database, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE t (n)")
        other.execute("BEGIN IMMEDIATE")
        with closing(sqlite3.connect(database)) as db, pytest.raises(sqlite3.OperationalError, match="locked"):
            db.execute("PRAGMA journal_mode=WAL")
        ends = Timer(0.2, other.execute, ["COMMIT"])
        ends.start()
        write_ahead(make_url(f"sqlite:///{database}"))
        ends.join()
    assert journal(database) == "wal"

"""Damage: a table that somebody has edited behind rejoin's back."""

import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from integration.shop import Row

from rejoin.steps.run.topology import Topology

Edit = Callable[[list[Row]], list[Row]]


def edit(topology: Topology, name: str, change: Edit) -> None:
    """What ``change`` makes of a table's rows is what the newest run is said to have written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyIceberg's, of properties that are for Spark
        table = topology.refs.table(name)
        assert table is not None
        rows = table.scan().to_arrow()
        table.overwrite(pa.Table.from_pylist(change(rows.to_pylist()), rows.schema))
    written = topology.refs.table(name)
    assert written is not None
    snapshot = written.current_snapshot()
    assert snapshot is not None
    with sqlite3.connect(Path(topology.config.location, "ledger.db")) as db:
        of = (snapshot.snapshot_id, name, topology.ledger.head())
        assert db.execute("UPDATE rejoin_states SET snapshot_id = ? WHERE table_name = ? AND run = ?", of).rowcount == 1


def without(*keys: object) -> Edit:
    """Rows that are gone."""
    return lambda rows: [r for r in rows if r["id"] not in keys]


def with_value(key: object, **values: object) -> Edit:
    """A row that has other values."""
    return lambda rows: [{**r, **values} if r["id"] == key else r for r in rows]

"""Nested values of an output in PostgreSQL: arrays of single values, JSON of all others."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from integration.conftest import Sessions
from integration.texts import Lake, put
from targets import rows_of

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

FILE = """
a = t.table("a", key="id", schema="id BIGINT, tags ARRAY<STRING>, paid ARRAY<DECIMAL(10,2)>, place STRUCT<city: STRING, at: ARRAY<DATE>>,"
    " m MAP<STRING, DECIMAL(10,2)>", source=debezium("a"))
a.select(["*"]).named("out", max_change_share=1.0).to(postgres("{0}.out"))
"""
ROWS: tuple[dict[str, Any], ...] = (
    {"tags": ["a", None, 'b"{},', ""], "paid": [1.5, None], "place": {"city": "Ulm", "at": [1, None]}, "m": {"z": 2, "a": None}},
    {"tags": [], "paid": [], "place": {}, "m": {}},
    {"tags": None, "paid": None, "place": None, "m": None},
)
FOUND: tuple[dict[str, Any], ...] = (
    {
        "tags": ["a", None, 'b"{},', ""],
        "paid": [Decimal("1.50"), None],
        "place": {"city": "Ulm", "at": ["1970-01-02", None]},
        "m": {"a": None, "z": "2.00"},
    },
    {"tags": [], "paid": [], "place": {"city": None, "at": None}, "m": {}},
    {"tags": None, "paid": None, "place": None, "m": None},
)


def test_the_table_has_arrays_and_json(
    tmp_path: Path, sessions: Sessions, database: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_SINK_POSTGRES", database)
    lake = Lake(tmp_path, sessions, FILE.format(topic))
    for lsn, shown in enumerate((FOUND, FOUND[::-1])):
        rows = ROWS if shown is FOUND else ROWS[::-1]
        lake.land(f"a/{lsn}.jsonl", "".join(put(lsn * 10 + n, n, **row) + "\n" for n, row in enumerate(rows)))
        lake.run()
        assert rows_of(database, f"{topic}.out") == {n: {"id": n, **row} for n, row in enumerate(shown)}

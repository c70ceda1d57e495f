"""Change events as Debezium writes them, in files of JSON lines; written by DuckDB, as Python would take longer than the run."""

from pathlib import Path

import duckdb

_ROWS_A_FILE = 1_000_000


class Landing:
    """The landing folders of some tables. Every update has a position after all events before it."""

    def __init__(self, folder: Path, tables: tuple[str, ...], db: duckdb.DuckDBPyConnection) -> None:
        self._folder, self._tables, self._db = folder, tables, db
        self._batch, self._lsn = 0, 1
        for table in tables:
            (folder / table).mkdir(parents=True)

    def snapshot(self, table: str, rows: Path, count: int) -> None:
        """Lands the rows of a Parquet file as the reads of a first snapshot."""
        self._write(table, f"read_parquet('{rows}')", count, "r", "1")

    def update(self, table: str, rows: Path, count: int) -> None:
        """Lands the rows of a Parquet file as updates."""
        self.events(table, "u", f"read_parquet('{rows}')", count)

    def events(self, table: str, op: str, rows: str, count: int) -> None:
        """Lands the rows of an SQL relation as creates, updates or deletes (``op`` c, u, d)."""
        self._write(table, rows, count, op, f"{self._lsn} + row_number() OVER ()")
        self._lsn += count

    def clear(self) -> None:
        """Removes all files: rejoin has read them."""
        for table in self._tables:
            for file in (self._folder / table).iterdir():
                file.unlink()

    def _write(self, table: str, rows: str, count: int, op: str, position: str) -> None:
        self._batch += 1
        source = f"{{'connector': 'postgresql', 'lsn': {position}, 'snapshot': '{str(op == 'r').lower()}'}}"
        after = "NULL" if op == "d" else "t"
        event = f"SELECT {{'id': t.id}} AS key, {{'op': '{op}', 'source': {source}, 'after': {after}}} AS value"
        parts = 8 if op == "r" else -(-count // _ROWS_A_FILE)
        columns = self._as_json(rows)
        for part in range(parts):
            target = self._folder / table / f"{self._batch:05}-{part:03}.jsonl"
            chosen = f"(SELECT {columns} FROM {rows} WHERE hash(id) % {parts} = {part}) t"
            self._db.execute(f"COPY ({event} FROM {chosen}) TO '{target}' (FORMAT json)")

    def _as_json(self, rows: str) -> str:
        """All columns, decimals as texts: what Debezium makes of them with ``decimal.handling.mode=string``."""
        described = self._db.execute(f"DESCRIBE FROM {rows}").fetchall()
        texts = [f"{name}::VARCHAR AS {name}" for name, type_, *_ in described if type_.startswith("DECIMAL")]
        return f"* REPLACE ({', '.join(texts)})" if texts else "*"

"""What changed between two states of a table, of which the files that differ are read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoin.sources.events import BATCH_ROWS
from rejoin.statements.dialect import DUCKDB

if TYPE_CHECKING:
    import duckdb


class Change(StrEnum):
    """What a batch says of its keys."""

    ROW = "row"  # this is the row
    DOUBLED = "doubled"  # different rows have this key
    GONE = "gone"  # no row has it any more; only the key columns are given


@dataclass(frozen=True)
class Difference:
    """The files of two states of a table.

    Attributes:
        key: the key columns.
        come: rows of the files that only the newer state has.
        gone: rows of the files that only the older state has, with the same columns.
        thinned: the key columns of files that both have, but of which one hides other rows: as the older state has them, and as the newer.
        kept_keys: reads the key columns of the files that both have.
        kept: reads all of them; called only if one of those keys came or went.
    """

    key: Sequence[str]
    come: pa.Table
    gone: pa.Table
    thinned: tuple[pa.Table, pa.Table]
    kept_keys: Callable[[], pa.Table]
    kept: Callable[[], pa.Table]

    def changes(self) -> Iterator[tuple[Change, pa.RecordBatch]]:
        """The row, as it is now, of each key of which a row came or went; and the keys that no row has any more.

        Nothing makes keys of such tables unique. So a key that came or went may have another row in a file that both states have: then
        that row belongs to the key, too. Equal rows are one. Different rows of one key are all given, as doubled.
        """
        import duckdb  # a cut needs none

        with duckdb.connect() as db:
            db.execute("SET enable_progress_bar = false")
            self._find_touched(db)
            self._find_now(db)
            wanted = {
                Change.ROW: "SELECT * EXCLUDE (_doubled) FROM now WHERE NOT _doubled",
                Change.DOUBLED: "SELECT * EXCLUDE (_doubled) FROM now WHERE _doubled",
                Change.GONE: f"SELECT * FROM touched AS r ANTI JOIN now AS t ON {self._same_key}",
            }
            for change, text in wanted.items():
                yield from ((change, batch) for batch in db.sql(f"{text} ORDER BY ALL").to_arrow_reader(BATCH_ROWS))

    @property
    def _same_key(self) -> str:
        return " AND ".join(f"r.{DUCKDB.name(k)} IS NOT DISTINCT FROM t.{DUCKDB.name(k)}" for k in self.key)

    def _find_touched(self, db: "duckdb.DuckDBPyConnection") -> None:
        """The keys of rows that only one side has; a row that was only moved to another file is on both."""
        db.register("come", self.come)
        db.register("gone", self.gone)
        for name, rows in zip(("seen", "left_over"), self.thinned, strict=True):
            db.register(name, rows)
        keys, on = DUCKDB.names(self.key), f"{self._same_key} AND r IS NOT DISTINCT FROM t"
        sides = [f"SELECT {keys} FROM {a} AS r ANTI JOIN {b} AS t ON {on}" for a, b in (("come", "gone"), ("gone", "come"))]
        sides += [f"(FROM {a} EXCEPT ALL FROM {b})" for a, b in (("seen", "left_over"), ("left_over", "seen"))]
        db.execute(f"CREATE TEMP TABLE touched AS {' UNION '.join(sides)}")

    def _find_now(self, db: "duckdb.DuckDBPyConnection") -> None:
        """Every row of these keys in the newer state."""
        db.register("kept_keys", self.kept_keys())
        rows = f"SELECT * FROM come AS r SEMI JOIN touched AS t ON {self._same_key}"
        if db.sql(f"SELECT 1 FROM kept_keys AS r SEMI JOIN touched AS t ON {self._same_key}").limit(1).fetchall():
            db.register("kept", self.kept())
            rows += f" UNION ALL SELECT * FROM kept AS r SEMI JOIN touched AS t ON {self._same_key}"
        doubled = f"count(*) OVER (PARTITION BY {DUCKDB.names(self.key)}) > 1 AS _doubled"
        db.execute(f"CREATE TEMP TABLE now AS SELECT *, {doubled} FROM (SELECT DISTINCT * FROM ({rows}))")

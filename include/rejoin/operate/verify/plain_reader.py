"""Reads for a comparison, by another way than a run reads: whole tables, by a reader of Iceberg that is not rejoin's.

No list of files, no hidden rows and no bounds of rejoin's: what DuckDB got wrong, or a bound hides, is seen. Runs read and write by DuckDB and by
PyIceberg's writer; comparisons read by PyIceberg and Arrow (``arrow_reader``), or by Spark's own reader (``spark_reader``).
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa

from rejoin.engines.relation import Engine, Relation
from rejoin.joins.sides import among
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.read import duckdb_lookup
from rejoin.lake.read.lookups import LookupKeys
from rejoin.lake.read.reader import Reader
from rejoin.operate.verify.whole_snapshots import with_snapshots
from rejoin.plan.model.plan import Node, Plan
from rejoin.statements.dialect import Dialect


class PlainReader(Reader):
    """The tables of one topology as of one run, every read a whole one; source tables as the snapshots within their feeds say them (``generations``).

    ``keeping``: what is kept until the last output is compared; who makes a reader closes it.
    """

    def __init__(self, engine: Engine, plan: Plan, states: Mapping[str, int], refs: Refs, generations: Mapping[str, Generations]) -> None:
        super().__init__(engine, plan, states, refs)
        self._generations, self.keeping = generations, ExitStack()
        self.as_of = engine, plan, states, refs, generations

    @abstractmethod
    def every(self, name: str, columns: Sequence[str]) -> Relation:
        """All rows, as Iceberg itself says what these are; PLACE is null."""

    def parts(self, node: Node) -> "Sequence[PlainReader]":  # noqa: ARG002
        """Who reads for a comparison of an output: several, each the rows of one range of its key, or this one all rows."""
        return (self,)

    def apart(self, name: str, columns: Sequence[str]) -> "Iterator[Relation]":
        """All rows, in one or more parts."""
        yield self.every(name, columns)

    @abstractmethod
    def unfound(self, name: str) -> int:
        """How many rows of a table a reader with a filter does not find, as far as this one tells."""

    def current(self, name: str, also: Sequence[str] = ()) -> Relation:
        """``Relation`` of a whole source table or output."""
        rows = super().current(name, also)
        if (found := self._generations.get(name)) is None:
            return rows
        return with_snapshots(self.engine, self, self._plan.table(name), found, rows)

    def having(
        self,
        name: str,
        key: Sequence[str],  # noqa: ARG002
        keys: LookupKeys | None,
        columns: Sequence[str],
        *,
        nulls: bool = False,  # noqa: ARG002
    ) -> Relation:
        """All rows: comparisons look for no keys."""
        assert keys is None
        return self.every(name, columns)

    def unique(self, name: str, column: str) -> bool:  # noqa: ARG002
        """Bounds tell that no two rows have one key; they are not asked."""
        return False

    def hidden(self, name: str, key: Sequence[str]) -> int:
        """How many rows a reader with a filter does not find, and, of some keys, a lookup of a run: those with the smallest, the largest and the
        longest first part. Longer texts than others have no bounds in Parquet.
        """
        return self.unfound(name) + self._unseen(name, key) if self.has(name) else 0

    def _unseen(self, name: str, key: Sequence[str]) -> int:
        """Rows of some keys that a full read has and a lookup of a run has not."""
        sql, kind = self.engine.sql, self.schema(name).field(key[0]).type
        ends = _ends(sql, key, text=pa.types.is_string(kind) or pa.types.is_large_string(kind))
        found = [self.engine.query(ends, found=rows).here() for rows in self.apart(name, key)]
        wanted = self.engine.query(ends, found=self.engine.rows(pa.concat_tables(found))).here()
        there = duckdb_lookup.having(self._table(name), self.states[name], key, wanted, key)
        if not wanted.num_rows or isinstance(there, duckdb_lookup.TooLarge):
            return 0
        count, keys = f"SELECT count(*) AS n FROM ({among(sql, key)})", self.engine.rows(wanted)
        stored = sum(int(self.engine.one(count, rows_=rows, keys=keys)["n"]) for rows in self.apart(name, key))
        return max(0, stored - int(there.num_rows))


def _ends(sql: Dialect, key: Sequence[str], *, text: bool) -> str:
    """Of ``found``, keys: those with the smallest and the largest first part, and of texts the longest."""
    whole, first = sql.struct([(k, sql.name(k)) for k in key]), sql.name(key[0])
    picked = [f"min_by({whole}, {first})", f"max_by({whole}, {first})", *([f"max_by({whole}, length({first}))"] if text else [])]
    parts = ", ".join(f"{sql.get('k', c)} AS {sql.name(c)}" for c in key)
    some = " UNION ALL ".join(f"SELECT {one} AS k FROM found" for one in picked)
    return f"SELECT {parts} FROM ({some}) WHERE k IS NOT NULL"

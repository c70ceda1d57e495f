"""Reads for a comparison by PyIceberg and Arrow, in this process: no Java."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from rejoin.engines.relation import Engine, Relation
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.read import plain_scan
from rejoin.lake.read.lookups import TableRead
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.plan.model.plan import Plan
from rejoin.statements.own_columns import PLACE


class ArrowReader(PlainReader):
    """See ``PlainReader``. What is asked for again is not read again."""

    def __init__(self, engine: Engine, plan: Plan, states: Mapping[str, int], refs: Refs, generations: Mapping[str, Generations]) -> None:
        super().__init__(engine, plan, states, refs, generations)
        self._known: dict[tuple[str, tuple[str, ...]], Relation] = {}

    def every(self, name: str, columns: Sequence[str]) -> Relation:
        """All rows, where the engine keeps many."""
        for (of, there), rows in self._known.items():
            if of == name and set(columns) <= set(there):
                return (
                    rows
                    if tuple(columns) == there
                    else self.engine.query(f"SELECT {self.engine.sql.names(columns)} FROM found", found=rows)
                )
        types = {f.name: f.type for f in self.schema(name)} | {PLACE: pa.int64()}
        schema = pa.schema([(c, types[c]) for c in columns])
        rows = self.engine.landed(schema, [plain_scan.batches(self._table(name), self.states[name], schema)], (), ())
        self._known[name, tuple(columns)] = rows
        self.reads.append(TableRead(name, "files", "a comparison reads by another way than a run", None))
        return rows

    def unfound(self, name: str) -> int:
        """Rows outside of the bounds that are said of their file or of their row group, once for each column."""
        return plain_scan.outside_bounds(self._table(name), self.states[name])

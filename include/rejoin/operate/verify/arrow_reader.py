"""Reads for a comparison by PyIceberg and Arrow, in this process: no Java."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from rejoin.engines.relation import Engine, Relation
from rejoin.lake.iceberg.column_bounds import leaf_ids
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.generations import Generations
from rejoin.lake.read.lookups import TableRead
from rejoin.operate.verify.plain_reader import PlainReader
from rejoin.plan.model.plan import Plan
from rejoin.statements.own_columns import PLACE

_TIMES: dict[type, pa.DataType] = {DateType: pa.int32(), TimestampType: pa.int64(), TimestamptzType: pa.int64()}
"""What times are as numbers, as bounds have them."""
_BOUNDED = (*_TIMES, IntegerType, LongType, StringType, DecimalType)
"""Types whose bounds are compared. Not floating point numbers: whether -0.0 equals 0.0 differs between a filter and the bounds, by Iceberg's rules."""


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
        rows = self._known[name, tuple(columns)] = self.engine.landed(schema, self._batches(name, schema), ())
        self.reads.append(TableRead(name, "files", "a comparison reads by another way than a run", None))
        return rows

    def _batches(self, name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        stored = tuple(c for c in schema.names if c != PLACE)
        for batch in self._table(name).scan(snapshot_id=self.states[name], selected_fields=stored).to_arrow_batch_reader():
            columns = [pa.nulls(batch.num_rows, f.type) if f.name == PLACE else batch[f.name].cast(f.type) for f in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def unfound(self, name: str) -> int:
        """Rows outside of the bounds that a manifest says of their file, or the file of their row group: all readers skip by these."""
        table, found = self._table(name), 0
        fields = {f.field_id: f for f in table.schema().fields if isinstance(f.field_type, _BOUNDED)}
        for task in table.scan(snapshot_id=self.states[name]).plan_files():
            lower, upper = task.file.lower_bounds or {}, task.file.upper_bounds or {}
            with table.io.new_input(task.file.file_path).open() as stream:
                file = pq.ParquetFile(stream)
                leaves = {i: fields[of] for i, of in enumerate(leaf_ids(file.schema_arrow)) if of in fields}
                names = {of: f.name for f in file.schema_arrow if (of := int(f.metadata[b"PARQUET:field_id"])) in fields}
                for group in range(file.num_row_groups):
                    about, rows = file.metadata.row_group(group), file.read_row_group(group, columns=list(names.values()))
                    for leaf, field in leaves.items():
                        of, kind = field.field_id, self.schema(name).field(field.name).type
                        wide = (lower[of], upper[of]) if of in lower and of in upper else None
                        found += _outside(rows[names[of]].cast(kind), field, wide, about.column(leaf).statistics)
        return found


def _outside(column: pa.ChunkedArray, field: NestedField, stated: tuple[bytes, bytes] | None, counted: Any) -> int:
    """How many values are not within the bounds of their file (``stated``, as Iceberg writes them), or not within those of their row group."""
    kind = field.field_type
    assert isinstance(kind, PrimitiveType)
    number = _TIMES.get(type(kind))
    values = column if number is None else column.cast(number)
    ends = [] if stated is None else [tuple(from_bytes(kind, end) for end in stated)]
    if counted is not None and counted.has_min_max:
        ends.append((counted.min, counted.max) if number is None else (counted.min_raw, counted.max_raw))
    wrong = [pc.or_(pc.less(values, pa.scalar(low, values.type)), pc.greater(values, pa.scalar(high, values.type))) for low, high in ends]
    return 0 if not wrong else int(pc.sum(wrong[0] if len(wrong) == 1 else pc.or_(*wrong)).as_py() or 0)

"""What a stream has that its source does not deliver: the places of records, and event times that are computed (``plan.check.tables``).

Times are computed by DuckDB, of each batch of events as it is decoded: in this process as on Spark's workers.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.plan.model.added_columns import PLACE, delivered
from rejoin.plan.model.plan import Table
from rejoin.plan.sql.portable import printed
from rejoin.sources.decode.row_sql import database
from rejoin.sources.events import EventKind, arrow_type, events_schema

Arrays = Mapping[str, pa.Array]


class Clock:
    """Computes the event times of a stream.

    Args:
        table: the stream.
    """

    def __init__(self, table: Table) -> None:
        assert table.computed_time is not None
        assert table.event_time is not None
        columns = {c.name: c.type or "" for c in delivered(table).columns}
        self._reads = [name for name in columns if f"t.`{name}`" in table.computed_time]
        self._query = f"SELECT TRY({printed(table.computed_time, {'t': columns}).text}) AS at FROM events AS t"
        self._type = arrow_type(next(c.type for c in table.columns if c.name == table.event_time))
        self._name = table.event_time

    def times(self, events: Arrays) -> pa.Array:
        """The times of records as delivered; null where there is none, and of what is no upsert."""
        known = pa.table({name: events[name] for name in (*self._reads, "_kind")})
        with database().cursor() as cursor:
            cursor.register("events", known)
            found = cursor.sql(self._query).to_arrow_table()["at"].combine_chunks().cast(self._type)
        return pc.if_else(pc.equal(events["_kind"], str(EventKind.UPSERT)), found, pa.scalar(None, self._type))

    def missing(self, events: Arrays) -> pa.Array:
        """``_missing`` with the time, where it is made of what is missing."""
        given = events["_missing"]
        if not pc.any(pc.greater(pc.list_value_length(given), 0)).as_py():
            return given
        reads = set(self._reads)
        return pa.array([[*names, *([self._name] if reads & set(names) else [])] for names in given.to_pylist()], given.type)


def completed(table: Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events of a table as delivered (``plan.model.added_columns``) -> the same with their places, and so with a key, and their event times, where these are not delivered."""
    if table == delivered(table):
        return batches
    schema, clock = events_schema(table), None if table.computed_time is None else Clock(table)
    return (_completed(table, batch, schema, clock) for batch in batches)


def _completed(table: Table, events: pa.RecordBatch, schema: pa.Schema, clock: Clock | None) -> pa.RecordBatch:
    made = dict(zip(events.schema.names, events.columns, strict=True))
    if clock is not None and table.event_time is not None:
        made |= {table.event_time: clock.times(made), "_missing": clock.missing(made)}
    if table.by_place:
        made[PLACE.name] = pc.binary_join_element_wise(events["_file"], events["_line"].cast(pa.string()), ":")
        made["_old_key"] = pa.nulls(events.num_rows, schema.field("_old_key").type)
    return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)

"""A pin -> its events (the contract is in ``events``): in this process, or as a DataFrame. With ``raw`` the only module of the package that uses pyspark.

Parts are decoded by their transport: in the driver while a pin is small, since starting Python workers costs more than decoding; else on the
workers, one task a part. Uses no RDD and no SparkContext, so it works on Spark Connect. The workers must be able to import rejoin and to reach
the source: for local paths, see the same files.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoin import errors
from rejoin.errors import RejoinError
from rejoin.limits import limits
from rejoin.plan.model.added_columns import delivered
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import names_fields
from rejoin.plan.pin import Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.compression import PACKED
from rejoin.sources.events import BATCH_ROWS, events_ddl, events_schema
from rejoin.sources.stored_files import format_of
from rejoin.sources.stream_columns import completed
from rejoin.sources.transports.registry import transport
from rejoin.sources.transports.transport import GoingOn, Taken, Transport, Waiting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKED = 8  # lines of JSON shrink about that much
_MAX_TASKS = 2_000
_MARK = re.compile(r"<<rejoin:([A-Za-z0-9+/=]+)>>")


def waiting(table: Table, access: SourceAccess, last: Pin | None, taken: Taken) -> Waiting:
    """What the source of a table holds that no committed run has read (``transports.transport.Transport.waiting``)."""
    return transport(table, access).waiting(last, taken)


def going_on(table: Table, access: SourceAccess, last: Pin) -> GoingOn | None:
    """How the source of a table goes on though runs stop (``transports.transport.Transport.going_on``)."""
    return transport(table, access).going_on(last)


def events_of_part(table: Table, pin: Pin, index: int, access: SourceAccess) -> Iterator[pa.RecordBatch]:
    """The events of one part of a pin, in batches. Raises as ``Transport.events`` does; what came before an error may not be used."""
    given = delivered(table)
    events = transport(given, access).events(pin, index)
    return events if given == table else completed(table, events)


def read(spark: "SparkSession", table: Table, pin: Pin, access: SourceAccess) -> "DataFrame":
    """The events of ``pin``, one row a record, columns and types as ``events.events_ddl(table)``.

    Raises at once where the driver can see the cause (``Transport.check``). Errors of workers come with the action that runs the frame: run it
    inside ``coded_errors``.
    """
    of = transport(table, access)
    for part in pin.parts:
        of.check(part)
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] = partial(_decode_rows, table, pin, access.to(table.source.path))
    return tasks(spark, pin).mapInArrow(work, events_ddl(table))


def read_here(table: Table, pin: Pin, access: SourceAccess) -> pa.Table | None:
    """The events of a small pin, decoded in this process; None if it is large. Raises as ``read`` does."""
    return pa.Table.from_batches(read_along(table, pin, access), events_schema(table)) if is_small(pin) else None


def read_along(table: Table, pin: Pin, access: SourceAccess) -> Iterator[pa.RecordBatch]:
    """The events of a pin of any size, in batches, decoded in this process. Raises as ``read`` does."""
    (events,) = read_streams(table, pin, access, 1)
    return iter(events)


def read_streams(table: Table, pin: Pin, access: SourceAccess, most: int) -> "list[EventStream]":
    """The same as up to so many streams, each of some parts or of pieces of large ones, of about as many bytes each, which can be taken side by side."""
    own = access.to(table.source.path)  # it may be sent to a task
    units = list(_units(pin, transport(table, own), most))
    return [EventStream(table, pin, own, [units[i] for i in share]) for share in _shares([unit.size for unit in units], most)]


@dataclass(frozen=True)
class Unit:
    """What is read as a whole: a part, or a piece of it; of about so many bytes."""

    part: int
    piece: int | None
    size: Fraction


@dataclass(frozen=True)
class EventStream:
    """The events of some parts of a pin, or pieces of them, in batches; decoded where it is taken. Raises as ``read`` does."""

    table: Table
    pin: Pin
    access: SourceAccess
    units: Sequence[Unit]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        given = delivered(self.table)
        of = transport(given, self.access)
        for part in {unit.part for unit in self.units}:
            of.check(self.pin.parts[part])
        events = chain(
            of.events_of(self.pin, [unit.part for unit in self.units if unit.piece is None]),
            *(of.events_of_pieces(self.pin, part, pieces) for part, pieces in self._pieces()),
        )
        yield from _gathered(events if given == self.table else completed(self.table, events))

    def _pieces(self) -> Iterator[tuple[int, range]]:
        """Those of each part, which follow each other."""
        for part, units in groupby(self.units, lambda unit: unit.part):
            if found := [unit.piece for unit in units if unit.piece is not None]:
                yield part, range(found[0], found[-1] + 1)


def _units(pin: Pin, of: Transport, most: int) -> Iterator[Unit]:
    """The parts; one that is more than a stream's share in its pieces."""
    total = sum(part.size for part in pin.parts)
    for index, part in enumerate(pin.parts):
        count = of.pieces(part) if part.size * most > total else 1
        for piece in range(count):
            yield Unit(index, piece if count > 1 else None, Fraction(part.size, count))


def _shares(sizes: Sequence[Fraction], most: int) -> list[range]:
    """Units of these sizes in their order as up to so many groups, at least one, of about one size."""
    ends, so_far, total = [0], Fraction(), sum(sizes)
    for index, size in enumerate(sizes, start=1):
        so_far += size
        if so_far * most >= total * len(ends) and len(ends) < most:
            ends.append(index)
    return [range(start, end) for start, end in pairwise([*ends, len(sizes)]) if start < end] or [range(0)]


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows without small batches: who looks at a hundred thousand files of a row each would wait for their batches, each time."""
    few, count = list[pa.RecordBatch](), 0
    for batch in batches:
        few.append(batch)
        count += batch.num_rows
        if count >= BATCH_ROWS:
            yield pa.concat_batches(few) if len(few) > 1 else batch
            few, count = [], 0
    if few:
        yield pa.concat_batches(few)


def is_small(pin: Pin) -> bool:
    """Whether the driver reads the pin itself."""
    return unpacked(pin) <= limits().fetched_bytes


def unpacked(pin: Pin) -> int:
    """About how many bytes of text a pin has."""
    return sum(part.size * (_PACKED if part.id.endswith((*PACKED, ".parquet")) else 1) for part in pin.parts)


def is_parquet(table: Table, pin: Pin) -> bool:
    """Whether the records of a pin are rows of Parquet files with the columns of the table, which can be looked up by their key alone."""
    return bool(pin.files) and not names_fields(table.source) and not pin.of_a_feed and format_of(pin.files[0].id) == "parquet"


def tasks(spark: "SparkSession", pin: Pin) -> "DataFrame":
    """The parts of a pin (index, id), one a partition as far as that is sensible."""
    parts = pa.table({"index": pa.array(range(len(pin.parts)), pa.int64()), "id": [part.id for part in pin.parts]})
    return spark.createDataFrame(parts).repartition(min(len(pin.parts), _MAX_TASKS))


def _decode_rows(table: Table, pin: Pin, access: SourceAccess, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on a worker: rows (index, id) -> events."""
    for batch in rows:
        for index in batch["index"].to_pylist():
            with marked_errors():
                yield from events_of_part(table, pin, index, access)


@contextmanager
def marked_errors() -> Iterator[None]:
    """On a worker: an error of rejoin becomes one that ``coded`` finds again in what Spark makes of it."""
    try:
        yield
    except RejoinError as error:
        raise RuntimeError(f"{error}\n{_mark(error)}") from error


def _mark(error: RejoinError) -> str:
    """All of an error in one word that survives being part of Spark's message."""
    parts = [type(error).__name__, error.what, error.expected, error.next_step]
    return f"<<rejoin:{base64.b64encode(json.dumps(parts).encode()).decode()}>>"


def coded(error: BaseException) -> RejoinError | None:
    """The rejoin error that a worker raised, found in the exception that Spark made of it; None if there is none."""
    match = _MARK.search(str(error))
    if match is None:
        return None
    name, what, expected, next_step = json.loads(base64.b64decode(match[1]))
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, RejoinError)):
        return None
    return kind(what, expected=expected, next_step=next_step)


@contextmanager
def coded_errors() -> Iterator[None]:
    """Around an action on a frame of ``read``: what a worker raised is raised here as the rejoin error that it was."""
    try:
        yield
    except RejoinError:
        raise
    except Exception as error:
        found = coded(error)
        if found is None:
            raise
        raise found from error

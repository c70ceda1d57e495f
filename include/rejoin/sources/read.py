"""A pin -> its events (the contract is in ``events``): in this process, or as a DataFrame. With ``raw`` the only module of the package that uses pyspark.

Files are decoded by ``decode.decode_file``: in the driver while a pin is small, since starting Python workers costs more than
decoding; else on the workers, one task a file. Uses no RDD and no SparkContext, so it works on Spark Connect. The workers must be able to
import rejoin and, for local paths, see the same files.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoin import errors
from rejoin.errors import RejoinError
from rejoin.limits import limits
from rejoin.plan.model.plan import Table
from rejoin.sources.events import events_ddl, events_schema
from rejoin.sources.pinned_file import decode_file, decode_pin
from rejoin.sources.pins import Pin, format_of
from rejoin.sources.transports.files import PinnedFile, check_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKED = 8  # lines of JSON shrink about that much
_MAX_TASKS = 2_000
_MARK = re.compile(r"<<rejoin:([A-Za-z0-9+/=]+)>>")


def read(spark: "SparkSession", table: Table, pin: Pin, root: str) -> "DataFrame":
    """The events of ``pin``, one row a record, columns and types as ``events.events_ddl(table)``.

    Raises at once where the driver can see the cause: SourceFileMissing, SourceFileChanged (other size). Errors of workers come with the action
    that runs the frame: run it inside ``coded_errors``.
    """
    for file in pin.files:
        check_size(root, file)
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] = partial(_decode_rows, table, pin.kind, pin.ordinal, root)
    return tasks(spark, pin).mapInArrow(work, events_ddl(table))


def read_here(table: Table, pin: Pin, root: str) -> pa.Table | None:
    """The events of a small pin, decoded in this process; None if it is large. Raises as ``read`` does."""
    if not is_small(pin):
        return None
    for file in pin.files:
        check_size(root, file)
    return pa.Table.from_batches(decode_pin(table, pin, root), events_schema(table))


def read_along(table: Table, pin: Pin, root: str) -> Iterator[pa.RecordBatch]:
    """The events of a pin of any size, in batches, decoded in this process. Raises as ``read`` does."""
    for file in pin.files:
        check_size(root, file)
    yield from decode_pin(table, pin, root)


def is_small(pin: Pin) -> bool:
    """Whether the driver reads the pin itself."""
    return unpacked(pin) <= limits().fetched_bytes


def unpacked(pin: Pin) -> int:
    """About how many bytes of text a pin has."""
    return sum(file.size * (_PACKED if file.path.endswith((".gz", ".parquet")) else 1) for file in pin.files)


def is_parquet(pin: Pin) -> bool:
    """Whether its records are rows of Parquet files."""
    return not pin.of_a_feed and format_of(pin.files[0].path) == "parquet"


def tasks(spark: "SparkSession", pin: Pin) -> "DataFrame":
    """The files of a pin (index, path, size, sha256), one a partition as far as that is sensible."""
    files = pa.table(
        {
            "index": pa.array(range(len(pin.files)), pa.int64()),
            "path": [file.path for file in pin.files],
            "size": pa.array([file.size for file in pin.files], pa.int64()),
            "sha256": [file.sha256 for file in pin.files],
        }
    )
    return spark.createDataFrame(files).repartition(min(len(pin.files), _MAX_TASKS))


def _decode_rows(table: Table, kind: str, ordinal: int, root: str, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on a worker: rows (index, path, size, sha256) -> events."""
    for batch in rows:
        for row in batch.to_pylist():
            file = PinnedFile(row["path"], row["size"], row["sha256"])
            with marked_errors():
                yield from decode_file(table, kind, ordinal, file, row["index"], root)


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

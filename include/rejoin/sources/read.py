"""A pin -> the DataFrame of its events (the contract is in ``events``). The only module of the package that uses pyspark.

Lines are decoded by ``decode.decode_file``: in the driver while a pin is small, since starting Python workers costs more than
decoding; else on the workers, one task a file. Parquet is read by Spark itself, after its files were verified and their types
checked. Uses no RDD and no SparkContext, so it works on Spark Connect. The workers must be able to import rejoin and, for local
paths, see the same files.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from rejoin import errors
from rejoin.errors import RejoinError
from rejoin.plan.model import Column as TableColumn
from rejoin.plan.model import Table
from rejoin.sources.decode import decode_file, decode_pin
from rejoin.sources.events import ARRIVAL_BITS, RAW_BYTES, EventKind, events_ddl, events_schema, quoted
from rejoin.sources.files import PinnedFile, check_size, corrupt, place, verify
from rejoin.sources.parquet import check_parquet
from rejoin.sources.pins import Pin, format_of
from rejoin.sources.snapshot import MISSING_KEY, position_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LOCAL_BYTES = 32 << 20
AS_WRITTEN = "__globPaths__"
"""Spark's own option for lists of files (``DataSource.GLOB_PATHS_KEY``)."""
_GZIP_FACTOR = 8  # JSON lines shrink about that much
_MAX_TASKS = 2_000
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE\.\w+\].*?file (\S+?)\.?(?:\s|$)")
_MARK = re.compile(r"<<rejoin:([A-Za-z0-9+/=]+)>>")


def read(spark: "SparkSession", table: Table, pin: Pin, root: str) -> "DataFrame":
    """The events of ``pin``, one row a record, columns and types as ``events.events_ddl(table)``.

    Raises at once where the driver can see the cause: SourceFileMissing, SourceFileChanged (other size; small pins and Parquet:
    other bytes), SourceCorrupt, SchemaDrift. Errors of workers come with the action that runs the frame: run it inside
    ``coded_errors``.
    """
    for file in pin.files:
        check_size(root, file)
    if is_parquet(pin):
        return _read_parquet(spark, table, pin, root)
    return _read_on_workers(spark, table, pin, root)


def read_here(table: Table, pin: Pin, root: str) -> pa.Table | None:
    """The events of a small pin, decoded in this process; None if it is large, or Spark's to read. Raises as ``read`` does."""
    if not is_small(pin):
        return None
    for file in pin.files:
        check_size(root, file)
    return pa.Table.from_batches(decode_pin(table, pin, root), events_schema(table))


def read_along(table: Table, pin: Pin, root: str) -> Iterator[pa.RecordBatch]:
    """The events of a pin of any size but of Parquet files, in batches, decoded in this process. Raises as ``read`` does."""
    for file in pin.files:
        check_size(root, file)
    yield from decode_pin(table, pin, root)


def is_small(pin: Pin) -> bool:
    """Whether the driver reads the pin itself."""
    if is_parquet(pin):
        return False
    return sum(file.size * (_GZIP_FACTOR if file.path.endswith(".gz") else 1) for file in pin.files) <= LOCAL_BYTES


def is_parquet(pin: Pin) -> bool:
    """Whether Spark itself reads the pin."""
    return pin.kind != "debezium" and format_of(pin.files[0].path) == "parquet"


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


def _read_on_workers(spark: "SparkSession", table: Table, pin: Pin, root: str) -> "DataFrame":
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] = partial(_decode_rows, table, pin.kind, pin.ordinal, root)
    return tasks(spark, pin).mapInArrow(work, events_ddl(table))


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
    """The rejoin error that a worker raised, found in the exception that Spark made of it, or what says that Spark itself could not read
    a source file; None if it is neither.
    """
    match = _MARK.search(str(error))
    if match is None:
        unreadable = _UNREADABLE.search(str(error))
        return None if unreadable is None else corrupt(unquote(unreadable[1]).rsplit("/", 1)[-1], "its pages are damaged")
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


def _read_parquet(spark: "SparkSession", table: Table, pin: Pin, root: str) -> "DataFrame":
    return parquet_rows(spark, table, pin, root).select(*_parquet_events(table, pin))


def parquet_rows(spark: "SparkSession", table: Table, pin: Pin, root: str) -> "DataFrame":
    """The declared columns of a pin of Parquet files as they are stored, ``_file``, ``_line`` (from 1) and ``_index``."""
    folders: dict[str, dict[int, PinnedFile]] = {}
    for index, file in enumerate(pin.files):
        verify(root, file)
        check_parquet(table, root, file)
        folders.setdefault(file.path.rpartition("/")[0], {})[index] = file
    return reduce(lambda one, other: one.unionAll(other), (_rows_of_folder(spark, table, files, root) for files in folders.values()))


def _rows_of_folder(spark: "SparkSession", table: Table, files: dict[int, PinnedFile], root: str) -> "DataFrame":
    """``parquet_rows`` of files of one folder, by their index in the pin: Spark says which file a row is from by its name only."""
    from pyspark.sql import functions as F

    paths = [_spark_path(root, file.path) for file in files.values()]
    names = {index: file.path.rpartition("/")[2] for index, file in files.items()}
    declared = ", ".join(f"{quoted(column.name)} {column.type}" for column in table.columns)
    reader = spark.read.schema(declared).option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")
    # Else the names would be patterns, and no pattern names a file below a folder with a colon.
    # Of two files in a folder with such a letter each would be read twice, unless Spark looks for no partitions.
    reader = reader.option("mergeSchema", "false").option(AS_WRITTEN, "false").option("recursiveFileLookup", "true")
    # Without this flipped bits become other values, also in files whose writer has left checksums.
    rows = reader.option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)
    # Spark reports names as in a URI (measured on 4.1.3); url_decode would also turn a plus sign into a space.
    name = F.url_decode(F.replace(F.col("_metadata.file_name"), F.lit("+"), F.lit("%2B")))
    entries = [F.lit(part) for i, n in names.items() for part in (n, i)]
    index = F.coalesce(F.create_map(*entries)[name], F.raise_error(F.lit("rejoin: Spark read a file that is not pinned")).cast("int"))
    first = next(iter(files.values())).path
    prefix = first[: len(first) - len(first.rpartition("/")[2])]
    return rows.select(
        *[F.col(quoted(column.name)) for column in table.columns],
        F.concat(F.lit(prefix), name).alias("_file"),
        (F.col("_metadata.row_index") + 1).alias("_line"),
        index.cast("bigint").alias("_index"),
    )


def parquet_raw(table: Table) -> "Column":
    """A row as quarantine keeps it."""
    from pyspark.sql import functions as F

    row = F.to_json(F.struct(*[_shown(c).alias(c.name) for c in table.columns]), {"ignoreNullFields": "false"})
    return F.substring(row, 1, RAW_BYTES)


def _parquet_events(table: Table, pin: Pin) -> "list[Column]":
    """The columns of the contract over the declared columns, ``_file``, ``_line`` and ``_index``."""
    from pyspark.sql import functions as F

    code, reason, no_key = _refused(table)
    refused = code.isNotNull()
    old_key = ", ".join(f"{quoted(c.name)}: {c.type}" for key in table.key for c in table.columns if c.name == key)
    line = {
        "_kind": F.when(refused, F.lit(str(EventKind.QUARANTINED))).otherwise(F.lit(str(EventKind.UPSERT))),
        # The rule of every source: no key or the whole key, and a quarantined row carries no values.
        **{c.name: F.when(~(no_key if c.name in table.key else refused), F.col(quoted(c.name))) for c in table.columns},
        "_position": F.when(~refused, F.lit(position_of(pin.ordinal))),
        "_arrival": F.shiftleft("_index", ARRIVAL_BITS) + F.col("_line"),
        "_missing": F.array().cast("array<string>"),
        "_absent": F.array().cast("array<string>"),
        "_old_key": F.lit(None).cast(f"struct<{old_key}>"),
        "_file": F.col("_file"),
        "_line": F.col("_line"),
        "_lines": F.lit(1).cast("bigint"),
        "_code": code,
        "_reason": reason,
        "_raw": F.when(refused, parquet_raw(table)),
    }
    return [column.alias(name) for name, column in line.items()]


def _refused(table: Table) -> "tuple[Column, Column, Column]":
    """Code and reason of a row that cannot be applied (both null: it can), and whether its key cannot be read."""
    from pyspark.sql import functions as F

    lacking = _any(F.col(quoted(key)).isNull() for key in table.key)
    # Spark takes the bytes of a text as they are; no other engine reads what is no UTF-8.
    broken = {c.name: ~F.coalesce(F.is_valid_utf8(quoted(c.name)), F.lit(True)) for c in table.columns if c.type == "STRING"}
    code = F.when(lacking, F.lit(MISSING_KEY)).when(_any(broken.values()), F.lit("VALUE_TYPE"))
    reason = F.when(lacking, F.lit(f"key column {' or '.join(table.key)} is null"))
    for name, wrong in broken.items():
        reason = reason.when(wrong, F.lit(f"column {name!r}: no UTF-8"))
    return code, reason, lacking | _any(wrong for name, wrong in broken.items() if name in table.key)


def _any(conditions: "Iterable[Column]") -> "Column":
    from pyspark.sql import functions as F

    return reduce(lambda one, other: one | other, conditions, F.lit(False))


def _shown(column: "TableColumn") -> "Column":
    """A value as the raw record has it."""
    from pyspark.sql import functions as F

    value = F.col(quoted(column.name))
    return F.make_valid_utf8(value) if column.type == "STRING" else value


def _spark_path(root: str, path: str) -> str:
    """A pinned path as Spark takes it where names are no glob patterns."""
    where = place(root, path)
    if not isinstance(where.fs, LocalFileSystem):
        return where.label
    if ":" in where.name:  # in the name of a folder it may be
        raise corrupt(path, "Spark opens no Parquet file with a colon in its name")
    # A URI of this machine has its letters escaped, for pyarrow; Spark takes what is behind the scheme as it is written.
    return f"file://{where.native}" if "://" in where.label else where.native

"""Commands that show rows of many tables, and write them to files. They need no Spark."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from rejoin.cli.options import lake_option, out, topology_option
from rejoin.notebook import Lake

if TYPE_CHECKING:
    from rejoin.lake.query.user_queries import Rows

SHOWN = 40
"""Rows of an answer that are shown on a terminal."""

_as_of = click.option("--as-of", "run", type=int, default=None, help="The state after this run; default: the newest.")
_csv = click.option("--csv", "csv_file", metavar="FILE", default=None, help="Write all rows to a CSV file with a header; - is the output.")
_parquet = click.option("--parquet", "parquet_file", metavar="FILE", default=None, help="Write all rows to a Parquet file.")
_json = click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON lines.")


@click.command()
@click.argument("query")
@lake_option
@topology_option
@_as_of
@_csv
@_parquet
@_json
def sql(
    query: str, location: str, name: str | None, run: int | None, csv_file: str | None, parquet_file: str | None, as_json: bool
) -> None:
    """Print what QUERY, a SELECT in DuckDB's SQL, finds in the tables of a lake: current rows of sources, rows of outputs.

    All tables of a topology are read as of the same run. "SHOW TABLES" lists them, "DESCRIBE orders" its columns.
    """
    from rejoin.report.rows import as_of, table

    rows = Lake(location).sql(query, as_of=run, topology=name)
    if _written(rows, csv_file, parquet_file, as_json=as_json):
        return
    found = rows.first(SHOWN + 1)
    table(out, rows.columns, rows.types, found[:SHOWN])
    more = f"{len(found):,}" if len(found) <= SHOWN else f"the first {SHOWN} of {rows.count():,}"
    out.print(f"{more} row(s), {as_of(rows.as_of)}")
    if len(found) > SHOWN:
        out.print("all of them: --json, --csv FILE or --parquet FILE")


@click.command()
@click.argument("table")
@click.option("-n", "--rows", "most", type=click.IntRange(min=0), default=10, show_default=True, help="Print so many rows.")
@lake_option
@topology_option
@_as_of
@_csv
@_parquet
@_json
def head(
    table: str,
    most: int,
    location: str,
    name: str | None,
    run: int | None,
    csv_file: str | None,
    parquet_file: str | None,
    as_json: bool,
) -> None:
    """Print some rows of TABLE, a source table or output, in no order."""
    from rejoin.report import rows as report_rows

    rows = Lake(location).read(table, as_of=run, topology=name)
    if _written(rows.limit(most), csv_file, parquet_file, as_json=as_json):
        return
    found = rows.first(most + 1)
    report_rows.table(out, rows.columns, rows.types, found[:most])
    more = "; there are more, see -n" if len(found) > most else ""
    out.print(f"{len(found[:most]):,} row(s) of {table}, {report_rows.as_of(rows.as_of)}{more}")


def _written(rows: "Rows", csv_file: str | None, parquet_file: str | None, *, as_json: bool) -> bool:
    """Whether the rows went somewhere else than into a table."""
    from rejoin.lake.query.export import write_csv, write_json, write_parquet

    if (csv_file is not None) + (parquet_file is not None) + as_json > 1:
        raise click.UsageError("--csv, --parquet and --json exclude each other")
    with _pipe():
        if as_json:
            write_json(rows, sys.stdout.buffer)
        elif csv_file is not None:
            _to(csv_file, lambda to: write_csv(rows, to))
        elif parquet_file is not None:
            _to(parquet_file, lambda to: write_parquet(rows, to))
        else:
            return False
        sys.stdout.flush()
    return True


def _to(file: str, write: Callable[[IO[bytes]], None]) -> None:
    """Writes a file that is there whole or not at all; ``-`` is the output."""
    if file == "-":
        write(sys.stdout.buffer)
        return
    path = Path(file)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as to:
            try:
                write(to.file)
            except BaseException:
                Path(to.name).unlink()
                raise
        Path(to.name).chmod(0o666 & ~_umask())
        Path(to.name).replace(path)
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _pipe() -> Iterator[None]:
    """Whoever reads the output may have enough of it (``| head``), which is no mistake."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes when it ends

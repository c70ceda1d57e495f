"""The tables below a directory, by samples of their files."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from rejoin.discover.columns import Column, of_arrow, of_rows
from rejoin.discover.foreign_keys import foreign_keys
from rejoin.discover.json_records import changes_of, tables_of
from rejoin.discover.landed_rows import landed
from rejoin.discover.table import Found, FoundTable
from rejoin.discover.topology_file import identifier
from rejoin.errors import SourceError, SourceMissing
from rejoin.sources.declared_columns import parquet_file
from rejoin.sources.formats.binary_documents import BINARY, binary_documents
from rejoin.sources.formats.json_documents import document_lines
from rejoin.sources.stored_files import Place, children, format_of, lines, open_file, pin_file, place
from rejoin.sources.transports.layout import layout, natural, reading_order

_NUMBERED = re.compile(r"(LOAD)?\d")
"""So the names of files begin that follow each other; those of a full load by DMS, too."""
SAMPLE = 1000
"""So many records of a file are looked at."""


def look(root: str, path: str) -> Found:
    """The tables below a path: one for each directory of files, and for each file that is no part of a row of them.

    Raises:
        SourceMissing: there is nothing.
    """
    tables: list[FoundTable] = []
    others: list[str] = []
    for label, files in _groups(root, place(root, path)):
        try:
            found = _of_files(root, label, files)
        except SourceError as error:
            others.append(f"{label}: {error.what}")
            continue
        for table in found:
            tables.append(replace(table, name=identifier(table.name, {t.name for t in tables})))
        if not found:
            others.append(f"{label}: nothing in it is a record that rejoin knows")
    if not tables and not others:
        raise SourceMissing(f"there are no files below {path!r}", next_step="name the directory in which your tool leaves its files")
    return Found(tables, others, tuple(foreign_keys(tables)))


def _groups(root: str, where: Place) -> Iterator[tuple[str, list[Place]]]:
    """Paths of sources, each with its files."""
    if not where.is_directory():
        if where.exists():
            yield where.label, [where]
        return
    here = layout(root, where.label, lambda _: True)
    files = [] if here is None else [listed.place for _, listed in sorted(here.files.items(), key=lambda item: reading_order(item[0]))]
    if files and all(
        _NUMBERED.match(file.name) or "+" in file.name or file.label.count("/") > where.label.count("/") + 1 for file in files
    ):
        yield where.label, files
    else:
        yield from ((file.label, [file]) for file in files)
    for entry in sorted(children(root, where), key=lambda e: natural(e.name)):
        if entry.is_directory() and not any(file.label.startswith(f"{entry.label}/") for file in files):
            yield from _groups(root, entry)


def _of_files(root: str, label: str, files: list[Place]) -> list[FoundTable]:
    name = label.rstrip("/").rsplit("/", 1)[-1].split(".json")[0].split(".csv")[0].split(".parquet")[0].rsplit(".", 1)[-1]
    newest, kind = files[-1], format_of(files[-1].name)
    if kind == "parquet" and not _has_envelopes(newest):
        return [_of_parquet(name, label, newest)]
    if kind == "csv":
        return [_of_csv(name, label, newest)]
    of_newest = _sample(_documents(root, newest))
    of_oldest = _sample(_documents(root, files[0])) if len(files) > 1 else []
    told = changes_of if newest.name.endswith(BINARY) else tables_of
    return told(name, json.dumps(label, ensure_ascii=False), [*of_oldest, *of_newest], of_newest)


def _has_envelopes(file: Place) -> bool:
    """Whether a file of Parquet holds change events, not rows."""
    return {"op", "source"}.issubset(parquet_file(file).schema_arrow.names)


def _documents(root: str, file: Place) -> Iterator[bytes]:
    """The documents of a file, a line each, in pieces."""
    if file.name.endswith(BINARY):
        return binary_documents(root, pin_file(file))
    return document_lines(open_file(file), file.label)


def _sample(pieces: Iterator[bytes]) -> list[bytes]:
    return [raw for _, raw in islice(lines(pieces), SAMPLE)]


def _of_parquet(name: str, label: str, file: Place) -> FoundTable:
    opened = parquet_file(file)
    columns = [
        Column(field.name, kind := of_arrow(field.type), "" if kind else f"rejoin does not read {field.type}")
        for field in opened.schema_arrow
    ]
    known = [c.name for c in columns if c.type is not None]
    rows = next(opened.iter_batches(SAMPLE, columns=known), pa.RecordBatch.from_pylist([])).to_pylist()
    return landed(opened.schema_arrow.names).table(name, f'"{label}"', columns, rows)


def _of_csv(name: str, label: str, file: Place) -> FoundTable:
    sample = _sample(open_file(file))
    try:
        texts, encoding = [raw.decode() for raw in sample], None
    except UnicodeDecodeError:
        texts, encoding = [raw.decode("latin-1") for raw in sample], "latin-1"
    delimiter = max(",;\t|", key=texts[0].count) if texts else ","
    rows: list[dict[str, Any]] = [row for row in csv.DictReader(texts, delimiter=delimiter) if None not in row and None not in row.values()]
    columns = of_rows(rows, texts=True)
    found = landed([column.name for column in columns])
    said = ([f"delimiter={json.dumps(delimiter)}"] if delimiter != "," else []) + ([f'encoding="{encoding}"'] if encoding else [])
    if said:
        found = replace(found, options=f"{found.options}, format=csv({', '.join(said)})")
    table = found.table(name, f'"{label}"', columns, rows)
    return replace(table, uses=[*table.uses, *(["csv"] if said else [])])

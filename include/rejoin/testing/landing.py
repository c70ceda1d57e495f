"""The rows of source tables, as their owner has them, and how they arrive: in the files that the declared source reads."""

import csv
import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rejoin.errors import BadTestTable
from rejoin.plan.model.added_columns import delivered
from rejoin.plan.model.plan import Plan, Table
from rejoin.plan.model.sources import (
    ChangesSource,
    DebeziumSource,
    FeedSource,
    JsonFormat,
    RecordsSource,
    SnapshotSource,
    Source,
    WithSnapshots,
)
from rejoin.sources.events import arrow_type
from rejoin.testing.text import Cell, lines, read, split
from rejoin.testing.values import json_text, normal

Row = dict[str, Cell]
Key = tuple[Cell, ...]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+")
_FORMATS = (".csv", ".csv.gz", ".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
JSON_LINES = ".jsonl"


def testable(plan: Plan) -> Plan:
    """The plan as it can be tested: sources below the test's own folder, shares of deletes not watched (of a few rows they say nothing), no sinks.

    A file of Parquet is one of JSON lines: rejoin.testing writes text only.
    """
    tables = tuple(replace(t, source=_below(t.source)) for t in plan.tables)
    return replace(plan, tables=tables, nodes=tuple(replace(n, sinks=()) for n in plan.nodes))


def _below(source: Source) -> Source:
    path = _SCHEME.sub("", source.path).lstrip("/")
    if path.endswith(".parquet"):  # rejoin.testing writes text only
        path += JSON_LINES
    if isinstance(source, ChangesSource):
        # What columns are made of cannot be undone: in a test fields are the declared columns.
        return replace(source, path=path, order=_ORDER, deleted=_GONE, columns=(), format=JsonFormat())
    if isinstance(source, SnapshotSource | RecordsSource):
        source = replace(source, columns=(), format=None)
    return (
        replace(source, path=path, max_delete_share=1.0)
        if isinstance(source, SnapshotSource | WithSnapshots)
        else replace(source, path=path)
    )


_ORDER, _GONE = ("t.`__position`",), "t.`__deleted` = 'true'"


@dataclass
class Owner:
    """Who has the rows of one source table, and delivers them.

    Args:
        table: the table as declared.
        root: where its source's path starts.
    """

    table: Table
    root: Path
    delivered: int = 0
    """How often something has changed."""
    rows: dict[Key, Row] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.table = delivered(self.table)
        self.types = {c.name: arrow_type(c.type) for c in self.table.columns}
        self._header = tuple(self.types)
        path = self.root / self.table.source.path
        (path.parent if self._one_file else path).mkdir(parents=True, exist_ok=True)

    def of(self, table: Table) -> "Owner":
        """The owner of the same rows, which another topology declares otherwise. A text without header then has the declared columns."""
        return Owner(table, self.root, self.delivered, self.rows, self._named)

    @property
    def _one_file(self) -> bool:
        """Whether the source names a file: it is replaced each time."""
        return self.table.source.path.endswith(_FORMATS) and isinstance(self.table.source, SnapshotSource)

    def deliver(self, text: str, at: datetime) -> None:
        """Changes the rows as a text says, and lands them. ``at``: when they were committed.

        Raises:
            BadTestTable: the text is no table of such rows.
        """
        changed = self._change(text)
        if not changed:
            return
        self.delivered += 1
        if isinstance(self.table.source, DebeziumSource | ChangesSource):
            events = [self._event(number, key, row, at) for number, (key, row) in enumerate(changed, 1)]
            self._write(f"{self.delivered:06d}-{self.table.name}{JSON_LINES}", "".join(f"{e}\n" for e in events).encode())
        elif isinstance(self.table.source, FeedSource):
            raise BadTestTable(
                f"{self.table.name!r} has events of the dialect {self.table.source.dialect!r}, which rejoin.testing cannot write",
                expected="in a test, a table with debezium(...)",
            )
        else:
            path = Path(self.table.source.path)
            ending = next((e for e in sorted(_FORMATS, key=len, reverse=True) if path.name.endswith(e)), JSON_LINES)
            rows = [row for _, row in changed if row] if isinstance(self.table.source, RecordsSource) else list(self.rows.values())
            self._write("" if self._one_file else f"{self.delivered:06d}{ending}", self._file(ending, self.table.source.null, rows))

    def _write(self, name: str, content: bytes) -> None:
        path = self.root / self.table.source.path / name
        (unfinished := path.with_name(f"{path.name}.tmp")).write_bytes(content)
        unfinished.rename(path)

    # --- the text ---------------------------------------------------------------------------------------------------

    def _change(self, text: str) -> list[tuple[Key, Row | None]]:
        """Applies the lines of a text; what became of which key, None where it was deleted."""
        found = [(line, _deleted(line)) for line in lines(text)]
        if found and found[0][1] is None and self._is_header(cells := split(found[0][0])):
            self._head(cells)
            found = found[1:]
        return [self._delete(gone) if gone is not None else self._upsert(line) for line, gone in found]

    def _is_header(self, cells: Sequence[str]) -> bool:
        """Names of columns only, or the whole key beside what may be a slip of the pen."""
        return set(cells) <= set(self.types) or (set(self.table.key) <= set(cells) and bool(self.table.key))

    def _head(self, cells: Sequence[str]) -> None:
        unknown = [c for c in cells if c not in self.types]
        lacking = [c for c in self.table.key if c not in cells]
        if unknown or lacking or len(set(cells)) < len(cells):
            what = f"no column {', '.join(unknown)}" if unknown else f"a key column {', '.join(lacking)}, which the header lacks"
            what = what if unknown or lacking else "no column twice"
            raise BadTestTable(f"table {self.table.name!r} has {what}", expected=f"some of {', '.join(self.types)}, once each")
        self._header = tuple(cells)
        self._named.update(cells)

    def _upsert(self, line: str) -> tuple[Key, Row]:
        cells = split(line)
        if len(cells) != len(self._header):
            raise BadTestTable(
                f"a row of table {self.table.name!r} has {len(cells)} cells: {line}",
                expected=f"{len(self._header)}: {', '.join(self._header)}",
            )
        if "" in cells:
            raise BadTestTable(
                f"a row of table {self.table.name!r} has a cell with nothing in it: {line}", expected='NULL, or "" for the empty text'
            )
        given = {c: read(cell) for c, cell in zip(self._header, cells, strict=True)}
        key = self._key([given[c] for c in self.table.key]) or (str(len(self.rows)),)  # records without id are told by their places
        row = self.rows[key] = {**self.rows.get(key, {}), **given}
        return key, row

    def _delete(self, cells: Sequence[str]) -> tuple[Key, None]:
        if isinstance(self.table.source, RecordsSource):
            raise BadTestTable(f"{self.table.name!r} is a stream of records, of which none is ever deleted: - {' | '.join(cells)}")
        if len(cells) != len(self.table.key):
            raise BadTestTable(
                f"a deleted row of table {self.table.name!r} is named by its key", expected=f"- {' | '.join(self.table.key)}"
            )
        key = self._key([read(cell) for cell in cells])
        if self.rows.pop(key, None) is None:
            raise BadTestTable(f"table {self.table.name!r} has no row {' | '.join(cells)} to delete")
        return key, None

    def _key(self, cells: Sequence[Cell]) -> Key:
        return tuple(normal(cell, self.types[c]) for c, cell in zip(self.table.key, cells, strict=True))

    # --- the files --------------------------------------------------------------------------------------------------

    @property
    def _columns(self) -> list[str]:
        """Those that the source has: an optional one from when a header has named it."""
        return [c for c in self.types if c not in self.table.optional or c in self._named]

    def _object(self, row: Mapping[str, Cell], columns: Sequence[str]) -> str:
        return "{" + ", ".join(f'"{c}": {json_text(row.get(c), self.types[c])}' for c in columns) + "}"

    def _event(self, number: int, key: Key, row: Row | None, at: datetime) -> str:
        """A change event as Debezium's connector for PostgreSQL writes it, or a row with its position. An upsert of a known key is not told from a new one."""
        source, position = self.table.source, self.delivered * 1_000_000 + number
        if isinstance(source, ChangesSource):
            own = self._object(
                dict(zip(self.table.key, key, strict=True)) if row is None else row, self.table.key if row is None else self._columns
            )
            return f'{own[:-1]}, "__position": {position}, "__deleted": "{"true" if row is None else "false"}"}}'
        assert isinstance(source, DebeziumSource)
        named = self._object(dict(zip(self.table.key, key, strict=True)), self.table.key)
        after = "null" if row is None else self._object(row, self._columns)
        milliseconds = int(at.astimezone(UTC).timestamp() * 1000)
        origin = f'{{"connector": "postgresql", "lsn": {position}, "ts_ms": {milliseconds}}}'
        value = f'{{"op": "{"d" if row is None else "u"}", "before": null, "after": {after}, "source": {origin}}}'
        topic = "" if source.topic is None else f', "topic": "{source.topic}"'
        return f'{{"key": {named}, "value": {value}{topic}}}'

    def _file(self, ending: str, null: str, rows: Sequence[Row]) -> bytes:
        """Rows in one of the formats of snapshots and records."""
        if ending.startswith(".csv"):
            text = io.StringIO()
            cells = [[null if row.get(c) is None else row[c] for c in self._columns] for row in rows]
            csv.writer(text, lineterminator="\n").writerows([self._columns, *cells])
            content = text.getvalue().encode()
        else:
            content = "".join(f"{self._object(row, self._columns)}\n" for row in rows).encode()
        return gzip.compress(content) if ending.endswith(".gz") else content


def _deleted(line: str) -> list[str] | None:
    """The key that a line ``- 1`` deletes; None if it is a row: the key of ``-1 | Ann`` is negative."""
    return split(line[1:].strip()) if re.match(r"-\s", line) else None

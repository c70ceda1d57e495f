"""Sources by ``changes(...)`` for tests: a table, its files, and their events both ways."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from rejoin import Topology, changes
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Part, Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.formats import line_chunks
from rejoin.sources.read import events_of_part
from rejoin.sources.shapes.mapped import records
from rejoin.sources.stored_files import PinnedFile

SCHEMA = "id BIGINT, total DECIMAL(10,2), at TIMESTAMP, open BOOLEAN, note STRING, n INT, day DATE, f DOUBLE"


def table(schema: str = SCHEMA, key: str | list[str] = "id", optional: Sequence[str] = (), **options: Any) -> Table:
    topology = Topology("t")
    source = changes("landing", **{"order_by": "lsn", **options})
    topology.table("orders", key=key, schema=schema, source=source, optional=list(optional)).named("out")
    return compile(topology).table("orders")


def lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def pinned(root: Path, name: str, data: bytes) -> PinnedFile:
    file = root / "landing" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return PinnedFile(f"landing/{name}", len(data), hashlib.sha256(data).hexdigest())


def unproven(query: str, some: pa.Table, run: Callable[[str, pa.Table], pa.Table] = records.run) -> pa.Table:
    """In place of ``records.run``: no record is proven, so all are read one by one."""
    made = run(query, some)
    at = made.schema.get_field_index("_proven")
    return made if at < 0 else made.set_column(at, "_proven", pc.and_(made["_proven"], pa.scalar(False)))


def decoded(of: Table, root: Path, file: PinnedFile, *, fast: bool = True) -> list[dict[str, Any]]:
    """The events of a file; read by columns where that is possible, or one by one."""
    with (
        patch.object(line_chunks, "FEWEST", 0 if fast else line_chunks.FEWEST),
        patch.object(line_chunks, "LINES", 30 if fast else line_chunks.LINES),
        patch.object(records, "run", records.run if fast else unproven),
    ):
        pin = Pin("changes", (*[Part("other", 0)] * 3, Part(file.path, file.size, {"sha256": file.sha256})), 1)
        return [row for batch in events_of_part(of, pin, 3, SourceAccess(str(root))) for row in batch.to_pylist()]


def both_ways(of: Table, root: Path, name: str, data: bytes) -> list[dict[str, Any]]:
    """The events of a file, which are the same by columns and one by one."""
    file = pinned(root, name, data)
    fast, slow = decoded(of, root, file), decoded(of, root, file, fast=False)
    assert [repr(row) for row in fast] == [repr(row) for row in slow]
    return fast

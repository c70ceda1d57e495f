"""Sources in a folder, and what a cut pins of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from source_cases import table

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, RecordsSource, SnapshotSource
from rejoin.plan.pin import Part, Pin
from rejoin.sources import SourceAccess, Waiting, read_along, waiting

DDL = "id BIGINT; name STRING"
EVENTS, SNAPSHOTS = table(DDL, source=DebeziumSource("src")), table(DDL, source=SnapshotSource("src"))
RECORDS = table(DDL, source=RecordsSource("src"))


def put(root: Path, **files: str | bytes) -> None:
    """``put(root, **{"src/a.csv": "..."})`` writes files below root."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode() if isinstance(text, str) else text)


def paths(pin: Pin | None) -> list[str] | None:
    return None if pin is None else [part.id for part in pin.parts]


def there(of: Table, root: str, last: Pin | None = None, taken: Sequence[Part] = ()) -> Waiting:
    """What a cut finds. ``taken``: what committed runs have applied."""
    return waiting(of, SourceAccess(root), last, lambda: {part.id: part.size for part in taken})


def decode_pin(of: Table, pin: Pin, root: str) -> Iterator[pa.RecordBatch]:
    """The events of all parts."""
    return read_along(of, pin, SourceAccess(root))


def cut(of: Table, root: Path, last: Pin | None = None, consumed: Pin | None = None) -> Pin | None:
    return there(of, str(root), last, consumed.parts if consumed else ()).pin


def pinned(of: Table, root: Path, last: Pin | None = None, consumed: Pin | None = None) -> Pin:
    pin = cut(of, root, last, consumed)
    assert pin is not None
    return pin

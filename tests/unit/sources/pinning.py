"""Sources in a folder, and what a cut pins of them."""

from pathlib import Path

from source_cases import table

from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import DebeziumSource, RecordsSource, SnapshotSource
from rejoin.sources import Pin, available

DDL = "id BIGINT; name STRING"
EVENTS, SNAPSHOTS = table(DDL, source=DebeziumSource("src")), table(DDL, source=SnapshotSource("src"))
RECORDS = table(DDL, source=RecordsSource("src"))


def put(root: Path, **files: str | bytes) -> None:
    """``put(root, **{"src/a.csv": "..."})`` writes files below root."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode() if isinstance(text, str) else text)


def paths(pin: Pin | None) -> list[str] | None:
    return None if pin is None else [file.path for file in pin.files]


def cut(of: Table, root: Path, last: Pin | None = None, consumed: Pin | None = None) -> Pin | None:
    return available(of, str(root), consumed.files if consumed else (), last)


def pinned(of: Table, root: Path, last: Pin | None = None, consumed: Pin | None = None) -> Pin:
    pin = cut(of, root, last, consumed)
    assert pin is not None
    return pin

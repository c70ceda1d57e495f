"""How many bytes rejoin keeps: the data and delete files of the tables' current snapshots, and everything below the warehouse."""

from dataclasses import asdict, dataclass
from pathlib import Path

from engines import Lake
from work import JOIN, Work

KEYS = 16
"""Bytes of the two BIGINT keys of a subscription."""
OVERHEAD = 18
"""What a subscription may cost beside its keys: a hash of 16 bytes, and two for the rest."""


@dataclass(frozen=True)
class Stored:
    """What is stored at one moment.

    ``tables``: table -> bytes of the files of its current snapshot. ``subscriptions``: bytes a live subscription.
    ``plain``: bytes of the sources and the output as Parquet with the same compression. ``kept``: all files of the topology, old ones too.
    """

    when: str
    n: int
    tables: dict[str, int]
    subscriptions: float
    plain: int
    kept: int


def stored(when: str, work: Work, lake: Lake) -> dict[str, object]:
    """Measures; call it when the Parquet sources are up to date."""
    sizes = table_sizes(lake)
    subscriptions = sum(size for table, size in sizes.items() if "__subscriptions__" in table)
    kept = sum(f.stat().st_size for f in (work.root / "lake" / "warehouse" / lake.topology.plan.topology).rglob("*") if f.is_file())
    return asdict(Stored(when, work.n, sizes, round(subscriptions / work.n, 2), _plain(work), kept))


def table_sizes(lake: Lake) -> dict[str, int]:
    """Table -> bytes of the data and delete files of its current snapshot."""
    sizes = {}
    for name, snapshot in lake.state().items():
        table = lake.topology.refs.table(name)
        assert table is not None
        files = table.inspect.files(snapshot).select(["file_path", "file_size_in_bytes"]).to_pylist()
        sizes[name] = sum({f["file_path"]: f["file_size_in_bytes"] for f in files}.values())
    return sizes


def _plain(work: Work) -> int:
    """Every order has a customer, so every row of the result is as wide as it gets."""
    output = Path(work.root / "output.parquet")
    work.db.execute(f"COPY ({JOIN.format(hint='', **work.sources())}) TO '{output}' (FORMAT parquet, COMPRESSION zstd)")
    size = output.stat().st_size + sum(work.source(t).stat().st_size for t in work.sources())
    output.unlink()
    return size

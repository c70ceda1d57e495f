"""Values of every type, of which a row group has too many for a dictionary: every reader finds those that were written, in rejoin's own tables and in outputs."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.conftest import Sessions
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from rejoin.engines.duckdb_connection import cursor
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import data_files
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.read.duckdb_scan import relation
from rejoin.lake.write.writer import PROPERTIES
from rejoin.plan.check.topology_file import load
from rejoin.statements.own_columns import HASH
from rejoin.steps.run.topology import Topology

pytestmark = pytest.mark.slow

ROWS = 20_000
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
FILE = """
from rejoin import Topology, snapshot

t = Topology("t")
t.table("words", key="k", schema="k STRING", source=snapshot("landing")).named("out")
"""
Draw = Callable[[random.Random], Any]
KINDS: dict[str, tuple[pa.DataType, Draw]] = {
    "i": (pa.int32(), lambda r: r.choice([-(2**31), 2**31 - 1] + [r.randrange(-(2**31), 2**31)] * 6)),
    "l": (pa.int64(), lambda r: r.choice([-(2**63), 2**63 - 1] + [r.randrange(-(2**63), 2**63)] * 6)),
    "few": (pa.int64(), lambda r: r.randrange(7)),
    "c9": (pa.decimal128(9, 2), lambda r: Decimal(r.randrange(-(10**9) + 1, 10**9)).scaleb(-2)),
    "c18": (pa.decimal128(18, 0), lambda r: Decimal(r.choice([10**18 - 1, -(10**18) + 1, r.randrange(10**18)]))),
    "c38": (pa.decimal128(38, 3), lambda r: Decimal(r.randrange(-(10**30), 10**30)).scaleb(-3)),
    "day": (pa.date32(), lambda r: date(1, 1, 1) + timedelta(r.randrange(3_600_000))),
    "ts": (pa.timestamp("us", "UTC"), lambda r: BEGINNING + timedelta(microseconds=r.randrange(315_000_000 * 10**9))),
    "wall": (pa.timestamp("us"), lambda r: (BEGINNING + timedelta(microseconds=r.randrange(315_000_000 * 10**9))).replace(tzinfo=None)),
    "b": (pa.bool_(), lambda r: r.random() < 0.5),
    "f": (pa.float32(), lambda r: float(r.randrange(2**20)) / 8),
    "d": (pa.float64(), lambda r: r.uniform(-1e300, 1e300)),
    "s": (pa.string(), lambda r: r.choice(["", "ä" * r.randrange(20), f"{r.random()}", "z" * r.randrange(300)])),
    "x": (pa.binary(), lambda r: r.randbytes(r.randrange(20))),
    HASH: (pa.binary(), lambda r: r.randbytes(16)),
}  # fmt: skip
"""Column -> its type, and a value."""
WHOLE = {"i", "l", "c9", "c18", "day", "ts", "wall", HASH}


def drawn(seed: int, nulls: float, *, own: bool) -> pa.Table:
    """Rows; ``own``: as a table of rejoin's has them, with an operation and the row before."""
    print("seed", seed)
    chance = random.Random(seed)
    columns = {n: pa.array([None if chance.random() < nulls else draw(chance) for _ in range(ROWS)], k) for n, (k, draw) in KINDS.items()}
    key = {"id": pa.array(range(ROWS), pa.int64())}
    if not own:
        return pa.table({**key, **columns})
    before = pa.StructArray.from_arrays(
        list(columns.values()), list(columns), mask=pa.array([chance.random() < nulls for _ in range(ROWS)])
    )
    return pa.table({**key, "_op": pa.array(["U"] * ROWS), **columns, "_before": before})


def readings(topology: Topology, sessions: Sessions, table: Table, head: int) -> dict[str, list[dict[str, Any]]]:
    """What each reader finds, in the order of the keys."""
    data = files_of(table, head).data
    source = relation(table, data, ())
    with cursor() as database:
        duckdb = database.sql(f"SELECT * EXCLUDE (_file, _pos) FROM {source.sql} ORDER BY id", params=source.parameters).to_arrow_table()
    spark = sessions(topology).sql(f"SELECT * FROM lake.t.made VERSION AS OF {head} ORDER BY id").toArrow()
    pyiceberg = table.scan(snapshot_id=head).to_arrow().sort_by("id")
    return {
        name: found.cast(pyiceberg.schema).to_pylist() for name, found in (("spark", spark), ("duckdb", duckdb), ("pyiceberg", pyiceberg))
    }


def packed(file: DataFile) -> set[str]:
    """The columns of a file whose values are differences, or lengths apart from their texts."""
    footer = pq.read_metadata(file.file_path.removeprefix("file://"))
    columns = [footer.row_group(0).column(i) for i in range(footer.num_columns)]
    return {column.path_in_schema for column in columns if any(encoding.startswith("DELTA") for encoding in column.encodings)}


@pytest.mark.parametrize("nulls", [0.0, 0.2])
@pytest.mark.parametrize("own", [True, False], ids=["own", "output"])
def test_every_reader_finds_the_values_that_were_written(tmp_path: Path, sessions: Sessions, own: bool, nulls: float) -> None:
    (tmp_path / "t.py").write_text(FILE)
    topology = Topology(load(str(tmp_path / "t.py")), lake_config(str(tmp_path / "lake")), str(tmp_path))
    written, refs = drawn(random.SystemRandom().randrange(2**32), nulls, own=own), topology.refs
    refs.ensure_namespace()
    refs.create("made", written.schema, PROPERTIES)
    base = refs.empty("made")
    files = data_files(refs.require("made", base), written)
    head = refs.commit_files("made", "main", base, files)
    found = readings(topology, sessions, refs.require("made", head), head)
    for reader, rows in found.items():
        assert rows == written.to_pylist(), reader
    assert packed(files[0]) == ({"id"} | WHOLE | {f"_before.{name}" for name in WHOLE} if own else set())

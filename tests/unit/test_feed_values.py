"""What a sink is given has every value as the row has it, however many runs come to one change."""

import datetime as dt
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import data_files
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.read import change_feed

NOW = dt.datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 -- a wall clock, in an hour that Central Europe does not have
ODD: dict[str, tuple[pa.DataType, list[Any]]] = {
    "x": (pa.float64(), [-0.0, 0.0, math.nan, math.inf, 5e-324, -1.5]),
    "y": (pa.float32(), [-0.0, 0.0, math.nan, -math.inf, 1.5, 2.5]),
    "s": (pa.string(), ["", "\x00", "z" * 5_000, "é🙂\ufeff", "NULL", " "]),
    "b": (pa.binary(), [b"", b"\x00", b"\xff\xfe", b"'", b"\\x00", b" "]),
    "d": (pa.date32(), [dt.date.min, dt.date.max, dt.date(1582, 10, 10), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31)]),
    "n": (pa.timestamp("us"), [NOW, dt.datetime.min, dt.datetime.max, NOW, NOW, NOW]),  # noqa: DTZ901
    "t": (pa.timestamp("us", "UTC"), [NOW.replace(tzinfo=dt.UTC, microsecond=m) for m in (0, 1, 999_999, 5, 6, 7)]),
    "c": (pa.decimal128(38, 0), [Decimal(v) for v in ("9" * 38, "-" + "9" * 38, 0, 1, -1, 10)]),
    "o": (pa.bool_(), [True, False, None, True, False, None]),
}
ROW = pa.struct([("k", pa.int64()), *((name, kind) for name, (kind, _) in ODD.items())])
SCHEMA = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("k", pa.int64()), ("_before", ROW), ("_after", ROW)])


def row(key: int, shift: int) -> dict[str, Any]:
    return {"k": key, **{name: values[(key + shift) % 6] for name, (_, values) in ODD.items()}}


def exact(value: Any) -> Any:
    """A value such that ``==`` tells 0.0 from -0.0, and one NaN is another."""
    if isinstance(value, dict):
        return {k: exact(v) for k, v in value.items()}
    return ("bits", struct.pack(">d", value)) if isinstance(value, float) else value


@pytest.fixture
def log(tmp_path: Path) -> tuple[Table, int]:
    """Each key is inserted by run 1 and changed by runs 2 and 3."""
    refs = Refs(lake_config(str(tmp_path)), "t")
    refs.ensure_namespace()
    refs.create("log", SCHEMA, {})
    head = refs.empty("log")
    for run in (1, 2, 3):
        made = [
            {"_run": run, "_op": "I" if run == 1 else "U", "k": k, "_before": None if run == 1 else row(k, run - 1), "_after": row(k, run)}
            for k in range(6)
        ]
        files = data_files(refs.require("log", head), pa.Table.from_pylist(made, SCHEMA))
        head = refs.commit_files("log", f"b{run}", head, files)
    return refs.require("log", head), head


@pytest.mark.parametrize(("after", "upto", "net"), [(0, 1, False), (0, 3, True), (1, 3, True)])
def test_fault_a16_a_net_change_has_the_very_values_of_its_rows(log: tuple[Table, int], after: int, upto: int, *, net: bool) -> None:
    columns = ["k", *ODD]
    batches = list(
        change_feed.changes(change_feed.TableAt(*log), change_feed.TableAt(*log), change_feed.RunRange(after, upto, net), ["k"], columns)
    )
    found = pa.Table.from_batches(batches)
    kinds = [str(found.schema.field("_after").type.field(n).type).replace("Etc/UTC", "UTC") for n in ODD]
    assert kinds == [str(kind) for kind, _ in ODD.values()]
    wanted = [(upto, "U" if after else "I", k, exact(row(k, after)) if after else None, exact(row(k, upto))) for k in range(6)]
    assert [(r["_run"], r["_op"], r["k"], exact(r["_before"]), exact(r["_after"])) for r in found.to_pylist()] == wanted


def test_net_changes_go_from_the_first_row_to_the_last_also_of_what_is_back_at_its_row_and_of_what_came_and_went(tmp_path: Path) -> None:
    refs = Refs(lake_config(str(tmp_path)), "t")
    refs.ensure_namespace()
    refs.create("log", SCHEMA, {})
    head = refs.empty("log")
    log = [(1, "U", 0, 1, 2), (2, "U", 0, 2, 1), (1, "I", 1, None, 1), (2, "D", 1, 1, None), (1, "D", 2, 1, None), (2, "I", 2, None, 2)]
    made = [
        {"_run": r, "_op": op, "k": k, "_before": None if b is None else row(k, b), "_after": None if a is None else row(k, a)}
        for r, op, k, b, a in log
    ]
    head = refs.commit_files("log", "b", head, data_files(refs.require("log", head), pa.Table.from_pylist(made, SCHEMA)))
    state = change_feed.TableAt(refs.require("log", head), head)
    found = pa.Table.from_batches(
        list(change_feed.changes(state, state, change_feed.RunRange(0, 2, net=True), ["k"], ["k", *ODD]))
    ).to_pylist()
    back, gone, other = [(r["_run"], r["_op"], r["k"], exact(r["_before"]), exact(r["_after"])) for r in found]
    assert back == (2, "U", 0, exact(row(0, 1)), exact(row(0, 1)))
    assert gone == (2, "D", 1, exact(None), exact(None))
    assert other == (2, "U", 2, exact(row(2, 1)), exact(row(2, 2)))

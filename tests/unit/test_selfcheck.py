"""The check that every run makes on itself finds what is wrong with an output, whatever the metadata and the stored hashes say."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from limited import limited
from pyiceberg.manifest import DataFile

from rejoin import Topology, snapshot
from rejoin.errors import InvariantBroken, NotComputable
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import data_files, delete_file
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of
from rejoin.lake.ledger.records import Run
from rejoin.plan.check.compile import compile
from rejoin.plan.model.step_results import Changed
from rejoin.steps.run.self_check import SelfCheck

VALUES = [("id", pa.string()), ("note", pa.string()), ("share", pa.float64())]
ROW = pa.struct([*VALUES, ("_hash", pa.binary())])
SCHEMAS = {
    "noted": pa.schema([*VALUES, ("_run", pa.int64()), ("_hash", pa.binary())]),
    "noted__changes": pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("id", pa.string()), ("_before", ROW), ("_after", ROW)]),
}
KEY = "z" * 20
Rows = list[dict[str, Any]]


class Checked:
    """An output of one row a key as run 1 left it, and what run 2 makes of it."""

    def __init__(self, root: Path) -> None:
        shop = Topology("shop")
        orders = shop.table("orders", key="id", schema="id STRING, note STRING, share DOUBLE", source=snapshot("landing/orders"))
        orders.filter("note IS NOT NULL").named("noted")
        self.plan = compile(shop)
        self.refs = Refs(lake_config(str(root)), "shop")
        self.refs.ensure_namespace()
        for name, schema in SCHEMAS.items():
            self.refs.create(name, schema, {})
        self.before = {"noted": self.append("noted", [stored(KEY, 1), stored("a", 1)], None)}

    def append(self, table: str, rows: Rows, base: int | None, *, bound: bytes | None = None, hidden: int | None = None) -> int:
        """A snapshot with more rows; ``bound``: what the manifest says of the keys of an output's rows; ``hidden``: a row of the base's first file."""
        base = self.refs.empty(table) if base is None else base
        existing = self.refs.require(table, base)
        [file] = data_files(existing, pa.Table.from_pylist(rows, SCHEMAS[table]))
        if bound is not None:
            file.lower_bounds[1] = file.upper_bounds[1] = bound
        deletes: list[DataFile] = []
        if hidden is not None:
            deletes = [delete_file(existing, pa.table({"file_path": [files_of(existing, base).data[0].file_path], "pos": [hidden]}))]
        return self.refs.commit_files(table, f"b{base}", base, [file], deletes)

    def check(self, output: int, changes: Rows, **counts: int) -> int | str:
        now = {"noted": output, "noted__changes": self.append("noted__changes", changes, None)}
        run = Run("shop", 2, "run", "open", "me", 1, self.plan, (), 0.0, None, None)
        [node] = self.plan.nodes
        made = Changed.of(counts)
        assert made.changes == len(changes)
        facts = cast("Any", SimpleNamespace(sent=lambda _: False))
        checked: int | str = SelfCheck(self.refs, run, self.before, now).node(node, made, facts)["changes"]
        return checked


def stored(key: str, run: int, note: str = "first") -> dict[str, Any]:
    return {"id": key, "note": note, "share": float("nan"), "_run": run, "_hash": b"h"}


def change(op: str, key: str, note: str) -> dict[str, Any]:
    row = {"id": key, "note": note, "share": float("nan"), "_hash": b"h"}
    return {"_run": 2, "_op": op, "id": key, "_before": None if op == "I" else {**row, "note": "first"}, "_after": row}


@pytest.fixture
def checked(tmp_path: Path) -> Checked:
    return Checked(tmp_path)


def test_an_output_that_is_what_the_changes_say_passes(checked: Checked) -> None:
    base = checked.before["noted"]
    made = checked.append("noted", [stored(KEY, 2, "second")], base, hidden=0)
    assert checked.check(made, [change("U", KEY, "second")], updated=1) == 1


def test_fault_a1_a_second_row_of_a_key_is_found_in_a_file_whose_bounds_rule_the_key_out(
    checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked.before = {"noted": checked.append("noted", [stored(KEY, 1)], None, bound=b"a")}
    made = checked.append("noted", [stored(KEY, 2, "second")], checked.before["noted"])
    with pytest.raises(InvariantBroken, match="has 2 rows for 1 changed keys"):
        checked.check(made, [change("I", KEY, "second")], inserted=1)
    limited(monkeypatch, opened_files=1)
    assert checked.check(made, [change("I", KEY, "second")], inserted=1) == 1  # of a table of many files only some are opened


def test_fault_c3_a_value_that_is_not_the_changes_is_found_though_its_stored_hash_is_the_same(checked: Checked) -> None:
    base = checked.before["noted"]
    made = checked.append("noted", [stored(KEY, 2, "another")], base, hidden=0)
    with pytest.raises(InvariantBroken, match="or others than were written"):
        checked.check(made, [change("U", KEY, "second")], updated=1)


def test_a_date_that_only_spark_has_is_refused_with_the_name_of_its_column(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    made = checked.append("noted", [stored("b", 2)], checked.before["noted"])
    found = pa.table({"id": ["b"], "day": pa.array([2_932_897], pa.int32()).cast(pa.date32())})  # as Spark can have written it
    monkeypatch.setattr(SelfCheck, "_having", lambda *_, **__: found)
    with pytest.raises(NotComputable, match="column day of table noted "):
        checked.check(made, [change("I", "b", "first")], inserted=1)

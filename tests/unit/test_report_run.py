"""What a run says at its end, on lakes that were made without Spark."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from unit import small_lake

from rejoin import Topology as Declared
from rejoin import snapshot
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord
from rejoin.lake.query.point_query import PointQuery
from rejoin.lake.query.typed_keys import typed
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.step_results import Ending
from rejoin.report import run as report_run
from rejoin.steps.run.topology import Topology


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> Topology:
    return Topology(small_lake.plan(), lake_config(small_lake.make(tmp_path_factory.mktemp("lake"))), ".")


def said(topology: Topology, number: int, steps: list[StepRecord] | None = None, where: str = "") -> list[str]:
    console = Console(file=(text := StringIO()), width=160)
    run = topology.ledger.run(number)
    report_run.ending(console, topology, run, steps or list(topology.ledger.steps(number).values()), where)
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def test_a_run_says_what_changed_what_was_kept_aside_and_what_can_be_typed_next(topology: Topology) -> None:
    lines = said(topology, 1, where="--lake 'my lake'")
    assert lines[0].startswith("run 1 of shop: committed in ")
    assert lines[0].endswith(" s; 7 rows read, 6 rows changed; rebuilt: enriched")
    assert lines[1:3] == ["output inserted updated deleted", "enriched 6 0 0"]
    assert lines[3] == "1 of 7 rows of orders quarantined (1 VALUE_TYPE): rejoin quarantine list orders --lake 'my lake'"
    assert lines[4].startswith("validated expectation severity met rows bad")
    at = lines.index("next: rejoin get enriched 1 --lake 'my lake'")
    assert lines[at + 1 :] == ["rejoin changes enriched --lake 'my lake'", "rejoin verify --lake 'my lake'"]


def test_the_row_to_look_at_is_one_that_is_still_there(topology: Topology) -> None:
    assert PointQuery(topology.ledger, topology.refs, 2).changed_key("enriched") == (1,)
    assert "next: rejoin get enriched 1" in said(topology, 2)
    assert PointQuery(topology.ledger, topology.refs, 2).put_aside("orders") == {}, "run 2 has released one, not put aside"
    assert PointQuery(topology.ledger, topology.refs, 2).put_aside("customers") == {}
    assert PointQuery(topology.ledger, topology.refs, 2).changed_key("customers") is None


def test_a_run_with_nothing_new_is_a_single_line(topology: Topology) -> None:
    idle = [StepRecord("cut", {"files": 0}, 0.1, 0), StepRecord("ingest.orders", {"read": 0, "quarantined": 0}, 0.0, 0)]
    idle += [StepRecord("resolve.enriched", dict.fromkeys(("inserted", "updated", "deleted", "changes"), 0), 0.0, 0)]
    assert len(lines := said(topology, 2, idle)) == 1
    assert lines[0].endswith(" s; nothing new")
    read = [*idle[:1], StepRecord("ingest.orders", {"read": 1, "quarantined": 0}, 0.0, 0), *idle[2:]]
    assert said(topology, 2, read)[0].endswith(" s; 1 row read, 0 rows changed")


def test_held_back_rows_skipped_outputs_and_what_a_cut_noticed_are_told(topology: Topology) -> None:
    steps = [
        StepRecord("cut", {"ignored": 2}, 0.1, 0, {"ignored": ["landing/[x]", "landing/old"], "left_behind": {"names": ["a"], "as_of": 1}}),
        StepRecord("resolve.enriched", {"inserted": 3, "updated": 0, "deleted": 0, "changes": 3}, 0.1, 0),
        StepRecord("validate.enriched", {"inserted": 1, "updated": 0, "deleted": 0, "held_back": 2, "released": 0}, 0.1, None),
    ]
    lines = said(topology, 2, steps)
    assert lines[1:3] == ["output inserted updated deleted held back", "enriched 1 0 0 2"]
    assert lines[3] == "2 rows of enriched held back: rejoin quarantine list enriched", "there is no table to say why"
    assert "not looked into (2): landing/[x], landing/old" in lines
    assert any(line.startswith("no longer in the topology: a; the tables stay as run 1 left them") for line in lines)
    skipped = [replace(steps[1], counts={"inserted": 0, "updated": 0, "deleted": 0, "withheld": 5}, ending=Ending.KEPT)]
    assert said(topology, 2, skipped)[1:] == ["left as they were: enriched; the next run recomputes them"]


def composite() -> Plan:
    made = Declared("odd")
    table = made.table("a", key=("day", "name"), schema="day DATE, name STRING, n BIGINT", source=snapshot("landing/a"))
    table.filter("n > 0").named("out")
    return compile(made)


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], Topology]:
    """A lake of which one run has changed one row, with a text in its key."""
    schema = pa.schema([("_run", pa.int64()), ("_op", pa.string()), ("day", pa.date32()), ("name", pa.string())])
    monkeypatch.setitem(small_lake.SCHEMAS, "out__changes", schema)
    return partial(_odd, str(tmp_path / "lake"))


def _odd(location: str, name: str | None) -> Topology:
    topology = Topology(composite(), lake_config(location), ".")
    ledger, refs = Ledger(topology.config.ledger, "odd"), Refs(topology.config, "odd")
    refs.ensure_namespace()
    refs.create("out__changes", small_lake.SCHEMAS["out__changes"], {})
    run = ledger.open("process:here:1:2.0", topology.plan, {"out": "f"})
    write = small_lake.append(refs, "out__changes", [{"_run": 1, "_op": "I", "day": date(2026, 1, 2), "name": name}])
    counts = {"inserted": 1, "updated": 0, "deleted": 0, "changes": 1}
    ledger.register(run.number, StepRecord("resolve.out", counts, 0.4, 2), "a", (write,))
    ledger.publish(run.number)
    return topology


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("x", "rejoin get out 2026-01-02 x --lake there"),
        ("it's; $(x)", "rejoin get out 2026-01-02 'it'\"'\"'s; $(x)' --lake there"),
        ("-1", "rejoin get --lake there -- out 2026-01-02 -1"),
        ("", "rejoin get out 2026-01-02 '' --lake there"),
        (None, r"rejoin get out 2026-01-02 '\N' --lake there"),
        (r"\N", r"rejoin get out 2026-01-02 '\\N' --lake there"),
    ],
)
def test_the_command_for_a_row_can_be_typed_whatever_its_key_holds(
    odd: Callable[[str | None], Topology], name: str | None, command: str
) -> None:
    lines = said(odd(name), 1, where="--lake there")
    assert f"next: {command}" in lines
    assert name in typed(shlex.split(command))


def test_a_compaction_and_an_expiry_say_what_they_did(topology: Topology) -> None:
    console = Console(file=(text := StringIO()), width=160)
    run = topology.ledger.run(1)
    steps = [
        StepRecord("expire.a", {"snapshots": 2, "files": 1200, "orphans": 0}, 1.0, None),
        StepRecord("expire.b", {"snapshots": 1, "files": 0, "orphans": 0}, 1.0, None),
        StepRecord("publish", {"tables": 0}, 0.0, 0),
    ]
    report_run.upkeep(console, run, steps, "looked at", "--lake there")
    first, second = text.getvalue().splitlines()
    assert first.startswith("run 1 of shop: 2 tables looked at in ") and first.endswith(" s, 3 snapshots freed, 1,200 files deleted")
    assert second == "next: rejoin history --run 1 --lake there"

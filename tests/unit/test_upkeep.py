"""Runs that read no input, such as a compaction: they keep the plan of the run that they start from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
import small_lake
from made_lake import MadeLake
from pyiceberg.types import LongType

from rejoin.errors import RunSuperseded, UnknownTable
from rejoin.lake import table_names
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.commits import SnapshotContents
from rejoin.lake.iceberg.snapshot_files import SnapshotFiles, exact_files
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import Run, StepRecord, Write
from rejoin.lake.ledger.runs import RunKind
from rejoin.operate.quarantine import drop
from rejoin.plan.model.plan import Plan, Projection
from rejoin.steps.run.lease import trying
from rejoin.steps.run.topology import Topology


def edited() -> Plan:
    """The shop with one more column."""
    plan = small_lake.plan()
    [node] = plan.nodes
    return replace(plan, nodes=(replace(node, columns=(*node.columns, Projection("bought", "l.`customer_id`", "BIGINT"))),))


def test_fault_look_an_edit_that_is_committed_while_a_compaction_opens_its_run_keeps_its_new_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = Topology(small_lake.plan(), lake_config(small_lake.make(tmp_path)), str(tmp_path))
    ledger, real, opened = topology.ledger, Ledger.open, list[str]()

    def commits_an_edit_first(self: Ledger, owner: str, plan: Plan, *rest: Any, **more: Any) -> Run:
        opened.append(owner)
        if len(opened) == 1:
            other = real(self, "somebody else", edited(), {"enriched": "g"})
            table = topology.refs.table("enriched")
            assert table is not None
            with table.update_schema() as update:
                update.add_column("bought", LongType())
            made = topology.refs.commit_files("enriched", table_names.branch(other.number, "a"), ledger.states(other.base)["enriched"], [])
            self.register(other.number, StepRecord("resolve.enriched", {}, 0.0, 0), "a", (Write("enriched", made),))
            self.publish(other.number)
        return real(self, owner, plan, *rest, **more)

    def rewrite(run: Run) -> None:
        base = ledger.states(run.base)["enriched"]
        kept = SnapshotFiles(exact_files(topology.refs.require("enriched", base), base).data_entries, ())
        made = topology.refs.commit_rewrite("enriched", table_names.branch(run.number, "compact"), base, SnapshotContents(kept, []))
        ledger.register(run.number, StepRecord("compact.enriched", {}, 0.0, 0), "compact", (Write("enriched", made),))

    monkeypatch.setattr(Ledger, "open", commits_an_edit_first)
    done = topology.upkeep("me", RunKind.COMPACT, rewrite)
    assert [n.name for n in done.plan.nodes[0].columns] == ["id", "note", "customer", "bought"]
    table = topology.refs.table("enriched")
    assert table is not None and "bought" in table.schema().column_names
    assert [(r.kind, r.state) for r in ledger.runs()[-3:]] == [("run", "committed"), ("compact", "abandoned"), ("compact", "committed")]
    assert ledger.head() == done.number and ledger.run(done.number).base == done.number - 2


def test_rows_of_an_output_are_not_dropped_though_the_newest_run_that_failed_had_a_topology_without_it(tmp_path: Path) -> None:
    plan = small_lake.plan()
    lake = MadeLake(tmp_path, plan)
    lake.run({"enriched__quarantine": [{"id": 1, "_op": "Q", "_code": "EXPECTATION"}]})
    failed = lake.ledger.open("an edit", replace(plan, nodes=()), {})
    lake.ledger.fail(failed.number, "no source")
    of_the_newest = Topology(failed.plan, lake_config(lake.location), str(tmp_path))
    with pytest.raises(UnknownTable, match="is an output"):
        drop(of_the_newest, "test", "enriched")
    assert lake.ledger.head() == 1


def test_what_fails_in_a_run_that_others_have_closed_says_that_it_is_superseded(tmp_path: Path) -> None:
    """They may have deleted what it reads: whatever that looks like to an engine, trying again changes nothing."""
    topology = Topology(small_lake.plan(), lake_config(small_lake.make(tmp_path)), str(tmp_path))

    def overtaken(run: Run) -> None:
        topology.ledger.abandon(run.number, "taken over by another process")
        raise duckdb.IOException("No files found")

    with pytest.raises(RunSuperseded, match="taken over by another process"):
        topology.upkeep("me", RunKind.COMPACT, overtaken)
    run = topology.open("me")
    with pytest.raises(RunSuperseded, match="taken over by another process"), trying(topology.ledger, run, "resolve.enriched"):
        overtaken(run)
    run = topology.open("me")
    with pytest.raises(duckdb.IOException), trying(topology.ledger, run, "resolve.enriched"):
        raise duckdb.IOException("No files found")

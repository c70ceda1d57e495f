"""`rejoin repair`: what it says, and ends with, of what a repair has found and done; and the run that it opens."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import small_lake
from click.testing import CliRunner, Result

from rejoin.cli import main
from rejoin.errors import SinksBehind, UnknownTable
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.records import StepRecord
from rejoin.operate import repair
from rejoin.operate.repair import Repaired
from rejoin.operate.verify.comparison import Difference
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import RunOptions
from rejoin.steps.run.topology import Topology

FINE = Difference("enriched", 5, 0, 0, 0, 0)
WRONG = Difference("enriched", 5, 1, 0, 2, 0, suspects=3)
HIDDEN = Difference("enriched", 5, 0, 0, 0, 0, hidden=1)
LEFT_OUT = Difference("others", 7, 0, 0, 0, 0, kept=True)
CHANGES = {"inserted": 1, "updated": 1_200, "deleted": 0, "changes": 1_201}
STEPS = {
    "resolve.enriched": StepRecord("resolve.enriched", CHANGES, 0.1, 1, {"refresh": "full", "why": "the run repairs it"}),
    "validate.enriched": StepRecord("validate.enriched", CHANGES, 0.1, 1),
    "resolve.others": StepRecord("resolve.others", {**CHANGES, "inserted": 0, "updated": 0}, 0.1, 1, {"refresh": "skip", "why": ""}),
    "validate.others": StepRecord("validate.others", {**CHANGES, "inserted": 0, "updated": 0}, 0.1, 1),
}
Command = Callable[..., Result]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_lake.make(tmp_path_factory.mktemp("made"))


@pytest.fixture
def command(lake: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, after a repair that came to this."""

    def run(*words: str, **became: object) -> Result:
        run = Topology(small_lake.plan(), lake_config(lake), ".").ledger.run(2)
        if became.pop("ran", True):
            became = {"run": run, "steps": STEPS, **became}
        monkeypatch.setattr(repair, "repair", lambda *_, **__: Repaired(**became))  # type: ignore[arg-type]
        return CliRunner().invoke(main, ["repair", "--lake", lake, *words])

    return run


def test_where_nothing_was_wrong_it_says_so_and_ends_with_0(command: Command) -> None:
    done = command(before=[FINE], after=[FINE], ran=False)
    assert done.exit_code == 0 and done.stdout.endswith("0 differences\nnothing to recompute, so no run was opened\n")
    data = json.loads(command("--json", before=[FINE], after=[FINE], ran=False).stdout)
    assert (data["run"], data["differences"], data["outputs"][0]["recomputed"]) == (None, 0, False)


def test_every_output_is_told_with_what_was_done_to_it(command: Command) -> None:
    done = command(before=[WRONG, LEFT_OUT], after=[FINE, LEFT_OUT])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    at = lines.index("run 2 of shop, on what was stored, without new input:")
    assert lines[at - 1] == "3 differences: an output is not what its SQL says" and lines[-1] == "0 differences"
    assert lines[at + 1 : at + 3] == [
        "  enriched: recomputed; 1 inserted, 1,200 updated",
        "  others: left as the last run left it; no row changed",
    ]


def test_json_is_one_object_with_every_output(command: Command) -> None:
    data = json.loads(command("--json", before=[WRONG, LEFT_OUT], after=[FINE, LEFT_OUT]).stdout)
    nothing = {"inserted": 0, "updated": 0, "deleted": 0}
    assert data == {
        "topology": "shop",
        "fast": True,
        "run": 2,
        "differences": 0,
        "outputs": [
            {
                "output": "enriched",
                "compared": True,
                "found": 3,
                "recomputed": True,
                **nothing,
                "inserted": 1,
                "updated": 1200,
                "differences": 0,
            },
            {"output": "others", "compared": False, "found": 0, "recomputed": False, **nothing, "differences": 0},
        ],
    }


def test_differences_that_are_left_are_exit_code_1_and_to_be_reported(command: Command) -> None:
    done = command(before=[WRONG], after=[WRONG])
    assert done.exit_code == 1
    assert "recomputing did not help: please report it with `rejoin history --run 2`" in done.stdout


def test_rows_that_filters_hide_are_left_to_compaction(command: Command) -> None:
    done = command("--full", before=[HIDDEN], after=[HIDDEN], ran=False)
    assert done.exit_code == 1
    assert "`rejoin compact` repairs these" in done.stdout and "no run was opened" in done.stdout


@pytest.mark.parametrize(("after", "code"), [(FINE, 7), (WRONG, 1)])
def test_a_sink_that_did_not_get_it_is_exit_code_7_unless_differences_are_left(command: Command, after: Difference, code: int) -> None:
    done = command(before=[WRONG], after=[after], behind=SinksBehind("enriched.kafka did not get it"))
    assert done.exit_code == code
    assert "enriched.kafka did not get it" in done.stderr


def test_its_run_recomputes_the_named_outputs_with_the_stored_definition_and_reads_no_input(tmp_path: Path) -> None:
    """There are no source files in this place."""
    config = lake_config(small_lake.make(tmp_path))
    edited = Topology(Plan("shop", (), ()), config, str(tmp_path))
    run = edited.open("me", RunOptions(repair=("enriched",)))
    assert (run.rebuild, run.plan.repair) == (("enriched",), ("enriched",))
    assert run.plan.tables == small_lake.plan().tables
    assert edited.cut(run, "note").counts == {"files": 0, "bytes": 0, "superseded_snapshots": 0, "ignored": 0}
    assert edited.ledger.pins(run.number) == {"orders": None, "customers": None}
    again = Topology(small_lake.plan(), config, str(tmp_path)).open("me")
    assert (again.number, again.rebuild) == (run.number + 1, ()), "the same owner asks for a run without a repair"


def test_a_name_that_is_no_output_opens_no_run(tmp_path: Path) -> None:
    topology = Topology(small_lake.plan(), lake_config(small_lake.make(tmp_path)), str(tmp_path))
    with pytest.raises(UnknownTable, match="has no output orders"):
        topology.open("me", RunOptions(repair=("orders",)))
    assert len(topology.ledger.runs()) == 3

"""`rejoin plan` on a real lake made without Spark, and the question of `rejoin run`: what they say, ask and end with, and that they write nothing."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import small_lake
from click.testing import CliRunner, Result

from rejoin.cli import main
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger import history, schema
from rejoin.steps.run import schedule

FILE = """
from rejoin import Topology, debezium, kafka, snapshot

shop = Topology("shop")
orders = shop.table("orders", key="id", schema="{orders}", source=debezium("landing/orders"))
customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("landing/customers"))
orders.left_join(customers, foreign_key="customer_id", select=["left.id", "note", "{customer} AS customer"]).named("{name}"{options})
{more}
"""
DEFAULT = {
    "orders": "id BIGINT, customer_id BIGINT, note STRING",
    "customer": "right.name",
    "name": "enriched",
    "options": "",
    "more": "",
}
UPPER = "upper(right.name)"
Files = dict[str, bytes]


def tree(root: Path) -> Files:
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else b"(folder)" for p in sorted(root.rglob("*"))}


def closed(location: str) -> None:
    """As after processes that ended: no connection is open, so SQLite has put its logs into the databases."""
    config = lake_config(location)
    for engine in (schema.connected(config.ledger), history.connected(config.ledger), Refs(config, "shop")._catalog.engine):  # type: ignore[attr-defined]
        engine.dispose()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs and a failed third; the tests of this file only read it."""
    return Path(small_lake.make(tmp_path_factory.mktemp("made")))


@pytest.fixture
def root(tmp_path: Path, lake: Path) -> Path:
    """The lake, and what its sources have delivered since."""
    (tmp_path / "lake").symlink_to(lake)
    for name in ("orders", "customers"):
        (tmp_path / "landing" / name).mkdir(parents=True)
    (tmp_path / "landing" / "orders" / "1.jsonl").write_bytes(b" " * 2048)
    (tmp_path / "landing" / "orders" / "2.jsonl").write_text("{}\n")
    (tmp_path / "landing" / "customers" / "1.csv").write_text("id,name\n7,Ann\n")
    return tmp_path


def invoke(root: Path, *words: str, lake: str = "lake", **edit: str) -> Result:
    (root / "t.py").write_text(FILE.format(**{**DEFAULT, **edit}))
    command, *options = words
    return CliRunner().invoke(main, [command, str(root / "t.py"), "--lake", str(root / lake), "--root", str(root), *options])


def planned(root: Path, **edit: str) -> tuple[int, dict[str, object], dict[str, dict[str, object]]]:
    """Exit code, data, and its entries by name, of `rejoin plan --json`."""
    done = invoke(root, "plan", "--json", **edit)
    data = json.loads(done.stdout)
    return done.exit_code, data, {e["name"]: e for e in data["entries"]}


def test_an_edit_is_told_with_rows_bytes_input_and_the_time_of_an_earlier_run(root: Path) -> None:
    code, data, entries = planned(root, customer=UPPER, more='customers.select(["id"]).named("people")')
    assert code == 0
    enriched = entries["enriched"]
    assert (enriched["change"], enriched["asks"], enriched["why"]) == (
        "rebuilt",
        True,
        ["column customer: r1.`name` becomes upper(r1.`name`)"],
    )
    assert (enriched["computed_rows"], enriched["stored_rows"]) == (8, 6), "versions of orders; rows of the output"
    assert enriched["earlier"] == {"run": 1, "rows": 6, "seconds": 2.8}
    assert enriched["seconds"] == pytest.approx(2.8 * 8 / 6, abs=0.001)
    assert enriched["read_bytes"] == entries["orders"]["stored_bytes"] + enriched["stored_bytes"] > 0  # type: ignore[operator]
    assert (entries["people"]["change"], entries["people"]["seconds"]) == ("new", None)
    assert data["waiting"] == [
        {"table": "orders", "files": 1, "bytes": 3, "skipped_snapshots": 0},
        {"table": "customers", "files": 1, "bytes": 14, "skipped_snapshots": 0},
    ]
    assert (data["newest_run"], data["open_run"], data["asks"]) == (2, 3, True)


def test_people_read_the_same_in_groups(root: Path) -> None:
    text = invoke(root, "plan", customer=UPPER, more="orders.select(['id']).named('ids').to(kafka('ids'))").output
    flat = " ".join(text.split())
    for said in (
        "whose newest run is 2",
        "rebuilt output enriched column customer: r1.`name` becomes upper(r1.`name`) computed from 8 stored rows, compared with 6 stored rows",
        "new table customers output ids computed from 8 stored rows",
        "sinks ids.kafka new: kafka ids gets all rows once, then changes",
        "orders 1 new file, 3 bytes",
        "estimate to compute up to 16 stored rows, from",
        "enriched about 3.7 s (run 1 took 2.8 s for 6 rows)",
        "run 3 is failed",
        "`rejoin run` asks before it does this; --yes agrees",
    ):
        assert said in flat, text


def test_an_unchanged_definition_rebuilds_nothing_and_asks_nothing(root: Path) -> None:
    code, data, entries = planned(root)
    assert (code, data["asks"], entries["enriched"]["change"]) == (0, False, "unchanged")
    assert "estimate" not in invoke(root, "plan").output


@pytest.mark.parametrize("edit", [{}, {"customer": UPPER}, {"name": "joined"}], ids=["unchanged", "edited", "renamed"])
def test_nothing_is_written_to_ledger_catalog_tables_or_sources(root: Path, lake: Path, edit: dict[str, str]) -> None:
    (root / "t.py").write_text(FILE.format(**{**DEFAULT, **edit}))
    closed(str(lake))
    before = tree(lake), tree(root)
    for options in ((), ("--json",)):
        assert invoke(root, "plan", *options, **edit).exit_code == 0
    with sqlite3.connect(lake / "ledger.db") as db:
        assert db.execute("SELECT count(*), max(run) FROM rejoin_runs").fetchone() == (3, 3)
    db.close()
    closed(str(lake))
    assert (tree(lake), tree(root)) == before
    assert "ledger.db" in before[0] and "ledger.db-wal" not in before[0]


@pytest.mark.parametrize("there", [False, True], ids=["no lake", "an empty folder"])
def test_without_a_lake_everything_is_new_and_nothing_is_made(root: Path, there: bool) -> None:
    if there:
        (root / "other").mkdir()
    (root / "t.py").write_text(FILE.format(**DEFAULT))
    before = tree(root)
    done = invoke(root, "plan", lake="other")
    assert done.exit_code == 0
    assert "so everything is new" in done.output and "orders 2 new files, 2,051 bytes" in " ".join(done.output.split())
    assert "estimate" not in done.output and "--yes" not in done.output
    assert tree(root) == before


def test_a_topology_that_a_lake_does_not_know_is_new_in_it(root: Path) -> None:
    done = invoke(root, "plan", more='shop.name = "other"')
    assert done.exit_code == 0 and "topology other: nothing was committed" in done.output


NARROW = {"orders": "id INT, customer_id BIGINT, note STRING"}


@pytest.mark.parametrize(
    ("edit", "code", "said"),
    [
        (NARROW, 5, "SCHEMA_REFUSED"),
        ({"customer": "length(right.name)"}, 5, "SCHEMA_REFUSED"),
        ({"customer": UPPER, "options": ', refresh="incremental_strict"'}, 3, "REFRESH_REFUSED"),
    ],
    ids=["a narrower column", "another type", "no rebuild allowed"],
)
def test_what_the_next_run_would_refuse_is_told_and_is_the_exit_code(root: Path, edit: dict[str, str], code: int, said: str) -> None:
    done = invoke(root, "plan", **edit)
    assert done.exit_code == code
    assert f"refused {said}" in " ".join(done.stdout.split()) and said in done.stderr
    assert "input waiting" in done.stdout, "the rest is told as well"
    assert planned(root, **edit)[1]["refused"][0]["code"] == said  # type: ignore[index]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda root: (root / "landing" / "orders" / "1.jsonl").write_text("shorter"), "SOURCE_FILE_CHANGED"),
        (lambda root: (root / "landing" / "customers" / "1.csv").unlink(), "SOURCE_MISSING"),
        (lambda root: (root / "landing" / "customers" / "1.csv").write_text("id,title\n7,Ann\n"), "SCHEMA_DRIFT"),
    ],
    ids=["a changed file", "no snapshot", "another column"],
)
def test_input_that_the_next_cut_would_refuse_is_told_and_is_the_exit_code(root: Path, damage: Callable[[Path], object], said: str) -> None:
    damage(root)
    done = invoke(root, "plan")
    assert done.exit_code == 3
    assert f"refused, {said}" in done.stdout and said in done.stderr
    assert "Ann" not in done.output


def test_a_table_whose_snapshot_is_gone_has_no_numbers(root: Path, lake: Path) -> None:
    changed = "UPDATE rejoin_states SET snapshot_id = snapshot_id + ? WHERE table_name = 'orders'"
    with sqlite3.connect(lake / "ledger.db") as db:
        db.execute(changed, (1,))
    try:
        code, _, entries = planned(root, customer=UPPER)
        assert code == 0 and entries["orders"]["stored_rows"] is None
        assert entries["enriched"]["computed_rows"] is None and entries["enriched"]["seconds"] is None
        assert "an unknown number of stored rows" in " ".join(invoke(root, "plan", customer=UPPER).output.split())
    finally:
        with sqlite3.connect(lake / "ledger.db") as db:
            db.execute(changed, (-1,))


def test_a_lake_file_that_is_missing_and_a_path_that_can_be_no_lake_are_set_up_errors(root: Path) -> None:
    for lake in ("missing.toml", "t.py"):
        done = invoke(root, "plan", lake=lake)
        assert done.exit_code == 5 and "SETUP" in done.stderr


# --- rejoin run ----------------------------------------------------------------------------------------------------------


class Reached(Exception):
    """A run would be opened now."""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: object, **__: object) -> None:
        raise Reached

    monkeypatch.setattr(schedule, "run_topology", reached)


def ran(done: Result) -> bool:
    """Whether the command came to the run; if not, it ended with the error of a plan that nobody agreed to."""
    refused = done.exit_code == 2 and "PLAN_NOT_APPROVED" in done.output
    assert refused or (done.exit_code == 1 and "Reached" in done.output), done.output
    return not refused


@pytest.mark.usefixtures("runs")
def test_without_a_terminal_an_edit_needs_yes_and_its_plan_is_on_stderr(root: Path) -> None:
    done = invoke(root, "run", customer=UPPER)
    assert not ran(done)
    assert "column customer: r1.`name` becomes upper(r1.`name`)" in " ".join(done.stderr.split())
    assert "run with --yes" in done.stderr and done.stdout == ""
    agreed = invoke(root, "run", "--yes", "--json", customer=UPPER)
    assert ran(agreed)
    assert "rebuilt" in agreed.stderr and agreed.stdout == ""


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("edit", "asks"),
    [
        ({}, False),
        ({"more": 'orders.select(["id"]).named("ids").to(kafka("ids"))'}, False),
        ({"orders": "id BIGINT, customer_id BIGINT, note STRING, extra DATE"}, False),
        ({"name": "joined"}, True),
        ({"orders": "id BIGINT, customer_id BIGINT, note STRING, extra DATE", "more": 'orders.select(["id"]).named("ids")'}, False),
    ],
    ids=["unchanged", "a new output and sink", "a new column", "renamed", "a new column and output"],
)
def test_only_what_rebuilds_or_leaves_something_behind_asks(root: Path, edit: dict[str, str], asks: bool) -> None:
    assert ran(invoke(root, "run", **edit)) is not asks


@pytest.mark.usefixtures("runs")
def test_a_first_run_asks_nothing(root: Path) -> None:
    assert ran(invoke(root, "run", lake="other"))


@pytest.mark.usefixtures("runs")
def test_an_edited_output_that_the_run_leaves_out_asks_when_its_turn_comes(root: Path) -> None:
    more = 'orders.select(["id"]).named("ids")'
    assert ran(invoke(root, "run", "--only", "ids", customer=UPPER, more=more))
    assert not ran(invoke(root, "run", "--only", "enriched", customer=UPPER, more=more))


@pytest.mark.usefixtures("runs")
def test_what_a_run_would_refuse_is_refused_before_anybody_is_asked(root: Path) -> None:
    done = invoke(root, "run", "--yes", customer="length(right.name)")
    assert done.exit_code == 5 and "SCHEMA_REFUSED" in done.stderr


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(("answer", "runs_then"), [("y\n", True), ("n\n", False), ("\n", False)], ids=["yes", "no", "nothing"])
def test_on_a_terminal_it_asks(root: Path, monkeypatch: pytest.MonkeyPatch, answer: str, runs_then: bool) -> None:
    from rejoin.cli import plan

    streams = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True), stderr=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(plan, "sys", streams)
    (root / "t.py").write_text(FILE.format(**{**DEFAULT, "customer": UPPER}))
    words = ["run", str(root / "t.py"), "--lake", str(root / "lake"), "--root", str(root)]
    done = CliRunner().invoke(main, words, input=answer)
    assert "Run it? [y/N]" in done.stderr
    assert ran(done) is runs_then


@pytest.mark.usefixtures("runs")
def test_judging_rows_again_with_an_edited_file_asks_as_well(root: Path) -> None:
    (root / "t.py").write_text(FILE.format(**{**DEFAULT, "customer": UPPER}))
    words = ["quarantine", "replay", str(root / "t.py"), "orders", "--lake", str(root / "lake"), "--root", str(root)]
    assert not ran(CliRunner().invoke(main, words))

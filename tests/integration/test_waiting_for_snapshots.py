"""``on_incomplete="wait"``: what is made of a table stays as it is while a snapshot in its feed goes on, the run says so, and nothing is lost."""

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from integration import bootstrapper
from integration.bootstrapper import Bootstrapper
from integration.conftest import Go
from integration.connector import Connector, history
from integration.shop import rows
from integration.snapshot_feed import DEBEZIUM, MAXWELL, Feed

from rejoin.cli import main
from rejoin.plan.model.steps import Step, Verb, steps
from rejoin.steps.run.job import step

pytestmark = pytest.mark.slow

WAIT = ', max_delete_share=1, on_incomplete="wait"'
JOINED = """
from rejoin import Topology, debezium, feed, snapshot

t = Topology("feed")
notes = t.table("notes", key="id", schema="id BIGINT, body STRING", source={source})
orders = t.table("orders", key="id", schema="id BIGINT, note BIGINT", source=snapshot("orders"))
notes.filter("id >= 0").named("published")
orders.select(["id", "note"]).named("beside")
noted = orders.left_join(notes, foreign_key="note", select=["left.*", "right.body"]).named("noted")
noted.filter("id > 0").named("above")
"""


@pytest.fixture
def feed(tmp_path: Path, go: Go) -> Feed[Connector]:
    made = Feed(tmp_path, go, Connector(), options=WAIT)
    for key in range(6):
        made.connector.put(key, f"n{key}", seen=False)
    return made


def typed(feed: Feed[Connector], *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--lake", str(feed.root / "lake")])


def run(feed: Feed[Connector]) -> Result:
    """A run at the command line with what was written."""
    feed.write(feed.connector.take())
    return typed(feed, "run", str(feed.root / "feed.py"), "--root", str(feed.root))


def test_a_run_commits_and_says_which_output_waits_for_which_table(feed: Feed[Connector]) -> None:
    feed.connector.snapshot(4)
    done = run(feed)
    assert done.exit_code == 75, done.output
    assert "SNAPSHOT_OPEN run 1 of feed is committed, and left published as it was: a snapshot in the feed of notes" in done.output
    assert "run 1 of feed: committed" in done.output and "notes is incomplete" in done.output
    assert run(feed).exit_code == 75, "as long as it is so, whether or not anything is new"
    why = "a snapshot in the feed of notes goes on"
    file = str(feed.root / "feed.py")
    assert why in typed(feed, "history", "--topology", "feed", "--run", "2").output
    assert why in " ".join(typed(feed, "explain", file, "--run", "2").output.split())
    assert "outputs wait for the end of a snapshot" in typed(feed, "explain", file).output
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    done = run(feed)
    assert done.exit_code == 0, done.output
    assert feed.published == feed.connector.rows


def test_what_came_while_it_waited_is_published_with_the_end_and_changes_are_net(feed: Feed[Connector]) -> None:
    feed.connector.snapshot()
    feed.run()
    before = feed.published
    assert before == feed.connector.rows
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot(2)
    feed.connector.put(7, "new")
    feed.run()
    assert feed.published == before and 7 not in before
    feed.connector.snapshot()
    feed.run()
    assert feed.published == feed.connector.rows
    shown = typed(feed, "changes", "published", "--topology", "feed").output
    assert [json.loads(line)["op"] for line in shown.splitlines()] == ["D", "I"], shown


def test_an_end_to_waiting_can_be_declared(feed: Feed[Connector]) -> None:
    feed.connector.snapshot(4)
    feed.run()
    feed.declare("")
    feed.run()
    assert set(feed.published) == {0, 1, 2, 3}


def order(feed: Feed[Connector], *notes: int) -> None:
    directory = feed.root / "orders"
    directory.mkdir(exist_ok=True)
    number = len(list(directory.iterdir())) + 1
    (directory / f"{number:03}.csv").write_text("id,note\n" + "".join(f"{i},{n}\n" for i, n in enumerate(notes, 1)))


def made(feed: Feed[Connector], name: str) -> dict[object, object]:
    topology = feed.topology
    return {r["id"]: r.get("body") for r in rows(topology, name)} if topology.ledger.states(topology.ledger.head()).get(name) else {}


@pytest.mark.parametrize("late", [False, True], ids=["ingested first", "ingested after the left side has subscribed"])
def test_task_by_task_all_that_is_made_of_the_table_waits_and_nothing_else(
    feed: Feed[Connector], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Airflow does it: a task finds out by itself, whatever has ended before it."""
    monkeypatch.setenv("REJOIN_ENGINE", "local")
    feed.declare(WAIT, JOINED)

    def tasks(owner: str) -> None:
        topology, ended = feed.topology, set[str]()
        waiting = [s for s in steps(topology.plan) if s.verb is not Verb.PUBLISH]
        waiting.sort(key=lambda s: late and s.id == "ingest.notes")
        while waiting:
            one = next(s for s in waiting if set(s.after) <= ended)
            waiting.remove(one)
            ended.add(one.id)
            step(topology, owner, one.verb, one.target)
        publish = Step(Verb.PUBLISH, "", ())
        step(topology, owner, publish.verb, publish.target)

    feed.connector.snapshot(4)
    feed.write(feed.connector.take())
    order(feed, 1, 2)
    tasks("first")
    assert [len(made(feed, n)) for n in ("published", "beside", "noted", "above")] == [0, 2, 0, 0]
    feed.connector.delete(1, seen=False)
    feed.connector.snapshot()
    feed.write(feed.connector.take())
    tasks("second")
    assert made(feed, "noted") == made(feed, "above") == {1: None, 2: "n2"}
    feed.connector.snapshot(2)
    feed.write(feed.connector.take())
    order(feed, 1, 2, 3)
    tasks("third")
    assert [len(made(feed, n)) for n in ("published", "beside", "noted", "above")] == [5, 3, 2, 2]
    feed.connector.snapshot()
    feed.write(feed.connector.take())
    tasks("fourth")
    assert made(feed, "noted") == made(feed, "above") == {1: None, 2: "n2", 3: "n3"}


@pytest.mark.parametrize(
    "count", [pytest.param(3, id="some"), pytest.param(60, id="many", marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])]
)
@pytest.mark.parametrize("source", [DEBEZIUM, MAXWELL], ids=["debezium", "maxwell"])
def test_random_histories_show_whole_tables_only(tmp_path: Path, go: Go, source: str, count: int, pytestconfig: pytest.Config) -> None:
    seed = int(pytestconfig.option.hypothesis_seed)
    for number in range(count):
        print(f"history {number} of seed {seed}")
        chance, root = random.Random(f"{seed} {number}"), tmp_path / str(number)
        root.mkdir()
        feed: Feed[Connector] | Feed[Bootstrapper]
        if source == DEBEZIUM:
            feed = Feed(root, go, Connector(), source, WAIT)
            story = history(chance, feed.connector)
        else:
            feed = Feed(root, go, Bootstrapper(), source, WAIT)
            story = bootstrapper.history(chance, feed.connector)
        shown: dict[object, object] = {}
        for told in story:
            if chance.random() < 0.4:
                feed.run(None if told else chance.randrange(len(feed.connector.lines) + 1))
                if feed.incomplete:
                    assert not feed.topology.ledger.states(feed.topology.ledger.head()).get("published") or feed.published == shown
                else:
                    shown = feed.published
                    assert shown == feed.connector.rows or not told or feed.connector.lines
        feed.run()
        assert feed.published == feed.connector.rows

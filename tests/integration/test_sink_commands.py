"""``rejoin sinks`` and ``rejoin publish`` on a lake whose sinks cannot be reached: what they say and how they end."""

import json
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from integration.made import Lake
from rich.console import Console

from rejoin.cli import main
from rejoin.lake.ledger.deliveries import Deliveries, Delivery
from rejoin.report import sinks as report_sinks
from rejoin.sinks.position import Position


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, 'kafka("people"), postgres("town.people")')
    for _ in range(2):
        made.run(made.some(5))
    return made


def rejoin(lake: Lake, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, str(lake.file), "--lake", str(lake.location)])


def test_sinks_shows_how_far_each_is_and_its_last_delivery(lake: Lake) -> None:
    deliveries = Deliveries(lake.topology().ledger)
    cursor = deliveries.begin("people.kafka")
    deliveries.move(cursor, Position.at(1).to_json(), 2)
    deliveries.end(Delivery("people.kafka", 1, 1234, 2.5, 1, None, {"batch-total": 7}))
    text = rejoin(lake, "sinks").stdout
    assert "kafka people" in text and "1,234" in text and "batch-total 7" in text and "postgres town.people" in text
    assert _news(lake), "one is behind"
    shown = json.loads(rejoin(lake, "sinks", "--json").stdout)["sinks"]
    assert [(s["sink"], s["at_run"], s["runs_behind"]) for s in shown] == [("people.kafka", 1, 1), ("people.postgres", None, 2)]


def test_a_run_is_silent_about_sinks_that_have_everything_and_got_nothing(lake: Lake) -> None:
    deliveries = Deliveries(lake.topology().ledger)
    for sink in ("people.kafka", "people.postgres"):
        deliveries.move(deliveries.begin(sink), Position.at(2).to_json(), 2)
        deliveries.end(Delivery(sink, 1, 0, 0.1, 2))
    assert not _news(lake) and "kafka people" in rejoin(lake, "sinks").stdout
    deliveries.end(Delivery("people.kafka", deliveries.begin("people.kafka").attempt, 5, 0.1, 2))
    assert _news(lake)


def _news(lake: Lake) -> bool:
    report_sinks.deliveries(Console(file=(text := StringIO()), width=160), lake.topology(), news=True)
    return "people" in text.getvalue()


def test_publish_refuses_what_makes_no_sense(lake: Lake) -> None:
    for arguments in (("--snapshot",), ("--from-run", "1"), ("--sink", "people.kafka", "--snapshot", "--from-run", "1")):
        assert rejoin(lake, "publish", *arguments).exit_code == 2
    unknown = rejoin(lake, "publish", "--sink", "people.mars")
    assert unknown.exit_code == 2 and "UNKNOWN_TABLE" in unknown.stderr and "people.postgres" in unknown.stderr


def test_publish_tries_every_sink_and_tells_of_all_that_failed(lake: Lake) -> None:
    done = rejoin(lake, "publish")
    assert done.exit_code == 7
    assert "SINKS_BEHIND 2 of 2 sinks" in done.stderr and "people.kafka: SETUP" in done.stderr and "people.postgres: SETUP" in done.stderr
    failed = [s["last"]["failed"] for s in json.loads(rejoin(lake, "sinks", "--json").stdout)["sinks"]]
    assert all(text.startswith("SETUP nothing says where") for text in failed)


def test_publish_of_a_lake_without_runs_does_nothing(tmp_path: Path) -> None:
    empty = Lake(tmp_path, 'kafka("people")')
    assert rejoin(empty, "publish").exit_code == 0

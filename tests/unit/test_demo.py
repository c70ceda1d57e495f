"""The facts about the data that the demo and dags/flights.py rely on, and what the demo writes and refuses to empty."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from rejoin.demo.run import MARKER, TOPOLOGY, _empty
from rejoin.demo.story import Landing, Year, key_of, story
from rejoin.errors import SetupError
from rejoin.plan.check.topology_file import load

CHAPTERS = [
    "first load",
    "new flights",
    "late corrections",
    "one airline renamed",
    "planes come and go",
    "flights re-assigned",
    "all at once",
    "nothing new",
]


@pytest.fixture(scope="module")
def year() -> Year:
    return Year.read(365)


def delivered(directory: Path, days: int = 9) -> tuple[list[tuple[str, str]], dict[str, bytes]]:
    """The chapters of a short story, and every file that it delivers."""
    told = [(chapter.name, chapter.sentence) for chapter in story(Year.read(days), Landing(directory))]
    return told, {str(file.relative_to(directory)): file.read_bytes() for file in sorted(directory.rglob("*")) if file.is_file()}


def test_hour_carrier_and_number_identify_every_flight(year: Year) -> None:
    keys = [key_of(row) for day in year.days for row in day]
    assert (len(keys), len(set(keys))) == (336_776, 336_776)
    assert not [key for key in keys if "NA" in key]


def test_date_carrier_and_number_would_not(year: Year) -> None:
    dates = Counter((row["month"], row["day"], row["carrier"], row["flight"]) for day in year.days for row in day)
    assert sum(n - 1 for n in dates.values()) == 24


def test_every_airline_and_origin_is_known_but_not_every_plane_and_destination(year: Year) -> None:
    flights = [row for day in year.days for row in day]
    carriers, airports = {row["carrier"] for row in year.airlines}, {row["faa"] for row in year.airports}
    planes = {row["tailnum"] for row in year.planes} | {"NA"}
    assert {
        "carrier": sum(row["carrier"] not in carriers for row in flights),
        "origin": sum(row["origin"] not in airports for row in flights),
        "dest": sum(row["dest"] not in airports for row in flights),
        "tailnum": sum(row["tailnum"] not in planes for row in flights),
        "no tailnum": sum(row["tailnum"] == "NA" for row in flights),
    } == {"carrier": 0, "origin": 0, "dest": 7_602, "tailnum": 50_094, "no tailnum": 2_512}


def test_the_topology_joins_the_airports_twice_in_one_node() -> None:
    plan = load(str(TOPOLOGY))
    assert [node.name for node in plan.nodes if node.published] == ["flights_enriched"]
    assert [(edge.name, edge.kind.value) for edge in plan.node("flights_enriched").edges] == [
        ("airlines", "inner"),
        ("planes", "left"),
        ("airports", "left"),
        ("airports_2", "left"),
    ]


@pytest.mark.slow
def test_the_story_is_always_the_same_to_the_byte(tmp_path: Path) -> None:
    first, second = delivered(tmp_path / "a"), delivered(tmp_path / "b")
    assert [name for name, _ in first[0]] == CHAPTERS
    assert first == second


@pytest.mark.slow
def test_every_delivered_event_is_an_envelope_with_a_position_that_grows(tmp_path: Path) -> None:
    _, files = delivered(tmp_path)
    texts = [gzip.decompress(data) if name.endswith(".gz") else data for name, data in files.items() if name.startswith("flights/")]
    values = [json.loads(line)["value"] for text in texts for line in text.splitlines()]
    assert {value["op"] for value in values} == {"r", "c", "u", "d"}
    # The events that one chapter delivers again are the only ones that share a position.
    repeated = Counter(value["source"]["lsn"] for value in values if value["op"] != "r")
    assert Counter(repeated.values())[2] == len(files["flights/changes-0001.jsonl"].splitlines())
    assert set(repeated.values()) == {1, 2}


def test_a_directory_that_no_demo_made_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SetupError, match="no demo made it"):
        _empty(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_directory_of_an_earlier_demo_is_emptied_of_what_the_demo_made(tmp_path: Path) -> None:
    _empty(tmp_path / "demo")
    (tmp_path / "demo" / "landing").mkdir()
    (tmp_path / "demo" / "notes.txt").write_text("mine")
    _empty(tmp_path / "demo")
    assert sorted(file.name for file in (tmp_path / "demo").iterdir()) == [MARKER, "notes.txt"]

"""`rejoin demo` on four weeks of flights: what it prints is what plain Python counts in the same data."""

import re
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from rejoin.demo.run import demo
from rejoin.demo.story import EACH_CORRECTED, EACH_DELETED, EACH_PLANE, RENAMED_AIRPORT, RENAMED_CARRIER, Row, Year, key_of

DAYS = 28
RUN = re.compile(
    r"run (?P<run>\d+): (?P<read>[\d,]+) rows read; flights_enriched: "
    r"(?P<inserted>[\d,]+) inserted, (?P<updated>[\d,]+) updated, (?P<deleted>[\d,]+) deleted; [\d.]+ s(, \d+ Spark jobs)?"
)


def play(location: Path, airflow: bool) -> tuple[int, str]:
    """What the demo returns and prints."""
    text = StringIO()
    return demo(Console(file=text, width=100, highlight=False), location, DAYS, airflow=airflow), text.getvalue()


def expected(year: Year) -> list[tuple[int, int, int, int]]:
    """(read, inserted, updated, deleted) of every run, counted without rejoin."""
    first, fresh, last = ([row for day in days for row in day] for days in (year.days[:-7], year.days[-7:-3], year.days[-3:]))
    loaded = [*first, *fresh]
    planes = [row["tailnum"] for row in year.planes]
    added, removed = set(planes[::EACH_PLANE]), set(planes[EACH_PLANE // 2 :: EACH_PLANE])
    corrected = -(-sum(row["arr_delay"] != "NA" for row in loaded) // EACH_CORRECTED)
    moved = Counter(row["tailnum"] for row in loaded if row["tailnum"] in set(planes) - removed).most_common(1)[0][1]
    gone = {key_of(row) for row in loaded[EACH_DELETED // 2 :: EACH_DELETED]}
    at_airport = sum(RENAMED_AIRPORT in (row["origin"], row["dest"]) for row in loaded if key_of(row) not in gone)
    sizes = len(year.airlines), len(year.airports)
    return [
        (len(first) + sum(sizes) + len(planes) - len(added), len(first), 0, 0),
        (len(fresh), len(fresh), 0, 0),
        (len(fresh) + corrected, 0, corrected, 0),
        (sizes[0], 0, count(loaded, "carrier", {RENAMED_CARRIER}), 0),
        (len(planes) - len(removed), 0, count(loaded, "tailnum", added | removed), 0),
        (moved, 0, moved, 0),
        (len(last) + len(gone) + sizes[1], len(last), at_airport, len(gone)),
        (0, 0, 0, 0),
    ]


def count(rows: list[Row], column: str, values: set[str]) -> int:
    return sum(row[column] in values for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "airflow", [False, pytest.param(True, marks=[pytest.mark.airflow, pytest.mark.nightly])], ids=["in process", "through Airflow"]
)
def test_every_run_of_the_demo_changes_what_it_says_and_verify_finds_no_difference(tmp_path: Path, airflow: bool) -> None:
    differences, text = play(tmp_path / "demo", airflow)
    assert differences == 0, text
    found = [tuple(int(match[n].replace(",", "")) for n in ("read", "inserted", "updated", "deleted")) for match in RUN.finditer(text)]
    assert found == expected(Year.read(DAYS)), text
    assert [match["run"] for match in RUN.finditer(text)] == [str(n) for n in range(1, 9)]
    assert "\n0 differences\n" in text
    assert "what to try next" in text

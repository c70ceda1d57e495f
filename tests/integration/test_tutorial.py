"""The tutorials, followed to the letter in an empty directory; only its installation is not (``test_wheel_installed.py`` installs)."""

from pathlib import Path

import psycopg
import pytest
from followed import checkout, follow

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.timeout(900)  # five starts of Spark
def test_the_tutorial_says_what_happens(tmp_path: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    follow((DOCS / "tutorial.md").read_text(), empty, checkout(tmp_path / "bin"))
    assert sorted(p.name for p in empty.iterdir()) == ["lake", "landing", "shop.py"]


@pytest.mark.slow
@pytest.mark.nightly
def test_the_page_about_tests_says_what_happens(tmp_path: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    follow((DOCS / "testing.md").read_text(), empty, checkout(tmp_path / "bin"))


@pytest.mark.slow
@pytest.mark.nightly
def test_the_page_about_extending_says_what_happens(tmp_path: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    follow((DOCS / "extending.md").read_text(), empty, checkout(tmp_path / "bin"))


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.nightly
def test_the_page_about_postgresql_says_what_happens(logging_server: str, tmp_path: Path) -> None:
    with psycopg.connect(logging_server, autocommit=True) as db:
        db.execute("CREATE DATABASE from_the_page")
    (empty := tmp_path / "empty").mkdir()
    url = logging_server.rsplit("/", 1)[0] + "/from_the_page"
    follow((DOCS / "postgresql.md").read_text(), empty, {**checkout(tmp_path / "bin"), "SHOP": url, "REJOIN_SOURCE_SHOP": url})

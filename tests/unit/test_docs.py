"""The documentation: its site builds without a warning, its links lead somewhere, its reference of commands is that of the commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import command_pages
import group_page
import join_pages
import pytest

from rejoin.lake.ledger import schema

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")


def test_the_reference_of_commands_is_up_to_date() -> None:
    assert command_pages.PAGE.read_text() == command_pages.page(), "`make docs` writes it again"


def test_every_table_of_the_ledger_is_explained() -> None:
    section = (ROOT / "docs" / "operations.md").read_text().partition("## The ledger")[2].partition("\n## ")[0]
    assert set(re.findall(r"(?m)^\| `(rejoin_\w+)`", section)) == set(schema.metadata.tables)


@pytest.mark.slow
def test_the_results_of_joins_are_up_to_date() -> None:
    assert join_pages.PAGE.read_text() == join_pages.page(), "`make docs` writes them again"


@pytest.mark.slow
def test_the_results_of_groups_are_up_to_date() -> None:
    assert group_page.PAGE.read_text() == group_page.page(), "`make docs` writes them again"


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_the_links_of_a_page_outside_the_site_lead_somewhere(page: str) -> None:
    found = [(path, anchor) for path, anchor in LINK.findall((ROOT / page).read_text()) if not (ROOT / path).exists()]
    found += [(path, anchor) for path, anchor in LINK.findall((ROOT / page).read_text()) if anchor and anchor not in anchors(path or page)]
    assert found == []


def anchors(page: str) -> list[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", (ROOT / page).read_text())
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_site_builds_without_a_warning_and_shows_lists_as_lists(tmp_path: Path) -> None:
    # Not --quiet: a warning that is not logged is not counted either.
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "WARNING" in line]) == (0, []), done.stderr
    assert not list(tmp_path.rglob("*.py"))
    # GitHub takes a list below two spaces, or right below a sentence; the site's Markdown leaves it in the paragraph.
    articles = {p: re.sub(r"<pre.*?</pre>", "", p.read_text().partition("<article")[2], flags=re.DOTALL) for p in tmp_path.rglob("*.html")}
    assert [(p.name, line) for p, text in articles.items() for line in re.findall(r"\n\s*(?:- |\| |```).*", text)] == []

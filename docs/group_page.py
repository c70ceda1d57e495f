"""Writes the results in docs/groups.md, by running the topology that stands there, in two parts: `python docs/group_page.py`, or `make docs`."""

import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from rejoin.testing import Driver

PAGE = Path(__file__).with_name("groups.md")
OUTPUTS = ("invoices", "customer_totals")
DOCUMENTS = ("order_documents", "customer_documents")
READ = ("with_pens",)
LATER = {
    "price": {"products": "code | price\ndesk | 120.00"},
    "moves": {"orders": "id | customer | placed\n11 | 2 | 2026-11-20", "lines": "order_id | line\n- 10 | 2\n- 10 | 1"},
}
"""What the later runs read."""


def page() -> str:
    """The page with its computed parts as they have to be."""
    text = PAGE.read_text()
    with TemporaryDirectory() as folder:
        (file := Path(folder, "shop.py")).write_text("".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)))
        parts = computed(str(file), _rows(text))
    for name, lines in parts.items():
        text, found = re.subn(
            rf"(<!-- computed: {name} -->\n).*?(<!-- end -->)", rf"\1\n```text\n{lines}\n```\n\n\2", text, flags=re.DOTALL
        )
        assert found == 1, name
    return text


def _rows(text: str) -> dict[str, str]:
    """The tables that the first run reads, as the page has them."""
    section = text.partition("<!-- rows of the first run -->\n\n```text\n")[2].partition("\n```")[0]
    return {name: rows for name, _, rows in (table.partition("\n") for table in section.split("\n\n"))}


def computed(topology: str, rows: dict[str, str]) -> dict[str, str]:
    """The parts of the page by the names of their places."""
    with Driver(topology) as driver:
        driver.run(**rows)
        found = {part: _tables(driver, names) for part, names in (("first", OUTPUTS), ("documents", DOCUMENTS), ("read", READ))}
        for part, given in LATER.items():
            changes = driver.run(**given)
            found[part] = "\n\n".join(str(changes[name]) for name in OUTPUTS)
        found["later documents"] = _tables(driver, DOCUMENTS[1:])
    return found


def _tables(driver: Driver, names: Iterable[str]) -> str:
    return "\n\n".join(str(driver.table(name)) for name in names)


if __name__ == "__main__":
    PAGE.write_text(page())

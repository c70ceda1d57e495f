r"""Tables as texts::

    order_id | customer | note
    1        | Ann      | "a \"quoted\" text"
    2        | NULL     | ""

One line is one row. Cells are parted by ``|``; white space around them does not count. ``NULL`` is null. A cell that begins with a quote is a JSON
text: for the empty text, white space at an end, a ``|``, a line break, or the text ``NULL``.
"""

import json
import re
from collections.abc import Iterable, Sequence

from rejoin.errors import BadTestTable

Cell = str | None
"""The text of a value; None for null."""
NULL = "NULL"
NOTHING = ""
"""What stands where a row has no such value: what an inserted row was, for instance. No cell of a value is written like this."""

_CELL = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^|]*?))\s*(?:\||$)')
_PLAIN = re.compile(r'[^\s|"]([^|\n\r]*[^\s|])?')


def lines(text: str) -> list[str]:
    """The lines of a table that are not blank, without white space around them."""
    return [stripped for line in text.split("\n") if (stripped := line.strip())]


def split(line: str) -> list[str]:
    """The cells of a line as they are written.

    Raises:
        BadTestTable: a quote is not closed, or something stands behind it.
    """
    found, at = [], 0
    while True:
        match = _CELL.match(line, at)
        if match is None or (match[1] is None and match[2].startswith('"')):
            raise BadTestTable(f"a cell of the line {line!r} begins with a quote and is no JSON text", expected='"a text"')
        found.append(match[1] or match[2])
        at = match.end()
        if not match[0].endswith("|"):
            return found


def read(cell: str) -> Cell:
    """The text that a cell stands for.

    Raises:
        BadTestTable: it is quoted, and no JSON text.
    """
    if not cell.startswith('"'):
        return None if cell == NULL else cell
    try:
        return str(json.loads(cell))
    except ValueError:
        raise BadTestTable(f"the cell {cell} is no JSON text") from None


def written(value: Cell) -> str:
    """The cell that ``read`` makes this value of."""
    if value is None:
        return NULL
    return value if value != NULL and _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of cells, one below the other."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]

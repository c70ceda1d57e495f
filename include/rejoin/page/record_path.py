"""Where a row comes from, as a picture: records of files on the left, then rows of source tables, then outputs. Pure."""

import io
from pathlib import PurePath
from urllib.parse import urlencode

from rich.console import Console

from rejoin.page.boxes import Box, Graph, Label, Link, drawn
from rejoin.page.formats import value
from rejoin.page.model import Kind
from rejoin.plan.topic_path import names_topic
from rejoin.why.answer import APPLIED, Answer, Change, OutputRow, Record, RightRow, SourceRow, State
from rejoin.why.tree import DID, RECORD_DID, WIDE, record_said, state_said, tree, why_not

TITLE = 30
"""Letters of a title; a longer key gets a line of its own."""
_FOUND = {State.THERE: "done", State.HELD: "silent"}


def picture(answer: Answer, linked: frozenset[str]) -> Graph:
    """The path from records to the row that was asked about. ``linked``: the tables that have a page."""
    return _Path(answer, linked).drawn()


def text(answer: Answer) -> str:
    """The same in words, as ``rejoin why`` prints it."""
    out = io.StringIO()
    Console(file=out, width=WIDE, highlight=False, color_system=None).print(tree(answer))
    return out.getvalue()


def reasons(answer: Answer) -> list[str]:
    """Why there is no row, or not the newest."""
    return list(why_not(answer.row)) if isinstance(answer.row, OutputRow) else []


class _Path:
    def __init__(self, answer: Answer, linked: frozenset[str]) -> None:
        row, self._linked = answer.row, linked
        self._change = row.change if isinstance(row, OutputRow) else None
        self._boxes: list[Box] = []
        self._links: dict[Link, Label] = {}
        self._columns = _depth(row)
        self._add(row, 0)

    def drawn(self) -> Graph:
        return drawn(self._boxes, list(self._links), self._links)

    def _add(self, row: SourceRow | OutputRow, depth: int, found: str = "") -> str:
        """A row and all that is left of it; returns its box. ``found``: how the row right of it has found it."""
        name = f"{len(self._boxes)}"
        key = " ".join(value(v) for v in row.key.values())
        title, *below = [f"{row.name} {key}"] if len(row.name) + len(key) < TITLE else [row.name, key]
        kind = Kind.SOURCE if isinstance(row, SourceRow) else Kind.OUTPUT if row.published else Kind.INTERMEDIATE
        keys = urlencode([("key", value(v)) for v in row.key.values()])
        link = f"/tables/{row.name}?{keys}#key" if row.name in self._linked else ""
        latest = _latest(row.change) if isinstance(row, OutputRow) else ""
        lines = tuple(line for line in (*below, state_said(row), found or latest) if line)
        state = _FOUND.get(row.state, "missed")
        self._boxes.append(Box(name, kind, title, lines, self._columns - depth, link, state))
        if isinstance(row, SourceRow):
            if row.record is not None:
                self._links[self._record(row.record, depth + 1), name] = Label("")
            return name
        if row.left is not None:
            self._links[self._add(row.left, depth + 1), name] = Label("left")
        for right in row.rights:
            self._links[self._right(right, depth + 1), name] = Label("")
        for member in row.members.newest if row.members is not None else ():
            self._links[self._add(member.row, depth + 1), name] = Label("left it" if member.left else "")
        return name

    def _right(self, right: RightRow, depth: int) -> str:
        if right.row is not None:
            return self._add(right.row, depth, f"by {right.sql}")
        name = f"{len(self._boxes)}"
        self._boxes.append(Box(name, Kind.OTHER, right.edge, (str(right.match), f"by {right.sql}"), self._columns - depth, "", "missed"))
        return name

    def _record(self, record: Record, depth: int) -> str:
        """The record that made a row what it is; marked if it is the one that changed the row that was asked about."""
        name = f"{len(self._boxes)}"
        file = PurePath(record.file).name if record.file else "a file"
        if record.file and names_topic(record.file):
            title = file if record.line is None else f"partition {file} offset {record.line}"
        else:
            title = f"{file} line {record.line}" if record.line is not None else file if not record.absent else "not in the snapshot"
        cause = self._change is not None and (record.run, record.fate) == (self._change.run, APPLIED)
        lines = (f"{RECORD_DID[record.op]} in run {record.run}", "changed the row" if cause else record.fate)
        box = Box(name, "record", title, lines, self._columns - depth, f"/runs/{record.run}", "cause" if cause else "", record_said(record))
        self._boxes.append(box)
        return name


def _latest(change: Change | None) -> str:
    return "" if change is None else f"{DID[change.op]} by run {change.run}"


def _depth(row: SourceRow | OutputRow) -> int:
    """How many boxes lie left of a row."""
    if isinstance(row, SourceRow):
        return 0 if row.record is None else 1
    return 1 + max(map(_depth, row.below), default=0)

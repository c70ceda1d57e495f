"""An answer for people: a small tree, the row on top, the records of files as its leaves."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from shlex import quote
from typing import Any

from rich.text import Text
from rich.tree import Tree

from rejoin.lake.query.json_values import json_text
from rejoin.lake.query.quarantine_entries import Entry
from rejoin.lake.query.typed_keys import key_text
from rejoin.plan.topic_path import place_said
from rejoin.statements.own_columns import HELD_CODES
from rejoin.why.answer import (
    APPLIED,
    Answer,
    Cause,
    Change,
    Match,
    Members,
    OutputRow,
    Reason,
    Record,
    RightRow,
    SourceRow,
    State,
    is_there,
)

VALUE = 80
"""So many characters of a value are shown: who wants all of it has ``--json``."""
WIDE = 10_000
"""The width of a tree where there is no terminal: programs that read lines want whole ones."""
_COLOURS = {
    State.THERE: "green",
    State.HELD: "yellow",
    State.REMOVED: "red",
    State.LET_GO: "yellow",
    State.NEVER: "red",
    State.UNTOLD: "red",
}
DID = {"I": "made", "U": "changed", "D": "removed"}
"""What a change did to a row of an output."""
RECORD_DID = {"I": "came", "U": "changed", "N": "came", "D": "deleted"}
"""What a record did to a row of a source table."""
_NOTED = {
    Match.FILTERED: "a filter drops it from this join",
    Match.UNKNOWN: "whether a filter drops it from this join is not known without Spark",
}


def tree(answer: Answer) -> Tree:
    """The answer as a tree. Values and names are no markup."""
    row = answer.row
    return _tree(row, _name(row), f"as of run {answer.run}", row.change if isinstance(row, OutputRow) else None)


def _tree(row: SourceRow | OutputRow, name: str, note: str, change: Change | None) -> Tree:
    """A row and what is below it. ``change``: the newest one of the row on top."""
    head = Text(f"{name}: ").append(state_said(row), _COLOURS[row.state])
    if isinstance(row, SourceRow):
        return _source(row, head, note, change)
    made = Tree(head.append(f", {note}" if note else ""))
    if row.change is not None:
        made.add(Text(_change(row.change)))
    for line in why_not(row):
        made.add(Text(line, "yellow"))
    if row.members is not None:
        for member in _members(row.members, change):
            made.add(member)
        return made
    made.add(Text("no left row: a right row alone") if row.left is None else _tree(row.left, f"left {_name(row.left)}", "", change))
    for right in row.rights:
        made.add(_right(right, change))
    return made


def _members(members: Members, change: Change | None) -> Iterator[Text | Tree]:
    """How many members a group has, and the newest ones."""
    yield Text(
        "a group of too many members to look at"
        if members.count is None
        else f"a group of {members.count:,} member(s), the newest changes first"
    )
    for member in members.newest:
        yield _tree(
            member.row, f"member {_name(member.row)}", f"{'left' if member.left else 'came or changed'} in run {member.run}", change
        )


def _source(row: SourceRow, head: Text, note: str, change: Change | None) -> Tree:
    head.append(f", {record_said(row.record)}" if row.record is not None else "").append(f", {note}" if note else "")
    if row.record is not None and change is not None and (row.record.run, row.record.fate) == (change.run, APPLIED):
        head.append(f"  <- {DID[change.op]} it", "bold")
    made = Tree(head)
    for entry in row.aside:
        made.add(Text(_aside(entry), "yellow"))
    return made


def _right(right: RightRow, change: Change | None) -> Tree:
    alias = "" if right.edge == right.table else f" as {right.edge}"
    join = "join" if right.kind == "inner" else f"{right.kind} join"
    how = "" if right.how is None else right.how.said()
    if right.row is None and how:
        asked = "" if right.foreign_key is None else f" {' '.join(map(_argument, right.foreign_key))}"
        return Tree(Text(f"{join} {right.table}{asked}{alias}: {how}"))
    if right.row is None and right.kind in ("right", "full"):
        return Tree(Text(f"{join} {right.table}{alias}: no right row"))
    if right.row is None:
        words = {Match.NULL: f"its foreign key ({right.sql}) is null", Match.UNASKED: "not looked up, as no left row comes to it"}
        text = words.get(right.match, f"whether its foreign key ({right.sql}) is null is not known without Spark")
        return Tree(Text(f"{join} {right.table}{alias}: {text}"))
    noted = _NOTED.get(right.match, "") if is_there(right.row) and right.filter else ""
    # A row that the join did not see has changed nothing.
    seen = None if right.match is Match.FILTERED and isinstance(right.row, SourceRow) and _is_new(right.row) else change
    notes = [note for note in (how, f"{noted}: {right.filter}" if noted else "") if note]
    return _tree(right.row, f"{join} {_name(right.row)}{alias} by {right.sql}", "; ".join(notes), seen)


def _is_new(row: SourceRow) -> bool:
    return row.record is not None and row.record.op == "I"


def _name(row: SourceRow | OutputRow) -> str:
    intermediate = " (intermediate)" if isinstance(row, OutputRow) and not row.published else ""
    return f"{row.name} {' '.join(_argument(v) for v in row.key.values())}{intermediate}"


def _argument(value: Any) -> str:
    """A key value as `rejoin get` and `rejoin why` take it in a shell."""
    match value:
        case bool():
            text = str(value).lower()
        case bytes():
            text = b64encode(value).decode()
        case datetime():
            text = value.isoformat()
        case _:
            text = key_text(value)
    return quote(text)


def state_said(row: SourceRow | OutputRow) -> str:
    """What became of a row."""
    if row.state is State.NEVER:
        return "no row had this key"
    if row.state is State.UNTOLD:
        return "no row has this key; what was before the last compaction is expired"
    if row.state is State.LET_GO:
        return "let go by a compaction, as its stream's retention allows; results that it is part of stay"
    if row.state is State.HELD and is_there(row):
        return "held back; the row published before is there"
    return str(row.state)


def _change(change: Change) -> str:
    how = f"{'last ' if change.op == 'U' else ''}{DID[change.op]}"
    redefined = ", which had another definition of it" if change.redefined else ""
    return f"{how} by run {change.run}{redefined}: {'; '.join(_values(change))}"


def _values(change: Change) -> Iterator[str]:
    before, after = change.before, change.after
    if before is not None and after is not None:
        yield from (f"{c} {json_text(before.get(c), VALUE)} -> {json_text(after.get(c), VALUE)}" for c in change.columns)
    else:
        yield ", ".join(f"{c} {json_text(v, VALUE)}" for c, v in (after or before or {}).items())


def why_not(row: OutputRow) -> Iterator[str]:
    """Why there is no row, or not the newest."""
    if row.held is not None:
        yield _aside(row.held)
    said = [text for text in map(_reason, row.reasons) if text]
    if row.certain:
        yield from said
    elif said:
        yield f"one of these, which only Spark can tell: {'; '.join(said)}"


def _reason(reason: Reason) -> str:
    of, sql = reason.of, reason.sql
    return {
        Cause.LEFT_ROW: "",  # the line of the left row says so
        Cause.NO_SIDE: "",  # nor here
        Cause.NO_MEMBER: f"no row of {of} belongs to this group",
        Cause.LEFT_FILTER: f"the filter of {of} on the left drops it: {sql}",
        Cause.NULL: f"the inner join with {of} drops it: its foreign key ({sql}) is null",
        Cause.ABSENT: f"the inner join with {of} drops it: no right row",
        Cause.RIGHT_FILTER: f"the inner join with {of} drops it, since a filter drops the right row: {sql}",
        Cause.RIGHT_UNKNOWN: f"the inner join with {of} drops it: its foreign key ({sql}) is null",
        Cause.FILTER: f"the filter of {of} drops it: {sql}",
        Cause.HELD: "",  # the entry of the quarantine says more
        Cause.PARTNERS: f"it is not alone: the join with {of} finds {sql}",
        Cause.MOVED: f"the foreign key of the left row is another one: {sql}",
        Cause.ONLY_PAIRS: f"this join with {of} has only pairs on that side",
        Cause.OUTSIDE: "the two records are further apart than the window",
        Cause.DIFFERENT: f"the two records differ in what has to be equal, or it is null: the join with {of} has no such pair",
        Cause.WAITS: f"it waits: its window ends at {sql}, and the watermark has not passed that",
        Cause.SKIPPED: f"the newest run left {of} as it was; the next one recomputes it",
        Cause.UNTOLD: f"the stored rows do not tell why; `rejoin verify` compares {of} with its SQL",
    }[reason.cause]


def record_said(record: Record) -> str:
    """What a record did, and where it stands."""
    later = f"; run {record.later} had a newer record, which changes nothing that joins use" if record.later else ""
    return f"{RECORD_DID[record.op]} in run {record.run}, {record.fate}, {_where(record)}{later}"


def _where(record: Record) -> str:
    files = _files(record.files)
    if record.snapshot is not None:
        return f"as the snapshot at position {record.snapshot}, which ended in {files}, did not bring it"
    if record.absent:
        return f"as the snapshot {files} lacks it"
    if record.line is not None:
        return place_said(record.file or "", record.line)
    if record.file is not None:
        return f"{record.file} (line not known: {record.unlocated})"
    return f"from {files} (place not known: {record.unlocated})" if files else f"place not known: {record.unlocated}"


def _files(files: tuple[str, ...]) -> str:
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more files" if len(files) > 3 else "")


def _aside(entry: Entry) -> str:
    where = "" if entry.file is None or entry.line is None else f", {place_said(entry.file, entry.line)}"
    did = "held back" if entry.code in HELD_CODES else "a record was refused"
    return f"{did} in run {entry.run}: {entry.code} {entry.reason}{where}"

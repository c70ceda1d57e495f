"""What the rows of quarantine tables say: rows that are held back now, and records that were refused. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoin.plan.model.plan import Plan
from rejoin.statements.own_columns import HELD_CODES, SOURCE_FILE


@dataclass(frozen=True)
class Entry:
    """One row or record that is kept aside now. ``key``: by column, null where it could not be read; ``line``: of ``file``."""

    source: str
    key: Mapping[str, Any]
    code: str
    reason: str
    file: str | None
    line: int | None
    run: int
    raw: str | None

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "key": dict(self.key)}


def open_entries(plan: Plan, name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    """What the rows of a quarantine table (of all keys or of some) still keep aside.

    A key that is held back has its newest row; a record that was refused is known by file and line.
    """
    columns = plan.key_of(name)
    newest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda r: int(r["_run"])):
        place = tuple(row[k] for k in columns) if row["_code"] in HELD_CODES else (row[SOURCE_FILE], row["_line"])
        newest[row["_code"] in HELD_CODES, *place] = row
    for row in newest.values():
        if row.get("_op") != "R":
            file, line = row.get(SOURCE_FILE), row.get("_line")
            yield Entry(name, {k: row[k] for k in columns}, row["_code"], row["_reason"], file, line, row["_run"], row["_raw"])

"""What the columns of a table, its order and its deletes are made of, ready to be computed."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rejoin.plan.model.plan import Column, Table
from rejoin.plan.model.sources import ChangesSource, Meaning, NamedFields
from rejoin.plan.sql.nested import is_nested
from rejoin.plan.sql.portable import printed
from rejoin.plan.sql.raw_fields import EITHER, as_field, fields, needed, plain, unqualified
from rejoin.plan.topic_path import names_topic
from rejoin.sources.events import Layout

RAW: Final = "t"
"""What SQL over fields calls a record."""


@dataclass(frozen=True)
class Made:
    """Something that is made of fields.

    Attributes:
        what: how a reason for the quarantine calls it.
        reads: the fields.
        stated: SQL over ``t``, as the plan has it.
        field: the field that it is by itself; None: it is computed.
        sql: how DuckDB computes it from the texts of the fields.
        type: of what is computed; STRING of a field.
    """

    what: str
    reads: tuple[str, ...]
    stated: str
    field: str | None
    sql: str
    type: str

    @property
    def is_text(self) -> bool:
        return self.type == "STRING"


def _made(sql: str, what: str) -> Made:
    reads, field = fields(sql), plain(sql)
    found = printed(sql, {RAW: dict.fromkeys(reads, "STRING")})
    return Made(f"{what} ({unqualified(sql)})" if field is None else what, reads, sql, field, found.text, found.type)


class Mapping:
    """Of one table.

    Args:
        table: the table.
        position: of every record; None: records have theirs. Empty: what reads them says it, as their order is that in which they arrive.

    Attributes:
        layout: the table's columns.
        columns: what each is made of, keys first, as in ``layout``.
        order: what the position is made of; empty: of the record's place, or it is given.
        deleted: what is true of a record of a row that is gone.
        loaded: what is true of a record of a full load.
        reads: every field that is read.
        documents: those of which a nested column is made: the text of an array, an object or a map is JSON.
    """

    def __init__(self, table: Table, position: str | None = None) -> None:
        source = table.source
        assert isinstance(source, NamedFields)
        order, deleted, loaded = (source.order, source.deleted, source.loaded) if isinstance(source, ChangesSource) else ((), None, None)
        declared = dict(source.columns)
        self.layout, self.source, self.position = Layout(table), source, position
        if isinstance(source, ChangesSource) and names_topic(source.path):
            declared = {name: as_field(f"{EITHER}.{name}") for name in table.key} | declared
        self.columns = [(c, _made(declared.get(c.name, as_field(c.name)), f"column {c.name!r}")) for c in self._declared()]
        self.order = [_made(sql, f"order_by {unqualified(sql)}") for sql in order]
        self.deleted = None if deleted is None else _made(deleted, "deleted")
        self.loaded = None if loaded is None else _made(loaded, "loaded")
        self.reads = tuple(dict.fromkeys(name for made in self.made() for name in made.reads))
        self.documents = frozenset(name for c, made in self.columns if is_nested(str(c.type)) for name in made.reads)
        # Of snapshots and records the cut has seen whether a field is there.
        required = self.layout.required if source.meaning is Meaning.FEED else ()
        self._required = {c.name: needed(made.stated) for c, made in self.columns if c.name in required}
        self._lacking: dict[tuple[str, ...], list[str]] = {}

    def made(self, without: Collection[str] = ()) -> Iterator[Made]:
        """All that is made of fields, but for these columns."""
        yield from (made for column, made in self.columns if column.name not in without)
        yield from (*self.order, *filter(None, (self.deleted, self.loaded)))

    def _declared(self) -> Sequence[Column]:
        return (*self.layout.key, *self.layout.values)

    def lacking(self, absent: Sequence[str]) -> list[str]:
        """The columns that a record without these fields does not have, of those that it may not lack."""
        known = self._lacking.get(given := tuple(absent))
        if known is None:
            known = self._lacking[given] = [name for name, needs in self._required.items() if any(some <= set(given) for some in needs)]
        return known

    def raw_layout(self) -> Layout:
        """The columns of records as they are read: texts."""
        return Layout(Table("fields", (), tuple(Column(name, "STRING") for name in self.reads), self.source, ()))

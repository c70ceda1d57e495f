"""What the columns of a table, the order of records and the mark of a deleted row are made of: fields of a record, or SQL over them.

A field is a text in SQL, whatever the format: so it means the same in all of them, and is known when the topology file is read. The SQL is computed where files are
read, without Spark, so all of it has to be portable.
"""

import re
from dataclasses import dataclass
from typing import Final

from rejoin.declare.changes import Arrival
from rejoin.plan.model.column_names import by_name, folded, repeated
from rejoin.plan.model.plan import Column
from rejoin.plan.model.problems import BAD_EXPRESSION, BAD_OPTION, BAD_TYPE, UNSAFE_NAME, Reporter, did_you_mean
from rejoin.plan.sql.expressions import Scope, Side, column, expression
from rejoin.plan.sql.portable import NotPortable, printed
from rejoin.plan.sql.raw_fields import HEADER, KEY, as_field, fields, plain
from rejoin.plan.sql.syntax import ColumnToken, parse
from rejoin.plan.sql.typing.coercion import digits, is_decimal

OWN: Final = frozenset(
    ("_at", "_kind", "_position", "_arrival", "_missing", "_absent", "_old_key", "_file", "_line", "_lines", "_code", "_reason", "_raw")
)
"""Names that a record's fields may not have where they are read: those of rejoin's own columns of events."""
_NAME: Final = re.compile(r"`[^`]+`|[^\W\d]\w*")
_ORDERED: Final = ("INT", "BIGINT", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING")
_WIDER: Final = {("INT", "BIGINT")}


@dataclass(frozen=True)
class Mapping:
    """As in ``plan.model.sources.ChangesSource``."""

    order: tuple[str, ...]
    deleted: str | None
    loaded: str | None
    columns: tuple[tuple[str, str], ...]

    @property
    def given(self) -> tuple[str, ...]:
        """All SQL that says it."""
        return (*self.order, *filter(None, (self.deleted, self.loaded)), *(sql for _, sql in self.columns))


@dataclass(frozen=True)
class _Given:
    """SQL over ``t``, and its type; None of a field by itself."""

    sql: str
    type: str | None


def mapping(options: dict[str, object], found: tuple[Column, ...], report: Reporter, *, complete: bool) -> Mapping:
    """What ``order_by=``, ``deleted=``, ``loaded=`` and ``columns=`` say of a table with these columns."""
    order = _order(options["order_by"], report)
    deleted, loaded = (_condition(name, options[name], report) for name in ("deleted", "loaded"))
    made = Mapping(order, deleted, loaded, columns(options["columns"], found, report, complete=complete))
    check_names(made.given, found, made.columns, report)
    return made


def columns(declared: object, found: tuple[Column, ...], report: Reporter, *, complete: bool) -> tuple[tuple[str, str], ...]:
    """What ``columns=`` says: declared column -> what it is made of."""
    if declared is None:
        return ()
    if not isinstance(declared, dict):
        report(BAD_OPTION, "columns must be a dict such as {'total': 'CAST(amount AS DECIMAL(10,2))'}")
        return ()
    named, made = {c.name: c for c in found}, dict[str, str]()
    for name, text in declared.items():
        about, known = report.about(f"columns[{name!r}]: "), by_name(named).get(folded(str(name)))
        given = _given(text, about)
        if known is None and complete:
            about(BAD_OPTION, f"the schema has no such column{did_you_mean(str(name), named)}")
        elif known is not None and given is not None:
            if given.type is not None and not _fits(given.type, str(known.type)):
                about(
                    BAD_TYPE,
                    f"it is {given.type}, and the column {known.type}; write a CAST, or let it be a text, which is read as the column's type",
                )
            made[known.name] = given.sql
    return tuple(sorted(made.items()))


def check_names(given: tuple[str, ...], found: tuple[Column, ...], made: tuple[tuple[str, str], ...], report: Reporter) -> None:
    """Reports fields that cannot be told apart, or from rejoin's own columns."""
    mapped = {name for name, _ in made}
    names = dict.fromkeys([*(f for sql in given for f in fields(sql)), *(c.name for c in found if c.name not in mapped)])
    for name in [name for name in names if folded(name) in OWN]:
        report(UNSAFE_NAME, f"a field named {name!r} cannot be read: rejoin has a column of its own with that name")
    for name in repeated(names):
        report(
            BAD_OPTION, f"a field is written as {name!r} and in another way: names of fields that are read must differ in more than case"
        )


def _order(declared: object, report: Reporter) -> tuple[str, ...]:
    report = report.about("order_by: ")
    if isinstance(declared, Arrival) or (isinstance(declared, tuple) and not declared):
        return ()
    several = [declared] if isinstance(declared, str) else declared
    if not isinstance(several, list | tuple) or not several:
        said = "what says which of two records of a key is newer: a field, SQL over fields, a list of them, or arrival(), the order of files and records"
        report(BAD_OPTION, f"expected {said}")
        return ()
    given = [_given(text, report.about(f"{text!r}: ")) for text in several]
    for text, one in zip(several, given, strict=True):
        if one is not None and one.type is not None and one.type not in _ORDERED and not is_decimal(one.type):
            report(BAD_TYPE, f"{text!r} is {one.type}; expected a whole number, DECIMAL, date, timestamp, or a text that sorts")
    for text, one in list(zip(several, given, strict=True))[:-1]:
        if one is not None and one.type == "STRING":
            report(BAD_TYPE, f"{text!r} is a text, which can only be the last of several: nothing tells where it ends")
    return tuple(one.sql for one in given if one is not None)


def _condition(name: str, declared: object, report: Reporter) -> str | None:
    if declared is None:
        return None
    report = report.about(f"{name} {declared!r}: ")
    given = _given(declared, report)
    if given is not None and given.type != "BOOLEAN":
        report(BAD_TYPE, f"it is {given.type or 'a field, and so a text'}; expected what is true or false, such as __deleted = 'true'")
    return None if given is None else given.sql


def _given(text: object, report: Reporter) -> _Given | None:
    if isinstance(text, str) and _NAME.fullmatch(text.strip()):
        return _Given(as_field(text.strip().strip("`")), None)
    item = parse(text, report)
    if item is None:
        return None
    assert isinstance(text, str)
    names = dict.fromkeys(_field(c) for c in item.columns if not item.is_keyword_function(c))
    if clash := repeated(names):
        report(BAD_OPTION, f"it writes the field {clash[0]!r} in two ways: names of fields must differ in more than case")
        return None
    text = text.strip()
    for token in reversed([c for c in item.columns if c.names[0] in (KEY, HEADER) and len(c.names) > 1]):
        text = f"{text[: token.start]}`{_field(token)}`{text[token.ends[1] :]}"
    made = expression(text, Scope({"": Side("the record", dict.fromkeys(names, "STRING"))}), report)
    if made is None:
        return None
    sql = made.replace(lambda ref: column("t", ref.column, None)).sql
    try:
        return _Given(sql, None if plain(sql) else printed(sql, {"t": dict.fromkeys(names, "STRING")}).type)
    except NotPortable as reason:
        report(BAD_EXPRESSION, f"{reason}; it is computed where files are read, without Spark")
        return None


def _field(token: ColumnToken) -> str:
    """The field that a column of SQL is: one of the key of a message, and a header, have theirs before the point."""
    return ".".join(token.names[:2]) if token.names[0] in (KEY, HEADER) else token.names[-1]


def _fits(found: str, declared: str) -> bool:
    """Whether every value of the first type is one of the second, or a text that is read as one."""
    if found in ("STRING", declared) or (found, declared) in _WIDER:
        return True
    if not (is_decimal(found) and is_decimal(declared)):
        return False
    (p1, s1), (p2, s2) = digits(found), digits(declared)
    return s1 <= s2 and p1 - s1 <= p2 - s2

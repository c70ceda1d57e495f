"""What an edit changed of a table, an output or a sink, in sentences for people. Pure: they hold what was declared, never a row's value."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rejoin.plan.model import durations
from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.match import AsOf, Other, SameKey, Window
from rejoin.plan.model.plan import Edge, Node, Plan, Projection, Table, View
from rejoin.plan.model.sinks import Sink
from rejoin.plan.model.sources import NamedFields, Source
from rejoin.plan.sql.raw_fields import as_field, unqualified

SEEN = ("kind", "topic", "table", "value", "format", "key", "partitioner", "interceptors")
"""Fields of a sink that readers of its target notice; the others say how records get there."""


def table_edits(old: Table, new: Table) -> tuple[str, ...]:
    """What is declared otherwise of a source table, without its expectations."""
    was, now = ({c.name: c.type or "" for c in t.columns} for t in (old, new))
    found = [f"column {c} {now[c]} is new: null in stored rows until their next change" for c in now if c not in was]
    found += [f"column {c} is no longer read" for c in was if c not in now]
    found += [f"column {c}: {_turned(was[c], now[c])}" for c in now if c in was and was[c] != now[c]]
    if old.optional != new.optional:
        found.append(f"optional columns: {_turned(', '.join(old.optional) or 'none', ', '.join(new.optional) or 'none')}")
    return (*found, *_source_edits(old.source, new.source))


def node_edits(old: Plan, new: Plan, name: str) -> tuple[str, ...]:
    """What is declared otherwise of an output of both plans, as far as it belongs to its definition; never empty if that has changed."""
    was, now = old.node(name), new.node(name)
    found = [*_column_edits("column", was.columns, now.columns), *_text_edits("filter", was.where, now.where)]
    found += _view_edits("left side", was.left, now.left)
    found += _join_edits(was.edges, now.edges)
    found += _group_edits(was.grouping, now.grouping)
    found += _type_edits(old, new, was, now)
    return tuple(dict.fromkeys(found)) or ("its definition is another one",)


def lost_and_gained(old: Node, new: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that an output no longer has, and those that it did not have."""
    was, now = ([p.name for p in n.columns] for n in (old, new))
    return tuple(c for c in was if c not in now), tuple(c for c in now if c not in was)


def expectation_edits(old: Sequence[Expectation], new: Sequence[Expectation]) -> tuple[str, ...]:
    """What is expected otherwise of a table or output; the rows of it that are held back are judged again then."""
    if tuple(old) == tuple(new):
        return ()
    was, now = ([f"{e.title}, else {e.severity}" for e in some] for some in (old, new))
    found = [f"expectation {e} is new" for e in now if e not in was] + [f"expectation {e} is gone" for e in was if e not in now]
    return (*(found or ["its expectations have other options"]), "rows that are held back are judged again")


def sink_edits(old: Sink, new: Sink) -> dict[str, str]:
    """Field -> what is declared otherwise of a sink; ``SEEN`` are those that its readers notice."""
    return dict(_field_edits(dataclasses.asdict(old), dataclasses.asdict(new)))


def _source_edits(old: Source, new: Source) -> Iterator[str]:
    was, now = dataclasses.asdict(old), dataclasses.asdict(new)
    if isinstance(old, NamedFields) and isinstance(new, NamedFields):
        made = [dict(source.columns) for source in (old, new)]
        for column in dict.fromkeys([*made[0], *made[1]]):
            texts = [unqualified(of.get(column, as_field(column))) for of in made]
            if texts[0] != texts[1]:
                yield f"column {column} is made of {texts[1]}, and was of {texts[0]}: stored rows keep it as it is until their next change"
        was, now = ({name: value for name, value in of.items() if name != "columns"} for of in (was, now))
    yield from (f"source {said}" for _, said in _field_edits(was, now))


def _field_edits(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in dict.fromkeys([*was, *now]):
        if was.get(field) != now.get(field):
            several = isinstance(was.get(field), tuple) or isinstance(now.get(field), tuple)
            yield field, f"{field}: " + ("other settings" if several else _turned(_plainly(was.get(field)), _plainly(now.get(field))))


def _plainly(value: object) -> str:
    return "none" if value is None else repr(str(value)) if isinstance(value, str) else str(value)


def _column_edits(what: str, old: Iterable[Projection], new: Iterable[Projection]) -> list[str]:
    was, now = ({p.name: p for p in some} for some in (old, new))
    found = [f"{what} {c} is new" for c in now if c not in was] + [f"{what} {c} is dropped" for c in was if c not in now]
    for c in [c for c in now if c in was]:
        if was[c].sql != now[c].sql:
            found.append(f"{what} {c}: {_turned(was[c].sql, now[c].sql)}")
        elif was[c].type != now[c].type:
            found.append(f"{what} {c}: {_turned(was[c].type or 'a type that only Spark can tell', now[c].type or 'another type')}")
    if not found and list(was) != list(now):
        found.append(f"the {what}s stand in another order")
    return found


def _text_edits(what: str, was: str | None, now: str | None) -> list[str]:
    if was == now:
        return []
    if was is None or now is None:
        return [f"{what} {'is new' if was is None else 'is dropped'}: {now or was}"]
    return [f"{what}: {_turned(was, now)}"]


def _view_edits(what: str, old: View, new: View) -> list[str]:
    """Columns that a view only passes on are there because something reads them, which is told where that stands."""
    if old.table != new.table:
        return [f"{what}: {_turned(old.table, new.table)}"]
    was, now = ([p for p in view.columns if p.sql != f"t.`{p.name}`"] for view in (old, new))
    return [*_column_edits(f"{what}, column", was, now), *_text_edits(f"{what}, filter", old.where, new.where)]


def _join_edits(old: Sequence[Edge], new: Sequence[Edge]) -> list[str]:
    was, now = ({e.name: e for e in edges} for edges in (old, new))
    found = [f"join with {e} is new" for e in now if e not in was] + [f"join with {e} is dropped" for e in was if e not in now]
    for name in [e for e in now if e in was]:
        a, b = was[name], now[name]
        if a.kind != b.kind:
            found.append(f"join with {name}: {_turned(_kind(a), _kind(b))}")
        if a.foreign_key != b.foreign_key:
            found.append(f"join with {name}, foreign key: {_turned(', '.join(a.foreign_key), ', '.join(b.foreign_key))}")
        if a.match != b.match:
            found.append(f"join with {name}: {_turned(_matched(a), _matched(b))}")
        found += _view_edits(f"join with {name}", a.right, b.right)
    if not found and list(was) != list(now):
        found.append("the joins stand in another order")
    return found


def _group_edits(old: Grouping | None, new: Grouping | None) -> Iterator[str]:
    if old is None or new is None:
        yield from [] if old is new else [f"its rows are {'groups now' if old is None else 'no groups any more'}"]
        return
    for what, was, now in zip(("group key", "column"), old.written, new.written, strict=True):
        yield from (f"{what} {name}: {_turned(was[name], now[name])}" for name in now if name in was and was[name] != now[name])


def _type_edits(old: Plan, new: Plan, was: Node, now: Node) -> Iterator[str]:
    """Columns of the tables that a node reads, where their type is another one now."""
    views = ({v.table: v for v in n.views} for n in (was, now))
    before, after = views
    for table in [t for t in after if t in before]:
        types = [{c.name: c.type for c in p.columns_of(table)} for p in (old, new)]
        read = "\n".join([*(c.sql for c in after[table].columns), after[table].where or ""])
        for column in [c for c in types[1] if f"t.`{c}`" in read and c in types[0] and types[0][c] != types[1][c]]:
            yield f"column {column} of {table}: {_turned(types[0][column] or '?', types[1][column] or '?')}"


def _kind(edge: Edge) -> str:
    return f"{edge.kind} join"


def _matched(edge: Edge) -> str:
    """How right rows are found beside the foreign key."""
    match edge.match:
        case None:
            return "a join by foreign key"
        case SameKey():
            return "a join by the same key"
        case Other():
            return f"a join by {edge.match.kind}"
        case AsOf():
            return f"a join as of {edge.match.left_time or 'the run'}"
        case Window():
            before, after = durations.text(edge.match.before), durations.text(edge.match.after)
            late = f", {durations.text(edge.match.lateness)} late" if edge.match.lateness else ""
            closed = ", at once" if edge.match.at_once else ", once both have passed" if edge.match.each else ""
            return f"a join of streams from {before} before to {after} after{late}{closed}"


def _turned(was: str, now: str) -> str:
    return f"{was} becomes {now}"

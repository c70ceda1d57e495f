"""What an edit of a topology may not do to tables that exist: another key, a source column of another or narrower type, or another meaning
of a name that was away.
"""

import re
from collections.abc import Callable, Iterable

from rejoin.errors import SchemaRefused
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.change.stream_retention import settled
from rejoin.plan.model.column_names import by_name, folded
from rejoin.plan.model.plan import Plan, Table
from rejoin.plan.model.sources import ChangesSource, DebeziumSource, FeedSource, Source
from rejoin.plan.sql.nested import parts_of
from rejoin.plan.sql.raw_fields import unqualified
from rejoin.plan.topic_path import names_topic

Columns = Callable[[str], Iterable[str]]
"""The columns that a lake stores of a table or output, in its rows and in its changes."""
_WIDENINGS = {("INT", "BIGINT"), ("FLOAT", "DOUBLE")}


def left_behind(old: Plan, new: Plan) -> tuple[str, ...]:
    """Names of tables and outputs that ``new`` no longer has: their tables stay as they are."""
    kept = set(new.names)
    return tuple(name for name in (*(t.name for t in old.tables), *(n.name for n in old.nodes if n.published)) if name not in kept)


def refuse_incompatible(old: Plan, new: Plan) -> None:
    """Compares the plan of the last committed run with the one to run now, by table and node names.

    Raises:
        SchemaRefused: a table or output has another key, or a declared column changes its type other than to a wider one.
    """
    for table in new.tables:
        before = next((t for t in old.tables if t.name == table.name), None)
        if before is None:
            continue
        _same_key(table.name, before.key, table.key)
        _same_time(before, table)
        _same_order(before, table)
        types = {c.name: c.type or "" for c in before.columns}
        for column in table.columns:
            was, now = types.get(column.name, column.type or ""), column.type or ""
            if not fits(was, now):
                raise SchemaRefused(
                    f"column {column.name!r} of table {table.name!r} was declared {was} and is now {now}",
                    expected="the same type or a wider one",
                    next_step="declare the old type, or declare the table under a new name",
                )
    for node in new.nodes:
        was_node = next((n for n in old.nodes if n.name == node.name), None)
        if was_node is not None:
            _same_key(node.name, was_node.key, node.key)


def refuse_other_meaning(run: int, old: Plan, new: Plan, name: str) -> None:
    """Compares what a name stood for in an earlier run with what it stands for now.

    Args:
        run: the newest committed run whose plan had the name; its rows are still stored.
        old: that plan.
        new: the plan to run now.
        name: a table or output of both.

    Raises:
        SchemaRefused: a table became an output or the other way round, has another key or an incompatible column, or reads another source.
    """
    if old.is_table(name) != new.is_table(name):
        was, now = ("a table", "an output") if old.is_table(name) else ("an output", "a table")
        raise SchemaRefused(
            f"{name!r} was {was} in run {run}, whose rows are still stored, and is now {now}",
            expected="a name keeps what it stands for",
            next_step=f"give the {now.split()[1]} a new name",
        )
    refuse_incompatible(only(old, name), only(new, name))
    if not new.is_table(name):
        return
    source, given = old.table(name).source, new.table(name).source
    if _place(source) != _place(given):
        raise SchemaRefused(
            f"table {name!r}, which the topology did not have since run {run}, was read from {_said(source)} and is now read from {_said(given)}",
            expected="the same source: the rows that are still stored came from it",
            next_step="declare the table under a new name; if the new path goes on with the same data, bring the table back as it was for one"
            " run and change the path in the next",
        )


def refuse_respelled(old: Plan, new: Plan, name: str, stored: Columns) -> None:
    """Compares the columns that a table or output gets with those that are stored of it, from all runs.

    Args:
        old: the newest plan that had the name.
        new: the plan to run now.
        name: a table or output of both.
        stored: the columns that are stored of it, in its rows and in its changes.

    Raises:
        SchemaRefused: one differs from a stored one in nothing but case.
    """
    had = {column.name for column in old.columns_of(name)}
    gets = [column.name for column in new.columns_of(name) if column.name not in had]
    kept = by_name({column: column for column in stored(name)}) if gets else {}
    for column in gets:
        if (was := kept.get(folded(column), column)) != column:
            raise SchemaRefused(
                f"column {column!r} of {name!r} is stored as {was!r}, and names are compared without regard to case; nothing was changed",
                expected="the spelling that is stored, for as long as the table or output has its name",
                next_step=f"write it as {was}, or give the column another name",
            )


def refuse_forgotten(old: Plan, new: Plan, name: str, *, away: bool) -> None:
    """Compares an output's definition with that which its stored rows were made by.

    Args:
        old: the newest plan that had the output.
        new: the plan to run now, with what was let go until now.
        name: the output, or a table.
        away: there were runs without it since.

    Raises:
        SchemaRefused: all of it would be computed anew, and records that its rows were made of are not stored any more; or a stream that has let
            records go has another event time.
    """
    if old.is_table(name) and new.is_table(name) and new.taken_from(name) is not None:
        was_by, by = old.table(name).event_time, new.table(name).event_time
        if was_by != by:
            raise SchemaRefused(
                f"the event time of stream {name!r} was {was_by} and is now {by or 'none'}, and old records were let go by the first",
                expected="the same event time: compactions went by it",
                next_step="declare the stream or table under a new name",
            )
    node = next((n for n in new.nodes if n.name == name), None)
    if node is None or old.is_table(name):
        return
    was = old.node(name)
    gone = [s for s in dict.fromkeys([*was.reads, *node.reads]) if new.stored_from(s) is not None]
    since = [s for s in gone if new.stored_from(s) != old.stored_from(s)]
    if away and since:
        gone = since
    elif not (settled(new, node) or settled(new, was)) or fingerprint(old, was) == fingerprint(new, node):
        return
    if gone:
        raise SchemaRefused(
            f"output {name!r} would be computed anew, and old records of {' and '.join(gone)} were let go since it was computed",
            expected="the same definition in every run, as long as a stream of it has a retention",
            next_step="declare the join under a new name: it begins with the records that are still stored",
        )


def only(plan: Plan, name: str) -> Plan:
    """The plan with nothing but what has this name."""
    return Plan(plan.topology, tuple(t for t in plan.tables if t.name == name), tuple(n for n in plan.nodes if n.name == name))


def _place(source: Source) -> tuple[str, str, str | None]:
    if isinstance(source, FeedSource):
        return f"{source.kind} of {source.dialect}", source.path.rstrip("/"), source.only
    return source.kind, source.path.rstrip("/"), source.topic if isinstance(source, DebeziumSource) else None


def _said(source: Source) -> str:
    kind, path, topic = _place(source)
    return f"{kind} {path!r}" + (f", topic {topic!r}" if topic else "")


def _same_key(name: str, was: tuple[str, ...], now: tuple[str, ...]) -> None:
    if was != now:
        raise SchemaRefused(
            f"the key of {name!r} was ({', '.join(was)}) and is now ({', '.join(now)})",
            expected="the same key: every stored row and every change is identified by it",
            next_step="give the table or output a new name",
        )


def _same_time(before: Table, now: Table) -> None:
    """A time that is computed stands in every stored record as it was computed then."""
    if now.computed_time is None or (before.event_time, before.computed_time) == (now.event_time, now.computed_time):
        return
    was, is_now = (f"{t.computed_time} AS {t.event_time}" if t.computed_time else f"{t.event_time}" for t in (before, now))
    raise SchemaRefused(
        f"the event time of stream {now.name!r} was {was} and is now {is_now}",
        expected="the same expression: the time of every stored record was computed when it was read",
        next_step="declare the stream under a new name, which reads all of its files again",
    )


def _same_order(before: Table, now: Table) -> None:
    """Positions of stored rows were made by the order of their source: those of another one say nothing beside them."""
    if _order(before) == _order(now) or not any(isinstance(t.source, ChangesSource) for t in (before, now)):
        return
    raise SchemaRefused(
        f"what says which record of a key of table {now.name!r} is newer was {_order(before)} and is now {_order(now)}",
        expected="the same order: by it the stored row of every key was found to be the newest",
        next_step="declare the table under a new name, which reads all of its files again",
    )


def _order(table: Table) -> str:
    """What makes the positions of rows, in words."""
    source = table.source
    if not isinstance(source, ChangesSource):
        return f"source {source.kind}(...)"
    return ", ".join(map(unqualified, source.order)) or f"arrival() {'on a topic' if names_topic(source.path) else 'in files'}"


def fits(was: str, now: str) -> bool:
    """Whether every value of one Spark SQL type is a value of the other, by a promotion that Iceberg has; a struct may get fields behind its own."""
    decimals = [re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", t) for t in (was, now)]
    if decimals[0] and decimals[1]:
        return decimals[0][2] == decimals[1][2] and int(decimals[0][1]) <= int(decimals[1][1])
    old, new = parts_of(was), parts_of(now)
    if old and new and old.kind == new.kind:
        names = [name for name, _ in old.parts]
        return names == [name for name, _ in new.parts[: len(names)]] and all(
            fits(a[1], b[1]) for a, b in zip(old.parts, new.parts, strict=False)
        )
    return was == now or (was, now) in _WIDENINGS

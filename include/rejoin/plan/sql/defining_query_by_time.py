"""The defining SQL of joins by time: a stream as of event time, two streams within a window. In Spark SQL, as ``plan.sql.defining_query``."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from rejoin.plan.model.match import AsOf, Other, Window
from rejoin.plan.model.plan import Edge, Node, Plan, Projection, View
from rejoin.plan.model.row_versions import DELETED, VALID_FROM

Relation = Callable[[str], str]
"""The SQL text after FROM for a table or node."""
Shown = Callable[[View, Relation], str]
"""A view in parentheses, as it stands after FROM."""
_UNTIL, _NTH = "_valid_until", "_nth"


def as_of(plan: Plan, edge: Edge, match: AsOf, relation: Relation, shown: Shown) -> str:
    """The join with the version that was valid at the time of the left row."""
    key = plan.key_of(edge.right.table)
    rows = ", ".join(f"`{k}`" for k in key[:-1])
    ended = f"(SELECT *, lead(`{VALID_FROM}`) OVER (PARTITION BY {rows} ORDER BY `{VALID_FROM}`) AS `{_UNTIL}` FROM {relation(edge.right.table)})"
    view = replace(edge.right, columns=(*edge.right.columns, Projection(_UNTIL, f"t.`{_UNTIL}`", "TIMESTAMP")))
    at = f"l.`{match.left_time}`"
    valid = f"r1.`{match.right_time}` <= {at} AND (r1.`{_UNTIL}` IS NULL OR {at} < r1.`{_UNTIL}`) AND NOT r1.`{DELETED}`"
    return f"{edge.kind.upper()} JOIN {shown(view, lambda _: ended)} AS r1 ON {_equal(edge, match.on)} AND {valid}"


def window(node: Node, match: Window, relation: Relation, whole: Relation, shown: Shown) -> list[str]:
    """The join with the right rows of the window, and with the watermark, which follows from the ``whole`` tables, where rows without partner wait for it."""
    edge = node.edges[0]
    apart = f"{_micros(edge.right, 'r1', match.right_time)} - {_micros(node.left, 'l', match.left_time)}"
    on = f"{_equal(edge, match.on)} AND {apart} BETWEEN {-match.before} AND {match.after}"
    lines = [f"{edge.kind.upper()} JOIN {shown(edge.right, relation)} AS r1 ON {on}"]
    if closed(node) is None:
        return lines
    sides = ((node.left, match.left_time, match.left_clock), (edge.right, match.right_time, match.right_clock))
    times = " UNION ALL ".join(
        f"SELECT {', '.join([*(f'{view.column(c).sql} AS c_{i}' for i, c in enumerate(clock, 1)), f'{_micros_of(view, time)} AS at', f'{side} AS side'])} FROM {whole(view.table)} AS t"
        for side, (view, time, clock) in enumerate(sides)
    )
    clocks = [f"c_{i}" for i in range(1, len(match.left_clock) + 1)]
    grouped = f" GROUP BY {', '.join(clocks)}" if clocks else ""
    mark = "max(at)"
    if match.each:
        times = f"SELECT {', '.join([*clocks, 'side', 'max(at) AS at'])} FROM ({times}) GROUP BY {', '.join([*clocks, 'side'])}"
        mark = "CASE WHEN count(at) = 2 THEN min(at) END"
    marks = f"(SELECT {', '.join([*clocks, f'{mark} - {match.lateness} AS mark'])} FROM ({times}){grouped})"
    pairs = zip(match.left_clock, match.right_clock, clocks, strict=True)
    same = " AND ".join(["true", *(f"coalesce(l.`{a}`, r1.`{b}`) = m.{c}" for a, b, c in pairs)])
    return [*lines, f"LEFT JOIN {marks} AS m ON {same}"]


def first(node: Node, pairs: str) -> str:
    """``pairs``, the text from FROM on of a join by a rule, with the place of each among those of its left row in the order of the right key."""
    lefts, rights = (", ".join(f"{row}.`{k}`" for k in key) for row, key in (("l", node.left.key), ("r1", node.edges[0].right.key)))
    nth = f"row_number() OVER (PARTITION BY {lefts} ORDER BY {rights})"
    return f"FROM (SELECT struct(l.*) AS l, struct(r1.*) AS r1, {nth} AS {_NTH} {pairs})"


def chosen(node: Node) -> str | None:
    """The condition that a row is the first of its left row; None where a left row cannot have several, or all are meant."""
    return f"{_NTH} = 1" if isinstance(node.match, Other) else None


def closed(node: Node) -> str | None:
    """The condition that a row without partner is in the result; None where no row waits."""
    match = node.match
    if not isinstance(match, Window) or match.at_once:
        return None
    edge = node.edges[0]
    left, right = (f"{row}.`{key}` IS NULL" for row, key in (("l", node.left.key[0]), ("r1", edge.right.key[0])))
    parts = [f"NOT ({left}) AND NOT ({right})"]
    if edge.kind.keeps_left:
        ends = f"{_micros(node.left, 'l', match.left_time)} + {match.after} < m.mark"
        parts.append(f"{right} AND ({_never(edge.foreign_key)} OR l.`{match.left_time}` IS NULL OR {ends})")
    if edge.kind.keeps_right:
        ends = f"{_micros(edge.right, 'r1', match.right_time)} + {match.before} < m.mark"
        parts.append(f"{left} AND ({_never(f'r1.`{c}`' for c in match.on)} OR r1.`{match.right_time}` IS NULL OR {ends})")
    return " OR ".join(f"({part})" for part in parts) if len(parts) > 1 else None


def _never(equal: Iterable[str]) -> str:
    return " OR ".join(f"({text}) IS NULL" for text in equal)


def _equal(edge: Edge, on: tuple[str, ...]) -> str:
    return " AND ".join(f"({part}) = r1.`{name}`" for part, name in zip(edge.foreign_key, on, strict=True))


def _micros(view: View, row: str, time: str) -> str:
    return _as_micros(view, time, f"{row}.`{time}`")


def _micros_of(view: View, time: str) -> str:
    """Of the table that the view reads."""
    return _as_micros(view, time, view.column(time).sql)


def _as_micros(view: View, time: str, text: str) -> str:
    return f"unix_micros(CAST({text} AS TIMESTAMP))" if view.column(time).type == "TIMESTAMP_NTZ" else f"unix_micros({text})"

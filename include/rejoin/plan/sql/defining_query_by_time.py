"""The defining SQL of joins by time: a stream as of event time, two streams within a window."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rejoin.plan.model.added_columns import DELETED, VALID_FROM
from rejoin.plan.model.match import AsOf, Window
from rejoin.plan.model.plan import Edge, Node, Plan, Projection, View
from rejoin.plan.sql.spelling import Spelling, view_query

_UNTIL = "_valid_until"


@dataclass(frozen=True)
class ByTime:
    """The parts of a node's query that depend on time.

    Attributes:
        sql: whose SQL the node's texts are in.
        relation: the SQL text after FROM for a table or node.
        whole: the same for a stream whose newest event time counts.
    """

    sql: Spelling
    relation: Callable[[str], str]
    whole: Callable[[str], str]

    def as_of(self, plan: Plan, edge: Edge, match: AsOf) -> str:
        """The join with the version that was valid at the time of the left row."""
        assert match.left_time is not None
        assert match.right_time is not None  # else as of arrival, which no query tells
        sql, key = self.sql, plan.key_of(edge.right.table)
        start, until = sql.name(VALID_FROM), sql.name(_UNTIL)
        following = f"lead({start}) OVER (PARTITION BY {sql.names(key[:-1])} ORDER BY {start})"
        ended = f"(SELECT *, {following} AS {until} FROM {self.relation(edge.right.table)})"
        view = replace(edge.right, columns=(*edge.right.columns, Projection(_UNTIL, f"t.{until}", "TIMESTAMP")))
        at, valid_from = f"l.{sql.name(match.left_time)}", f"r1.{sql.name(match.right_time)}"
        valid = f"{valid_from} <= {at} AND (r1.{until} IS NULL OR {at} < r1.{until}) AND NOT r1.{sql.name(DELETED)}"
        shown = view_query(sql, view, lambda _: ended)
        return f"{edge.kind.upper()} JOIN {shown} AS r1 ON {self._equal(edge, match.on)} AND {valid}"

    def window(self, node: Node, match: Window) -> list[str]:
        """The join with the right rows of the window, and with the watermark, which follows from the ``whole`` tables, where rows without partner wait
        for it.
        """
        sql, edge = self.sql, node.edges[0]
        apart = f"{self._micros(edge.right, 'r1', match.right_time)} - {self._micros(node.left, 'l', match.left_time)}"
        on = f"{self._equal(edge, match.on)} AND {apart} BETWEEN {-match.before} AND {match.after}"
        lines = [f"{edge.kind.upper()} JOIN {view_query(sql, edge.right, self.relation)} AS r1 ON {on}"]
        if self.closed(node) is None:
            return lines
        clocks = [f"c_{i}" for i in range(1, len(match.left_clock) + 1)]
        pairs = zip(match.left_clock, match.right_clock, clocks, strict=True)
        same = " AND ".join(["true", *(f"coalesce(l.{sql.name(a)}, r1.{sql.name(b)}) = m.{c}" for a, b, c in pairs)])
        return [*lines, f"LEFT JOIN {self._marks(node, match, clocks)} AS m ON {same}"]

    def _marks(self, node: Node, match: Window, clocks: list[str]) -> str:
        """The watermark of every value of the clocks."""
        sides = ((node.left, match.left_time, match.left_clock), (node.edges[0].right, match.right_time, match.right_clock))
        times = " UNION ALL ".join(
            f"SELECT {', '.join([*(f'{view.column(c).sql} AS c_{i}' for i, c in enumerate(clock, 1)), f'{self._micros_of(view, time)} AS _time', f'{side} AS _side'])} FROM {self.whole(view.table)} AS t"
            for side, (view, time, clock) in enumerate(sides)
        )
        grouped = f" GROUP BY {', '.join(clocks)}" if clocks else ""
        mark = "max(_time)"
        if match.each:
            times = f"SELECT {', '.join([*clocks, '_side', 'max(_time) AS _time'])} FROM ({times}) GROUP BY {', '.join([*clocks, '_side'])}"
            mark = "CASE WHEN count(_time) = 2 THEN min(_time) END"
        return f"(SELECT {', '.join([*clocks, f'{mark} - {match.lateness} AS _mark'])} FROM ({times}){grouped})"

    def closed(self, node: Node) -> str | None:
        """The condition that a row without partner is in the result; None where no row waits."""
        match, sql = node.match, self.sql
        if not isinstance(match, Window) or match.at_once:
            return None
        edge = node.edges[0]
        left, right = (f"{row}.{sql.name(key)} IS NULL" for row, key in (("l", node.left.key[0]), ("r1", edge.right.key[0])))
        parts = [f"NOT ({left}) AND NOT ({right})"]
        if edge.kind.keeps_left:
            ends = f"{self._micros(node.left, 'l', match.left_time)} + {match.after} < m._mark"
            parts.append(f"{right} AND ({_never(edge.foreign_key)} OR l.{sql.name(match.left_time)} IS NULL OR {ends})")
        if edge.kind.keeps_right:
            ends = f"{self._micros(edge.right, 'r1', match.right_time)} + {match.before} < m._mark"
            alone = _never(f"r1.{sql.name(c)}" for c in match.on)
            parts.append(f"{left} AND ({alone} OR r1.{sql.name(match.right_time)} IS NULL OR {ends})")
        return " OR ".join(f"({part})" for part in parts) if len(parts) > 1 else None

    def _equal(self, edge: Edge, on: tuple[str, ...]) -> str:
        return " AND ".join(f"({part}) = r1.{self.sql.name(name)}" for part, name in zip(edge.foreign_key, on, strict=True))

    def _micros(self, view: View, row: str, time: str) -> str:
        return self._as_micros(view, time, f"{row}.{self.sql.name(time)}")

    def _micros_of(self, view: View, time: str) -> str:
        """Of the table that the view reads."""
        return self._as_micros(view, time, view.column(time).sql)

    def _as_micros(self, view: View, time: str, text: str) -> str:
        return self.sql.time_micros(text, zoned=view.column(time).type != "TIMESTAMP_NTZ")


def _never(equal: Iterable[str]) -> str:
    return " OR ".join(f"({text}) IS NULL" for text in equal)

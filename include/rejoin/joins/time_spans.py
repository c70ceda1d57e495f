"""Spans of time: what has to be read of a stream."""

from collections.abc import Iterable
from dataclasses import dataclass

from rejoin.engines.relation import Engine, Relation

MOST = 64
"""More spans than these are read as one: each costs a condition."""


@dataclass(frozen=True)
class TimeSpans:
    """Spans of microseconds since the epoch, both ends included, in order and apart."""

    of_time: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(engine: Engine, statement: str, rows: Relation) -> "TimeSpans":
        """The spans ``low`` to ``high`` that a statement over ``rows_`` gives, those that touch as one. Nulls are no spans."""
        ordered = f"""
SELECT low, high, max(high) OVER (ORDER BY low, high ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
FROM ({statement}) WHERE low IS NOT NULL AND high IS NOT NULL"""
        numbered = f"SELECT *, sum(CASE WHEN low <= reached THEN 0 ELSE 1 END) OVER (ORDER BY low, high) AS island FROM ({ordered})"
        gathered = f"SELECT min(low) AS low, max(high) AS high FROM ({numbered}) GROUP BY island"
        few = f"SELECT min(low) AS low, max(high) AS high FROM (SELECT *, ntile({MOST}) OVER (ORDER BY low) AS part FROM ({gathered})) GROUP BY part"
        found = engine.query(few, rows_=rows).here().to_pylist()
        return TimeSpans.joined((r["low"], r["high"]) for r in found)

    @staticmethod
    def joined(spans: Iterable[tuple[int, int]]) -> "TimeSpans":
        """Spans in any order, those that touch as one."""
        made: list[tuple[int, int]] = []
        for low, high in sorted(spans):
            if made and low <= made[-1][1] + 1:
                made[-1] = (made[-1][0], max(made[-1][1], high))
            elif low <= high:
                made.append((low, high))
        return TimeSpans(tuple(made))

    @staticmethod
    def together(*some: "TimeSpans") -> "TimeSpans":
        """All spans of some."""
        return TimeSpans.joined(span for one in some for span in one.of_time)

    def widened(self, by: int) -> "TimeSpans":
        """The same, each longer at both ends."""
        return TimeSpans.joined((low - by, high + by) for low, high in self.of_time)

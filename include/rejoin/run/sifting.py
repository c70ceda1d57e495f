"""Rows for which an expression of the user has no value: found by halving, then held back, or counted for the error that stops the run.

Only after an engine has said that some row cannot be computed, and only of rows that fit on the driver: the others pay nothing for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from rejoin.engines.engine import Engine, Rows
from rejoin.errors import NotComputable
from rejoin.failures import blamed, kind_of, of_a_row
from rejoin.limits import limits
from rejoin.plan import places
from rejoin.plan.model import Node
from rejoin.plan.rules import Severity
from rejoin.plan.steps import Verb
from rejoin.run.work import Work
from rejoin.stages.frames import foreign_key, seen

MOST = 100
"""So many rows are looked for one by one; of more it is only said that they are more. Each costs some ten small Spark jobs."""
WHY = "_why"
"""A column: why the row cannot be computed."""

Compute = Callable[[Rows], Rows]


@dataclass
class Sieve:
    """What was set aside of one node in one attempt.

    ``why``: key -> the reason, which holds no value of the row. A left row of a result with a key of both sides is set aside as one without a right
    row: which one it has cannot be computed.
    """

    work: Work
    node: Node
    verb: Verb
    why: dict[tuple[object, ...], str] = field(default_factory=dict)

    def joined(self, state: Rows, key: list[str], compute: Compute) -> Rows:
        """What ``compute`` (``resolve.join``) makes of rows; null for those that it cannot take, which are set aside.

        Raises:
            NotComputable: there are too many of these, or they may not be held back.
        """
        rows, engine = state.here(), self.work.engine
        found = without_value(engine, rows, compute)
        self._set_aside(rows, key, found)
        keep = pa.array([i not in found for i in range(rows.num_rows)], pa.bool_())
        made = compute(engine.rows(rows.filter(keep)))
        self.check()
        sql, new = engine.sql, engine.sql.name("new")
        on = sql.on(key, "r", "m", nulls=self.node.null_keys)
        met = f"SELECT {sql.names(key, 'r')}, m.{new} FROM lefts AS r LEFT JOIN made AS m ON {on}"
        return engine.query(met, lefts=engine.rows(rows.select(key)), made=made)

    def lefts(self, given: Rows, key: tuple[str, ...], column: str, *, counts: bool = True) -> Rows:
        """Left rows where the struct ``column`` is null if the left view or a foreign key has no value for it.

        Args:
            given: the rows.
            key: their key columns.
            column: the struct of all columns of the left table.
            counts: False: a row from before, which says nothing about what this run publishes.

        Raises:
            NotComputable: there are too many of these.
        """
        rows, engine = given.here(), self.work.engine
        node, sql = engine.node(self.node), engine.sql
        shown = ", ".join(["l", *(f"{foreign_key(sql, e)} AS fk_{i}" for i, e in enumerate(node.edges))])

        def compute(some: Rows) -> Rows:
            views = f"SELECT {seen(sql, node.left)} AS l FROM (SELECT {column} AS t FROM lefts)"
            return engine.query(f"SELECT {shown} FROM ({views})", lefts=some)

        found = without_value(engine, rows, compute)
        if counts:
            self._set_aside(rows, list(key), found)
        marked = rows.append_column("_bad", pa.array([i in found for i in range(rows.num_rows)], pa.bool_()))
        line = ", ".join(f"CASE WHEN NOT _bad THEN {c} END AS {c}" if c == column else sql.name(c) for c in rows.column_names)
        return engine.query(f"SELECT {line} FROM lefts", lefts=engine.rows(marked))

    def check(self) -> None:
        """Stops the run unless the rows that were set aside may be held back.

        Raises:
            NotComputable: they may not.
        """
        if self.why and not holds(self.node):
            raise self.refused(f"{len(self.why):,}")

    def aside(self, schema: pa.Schema) -> Rows:
        """The keys of the node that were set aside, with ``_why``. ``schema`` lends the keys' types."""
        keys = zip(*self.why, strict=True) if self.why else [()] * len(self.node.key)
        columns = [pa.array(values, schema.field(k).type) for k, values in zip(self.node.key, keys, strict=True)]
        rows = pa.table([*columns, pa.array(self.why.values(), pa.string())], names=[*self.node.key, WHY])
        return self.work.engine.rows(rows)

    def refused(self, count: str) -> NotComputable:
        """The error that stops the run."""
        reasons = "; ".join(list(dict.fromkeys(self.why.values()))[:5])
        hold = "" if holds(self.node) else ', or let such rows be held back: .expect(computable(), severity="quarantine"), then'
        return NotComputable(
            f"output {self.node.name!r} cannot be computed for {count} rows in step {self.verb}.{self.node.name} of run {self.work.facts.run.number}; nothing was committed: {reasons}",
            expected="a value, or null, for every row",
            next_step=f"correct the input or the expression (try_cast, try_divide ... give null){hold}"
            + ("" if holds(self.node) else f" `rejoin quarantine list {self.node.name}` shows their keys"),
        )

    def _set_aside(self, rows: pa.Table, key: list[str], found: Mapping[int, BaseException]) -> None:
        about = places.of_node(self.work.facts.plan, self.node.name)
        for at, error in found.items():
            kind = kind_of(error)
            why = f"{blamed(error, about)}: {kind.name if kind else type(error).__name__}"
            own = [rows[k][at].as_py() for k in key]
            self.why[*own, *[None] * (len(self.node.key) - len(own))] = why
        if len(self.why) > MOST:
            raise self.refused(f"more than {MOST:,}")


def without_value(engine: Engine, rows: pa.Table, compute: Compute) -> dict[int, BaseException]:
    """Row (from 0) -> what an engine said of it alone, for the rows that ``compute`` has no value for; some more than ``MOST`` suffice."""
    found: dict[int, BaseException] = {}
    parts = [(0, rows.num_rows)] if rows.num_rows else []
    while parts and len(found) <= MOST:
        start, stop = parts.pop()
        try:
            compute(engine.rows(rows.slice(start, stop - start))).here()
        except Exception as error:
            if not of_a_row(error):
                raise
            if stop - start == 1:
                found[start] = error
            else:
                middle = (start + stop) // 2
                parts += [(middle, stop), (start, middle)]
    return found


def holds(node: Node) -> bool:
    """Whether rows of the node that cannot be computed are to be held back."""
    return any(e.type == "computable" and e.severity is Severity.QUARANTINE for e in node.expectations)


def can_sift(error: BaseException, rows: int) -> bool:
    """Whether an error is about single rows of few enough."""
    return of_a_row(error) and limits().small(rows)

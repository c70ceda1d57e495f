"""Rows for which an expression of the user has no value: found by halving, then held back, or counted for the error that stops the run.

Only after an engine has said that some row cannot be computed, and only of rows that fit on the driver: the others pay nothing for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.context.work import Work
from rejoin.engines.relation import Engine, Relation
from rejoin.errors import NotComputable
from rejoin.failures.engine_errors import blamed, kind_of, of_a_row
from rejoin.limits import limits
from rejoin.plan.model.expectations import Severity
from rejoin.plan.model.match import Window
from rejoin.plan.model.plan import Node, View
from rejoin.plan.model.steps import Verb
from rejoin.plan.sql import suspects
from rejoin.plan.sql.suspects import Suspect
from rejoin.statements.relations import foreign_key, seen

MOST = 100
"""So many rows are looked for one by one; of more it is only said that they are more. Each costs some ten small Spark jobs."""
WHY = "_why"
"""A column: why the row cannot be computed."""

Compute = Callable[[Relation], Relation]


@dataclass(frozen=True)
class _Side:
    """A side of a node: its view, what the view's row is called, the key of its table, what is computed beside the view, and how many columns of
    the node's key come before its own.
    """

    view: View
    row: str
    key: tuple[str, ...]
    also: Sequence[str]
    behind: int = 0


@dataclass
class UncomputableRows:
    """What was set aside of one node in one attempt.

    ``why``: key -> the reason, which holds no value of the row. A left or right row of a result with a key of both sides is set aside as one without
    the other: which one it has cannot be computed.
    """

    work: Work
    node: Node
    verb: Verb
    why: dict[tuple[object, ...], str] = field(default_factory=dict)

    def joined(self, state: Relation, key: list[str], compute: Compute) -> Relation:
        """What ``compute`` (``resolve.join``) makes of rows; null for those that it cannot take, which are set aside, and for what is aside already.

        Raises:
            NotComputable: there are too many of these, or they may not be held back.
        """
        rows, engine = state.here(), self.work.engine
        found = without_value(engine, rows, compute)
        self._set_aside(rows, key, found, suspects.of_node(self.work.facts.plan, self.node.name))
        keys = rows.select(key)
        aside = pa.array([tuple(k.values()) in self.why for k in keys.to_pylist()], pa.bool_())
        made = compute(engine.rows(rows.filter(pc.invert(aside))))
        self.check()
        # A record that its own side cannot compute is in no state, but its key is among the results that were looked at.
        asked = pa.concat_tables([keys.filter(pc.invert(aside)), self._keys(keys.schema, key)])
        sql, new = engine.sql, engine.sql.name("new")
        on = sql.on(key, "r", "m", nulls=self.node.null_keys_aside)
        met = f"SELECT {sql.names(key, 'r')}, m.{new} FROM lefts AS r LEFT JOIN made AS m ON {on}"
        return engine.query(met, lefts=engine.rows(asked), made=made)

    def lefts(self, given: Relation, key: tuple[str, ...], column: str, *, counts: bool = True) -> Relation:
        """Left rows where the struct ``column`` is null if the left view or a foreign key has no value for it.

        Args:
            given: the rows.
            key: their key columns.
            column: the struct of all columns of the left table.
            counts: False: a row from before, which says nothing about what this run publishes.

        Raises:
            NotComputable: there are too many of these.
        """
        node = self.work.engine.node(self.node)
        keys = [f"{foreign_key(self.work.engine.sql, e)} AS fk_{i}" for i, e in enumerate(node.edges)]
        return self._sifted(given, _Side(node.left, "l", key, keys), column, counts=counts)

    def rights(self, given: Relation, key: tuple[str, ...], column: str, *, counts: bool = True) -> Relation:
        """The same of the right rows of the only edge of a node whose key is that of both sides, or of either: if the right view has no value for it."""
        behind = len(self.node.key) - len(key)
        return self._sifted(given, _Side(self.work.engine.node(self.node).edges[0].right, "r1", key, [], behind), column, counts=counts)

    def _sifted(self, given: Relation, side: "_Side", column: str, *, counts: bool) -> Relation:
        engine, sql = self.work.engine, self.work.engine.sql
        if not limits().small(int(str(engine.one("SELECT count(*) AS rows_ FROM given", given=given)["rows_"]))):
            raise self.refused(f"some of more than {limits().small_rows:,}")
        rows, shown = given.here(), ", ".join([side.row, *side.also])

        def compute(some: Relation) -> Relation:
            views = f"SELECT {seen(sql, side.view)} AS {side.row} FROM (SELECT {column} AS t FROM some)"
            return engine.query(f"SELECT {shown} FROM ({views})", some=some)

        found = without_value(engine, rows, compute)
        if len(found) > MOST:
            raise self.refused(f"more than {MOST:,}")
        if counts:
            about = suspects.of_side(self.work.facts.plan, self.node.name, right=side.row != "l")
            self._set_aside(rows, side.key, found, about, side.behind)
        marked = rows.append_column("_bad", pa.array([i in found for i in range(rows.num_rows)], pa.bool_()))
        line = ", ".join(f"CASE WHEN NOT _bad THEN {c} END AS {c}" if c == column else sql.name(c) for c in rows.column_names)
        return engine.query(f"SELECT {line} FROM marked", marked=engine.rows(marked))

    def check(self) -> None:
        """Stops the run unless the rows that were set aside may be held back.

        Raises:
            NotComputable: they may not.
        """
        if self.why and not holds(self.node):
            raise self.refused(f"{len(self.why):,}")

    def aside(self, schema: pa.Schema) -> Relation:
        """The keys of the node that were set aside, with ``_why``. ``schema`` lends the keys' types."""
        keys = self._keys(schema, list(self.node.key))
        return self.work.engine.rows(keys.append_column(WHY, pa.array(self.why.values(), pa.string())))

    def _keys(self, schema: pa.Schema, names: list[str]) -> pa.Table:
        keys = zip(*self.why, strict=True) if self.why else [()] * len(names)
        return pa.table({n: pa.array(values, schema.field(n).type) for n, values in zip(names, keys, strict=True)})

    def refused(self, count: str) -> NotComputable:
        """The error that stops the run."""
        reasons = "; ".join(list(dict.fromkeys(self.why.values()))[:5])
        hold = "" if holds(self.node) else ', or let such rows be held back: .expect(computable(), severity="quarantine"), then'
        return NotComputable(
            f"output {self.node.name!r} cannot be computed for {count} rows in step {self.verb}.{self.node.name} of run {self.work.facts.run.number}; nothing was committed: {reasons}",
            expected="a value, or null, for every row",
            next_step=f"correct the input or the expression (try_cast, try_divide ... give null){hold}"
            + ("" if holds(self.node) else f" `rejoin quarantine list {self.node.name}` shows their keys")
            + ("; those of earlier runs that this one reads again count, too" if isinstance(self.node.match, Window) else ""),
        )

    def _set_aside(
        self, rows: pa.Table, key: Sequence[str], found: Mapping[int, BaseException], about: Sequence[Suspect], behind: int = 0
    ) -> None:
        """``behind``: how many columns of the node's key come before those."""
        for at, error in found.items():
            kind = kind_of(error)
            why = f"{blamed(error, about)}: {kind.name if kind else type(error).__name__}"
            own = [*[None] * behind, *(rows[k][at].as_py() for k in key)]
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

"""This process runs the statements, by DuckDB over Arrow tables and the Parquet files of the lake. No JVM.

Few rows are Arrow tables, and statements over them are computed when somebody asks for their rows. What rests on rows that may be many is put off
until it is written, counted or kept (``later``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import NoReturn, TypeVar

import pyarrow as pa

from rejoin.engines.counted_relation import CountedRelation, PickedRelation, taken, those
from rejoin.engines.deferred_relation import DeferredRelation, SmallDeferredRelation, database, use
from rejoin.engines.key_ranges import at_once, ranges, side_by_side
from rejoin.engines.landed_rows import landed
from rejoin.engines.relation import Counts, Engine, KeySpread, LocalRelation, NeedsSpark, RangeWork, Relation
from rejoin.limits import limits
from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.grouping import Grouping
from rejoin.plan.model.plan import Node, Plan, Table, View
from rejoin.plan.sql import portable
from rejoin.plan.sql.portable import NotPortable
from rejoin.statements.dialect import DUCKDB, aggregated

T = TypeVar("T")


class DuckdbEngine(Engine):
    """DuckDB in this process.

    Args:
        plan: whose expressions are run.
    """

    sql, in_process = DUCKDB, True

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._spoken = _spoken(plan)

    def query(self, statement: str, **inputs: Relation) -> Relation:
        if any(isinstance(rows, DeferredRelation) for rows in inputs.values()):
            use(inputs, 2)  # it may be counted and written
            return DeferredRelation(statement, inputs)
        return SmallDeferredRelation(statement, inputs)

    def rows(self, arrow: pa.Table, *, many: bool = False) -> Relation:  # noqa: ARG002
        return LocalRelation(arrow)

    def files(self, text: str) -> Relation:
        return DeferredRelation(text)

    @property
    def at_once(self) -> int:
        return at_once()

    def landed(self, schema: pa.Schema, streams: Sequence[Iterable[pa.RecordBatch]], rare: Sequence[str], by: Sequence[str]) -> Relation:  # noqa: ARG002
        return landed(schema, streams, rare)

    def ranged(self, rows: Relation, by: Sequence[str], spread: KeySpread | None) -> Relation:
        if spread is None or not isinstance(rows, DeferredRelation):
            return rows
        return replace(rows, ranges=ranges(spread, by, self.at_once))

    def keyed(self, rows: Relation, key: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> Relation:
        return replace(rows, key=tuple(key), keyed=inputs) if isinstance(rows, DeferredRelation) else rows

    def gathered(self, rows: Relation, by: Sequence[str], at_most: int) -> Relation:
        if not isinstance(rows, DeferredRelation) or (self.at_once == 1 and at_most <= limits().range_rows):
            return rows
        kept = self._exchanged(DeferredRelation(rows.statement, rows.inputs, ranges=rows.ranges), by)
        spread = KeySpread(kept, by, int(self.one("SELECT count(*) AS n FROM kept", kept=kept)["n"]), nulls=True)
        return replace(rows, statement="SELECT * FROM kept", inputs={"kept": kept}, ranges=ranges(spread, by, self.at_once))

    def _exchanged(self, rows: DeferredRelation, by: Sequence[str]) -> Relation:  # noqa: ARG002
        """The same rows, computed once, of which ranges of the key ``by`` are asked for later."""
        return rows.kept()

    def each_range(self, rows: Relation, by: Sequence[str], work: RangeWork[T]) -> list[T] | None:
        assert isinstance(rows, DeferredRelation)
        found = taken(rows, by)
        if self.at_once == 1:
            found = [chain.from_iterable(found)]  # so that the next range is computed while the last rows of one are written
        return side_by_side(partial(work, writers=2 if len(found) == 1 else 1), found)

    def everywhere(self, rows: Relation) -> Relation:
        return rows

    def together(self, rows: Relation) -> Relation:
        return rows

    def counted(self, rows: Relation, counts: Mapping[str, str]) -> tuple[Relation, Counts]:
        if isinstance(rows, DeferredRelation):
            observed = CountedRelation(rows.statement, rows.inputs, counts)
            return observed, observed.seen
        once = LocalRelation(rows.here())
        return once, lambda: self.one(aggregated(self.sql, counts, "counted"), counted=once)

    def picked(self, rows: Relation, columns: Sequence[str], where: str) -> Relation:
        if not isinstance(rows, DeferredRelation):
            return LocalRelation(those(rows.here(), columns, where))
        made = super().picked(rows, columns, where)
        assert isinstance(made, DeferredRelation)
        return PickedRelation(made.statement, made.inputs, columns, where)

    @contextmanager
    def kept(self, rows: Relation) -> Iterator[Relation]:
        yield rows.kept() if isinstance(rows, DeferredRelation) else LocalRelation(rows.here())

    def type(self, kind: pa.DataType) -> str:
        return _type(kind)

    def node(self, node: Node) -> Node:
        if node.name not in self._spoken:
            if why := portable.why_not(self._plan, node):
                raise NeedsSpark(why)
            self._spoken[node.name] = _printed(self._plan, node)
        return self._spoken[node.name]

    def conditions(self, of: Table | Node, expectations: Sequence[Expectation]) -> Sequence[Expectation]:
        try:
            types = {"t": portable.types_of(self._plan, of.name)}
            return [_asked(one, types) for one in expectations]
        except NotPortable as error:
            raise NeedsSpark(str(error)) from error

    def by_spark(self, why: str) -> NoReturn:
        raise NeedsSpark(why)


_PRINTED: dict[int, tuple[Plan, dict[str, Node]]] = {}
"""Plans, by what Python calls them, with those of their nodes that were printed. Each step has an engine of its own, and a plan never changes."""
_MOST_PLANS = 32


def _spoken(plan: Plan) -> dict[str, Node]:
    found = _PRINTED.get(id(plan))
    if found is None:
        if len(_PRINTED) >= _MOST_PLANS:
            _PRINTED.clear()
        _PRINTED[id(plan)] = found = plan, {}  # not looked up once more: a step beside this one may clear them in between
    return found[1]


@cache
def _type(kind: pa.DataType) -> str:
    with database().cursor() as connection:
        connection.register("one", pa.schema([("c", kind)]).empty_table())
        return str(connection.sql("SELECT c FROM one").types[0])


def _printed(plan: Plan, node: Node) -> Node:
    """The node with its texts in DuckDB's SQL."""
    columns = portable.node_columns(plan, node)

    def text(given: str) -> str:
        return portable.printed(given, columns).text

    edges = tuple(replace(e, right=_view(plan, e.right), foreign_key=tuple(text(part) for part in e.foreign_key)) for e in node.edges)
    shown = tuple(replace(p, sql=text(p.sql)) for p in node.columns)
    where = None if node.where is None else text(node.where)
    grouping = None if node.grouping is None else _grouping(node.grouping, portable.member_columns(plan, node))
    return replace(node, left=_view(plan, node.left), edges=edges, columns=shown, where=where, grouping=grouping)


def _grouping(grouping: Grouping, members: portable.Columns) -> Grouping:
    keys, values = (tuple(replace(v, sql=portable.printed(v.sql, members).text) for v in some) for some in (grouping.keys, grouping.values))
    return replace(grouping, keys=keys, values=values)


def _view(plan: Plan, view: View) -> View:
    columns = portable.view_columns(plan, view)
    shown = tuple(replace(p, sql=portable.printed(p.sql, columns).text) for p in view.columns)
    return replace(view, columns=shown, where=None if view.where is None else portable.printed(view.where, columns).text)


def _asked(one: Expectation, columns: Mapping[str, Mapping[str, str]]) -> Expectation:
    if "resolved" not in one.kwargs:
        return one
    return replace(one, kwargs={**one.kwargs, "resolved": portable.printed(one.kwargs["resolved"], columns).text})

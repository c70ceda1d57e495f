"""The tables of a committed run: how large they are, what changed them last, what is special about one of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rejoin.errors import QueryRefused, SnapshotExpired, UnknownTable
from rejoin.lake import table_names
from rejoin.lake.config import LakeConfig
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.history import History, RunLine
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.runs import RunState
from rejoin.lake.query import bounded_looks
from rejoin.lake.query.bounded_looks import Newest, Refused, Skew
from rejoin.lake.query.point_query import PointQuery
from rejoin.lake.query.typed_keys import typed
from rejoin.lake.source_access import source_access
from rejoin.lake.table_roles import Role, state_tables
from rejoin.page.model import RELEASED, Change, Fresh, KeyEvent, KeyView, Kind, Refusals, Rows, TableLine, TablePage
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.step_results import NET_CHANGES
from rejoin.plan.model.steps import Verb, step_id
from rejoin.plan.sql.defining_query import topology_query
from rejoin.report.samples import row_change
from rejoin.why.answer import Answer
from rejoin.why.trace import why

QUARANTINED = 500
"""So many of the newest refused records are read."""

KINDS = {
    Role.SOURCE: Kind.SOURCE,
    Role.REFUSED: Kind.QUARANTINE,
    Role.SUBSCRIPTIONS: Kind.SUBSCRIPTIONS,
    Role.OUTPUT: Kind.OUTPUT,
    Role.CHANGES: Kind.CHANGES,
    Role.HELD: Kind.QUARANTINE,
}
KEY_EVENTS = 100
"""So many changes of a key are shown."""


@dataclass(frozen=True)
class KeySource:
    """Where a key is looked up: the lake, and where relative paths of sources start."""

    config: LakeConfig
    root: str


class Tables:
    """The tables of one topology as of its newest committed run.

    Args:
        history: the topology's runs.
        refs: its tables.
        head: the newest committed run.
        plan: of this run.
        runs: the newest runs, newest first: the last change of a table is looked for in these.
    """

    def __init__(self, history: History, refs: Refs, head: int, plan: Plan, runs: Sequence[RunLine]) -> None:
        self._history, self._refs, self._head, self._plan, self._runs = history, refs, head, plan, runs
        self._states = history.states(head)
        self._writers = history.writers(self._states)
        self._known = state_tables(plan)

    def lines(self) -> tuple[TableLine, ...]:
        """Every table, in the plan's order, those that belong to one beside it."""
        order = dict.fromkeys([*self._known, *sorted(self._states)])
        return tuple(self.line(t) for t in order if t in self._states)

    def line(self, name: str) -> TableLine:
        """One table. A part of it that is beyond retention is not known."""
        kind, change = self._kind(name), self._change(name)
        try:
            table = self._refs.require(name, self._states[name])
        except SnapshotExpired as error:
            return TableLine(name, kind, Rows(None, why=error.what), change=change)
        size = bounded_looks.size(table, self._states[name])
        rows = Rows(size.live)
        key = self._version_key(name)
        if key is not None:
            counted = bounded_looks.live_rows(table, self._states[name], key)
            rows = Rows(size.rows, exact=False, why=counted.why) if isinstance(counted, Refused) else Rows(counted)
        return TableLine(
            name, kind, rows, size.rows, size.bytes, size.files, size.delete_files, written_by=self._writers.get(name), change=change
        )

    def page(self, name: str, key: tuple[str, ...], source: KeySource, fresh: Fresh | None, published: RunLine | None) -> TablePage:
        """One table and what is special about it.

        Raises:
            UnknownTable: no such table, or the key does not fit it.
        """
        if name not in self._states:
            raise UnknownTable(f"topology {self._plan.topology!r} has no table {name!r}", expected=", ".join(sorted(self._states)))
        kind = self._kind(name)
        table = self._refs.require(name, self._states[name])
        refused = name if kind is Kind.QUARANTINE else table_names.quarantine(name)
        keyed = kind in (Kind.SOURCE, Kind.OUTPUT, Kind.INTERMEDIATE)
        return TablePage(
            topology=self._plan.topology,
            run=self._head,
            table=self.line(name),
            columns=tuple((f.name, str(f.field_type)) for f in table.schema().fields),
            key=self._plan.key_of(name) if keyed else (),
            fresh=fresh,
            published=published,
            refusals=self._refusals(refused) if refused in self._states else None,
            skew=self._skew(name),
            key_view=self._key_view(name, key, source) if keyed and key else None,
            sql=topology_query(self._plan, self._plan.node(name)) if kind in (Kind.OUTPUT, Kind.INTERMEDIATE) else None,
            visible=frozenset(self._states),
        )

    def _kind(self, name: str) -> Kind:
        known = self._known.get(name)
        if known is None:  # of a table or output that left the topology
            marks = {Kind.CHANGES: table_names.changes(""), Kind.QUARANTINE: table_names.quarantine("")}
            return next((kind for kind, mark in marks.items() if name.endswith(mark)), Kind.OTHER)
        if isinstance(known.of, Node) and known.role is Role.OUTPUT and not known.of.published:
            return Kind.INTERMEDIATE
        return KINDS.get(known.role, Kind.OTHER)

    def _version_key(self, name: str) -> tuple[str, ...] | None:
        """The key of a table of versions; None for tables of one row a key or a record."""
        known = self._known.get(name)
        return known.key if known is not None and known.role in (Role.SOURCE, Role.SUBSCRIPTIONS) else None

    def _change(self, name: str) -> Change | None:
        kind = self._kind(name)
        if kind not in (Kind.SOURCE, Kind.OUTPUT, Kind.INTERMEDIATE):
            return None
        step = step_id(Verb.INGEST if kind is Kind.SOURCE else Verb.RESOLVE, name)
        wanted = ("changes",) if kind is Kind.SOURCE else NET_CHANGES
        for run in self._runs:
            line = run.step(step)
            if run.state == RunState.COMMITTED and line is not None and line.record.counts.get("changes"):
                return Change(run.number, run.closed_at, tuple((c, line.record.counts.get(c, 0)) for c in wanted))
        return None

    def _refusals(self, name: str) -> Refusals:
        found = bounded_looks.newest(self._refs.require(name, self._states[name]), self._states[name], QUARANTINED)
        refused = [r for r in found.rows if r.get("_op") != RELEASED] if isinstance(found, Newest) else []
        codes = Counter(str(r.get("_code")) for r in refused)
        return Refusals(name, found, tuple(codes.most_common()))

    def _skew(self, name: str) -> Skew | Refused | None:
        known = self._known.get(name)
        if known is None or known.edge is None:
            return None
        foreign = len(known.edge.foreign_key)
        return bounded_looks.skew(
            self._refs.require(name, self._states[name]), self._states[name], known.key[:foreign], known.key[foreign:]
        )

    def _key_view(self, name: str, key: tuple[str, ...], source: KeySource) -> KeyView:
        ledger = Ledger(source.config.ledger, self._plan.topology)
        query = PointQuery(ledger, self._refs, self._head)
        asked = typed(key)
        found = query.history(name, asked, KEY_EVENTS)
        when = self._history.published_at([r["run"] for r in found])
        events = tuple(KeyEvent(r["run"], when.get(r["run"]), row_change(r["op"], r["before"], r["after"])) for r in found)
        try:
            path: Answer | str = why(ledger, self._refs, source_access(source.config, source.root), name, asked, self._head)
        except QueryRefused as refused:
            path = refused.what
        return KeyView(key, query.get(name, asked), events, path)


def added(refs: Refs, name: str, snapshot: int) -> bounded_looks.Added | None:
    """What a snapshot added to a table; None if either is gone."""
    table = refs.table(name)
    return None if table is None else bounded_looks.added(table, snapshot)

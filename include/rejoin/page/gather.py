"""From the ledger and the tables to what the pages show: the reading half of the page."""

from pathlib import Path

from rejoin.errors import RunUnknown, UnknownTable
from rejoin.lake import validation_results
from rejoin.lake.config import LakeConfig, is_there, lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger import run_owner as owner_text
from rejoin.lake.ledger.history import History, RunLine, heads, owned
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.runs import RunKind
from rejoin.lake.ledger.tries import tried
from rejoin.lake.query.point_query import PointQuery
from rejoin.page.model import Fresh, Hits, RunPage, SearchPage, StepRow, TablePage, TopologyLine, TopologyPage, Written
from rejoin.page.status import kept_aside, status
from rejoin.page.tables import KeySource, Tables, added
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.steps import Verb, steps
from rejoin.report.samples import samples

HITS = 20
"""Keys that a search shows of a table."""

RUNS = 25
"""Runs on one page."""

DAY = 86_400.0

LOOKED_BACK = 100
"""Runs in which the newest change of a table is looked for."""


class Lake:
    """A lake as the pages read it.

    Args:
        location: as everywhere: a directory or a ``.toml`` file. A directory that does not exist is not made.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self.config: LakeConfig | None = lake_config(location) if is_there(location) else None

    def topologies(self) -> list[str]:
        """Names of all topologies that were run at least once."""
        return [] if self.config is None else list(heads(self.config.ledger))

    def line(self, name: str) -> TopologyLine:
        """A topology in a few words."""
        history, _ = self._open(name)
        newest = history.runs(1)
        plan = history.plan(newest[0].number) if newest else None
        outputs = None if plan is None else sum(n.published for n in plan.nodes)
        return TopologyLine(name, newest[0] if newest else None, history.published(), None if plan is None else len(plan.tables), outputs)

    def topology(self, name: str, before: int | None = None, within: float = DAY) -> TopologyPage:
        """A topology; ``before``: only runs with a smaller number; ``within``: seconds after which it is no longer fresh.

        Raises:
            UnknownTable: the lake has no such topology.
            RunUnknown: it has no run.
        """
        history, config = self._open(name)
        runs = history.runs(RUNS + 1, before)
        looked_back = history.runs(LOOKED_BACK)
        if not looked_back:
            raise RunUnknown(f"topology {name!r} has no run yet", next_step="run it once: `rejoin run`")
        head = self._head(name)
        plan = history.plan(looked_back[0].number if head is None else head)
        refs = Refs(config, name)
        tables = () if head is None else Tables(history, refs, head, plan, looked_back).lines()
        aside = () if head is None else tuple(kept_aside(history.states(head), refs, plan))
        published = history.published()
        looked = None if published is None else published.step(str(Verb.CUT))
        return TopologyPage(
            name=name,
            plan=plan,
            status=status(history, config.ledger, aside, looked_back, within),
            published=published,
            looked_at=None if looked is None else looked.ended_at,
            tables=tables,
            fresh=tuple(_fresh(history, t.name) for t in plan.tables),
            runs=tuple(runs[:RUNS]),
            more=len(runs) > RUNS,
        )

    def run(self, name: str, number: int) -> RunPage:
        """One run, step by step: those of its plan, and what else it registered.

        Raises:
            UnknownTable: the lake has no such topology.
            RunUnknown: the topology has no such run.
        """
        history, config = self._open(name)
        run = history.run(number)
        plan = history.plan(number) if run.kind == RunKind.RUN else None
        every = dict.fromkeys(
            [*(s.id for s in steps(plan)), *(s.record.step for s in run.steps)] if plan else [s.record.step for s in run.steps]
        )
        refs, kept, head = Refs(config, name), history.states(number), self._head(name)
        writes, begun = history.writes(number), tried(config.ledger, name, number)
        return RunPage(
            run,
            plan,
            tuple(StepRow(s, run.step(s), begun.get(s)) for s in every),
            tuple(history.inputs(number)),
            tuple(Written(table, added(refs, table, snapshot), table in kept) for table, snapshot in sorted(writes.items())),
            frozenset() if head is None else frozenset(history.states(head)),
            samples(refs, plan, number, writes) if plan else (),
            tuple((of, file) for of in _judged(run) for file in self._documents(name, number, of)),
        )

    def docs(self, name: str, number: int, of: str) -> Path | None:
        """The directory of the Data Docs of a table or output of a run; None: it has none, or they are not on this machine."""
        place = None if self.config is None else validation_results.directory(self.config, name, number, of)
        return place / "docs" if place is not None and (place / "docs").is_dir() else None

    def _documents(self, name: str, number: int, of: str) -> list[str]:
        """The pages of these Data Docs that have results: their first page is made by scripts of other sites."""
        place = self.docs(name, number, of)
        return [] if place is None else sorted(str(f.relative_to(place)) for f in place.glob("validations/**/*.html"))

    def search(self, name: str, text: str) -> SearchPage:
        """Where a text is, or begins, a key, as of the newest committed run.

        Raises:
            UnknownTable: the lake has no such topology.
            RunUnknown: nothing was committed yet.
        """
        history, config = self._open(name)
        query = PointQuery(Ledger(config.ledger, name), Refs(config, name), self._head(name))
        found = (Hits(t, None if (keys := query.search(t, text, HITS)) is None else tuple(keys)) for t in query.plan.names)
        return SearchPage(history.topology, text, query.run, tuple(h for h in found if h.keys is None or h.keys))

    def table(self, name: str, table: str, key: tuple[str, ...] = (), root: str = ".") -> TablePage:
        """One table as of the newest committed run, and the row of a key of it. ``root``: where relative paths of sources start.

        Raises:
            UnknownTable: no such topology or table, or the key does not fit.
            RunUnknown: nothing was committed yet.
        """
        history, config = self._open(name)
        head = self._head(name)
        if head is None:
            raise RunUnknown(f"topology {name!r}: no run was committed yet", next_step="see its runs")
        plan = history.plan(head)
        tables = Tables(history, Refs(config, name), head, plan, history.runs(LOOKED_BACK))
        fresh = _fresh(history, table) if plan.is_table(table) else None
        return tables.page(table, key, KeySource(config, root), fresh, history.published())

    def dag_of(self, name: str) -> str | None:
        """The DAG that ran a topology last, if one did lately."""
        history, _ = self._open(name)
        made = (owner_text.dag_run(text) for text in history.owners(LOOKED_BACK))
        return next((d.dag for d in made if d is not None), None)

    def of_dag(self, dag: str) -> str | None:
        """The topology that a DAG runs: the one of its newest run, or the one of its name."""
        if self.config is None:
            return None
        made = owned(self.config.ledger, owner_text.of_dag(dag), 1)
        return made[0][0] if made else next((t for t in self.topologies() if t == dag), None)

    def of_dag_run(self, dag: str, dag_run: str) -> tuple[str, RunLine] | None:
        """The newest run that a DAG run made, and its topology."""
        if self.config is None:
            return None
        owner = owner_text.of_dag(dag) + dag_run
        found = [(topology, number) for topology, number, text in owned(self.config.ledger, owner, 100) if text == owner]
        return (found[0][0], History(self.config.ledger, found[0][0]).run(found[0][1])) if found else None

    def step_ids(self, name: str, number: int) -> list[str]:
        """The steps of a run's plan."""
        history, _ = self._open(name)
        plan: Plan = history.plan(number)
        return [s.id for s in steps(plan)]

    def _open(self, name: str) -> tuple[History, LakeConfig]:
        known = self.topologies()
        if self.config is None or name not in known:
            raise UnknownTable(f"the lake has no topology {name!r}", expected=", ".join(known) or "(none: nothing was run)")
        return History(self.config.ledger, name), self.config

    def _head(self, name: str) -> int | None:
        return None if self.config is None else heads(self.config.ledger)[name]


def _judged(run: RunLine) -> list[str]:
    """The tables and outputs that expectations of a run are about."""
    return [s.record.target for s in run.steps if s.record.detail.get("validation")]


def _fresh(history: History, source: str) -> Fresh:
    newest = history.newest_input(source)
    if newest is None:
        return Fresh(source, None, None, None)
    run = history.run(newest.run)
    cut = run.step(str(Verb.CUT))
    return Fresh(source, newest, None if cut is None else cut.ended_at, run.closed_at)

"""What a topology may become on a lake: compared with what is stored, before anything is written.

The plans of earlier runs, which the ledger keeps, say what a name stood for: also one that was away for some runs, and whose rows are still there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rejoin.lake.ledger.history import History, heads
from rejoin.lake.ledger.ledger import Ledger
from rejoin.plan.change.compatibility import Columns, refuse_forgotten, refuse_incompatible, refuse_other_meaning, refuse_respelled
from rejoin.plan.model.plan import Plan

if TYPE_CHECKING:
    from rejoin.lake.iceberg.refs import Refs


@dataclass(frozen=True)
class PastRuns:
    """What a lake knows of a topology.

    ``head``: the newest committed run; ``stored``: tables that have rows; ``committed``: all committed runs, newest first; ``plan``: of one of them, parsed
    once; ``columns``: those that are stored of a table or output, in its rows and in its changes.
    """

    head: int
    stored: frozenset[str]
    committed: Callable[[], list[int]]
    plan: Callable[[int], Plan]
    columns: Columns

    def meanings(self, new: Plan) -> Iterator[tuple[str, int, Plan]]:
        """The names of ``new`` that have stored rows: each with the newest committed run whose plan has it, and that plan."""
        wanted = set(new.names) & self.stored
        for number in self._runs():
            if not wanted:
                return
            plan = self.plan(number)
            found = set(plan.names)
            yield from ((name, number, plan) for name in sorted(wanted & found))
            wanted -= found

    def _runs(self) -> Iterator[int]:
        """Names are hardly ever away: older runs are only asked for if some are."""
        yield self.head
        yield from (n for n in self.committed() if n < self.head)


def of_ledger(ledger: Ledger, columns: Columns) -> PastRuns | None:
    """What the ledger of an opened lake knows; None if nothing was committed yet. ``columns``: as ``stored_columns`` gives them."""
    head = ledger.head()
    if head is None:
        return None
    return PastRuns(head, frozenset(ledger.states(head)), ledger.committed, cache(lambda n: ledger.run(n).plan), columns)


def of_lake(url: str, topology: str, columns: Columns) -> PastRuns | None:
    """The same for a reader: takes no lock and makes nothing, not even a ledger."""
    head = heads(url).get(topology)
    if head is None:
        return None
    history = History(url, topology)
    return PastRuns(head, frozenset(history.states(head)), history.committed, cache(history.plan), columns)


def stored_columns(refs: "Callable[[], Refs]") -> Columns:
    """What a lake stores of tables and outputs. Asked for those alone that get columns, so PyIceberg is loaded for an edit only."""

    def of(name: str) -> list[str]:
        from rejoin.lake import table_names
        from rejoin.lake.iceberg.table_schemas import names_in

        tables = (refs().table(n) for n in (name, table_names.changes(name)))
        return [column for table in tables if table is not None for column in names_in(table)]

    return of


def refuse(past: PastRuns, plan: Plan) -> None:
    """Stops what stored rows cannot become.

    Raises:
        SchemaRefused: a name that has stored rows would mean something else.
    """
    head = past.plan(past.head)
    refuse_incompatible(head, plan)
    for name, run, old in past.meanings(plan):
        if run != past.head or old.is_table(name) != plan.is_table(name):
            refuse_other_meaning(run, old, plan, name)
        refuse_respelled(old, plan, name, past.columns)
        refuse_forgotten(old, plan.with_horizons(head.horizons), name, away=run != past.head)

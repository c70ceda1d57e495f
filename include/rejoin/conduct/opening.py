"""What a topology may become on a lake: compared with what is stored, before anything is written.

The plans of earlier runs, which the ledger keeps, say what a name stood for: also one that was away for some runs, and whose rows are still there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from rejoin.lake.history import History, heads
from rejoin.lake.ledger import Ledger
from rejoin.plan.compatible import refuse_forgotten, refuse_incompatible, refuse_other_meaning
from rejoin.plan.model import Plan


@dataclass(frozen=True)
class Past:
    """What a lake knows of a topology.

    ``head``: the newest committed run; ``stored``: tables that have rows; ``committed``: all committed runs, newest first; ``plan``: of one of them, parsed once.
    """

    head: int
    stored: frozenset[str]
    committed: Callable[[], list[int]]
    plan: Callable[[int], Plan]

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


def of_ledger(ledger: Ledger) -> Past | None:
    """What the ledger of an opened lake knows; None if nothing was committed yet."""
    head = ledger.head()
    if head is None:
        return None
    return Past(head, frozenset(ledger.states(head)), ledger.committed, cache(lambda n: ledger.run(n).plan))


def of_lake(url: str, topology: str) -> Past | None:
    """The same for a reader: takes no lock and makes nothing, not even a ledger."""
    head = heads(url).get(topology)
    if head is None:
        return None
    history = History(url, topology)
    return Past(head, frozenset(history.states(head)), history.committed, cache(history.plan))


def refuse(past: Past, plan: Plan) -> None:
    """Stops what stored rows cannot become.

    Raises:
        SchemaRefused: a name that has stored rows would mean something else.
    """
    head = past.plan(past.head)
    refuse_incompatible(head, plan)
    for name, run, old in past.meanings(plan):
        if run != past.head or old.is_table(name) != plan.is_table(name):
            refuse_other_meaning(run, old, plan, name)
        refuse_forgotten(old, plan.with_horizons(head.horizons), name, away=run != past.head)

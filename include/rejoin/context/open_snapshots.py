"""Which tables wait for the rest of a snapshot within their feed."""

from rejoin.context.facts import Facts
from rejoin.lake.ledger.generations import Generations
from rejoin.plan.model.plan import Table
from rejoin.plan.model.sources import OnIncomplete, Snapshots, WithSnapshots, chosen


def says_all(table: Table) -> bool:
    """Whether a whole snapshot within the table's feed says which rows there are. Of records that add up, and of versions, it says nothing."""
    source = table.source
    return isinstance(source, WithSnapshots) and source.snapshots is Snapshots.COMPLETE and table.event_time is None


def waits(facts: Facts, table: Table, now: Generations | None) -> bool:
    """Whether what is made of a table stays as it is: a snapshot in its feed was not read to its end. ``now``: its generations, if the run has changed them."""
    if not (says_all(table) and isinstance(table.source, WithSnapshots) and table.source.on_incomplete is OnIncomplete.WAIT):
        return False
    found = now or of_base(facts, table)
    return found is not None and bool(found.incomplete)


def of_base(facts: Facts, table: Table) -> Generations | None:
    """The generations of a table as of the run's base; None if the feed is read from another place now."""
    found = facts.generations.get(table.name)
    return found if found is not None and found.place == place_of(table) else None


def place_of(table: Table) -> str:
    """From where a feed is read, and which of its records."""
    path, only = table.source.path, chosen(table.source)
    return path if only is None else f"{path} {only}"

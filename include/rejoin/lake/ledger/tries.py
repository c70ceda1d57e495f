"""What the ledger keeps of tries and of comparisons with the SQL, for readers. A ledger that an older rejoin made has none of it."""

from dataclasses import dataclass

from sqlalchemy import inspect, select

from rejoin.lake.ledger import schema as t
from rejoin.lake.ledger.history import reading


@dataclass(frozen=True)
class StepTries:
    """How often a step of a run was begun. ``error``: why the newest try failed; None: it has not."""

    tries: int
    began_at: float
    error: str | None


@dataclass(frozen=True)
class Verified:
    """A comparison of all outputs with their SQL. ``fast``: by stored hashes; ``differences``: rows."""

    run: int
    at: float
    fast: bool
    differences: int


def tried(url: str, topology: str, run: int) -> dict[str, StepTries]:
    """The tries of a run's steps, by step."""
    with reading(url) as db:
        if db is None or not inspect(db).has_table(t.tries.name):
            return {}
        found = db.execute(select(t.tries).where(t.of_run(t.tries, topology, run)))
        return {r.step: StepTries(r.tries, r.began_at, r.error) for r in found}


def verified(url: str, topology: str) -> Verified | None:
    """The newest comparison."""
    with reading(url) as db:
        if db is None or not inspect(db).has_table(t.verified.name):
            return None
        newest = select(t.verified).where(t.verified.c.topology == topology).order_by(t.verified.c.ended_at.desc()).limit(1)
        row = db.execute(newest).first()
        return None if row is None else Verified(row.run, row.ended_at, bool(row.fast), row.differences)

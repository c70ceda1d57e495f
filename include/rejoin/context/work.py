"""What every step of an attempt works with."""

from collections.abc import Iterable
from dataclasses import dataclass

from rejoin.context.facts import Facts
from rejoin.engines.relation import Engine
from rejoin.lake.ledger.records import Write
from rejoin.lake.read.reader import Reader
from rejoin.lake.write.writer import Writer
from rejoin.sources import Pin, SourceAccess


@dataclass(frozen=True)
class Cut:
    """What a run reads of one source table, None if there is nothing new; and how the source is reached."""

    pin: Pin | None
    access: SourceAccess

    @property
    def given(self) -> Pin:
        """What is read, where there is something."""
        assert self.pin is not None
        return self.pin

    @property
    def torn(self) -> bool:
        """Whether records of the source were lost before these."""
        return self.pin is not None and self.pin.torn


@dataclass(frozen=True)
class Work:
    """One attempt at one step.

    Args:
        engine: runs the statements.
        facts: what the run is and has done so far.
        before: the tables as of the run's base.
        now: the tables as of this run, as far as its steps have ended.
        writer: writes to this attempt's branches.
    """

    engine: Engine
    facts: Facts
    before: Reader
    now: Reader
    writer: Writer

    def after(self, writes: Iterable[Write]) -> Reader:
        """Reads the tables as they will be with what this step has written."""
        return self.now.with_writes({w.table: w.snapshot_id for w in writes})

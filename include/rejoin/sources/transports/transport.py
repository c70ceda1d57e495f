"""The seam between where changes are and what they mean: a transport finds what is new, pins it, and reads it again as often as it is asked.

A source's path names its transport: ``kafka://shop/orders`` has that of the scheme ``kafka``; a path without scheme, and one whose scheme no
transport has, is one of files. A package adds a transport by an entry point in the group ``rejoin.transports``, named as its scheme.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Part, Pin
from rejoin.sources.access import SourceAccess

Taken = Callable[[], Mapping[str, int]]
"""Path and size of every file that committed runs have applied; asked for by the transport of files only."""


@dataclass(frozen=True)
class Waiting:
    """What a source holds that no committed run has read.

    Attributes:
        pin: what a cut would pin now; None if there is nothing.
        ignored: what lies beside it and is not looked into.
        left: how many records are left for later runs, since one run is to read no more.
        warnings: what else somebody should know, a sentence each.
    """

    pin: Pin | None
    ignored: tuple[str, ...] = ()
    left: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class GoingOn:
    """How a source goes on that stops every run until somebody decides.

    Attributes:
        pin: of no records: it stands for those that are given up, and the next cut begins behind it.
        code: of the error that runs stop with.
        said: what is lost and what is read, a sentence each.
        lossy: whether records may be lost.
    """

    pin: Pin
    code: str
    said: tuple[str, ...]
    lossy: bool


class Transport(ABC):
    """Made of a table and of how its source is reached; sent to workers."""

    def __init__(self, table: Table, access: SourceAccess) -> None:
        self.table, self.access = table, access

    @abstractmethod
    def waiting(self, last: Pin | None, taken: Taken) -> Waiting:
        """What is new.

        Args:
            last: the pin of the last committed run that had one.
            taken: the files of all committed runs.

        Raises:
            SourceError: of any kind: nothing is pinned then.
        """

    def going_on(self, last: Pin) -> GoingOn | None:  # noqa: ARG002 -- of most sources nothing can be accepted
        """How the source goes on behind ``last``, though runs stop; None if they do not, or if it is not for anybody to decide.

        Raises:
            SourceError: of any kind: it cannot go on.
        """
        return None

    @abstractmethod
    def check(self, part: Part) -> None:
        """The cheap check before a part is read: it is there, and still the same as far as that is seen without reading.

        Raises:
            SourceError: it is not.
        """

    @abstractmethod
    def events(self, pin: Pin, index: int) -> Iterator[pa.RecordBatch]:
        """The events (``sources.events``) of the ``index``-th part of a pin, one row a record.

        An error can come after batches: then none of them may be used.

        Raises:
            SourceError: the pinned records are not there any more, or cannot be read.
        """

    def pieces(self, part: Part) -> int:  # noqa: ARG002 -- most are read as a whole
        """In how many pieces of about one size a part can be read side by side; asked of large ones. 1 if it cannot be told now."""
        return 1

    def events_of_pieces(self, pin: Pin, index: int, pieces: range) -> Iterator[pa.RecordBatch]:
        """The events of some pieces, one after the other. The pieces of a part together say what ``events`` says, errors included.

        Raises:
            SourceError: as ``events`` does.
        """
        assert pieces == range(1)
        return self.events(pin, index)

    def events_of(self, pin: Pin, parts: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The events of some parts of a pin, one after the other: for a process that reads several. Raises as ``events`` does."""
        for index in parts:
            yield from self.events(pin, index)

    @abstractmethod
    def raw(self, part: Part, wanted: Collection[int]) -> Iterator[tuple[int, str]]:
        """The records at these places (``_line`` of events) of a part, as quarantine keeps them (``events.raw_text``)."""

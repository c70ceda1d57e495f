"""How outputs are maintained, what somebody asks of one run, and how far streams are still stored."""

from dataclasses import dataclass
from enum import StrEnum

MAX_MEMBERS = 100_000
"""Of a hundred bytes each, an array of so many is ten megabytes: more than readers of documents take."""


class Refresh(StrEnum):
    """How a run brings an output up to date. The result, its changes and its guarantees are the same."""

    AUTO = "auto"  # by what changed, unless recomputing is estimated to be cheaper
    INCREMENTAL = "incremental"  # by what changed; by recomputing only where the definition is new
    FULL = "full"  # by recomputing all of it and comparing with what is there
    INCREMENTAL_STRICT = "incremental_strict"  # by what changed, or the run stops
    SKIP = "skip"  # not in this run; the next one recomputes it (asked of a run by ``RunOptions.only``, never declared)


DECLARABLE = tuple(str(r) for r in Refresh if r is not Refresh.SKIP)
"""What a topology or a run may name as its refresh."""


class Fuse(StrEnum):
    """What a run does about an output of which it would change more than the stated share."""

    STOP = "stop"  # stops before anything is visible
    APPLY = "apply"  # goes on
    SKIP = "skip"  # leaves this output as it is; the next run recomputes it
    RECOMPUTE = "recompute"  # recomputes the output instead of trusting the changes, and goes on


@dataclass(frozen=True)
class Policy:
    """How an output is maintained; no part of its definition.

    ``max_change_share``: of its rows, above which ``fuse`` acts; ``max_members``: of a group of which an array is made without LIMIT, above which a run stops.
    """

    refresh: Refresh = Refresh.AUTO
    max_change_share: float = 0.5
    fuse: Fuse = Fuse.STOP
    max_members: int = MAX_MEMBERS


@dataclass(frozen=True)
class RunOptions:
    """What somebody asks of one run.

    ``refresh`` and ``fuse`` replace those of every output; ``only`` names the outputs to bring up to date, with what they are made
    of (empty: all; what is left out is recomputed by the next run that does not leave it out); ``replay`` names tables and outputs whose
    rows and records that are kept aside are judged again; ``note`` is kept with the run.

    ``repair`` names outputs to recompute from what is stored. Such a run reads no input and keeps the plan of the last committed run; of the
    other options it heeds only ``note``.
    """

    refresh: Refresh | None = None
    fuse: Fuse | None = None
    only: tuple[str, ...] = ()
    replay: tuple[str, ...] = ()
    note: str = ""
    repair: tuple[str, ...] = ()


@dataclass(frozen=True)
class Horizon:
    """What a compaction has let go of a stream, in microseconds.

    ``stored``: every record from this time on is stored; None: all are. ``taken``: a record before this time is refused, since records that it
    meets are gone.
    """

    stream: str
    stored: int | None
    taken: int

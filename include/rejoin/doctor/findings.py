"""What a look at a source finds. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from rejoin.errors import RejoinError


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # runs go on, and something can get lost or be misunderstood
    PROBLEM = "problem"  # the next run, or capture, stops, or deletes are lost


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        of: a table of the topology, or a connection.
        what: was looked at.
        found: in words, without secrets and without values of rows.
        do: what helps; empty where nothing has to be done.
    """

    of: str
    what: str
    state: State
    found: str
    do: str = ""


def ok(of: str, what: str, found: str) -> Finding:
    """Nothing has to be done."""
    return Finding(of, what, State.OK, found)


def warning(of: str, what: str, found: str, do: str) -> Finding:
    """Somebody should look."""
    return Finding(of, what, State.WARNING, found, do)


def problem(of: str, what: str, found: str, do: str) -> Finding:
    """Somebody has to act."""
    return Finding(of, what, State.PROBLEM, found, do)


def raised(of: str, what: str, error: RejoinError) -> Finding:
    """What an error says that a run would end with."""
    return problem(of, what, f"{error.code}: {error.what.removesuffix('; nothing was committed')}", error.next_step or error.expected or "")

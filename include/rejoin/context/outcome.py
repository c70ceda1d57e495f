"""What an attempt at a step comes to."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rejoin.lake.ledger.generations import Generations
from rejoin.lake.ledger.records import Write
from rejoin.plan.model.step_results import Result

R_co = TypeVar("R_co", bound=Result, covariant=True)


@dataclass(frozen=True)
class Outcome(Generic[R_co]):
    """What an attempt came to and wrote, and how it was done; of an ingest also the generations of its table, if they are others now."""

    result: R_co
    writes: tuple[Write, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    generations: Generations | None = None

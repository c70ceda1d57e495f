"""Who does the tasks of a ``TaskEngine`` instead of Spark: processes of their own, which share nothing with the one that asks but files, or the same process."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

import pytest
from limited import limited

from rejoin import limits
from rejoin.engines import placement
from rejoin.engines.choice import EngineChoice
from rejoin.engines.deferred_relation import sized
from rejoin.engines.relation import Engine
from rejoin.engines.task_engine import TaskEngine, unpacked
from rejoin.lake.config import LakeConfig
from rejoin.lake.write.exchange import Exchange
from rejoin.plan.model.plan import Plan
from rejoin.steps.run import placed_step

AT_ONCE = 3


class Workers:
    """Tasks. ``asked``: how many each call was for."""

    at_once = AT_ONCE

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool, self.asked = pool, list[int]()

    def each(self, work: bytes, count: int) -> list[Any]:
        self.asked.append(count)
        return list(self._pool.map(partial(_done, work, limits.limits()), range(count)))


class InTurn:
    """Tasks that this process does, one after the other, each from what was sent. ``asked``: how many each call was for."""

    at_once = AT_ONCE

    def __init__(self) -> None:
        self.asked = list[int]()

    def each(self, work: bytes, count: int) -> list[Any]:
        self.asked.append(count)
        return [unpacked(work)(number) for number in range(count)]


def _done(work: bytes, given: limits.Limits, number: int) -> Any:
    limits.in_force = given
    sized(1)
    return unpacked(work)(number)


@contextmanager
def workers() -> Iterator[Workers]:
    """Two processes."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield Workers(pool)


def by(some: Workers | InTurn, config: LakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on they do what this process would do in steps, where nothing counts as few rows."""

    def placed(choice: EngineChoice, plan: Plan, spark: Any, work: Callable[[Engine], Any], in_tasks: Any) -> Any:
        def spread(engine: Engine) -> Any:
            if not engine.in_process:
                return work(engine)
            exchange = Exchange.of(config, plan.topology)
            with pytest.MonkeyPatch.context() as bulk:
                limited(bulk, small_rows=0, fetched_bytes=0)
                try:
                    return work(TaskEngine(plan, some, exchange))
                finally:
                    exchange.clear()

        return placement.placed(choice, plan, spark, spread, in_tasks)

    monkeypatch.setattr(placed_step, "placed", placed)

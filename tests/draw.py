"""Where all of something takes too long for every run of the tests: a share of it, by the seed in the header. ``make test-all`` takes all."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")


def draw(items: Sequence[T], share: float, config: pytest.Config) -> list[T]:
    """A share of the items, in their order; all of them if REJOIN_TESTS is "all"."""
    if os.environ.get("REJOIN_TESTS") == "all":
        return list(items)
    taken = random.Random(str(config.option.hypothesis_seed)).sample(range(len(items)), round(len(items) * share))
    return [items[i] for i in sorted(taken)]

"""Which partition a key belongs to, as Java's default partitioner says, and partitioners of the user's own."""

import importlib
from collections.abc import Callable
from typing import Any, Final

from rejoin.errors import SetupError

Partitioner = Callable[[bytes, Any, int], int]
"""(key, row, number of partitions) -> partition."""

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of a key, unsigned."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length - length % 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k = (k ^ (k >> 24)) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK
    h = (h ^ (h >> 13)) * _M & _MASK
    return h ^ (h >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition that a Java producer would choose for a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def load(name: str) -> Any:
    """What ``module:name`` names.

    Raises:
        SetupError: there is no such module or name, or importing it fails.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SetupError(
            f"{name!r}, which a topology names, cannot be imported: {type(error).__name__}",
            expected="module:name of something that can be imported here",
            next_step="install it, or put its folder into PYTHONPATH",
        ) from error

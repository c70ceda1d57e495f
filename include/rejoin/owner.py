"""Who runs: a text that tells whether its process still lives, where that can be known."""

import os
import platform

import psutil

_PREFIX = "process"


def this_process() -> str:
    """The owner of a run that this very process does: host, pid and start time."""
    return f"{_PREFIX}:{platform.node()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def is_dead(owner: str) -> bool:
    """Whether the owner is a process of this host that is gone. False where that cannot be known: then only the lease tells."""
    parts = owner.split(":")
    if len(parts) != 4 or parts[0] != _PREFIX or parts[1] != platform.node():
        return False
    try:
        return f"{psutil.Process(int(parts[2])).create_time():.2f}" != parts[3]
    except psutil.NoSuchProcess:
        return True

"""Named points at which a test can kill the process, to prove that any crash is harmless.

``REJOIN_CRASH=resolve.enriched:written`` kills the process (SIGKILL, so nothing is cleaned up) when it reaches that point.
``REJOIN_CRASH_TRACE=<file>`` appends the name of every point that is reached. Unset, a point costs one dictionary look-up.
"""

import os
import signal
from pathlib import Path

SETTINGS = ("REJOIN_CRASH", "REJOIN_CRASH_TRACE")
"""The variables that ask for it."""


def point(name: str) -> None:
    """Marks a boundary between two commits. Does nothing unless the environment asks for it."""
    if trace := os.environ.get("REJOIN_CRASH_TRACE"):
        with Path(trace).open("a") as file:
            file.write(name + "\n")
    if os.environ.get("REJOIN_CRASH") == name:
        os.kill(os.getpid(), signal.SIGKILL)

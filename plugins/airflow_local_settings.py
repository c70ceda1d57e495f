"""Airflow imports this file when it starts, in each of its parts, if no folder before this one has a file of the same name.

The scheduler forks the processes that run tasks. What they need is loaded once, before that: else each of them imports it again, for seconds of a core.
"""

import sys

__all__: list[str] = []  # nothing here is a setting

if sys.argv[1:2] == ["scheduler"]:
    from rejoin.airflow.tasks.preload import preload

    preload()

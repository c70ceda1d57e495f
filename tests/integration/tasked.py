"""The command line with every step that has something to do as bulk: with the engine Spark, and one executor, each is a task."""

from dataclasses import replace

from rejoin import limits
from rejoin.cli import main

if __name__ == "__main__":
    limits.in_force = replace(limits.Limits(), task_rows=0, task_bytes=0)
    main()

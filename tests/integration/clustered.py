"""A process that runs commands of rejoin on a cluster, each when its parent says so: a JVM and executors for all of them.

Reads a JSON list of words from each line of its input, runs it as ``rejoin`` would, and answers with a line of JSON: the exit code. Limits are
lowered, so that some thousand rows are bulk: nothing is read, written or compacted by the process itself. ``limits``, as the first word, sets them.
"""

import json
import sys

from limited import sparks_own

from rejoin import limits
from rejoin.cli import main

NONE = sys.maxsize
"""A size that no step has."""
IN_FORCE = {
    "bulk": limits.Limits(task_rows=NONE, task_bytes=NONE, small_rows=0, fetched_bytes=0, folded_rows=0),
    "tasks": limits.Limits(task_rows=0, task_bytes=0),
    "ranges": limits.Limits(task_rows=0, task_bytes=0, small_rows=0, fetched_bytes=0, range_rows=2_000, fewest_range_rows=400),
    "wide ranges": limits.Limits(task_rows=0, task_bytes=0, small_rows=0, fetched_bytes=0, range_rows=5_000, fewest_range_rows=2_500),
    "usual": sparks_own(limits.Limits()),
}
"""Everything is bulk to Spark SQL, or to tasks; or what is by default, but for small tasks."""


def run(words: list[str]) -> int:
    """The exit code of a command."""
    if words[0] == "limits":
        limits.in_force = IN_FORCE[words[1]]
        return 0
    try:
        main(words, standalone_mode=True)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


if __name__ == "__main__":
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        answers.write(json.dumps(run(json.loads(line))) + "\n")
        answers.flush()

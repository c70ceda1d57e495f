"""The process that forks Spark's Python workers (setting ``spark.python.daemon.module``): pyspark's own, with no archives on its path.

Spark puts pyspark.zip and the jar of its core on the workers' Python path. Every task that calls Python begins by invalidating the import
caches, and Python then reads the directory of each archive anew: 0.1 s a task (measured on Spark 4.1.3), more than most tasks take.
The installed pyspark, which has the same version, is used instead.

Workers that were idle for a minute end, and the next one is forked from here. What tasks need is loaded before: a worker took more than a second for that,
in the first large step of nearly every run.
"""

import gc
import sys
from contextlib import suppress
from importlib.util import find_spec
from zipimport import zipimporter


def _no_jar(path: str) -> zipimporter:
    if ".jar" in path:
        raise ImportError(path)
    return zipimporter(path)


def main() -> None:
    """Cleans the path, loads what tasks need, and forks workers until Spark ends."""
    given = list(sys.path)
    sys.path[:] = [entry for entry in given if not entry.endswith((".jar", ".zip"))]
    if find_spec("pyspark") is None:
        sys.path[:] = given
    sys.path_hooks[:] = [_no_jar if hook is zipimporter else hook for hook in sys.path_hooks]
    sys.path_importer_cache.clear()
    with suppress(ImportError):  # what is missing a task says, if it needs it
        import rejoin.steps.run.spark_task  # noqa: F401 -- it is part of Spark, not of a plan
    gc.freeze()  # what was loaded stays: a worker that looks for garbage after each task took 0.1 s to look through all of it
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()

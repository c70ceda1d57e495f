"""The start of Spark's JVM inside this process. What it says on stderr is passed on, but for what it says of itself at every start."""

import os
from collections.abc import Mapping
from threading import Thread

NO_NEWS = b"WARNING: Using incubator modules: jdk.incubator.vector"
"""Said by Java, before any logging is set up, because Spark's own scripts name the module; no setting turns it off."""


def start(settings: Mapping[str, str]) -> None:
    """Starts the JVM that the next SparkContext of this process will use, unless there is one already.

    Raises:
        PySparkRuntimeError: it ended at once; what it said is on stderr.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:  # noqa: SLF001  as PySpark itself asks
        return
    heard, said = os.pipe()
    listener = Thread(target=_pass_on, args=(heard,), name="stderr of Spark's JVM", daemon=True)
    listener.start()
    try:
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        gateway = launch_gateway(conf, {"stderr": said})  # type: ignore[no-untyped-call]
    except BaseException:
        os.close(said)
        listener.join(1)  # why it ended stands there
        raise
    os.close(said)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001  the only way to hand it over before there is a context


def _pass_on(heard: int) -> None:
    """Until the JVM ends, line by line to this process's stderr."""
    rest = b""
    while said := os.read(heard, 1 << 16):  # no buffered file: this thread may be in the middle of a read when Python ends
        *lines, rest = (rest + said).split(b"\n")
        os.write(2, b"".join(line + b"\n" for line in lines if line != NO_NEWS))
    os.write(2, rest)
    os.close(heard)

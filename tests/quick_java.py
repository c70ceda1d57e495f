"""Java for tests, which start it often and use it briefly: the first compiler only, one collector, and Spark's classes from an archive.

``make test`` calls this file, which makes the archive beside Spark's jars. Without it, or with another Java, a JVM starts as it does for users,
only slower. A start and three small queries take 38 s of processor time as users have them, 18 s with these options, and 9 s with the archive.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

PROJECT = Path(__file__).parents[1]
LOGGING = PROJECT / "include" / "rejoin" / "lake" / "spark" / "spark_conf" / "log4j2.properties"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""With one compiler the default is 48 MB: a session of half an hour fills them, the compiler is turned off, and all that comes is interpreted."""
INTERPRETED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""Spark's settings for plans of a few rows, which run once: making and compiling Java for each costs more than the rows. ``REJOIN_CODEGEN=1`` leaves
them out, as ``make nightly`` does."""

TRAIN = """
import sys
from rejoin.lake.config import lake_config
from rejoin.lake.spark.session import session

spark = session(lake_config(sys.argv[1]))
spark.sql("CREATE TABLE lake.t (a INT, b STRING) USING iceberg")
spark.createDataFrame([(1, "x"), (2, "y")], "a INT, b STRING").createOrReplaceTempView("v")
spark.sql("INSERT INTO lake.t SELECT * FROM v")
spark.sql("SELECT t.b, count(*) FROM lake.t JOIN v ON t.a <=> v.a GROUP BY t.b ORDER BY 1").collect()
spark.sql("MERGE INTO lake.t USING v ON t.a = v.a WHEN MATCHED THEN UPDATE SET t.b = 'z' WHEN NOT MATCHED THEN INSERT *")
spark.stop()
"""


def directory() -> Path:
    """Where the archive is, whether or not it is there yet: of one Java and one Spark."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else Path(shutil.which("java") or "java")
    stamp = int(java.resolve().stat().st_mtime) if java.exists() else 0
    return Path(Path(sys.prefix).resolve(), "share", "rejoin", f"quick-{version('pyspark')}-{stamp}")


def settings() -> dict[str, str]:
    """What a process has to see for its JVMs to start quickly. What the machine has set itself stays."""
    archive = directory() / "spark.jsa"
    made = {"SPARK_SUBMIT_OPTS": _spark(), "SPARK_LAUNCHER_OPTS": QUICK, "SPARK_DAEMON_JAVA_OPTS": QUICK}
    if archive.exists() and not {"SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS"} & os.environ.keys():
        # -Xlog:disable: a JVM that cannot use the archive would say so in its output.
        made |= _with(f"-XX:SharedArchiveFile={archive} -Xlog:disable")
    return {name: value for name, value in made.items() if name not in os.environ}


def _spark() -> str:
    return QUICK if os.environ.get("REJOIN_CODEGEN") else f"{QUICK} {INTERPRETED}"


def _with(options: str) -> dict[str, str]:
    # An archive knows the class path it was made with, and no folder on it may hold anything: so Spark's is empty, and logging is named.
    return {
        "SPARK_SUBMIT_OPTS": f"{_spark()} -Dlog4j2.configurationFile={LOGGING.as_uri()} {options}",
        "SPARK_CONF_DIR": str(directory() / "empty"),
    }


def make() -> Path:
    """The archive, made unless it is there: an interrupted call leaves nothing that counts."""
    archive = directory() / "spark.jsa"
    if archive.exists():
        return archive
    (directory() / "empty").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".made-", dir=directory()) as scratch:
        made = Path(scratch, "spark.jsa")
        environment = {**os.environ, **_with(f"-XX:ArchiveClassesAtExit={made} -Xlog:disable"), "PYTHONPATH": str(PROJECT / "include")}
        environment.pop("SPARK_REMOTE", None)
        # The JVM outlives Python and writes the archive when it ends: its end is that of the pipe, which it has too.
        command = [sys.executable, "-c", TRAIN, str(Path(scratch, "lake"))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return made.replace(archive)


if __name__ == "__main__":
    print(f"Java's archive for tests is {make()}")

"""The broker's jars: fetched once by the Ivy inside Spark, like Spark's own (rejoin.lake.spark.setup_check). ``make test`` calls this file, and so do the tests."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

COORDINATES = ("org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36")
COMPLETE = "complete"


def directory() -> Path:
    """Where the jars are, whether or not they are there yet."""
    return Path(sys.prefix, "share", "rejoin", "kafka-4.1.0")


def class_path() -> str:
    """For ``java -cp``: a broker with its clients. Fetches what is missing."""
    fetch()
    # Ivy leaves Scala's library out: Spark brings its own, of the same minor version.
    scala = next((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.13.*.jar"))
    return f"{directory()}/*{os.pathsep}{scala}"


def fetch() -> None:
    """Fetches the jars unless they are there; an interrupted call leaves nothing that counts."""
    target = directory()
    if (target / COMPLETE).exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
        nothing = Path(scratch, "nothing.py")
        nothing.write_text("")
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--master", "local[1]", "--packages", ",".join(COORDINATES), "--conf", f"spark.jars.ivy={scratch}"]
        environment = {**os.environ, "SPARK_HOME": str(submit.parents[1]), "PYSPARK_PYTHON": sys.executable}
        environment.pop("SPARK_REMOTE", None)
        done = subprocess.run([*command, str(nothing)], env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"the broker's jars cannot be fetched:\n{done.stderr[-3000:]}"
        for jar in Path(scratch, "jars").glob("*.jar"):
            jar.replace(target / jar.name)
    (target / COMPLETE).write_text("\n".join(COORDINATES))


if __name__ == "__main__":
    fetch()
    print(f"the broker's jars are in {directory()}")

"""Jars of a broker, of Kafka Connect with connectors, and of OpenSearch: fetched once by the Ivy inside Spark, like Spark's own (rejoin.lake.spark.setup_check). ``make test``
calls this file, and so do the tests."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyspark

BROKER = ("org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36")
CONNECT = (
    "org.apache.kafka:connect-runtime:4.1.1",
    "org.apache.kafka:connect-file:4.1.1",
    "io.debezium:debezium-connector-mariadb:3.5.0.Final",
    "io.debezium:debezium-connector-postgres:3.5.0.Final",
    "org.slf4j:slf4j-simple:1.7.36",
)
OPENSEARCH = (
    "org.opensearch:opensearch:2.19.6",  # the newest for Java 17
    "org.opensearch:opensearch-plugin-classloader:2.19.6",
    "org.opensearch.plugin:transport-netty4-client:2.19.6",
    "org.apache.logging.log4j:log4j-core:2.25.4",
)
COMPLETE = "complete"


def directory(coordinates: Sequence[str]) -> Path:
    """Where the jars are, whether or not they are there yet."""
    _, name, version = coordinates[0].split(":")
    return Path(sys.prefix, "share", "rejoin", f"{name.removesuffix('_2.13')}-{version}")


def class_path(coordinates: Sequence[str] = BROKER) -> str:
    """For ``java -cp``. Fetches what is missing."""
    target = fetch(coordinates)
    # Ivy leaves Scala's library out: Spark brings its own, of the same minor version.
    scala = next((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.13.*.jar"))
    return f"{target}/*{os.pathsep}{scala}"


def fetch(coordinates: Sequence[str]) -> Path:
    """Fetches jars, with what they need, unless they are there; an interrupted call leaves nothing that counts. Gives their directory."""
    target = directory(coordinates)
    if (target / COMPLETE).exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
        nothing = Path(scratch, "nothing.py")
        nothing.write_text("")
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--master", "local[1]", "--packages", ",".join(coordinates), "--conf", f"spark.jars.ivy={scratch}"]
        environment = {**os.environ, "SPARK_HOME": str(submit.parents[1]), "PYSPARK_PYTHON": sys.executable}
        environment.pop("SPARK_REMOTE", None)
        done = subprocess.run([*command, str(nothing)], env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"jars cannot be fetched:\n{done.stderr[-3000:]}"
        for jar in Path(scratch, "jars").glob("*.jar"):
            jar.replace(target / jar.name)
    (target / COMPLETE).write_text("\n".join(coordinates))
    return target


if __name__ == "__main__":
    print(
        f"the jars of a broker are in {fetch(BROKER)}, those of Kafka Connect in {fetch(CONNECT)}, those of OpenSearch in {fetch(OPENSEARCH)}"
    )

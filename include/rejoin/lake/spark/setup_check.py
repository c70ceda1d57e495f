"""What a machine needs before Spark can start: Java of the right version, and the jars of ``JARS``.

``make setup`` runs this file twice: before anything is installed, by path with any Python 3.11, to check Java; and in the finished environment
(``python -m rejoin.lake.spark.setup_check``, which is ``rejoin setup``) to fetch the jars. Hence only the standard library at the top, and ``rejoin.errors`` imported where it is raised.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoin.errors import SetupError

JAVA_MAJORS = (17, 21)
"""The Java versions that Spark 4.1 names as supported."""

GET_JAVA = "install it (Debian: apt-get install openjdk-17-jre-headless) or point JAVA_HOME at one"

FETCH_SECONDS = 600


@dataclass(frozen=True)
class Jar:
    """One jar of the lock: where Ivy finds it, and the bytes it must have."""

    coordinate: str
    """``group:artifact:version``."""
    sha256: str

    @property
    def ivy_name(self) -> str:
        """The file name that Ivy's retrieve pattern gives."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"

    @property
    def name(self) -> str:
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


JARS = (
    Jar("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"),
    Jar("org.xerial:sqlite-jdbc:3.50.3.0", "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08"),
    Jar("org.postgresql:postgresql:42.7.14", "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c"),
)
"""Iceberg, and the drivers of the two catalog databases. Each runs alone: what they depend on is only annotations, or is in Spark."""

S3_JAR = Jar("org.apache.iceberg:iceberg-aws-bundle:1.12.0", "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957")
"""Iceberg's own client of S3, for a warehouse that begins with ``s3://``. 69 MB, so it is fetched only where it is asked for (``--s3``)."""


def java_problem() -> str | None:
    """One line that says what is wrong with Java and how to get the right one; None if Spark can run."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    wanted = "Java " + " or ".join(map(str, JAVA_MAJORS))
    where = f"JAVA_HOME={home}" if home else "the PATH"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"rejoin needs {wanted}, and there is no working java in {where}: {GET_JAVA}"
    version = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode or not version:
        return f"rejoin needs {wanted}, and the java in {where} does not start: {GET_JAVA}"
    major = int(version[2] if version[1] == "1" and version[2] else version[1])  # Java 8 called itself 1.8
    if major not in JAVA_MAJORS:
        return f"rejoin needs {wanted}, and the java in {where} is {major}: {GET_JAVA}"
    return None


def jars_dir() -> Path:
    """Where the jars are: ``REJOIN_JARS``, else inside the environment of this Python."""
    chosen = os.environ.get("REJOIN_JARS")
    return Path(chosen) if chosen else Path(sys.prefix, "share", "rejoin", "jars")


def spark_jars(*, s3: bool = False) -> list[str]:
    """Paths of all jars for ``spark.jars``, in the order of ``JARS``; with ``s3`` that of S3 too.

    Raises:
        SetupError: one of them is not there.
    """
    wanted = _wanted(s3=s3)
    missing = _missing(jars_dir(), wanted)
    if missing == [S3_JAR]:
        raise _setup_error(f"a warehouse on S3 needs {S3_JAR.name}, which is not in {jars_dir()}", next_step="run `rejoin setup --s3`")
    if missing:
        raise _setup_error(
            f"Spark's jars are not in {jars_dir()}: {_names(missing)}",
            expected="the jars that set-up fetches, or REJOIN_JARS naming a directory that holds them",
            next_step="run `rejoin setup`",
        )
    return [str(jars_dir() / jar.name) for jar in wanted]


def spark_submit() -> Path:
    """The spark-submit of the installed pyspark, found without importing it.

    Raises:
        SetupError: there is none; pyspark-client alone has none either.
    """
    spark = importlib.util.find_spec("pyspark")
    submit = Path(spark.origin).parent / "bin" / "spark-submit" if spark and spark.origin else None
    if submit is None or not submit.is_file():
        raise _setup_error("pyspark is not installed in this environment", next_step="pip install 'rejoin[spark]'")
    return submit


def fetch_jars(*, s3: bool = False) -> list[Path]:
    """Fetch the missing jars with the Ivy inside Spark; return what was added (nothing, the second time).

    Which repository they come from is Spark's default or the machine's own setting (``spark.jars.ivySettings`` or ``spark.jars.repositories`` in
    ``SPARK_CONF_DIR/spark-defaults.conf``). A jar appears under its name only when it is complete and has the expected checksum.

    Raises:
        SetupError: Spark is not installed, the jars cannot be resolved, or one has other bytes than expected.
    """
    target = jars_dir()
    missing = _missing(target, _wanted(s3=s3))
    if not missing:
        return []
    _make(target)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target) as scratch:  # same file system, so that the rename is atomic
        _resolve(missing, Path(scratch))
        return [_adopt(jar, Path(scratch, "jars", jar.ivy_name), target) for jar in missing]


def _make(target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _setup_error(
            f"the directory {target} cannot be made: {error.strerror}", next_step="name a directory of yours in REJOIN_JARS"
        ) from error


def _wanted(*, s3: bool) -> tuple[Jar, ...]:
    return (*JARS, S3_JAR) if s3 else JARS


def _missing(directory: Path, wanted: tuple[Jar, ...]) -> list[Jar]:
    return [jar for jar in wanted if not (path := directory / jar.name).is_file() or path.stat().st_size == 0]


def _names(jars: list[Jar]) -> str:
    return ", ".join(jar.name for jar in jars)


def _resolve(jars: list[Jar], ivy: Path) -> None:
    """Let spark-submit resolve the jars into ``ivy``: it does so before it starts the program, which here does nothing."""
    submit = spark_submit()
    nothing = ivy / "nothing.py"
    nothing.write_text("")
    wanted = [jar.coordinate for jar in jars]
    command = [str(submit), "--master", "local[1]", "--packages", ",".join(wanted), "--conf", f"spark.jars.ivy={ivy}"]
    # What the jars depend on is not wanted (see JARS); Spark itself always adds it, unless it is named here.
    command += ["--exclude-packages", "org.checkerframework:checker-qual,org.slf4j:slf4j-api", str(nothing)]
    environment = {
        "SPARK_LOCAL_IP": "127.0.0.1",  # or Spark would ask for the address of the machine's own name, which need not have one while an image is built
        **os.environ,
        "SPARK_HOME": str(submit.parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        raise _not_fetched(jars, f"no answer within {FETCH_SECONDS} seconds") from late
    if done.returncode:
        raise _not_fetched(jars, _reason(done.stdout + done.stderr))


def _reason(output: str) -> str:
    """The line of Ivy's long report that says why, without addresses."""
    telling = re.compile(r"unresolved dependency|not found\b|Exception in thread|Connection|timed out|UnknownHost|SSL", re.IGNORECASE)
    lines = [line.strip() for line in output.splitlines() if telling.search(line)]
    return re.sub(r"\S+://\S+", "<address>", lines[-1]) if lines else "spark-submit gave no reason"


def _adopt(jar: Jar, fetched: Path, target: Path) -> Path:
    if not fetched.is_file():
        raise _not_fetched([jar], "Ivy resolved it, but left no file")
    found = hashlib.sha256(fetched.read_bytes()).hexdigest()
    if found != jar.sha256:
        raise _setup_error(
            f"{jar.coordinate} has other bytes than the ones this version of rejoin was tested with (sha256 {found})",
            expected=f"sha256 {jar.sha256}",
            next_step="find out which repository served it; nothing was installed",
        )
    return fetched.replace(target / jar.name)


def _not_fetched(jars: list[Jar], reason: str) -> "SetupError":
    return _setup_error(
        f"Spark could not fetch {_names(jars)}: {reason}",
        expected="a Maven repository that Spark can reach",
        next_step="check network and proxy, or put the jars into a directory and name it in REJOIN_JARS; then run `rejoin setup` again",
    )


def _setup_error(what: str, *, expected: str = "", next_step: str = "") -> "SetupError":
    from rejoin.errors import SetupError  # not at the top: this file also runs where rejoin cannot be imported yet

    return SetupError(what, expected=expected, next_step=next_step)


def main(arguments: list[str]) -> int:
    """Check Java (``--java``: only that), then fetch the jars (``--s3``: with that of S3)."""
    problem = java_problem()
    if problem:
        print(problem, file=sys.stderr)
        return 5
    if arguments == ["--java"]:
        return 0
    s3 = arguments == ["--s3"]
    added = fetch_jars(s3=s3)
    print(f"jars: {len(_wanted(s3=s3))} in {jars_dir()}, {len(added)} of them new")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exception as error:
        if getattr(error, "code", "") != "SETUP":
            raise
        sys.exit(str(error))

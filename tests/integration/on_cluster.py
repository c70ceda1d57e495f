"""A topology on a cluster, and the process that runs it there."""

import json
import os
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from integration.event_log import EventLog, Job
from integration.hosts import HERE, Host
from integration.servers import SparkCluster

from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

ORDERS, CUSTOMERS, FILES = 70_000, 3_500, 8
TABLE = ORDERS * 50
"""About the bytes of all orders."""
TOPOLOGY = """
from rejoin import Topology, debezium

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer BIGINT, note STRING", source=debezium("landing/orders"))
customers = t.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("landing/customers"))
orders.left_join(customers, foreign_key="customer", select=["left.*", "right.name AS name"]).named("enriched")
"""
SECRET = "a word that nobody should read"
# At this size each table would be one task's work, and would go to all of them as a whole (up to 10 MB): here as if they were a thousand times larger.
LAKE = f"""
warehouse = "file://{{root}}/lake/warehouse"
catalog = "sqlite"
uri = "sqlite:///{{root}}/lake/catalog.db"

[properties]
credential = "{SECRET}"

[spark]
"spark.master" = "{{master}}"
"spark.executor.memory" = "768m"
"spark.archives" = "file://{{packed}}#environment"
"spark.pyspark.python" = "./environment/bin/python"
"spark.sql.shuffle.partitions" = "8"
"spark.sql.adaptive.coalescePartitions.enabled" = "false"
"spark.sql.adaptive.autoBroadcastJoinThreshold" = "-1"
"spark.sql.iceberg.read.split-size" = "262144"
"spark.executor.defaultJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.eventLog.enabled" = "true"
"spark.eventLog.dir" = "file://{{logs}}"
"spark.eventLog.rolling.enabled" = "false"
"spark.eventLog.compress" = "false"
"""


TRIES = 5
"""How often a run is to lose something, until it does so in the middle of a job."""


class Place:
    """A lake with its landing folders, and the files that come by and by: the same for every place."""

    def __init__(self, root: Path) -> None:
        self.root, self._rng, self._lsn = root, random.Random(7), 0
        for table in ("orders", "customers"):
            (root / "landing" / table).mkdir(parents=True)
        (root / "lake").mkdir()
        (root / "t.py").write_text(TOPOLOGY)
        self.customers(range(CUSTOMERS), "first")
        self.orders(range(ORDERS), "first")

    @property
    def topology(self) -> Topology:
        return Topology(load(str(self.root / "t.py")), lake_config(str(self.root / "lake.toml")), str(self.root))

    @property
    def words(self) -> list[str]:
        """The command that runs it."""
        return ["run", str(self.root / "t.py"), "--lake", str(self.root / "lake.toml"), "--root", str(self.root)]

    def orders(self, keys: range, note: str) -> None:
        rows = [{"id": k, "customer": self._rng.choice([None, self._rng.randrange(CUSTOMERS)]), "note": f"{note} {k}"} for k in keys]
        self._land("orders", rows, FILES)

    def customers(self, keys: range, name: str) -> None:
        self._land("customers", [{"id": k, "name": f"{name} {k}"} for k in keys], 2)

    def _land(self, table: str, rows: list[dict[str, object]], files: int) -> None:
        for part in range(files):
            lines = []
            for row in rows[part::files]:
                self._lsn += 1
                source = {"connector": "postgresql", "lsn": self._lsn, "snapshot": "false"}
                lines.append(json.dumps({"key": {"id": row["id"]}, "value": {"op": "u", "source": source, "after": row}}))
            (self.root / "landing" / table / f"{self._lsn:08}.jsonl").write_text("\n".join(lines) + "\n")


class Driver:
    """A process that runs commands on the cluster (``clustered.py``), on some host. Its executors have a Python that comes with the application."""

    def __init__(self, cluster: SparkCluster, directory: Path, host: Host = HERE) -> None:
        self._cluster, self._directory, self._host, self._starts = cluster, directory, host, 0
        self._limits, self._usual = "", dict[str, dict[str, list[Job]]]()
        script = directory / "python"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        script.chmod(0o755)
        with tarfile.open(directory / "environment.tar.gz", "w:gz") as packed:
            packed.add(script, "bin/python")
        self.start()

    def start(self) -> None:
        """Starts the process, the first time or again."""
        self._starts += 1
        self._logs, self.said = self._directory / f"events{self._starts}", self._directory / f"driver{self._starts}.log"
        self._logs.mkdir()
        self._log = EventLog(self._logs)
        bare = {k: v for k, v in os.environ.items() if k not in ("REJOIN_ENGINE", "SPARK_REMOTE")}
        environment = {**bare, "PYTHONPATH": "tests:include"}
        command = self._host.command(sys.executable, "-m", "integration.clustered")
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=environment)
        self.ask("limits", "bulk")
        self.answer()

    def place(self, root: Path) -> Place:
        made = Place(root)
        self.adopt(made)
        return made

    def adopt(self, place: Place, settings: str = "", lake: str = LAKE) -> None:
        """Makes a place one of this cluster and process. ``settings``: more lines of Spark's settings; those of the first place count."""
        packed = self._directory / "environment.tar.gz"
        text = lake.format(root=place.root, master=self._cluster.url, logs=self._logs, packed=packed)
        (place.root / "lake.toml").write_text(text + settings)

    def run(self, place: Place, *words: str) -> list[Job]:
        """A run of its topology to its end; the jobs it took."""
        return self.do(*place.words, *words)

    def do(self, *words: str) -> list[Job]:
        since = int(time.time() * 1000)
        self.ask(*words)
        self.answer()
        return self._settled().jobs(since)

    def ask(self, *words: str) -> None:
        assert self.process.stdin is not None
        if words[0] == "limits":
            self._limits = words[1]
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> None:
        assert self.process.stdout is not None
        code = self.process.stdout.readline().strip()
        assert code == b"0", f"exit code {code!r}\n{self.said.read_text()[-3000:]}"

    def log(self) -> EventLog:
        return self._log.listen()

    def _settled(self) -> EventLog:
        """The log when Spark has written all that it has to say: it does so a moment later."""
        heard = -1
        while heard < self._log.listen().heard:
            heard = self._log.heard
            time.sleep(0.5)
        return self._log

    def run_and_lose(self, changed: Callable[[], Place], step: str, lose: Callable[[], object]) -> Place:
        """A run that loses an executor in the middle of a step; proves that it did. Returns its place.

        A run that loses nothing shows first, once for each kind of limits, which job of a step takes longest: in the middle of that one the next runs lose something.

        Args:
            changed: gives places in which changes wait to be run.
            step: the step.
            lose: kills something.
        """
        if self._limits not in self._usual:
            self._usual[self._limits] = by_step(self.run(changed(), "--fuse", "apply"))
        usual = self._usual[self._limits]
        for _ in range(TRIES):
            number, longest = max(enumerate(usual[step], start=1), key=lambda one: one[1].ended - one[1].began)
            place = changed()
            since = self.start_and_lose(place, step, lose, number, (longest.ended - longest.began) / 2000)
            self.answer()
            log = self._settled()
            of_step, lost = by_step(log.jobs(since))[step], [one for one in log.lost if one.at >= since]
            meanwhile = [job for job in of_step for one in lost if job.began <= one.at <= job.ended]
            failed = [task for job in of_step for task in job.tasks if task.why != "Success"]
            print(f"{step}: lost {len(lost)} executor(s) in the middle of {len(meanwhile)} job(s); {len(failed)} tasks failed")
            if meanwhile and failed:
                assert all(job.succeeded for job in of_step), "more than a retry"
                return place
            usual[step] = of_step  # what runs first takes longer
        raise AssertionError(f"no executor was lost in the middle of a job of {step}: {lost}, {[(j.began, j.ended) for j in of_step]}")

    def start_and_lose(self, place: Place, step: str, lose: Callable[[], object], jobs: int, after: float = 0.0) -> int:
        """Begins a run, and loses something some seconds after so many jobs of a step have begun; when the run began."""
        since = int(time.time() * 1000)
        self.ask(*place.words, "--fuse", "apply")
        deadline = time.monotonic() + 300
        while self.log().begun(step, since) < jobs:
            assert time.monotonic() < deadline and self.process.poll() is None, self.said.read_text()[-3000:]
            time.sleep(0.01)
        time.sleep(after)
        lose()
        return since

    def events(self) -> str:
        """All that Spark has logged."""
        return "".join(file.read_text() for file in self._logs.iterdir())

    def stop(self) -> None:
        """Ends it: it has no more input."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def kill(self) -> None:
        """Ends it in the middle of whatever it does."""
        self.process.kill()
        self.stop()


def by_step(jobs: list[Job]) -> dict[str, list[Job]]:
    """The jobs of each step."""
    steps: dict[str, list[Job]] = {}
    for job in jobs:
        steps.setdefault(job.step, []).append(job)
    return steps

"""Kafka Connect with the real Debezium: tables of PostgreSQL -> topics, and from these by Connect's own file sink -> files. It can be killed anywhere."""

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from integration import server_jars

from rejoin.airflow.local.server import free_port

JSON = "org.apache.kafka.connect.json.JsonConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
JAVA = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]


class ConnectWorker:
    """A standalone worker with two connectors, which goes on where it was when it is started again.

    Args:
        directory: its offsets, its log, and the files of the sink: a new one each time, since what a killed one wrote last may be half a line.
        broker: its address.
        database: the URL of the database, whose name is the prefix of the topics.
        schemas: whether values come with their schemas, and so decimals as octets; else decimals are texts.
        partitions: of each topic.
    """

    def __init__(self, directory: Path, broker: str, database: str, *, schemas: bool, partitions: int) -> None:
        directory.mkdir()
        self._directory, self._broker, self._database = directory, broker, psycopg.conninfo.conninfo_to_dict(database)
        self.prefix = str(self._database["dbname"])
        self.log, self._starts, self._taken = directory / "connect.log", 0, dict[Path, int]()
        self._schemas, self._partitions = str(schemas).lower(), str(partitions)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and does not wait."""
        self._starts += 1
        files = [
            self._properties(name, of) for name, of in (("worker", self._worker()), ("source", self._source()), ("sink", self._sink()))
        ]
        command = [*JAVA, "-cp", server_jars.class_path(server_jars.CONNECT), "org.apache.kafka.connect.cli.ConnectStandalone", *files]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stops it, if it is there."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def drain(self, db: psycopg.Connection[tuple[object, ...]]) -> None:
        """Waits until all that is committed now is on the topics and in the files. Writes rows into the table ``rest``, which the source captures."""
        self.follows(db)
        [(now,)] = db.execute("SELECT pg_current_wal_lsn()").fetchall()
        for _ in range(2):  # with an event it acknowledges the transaction before
            db.execute("INSERT INTO rest DEFAULT VALUES")
        self._wait(lambda: self._slot(db, "confirmed_flush_lsn > %s::pg_lsn", now), "what the source has acknowledged")
        self._wait(lambda: self._ends() == self._committed(), "what the sink has written")

    def begins(self, db: psycopg.Connection[tuple[object, ...]]) -> None:
        """Waits until the snapshot begins: then there is a slot, which nobody reads yet."""
        self._wait(lambda: self._slot(db, "true"), "the slot")

    def follows(self, db: psycopg.Connection[tuple[object, ...]]) -> None:
        """Waits until the snapshot has been read."""
        self._wait(lambda: self._slot(db, "active_pid IN (SELECT pid FROM pg_stat_replication WHERE state = 'streaming')"), "the snapshot")

    def _slot(self, db: psycopg.Connection[tuple[object, ...]], condition: str, *values: object) -> bool:
        asked = f"SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s AND {condition}"
        return db.execute(asked, (f"{self.prefix}_debezium", *values)).fetchone() == (1,)  # type: ignore[arg-type]

    def harvest(self, landing: Path) -> None:
        """New whole lines -> a file of their own; of an earlier start all that is there, also half a line."""
        landing.mkdir(exist_ok=True)
        for file in sorted(self._directory.glob("*.json")):
            found = file.read_bytes()[self._taken.get(file, 0) :]
            whole = found if file != self._file else found[: found.rfind(b"\n") + 1]
            if whole:
                (landing / f"{len(list(landing.iterdir())):06}-{file.name}").write_bytes(whole)
                self._taken[file] = self._taken.get(file, 0) + len(whole)

    def _admin(self) -> AdminClient:
        """A new one: of one that was asked before the broker was killed some questions are never answered."""
        return AdminClient({"bootstrap.servers": self._broker, "log_level": 0})  # it would say every second that the broker is down

    def topics(self) -> list[str]:
        """The topics of the source."""
        return [name for name in self._admin().list_topics(timeout=20).topics if name.startswith(f"{self.prefix}.public.")]

    @property
    def _file(self) -> Path:
        return self._directory / f"{self._starts:04}.json"

    def _wait(self, what: Callable[[], bool], said: str) -> None:
        deadline = time.monotonic() + 300
        while not self._is_so(what):
            assert time.monotonic() < deadline, f"{said} is behind:\n{self.log.read_text()[-4000:]}"
            assert self._process is not None and self._process.poll() is None, self.log.read_text()[-4000:]
            time.sleep(0.02)

    @staticmethod
    def _is_so(what: Callable[[], bool]) -> bool:
        with suppress(KafkaException):  # a broker that was just started again may be slow
            return what()
        return False

    def _ends(self) -> dict[tuple[str, int], int]:
        consumer = Consumer({"bootstrap.servers": self._broker, "group.id": "ends"})
        found = {}
        for topic in self.topics():
            for partition in range(int(self._partitions)):
                found[topic, partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)[1]
        consumer.close()
        return {at: end for at, end in found.items() if end}

    def _committed(self) -> dict[tuple[str, int], int]:
        group, admin = f"connect-{self.prefix}-sink", self._admin()
        found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(100)
        return {(at.topic, at.partition): at.offset for at in found.topic_partitions if at.offset > 0}

    def _worker(self) -> dict[str, str]:
        converters = {f"{part}.converter": JSON for part in ("key", "value", "header")}
        return {
            "bootstrap.servers": self._broker,
            "listeners": f"http://127.0.0.1:{free_port()}",
            "plugin.discovery": "service_load",
            "offset.storage.file.filename": str(self._directory / "offsets"),
            "offset.flush.interval.ms": "200",
            "consumer.metadata.max.age.ms": "500",  # topics are made while the sink waits for them
            **converters,
            **{f"{name}.schemas.enable": self._schemas if name == "value.converter" else "false" for name in converters},
        }

    def _source(self) -> dict[str, str]:
        return {
            "name": f"{self.prefix}-source",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            **{f"database.{name}": str(self._database[of]) for name, of in (("hostname", "host"), ("port", "port"), ("user", "user"))},
            "database.dbname": self.prefix,
            "topic.prefix": self.prefix,
            "slot.name": f"{self.prefix}_debezium",
            "slot.retry.delay.ms": "500",
            "publication.name": f"{self.prefix}_debezium",
            "publication.autocreate.mode": "filtered",
            "schema.include.list": "public",
            "skipped.operations": "none",  # else truncates are left out
            "decimal.handling.mode": "precise" if self._schemas == "true" else "string",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": self._partitions,
        }

    def _sink(self) -> dict[str, str]:
        return {
            "name": f"{self.prefix}-sink",
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "topics.regex": f"{self.prefix}\\.public\\..*",
            "file": str(self._file),
            "key.converter": TEXT,
            "value.converter": TEXT,
            "predicates": "tombstone",  # it would write "null"
            "predicates.tombstone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
            "transforms": "drop",
            "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
            "transforms.drop.predicate": "tombstone",
        }

    def _properties(self, name: str, of: dict[str, str]) -> str:
        file = self._directory / f"{name}.properties"
        file.write_text("".join(f"{k}={v}\n".replace("\\", "\\\\") for k, v in of.items()))
        return str(file)

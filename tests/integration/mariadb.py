"""A MariaDB server whose changes Kafka Connect with Debezium's connector writes to a broker, as docs/mysql.md has it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from integration import server_jars
from integration.servers import wait_for_port

from rejoin.airflow.local.server import free_port

CONNECTOR = {
    "name": "shop",
    "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
    "topic.prefix": "shop",
    "database.hostname": "127.0.0.1",
    "database.user": "debezium",
    "database.password": "secret",
    "database.server.id": "4711",
    "database.include.list": "shop",
    "bigint.unsigned.handling.mode": "precise",
    "skipped.operations": "none",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": "1",
}
_JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {
    "key.converter": _JSON,
    "value.converter": _JSON,
    "header.converter": _JSON,
    "plugin.discovery": "service_load",
    "offset.flush.interval.ms": "1000",
}


class MariaDb:
    """A running server with an empty database ``shop``, and the user that a connector needs."""

    def __init__(self, directory: Path, port: int) -> None:
        self.port, self._socket = port, directory / "socket"

    def sql(self, text: str, database: str = "shop") -> list[list[str]]:
        """What statements give, as texts."""
        command = ["mariadb", "--no-defaults", f"--socket={self._socket}", "--user=root", "--batch", "--raw", "--skip-column-names"]
        done = subprocess.run([*command, database], input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def documents(self, query: str) -> list[Any]:
        """The JSON of each row of a query with one column."""
        return [json.loads(row[0]) for row in self.sql(query)]


@contextmanager
def mariadb(directory: Path) -> Iterator[MariaDb]:
    """A server, stopped at the end."""
    port, data, log = free_port(), directory / "data", directory / "mariadb.log"
    owner = ["--no-defaults", "--user=root", f"--datadir={data}"]
    subprocess.run(["mariadb-install-db", *owner, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    stated = [
        f"--port={port}",
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        f"--socket={directory}/socket",
        f"--pid-file={directory}/pid",
    ]
    log_settings = [
        "--log-bin=binlog",
        "--binlog-format=ROW",
        "--binlog-row-image=FULL",
        "--server-id=1",
        "--innodb-flush-log-at-trx-commit=0",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(["/usr/sbin/mariadbd", *owner, *stated, *log_settings], stdout=out, stderr=out)
        try:
            wait_for_port(port, process, log)
            made = MariaDb(directory, port)
            grants = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, BINLOG MONITOR"
            made.sql(f"CREATE DATABASE shop; CREATE USER debezium IDENTIFIED BY 'secret'; GRANT {grants} ON *.* TO debezium", "mysql")
            yield made
        finally:
            process.terminate()
            process.wait(60)


class Worker(NamedTuple):
    """A running process, and what it has logged."""

    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def connect(directory: Path, broker: str, database: MariaDb, **settings: str) -> Iterator[Worker]:
    """Kafka Connect, standalone, with the connector and these settings of it beside others. In the same directory it goes on where it was."""
    log, port = directory / "connect.log", free_port()
    worker = {
        **WORKER,
        "bootstrap.servers": broker,
        "offset.storage.file.filename": f"{directory}/offsets",
        "listeners": f"http://127.0.0.1:{port}",
    }
    connector = {**CONNECTOR, **settings, "database.port": database.port, "schema.history.internal.file.filename": f"{directory}/history"}
    files = []
    for name, said in (("worker", worker), ("connector", connector)):
        files.append(directory / f"{name}.properties")
        files[-1].write_text("".join(f"{k}={v}\n" for k, v in said.items()))
    command = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", server_jars.class_path(server_jars.CONNECT)]
    with log.open("wb") as out:
        words = ["org.apache.kafka.connect.cli.ConnectStandalone", *map(str, files)]
        process = subprocess.Popen([*command, *words], stdout=out, stderr=out)
        try:
            yield Worker(process, log)
        finally:
            process.terminate()
            process.wait(60)

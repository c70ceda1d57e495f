"""MariaDB -> Debezium's connector in Kafka Connect -> topics -> rejoin, declared by ``rejoin discover``: equal to the join that MariaDB executes (docs/mysql.md)."""

import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from integration.mariadb import MariaDb, connect, mariadb
from integration.servers import KafkaServer
from integration.shop import rows
from sparkless import no_spark

from rejoin.cli import main
from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.schedule import run_topology
from rejoin.steps.run.topology import Topology

pytestmark = [pytest.mark.kafka, pytest.mark.debezium, pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(400)]
TABLES = """
CREATE TABLE customers (id int unsigned PRIMARY KEY, name varchar(50) CHARACTER SET utf8mb4, born date);
CREATE TABLE orders (
    id bigint unsigned PRIMARY KEY, customer int unsigned, total decimal(12, 2), big bigint unsigned, tiny tinyint unsigned, yes tinyint(1), flag bit(1),
    bits bit(10), tags set('a', 'b', 'c'), state enum('new', 'done'), doc json, octets varbinary(20), day date, at datetime(6), seen timestamp(3) NULL,
    lasted time(3), made year, ratio double, small float, note text
);
"""
TYPES = {
    "id": "DECIMAL(20,0)",
    "customer": "BIGINT",
    "total": "DECIMAL(12,2)",
    "big": "DECIMAL(20,0)",
    "tiny": "INT",
    "yes": "INT",
    "flag": "BOOLEAN",
    "bits": "BINARY",
    "tags": "STRING",
    "state": "STRING",
    "doc": "STRING",
    "octets": "BINARY",
    "day": "DATE",
    "at": "TIMESTAMP_NTZ",
    "seen": "TIMESTAMP",
    "lasted": "BIGINT",
    "made": "INT",
    "ratio": "DOUBLE",
    "small": "FLOAT",
    "note": "STRING",
}
JOIN = """
SELECT json_array(
    CAST(o.id AS char), o.customer, CAST(o.total AS char), CAST(o.big AS char), o.tiny, o.yes, o.flag + 0, hex(o.bits), CAST(o.tags AS char), CAST(o.state AS char),
    CAST(o.doc AS char), hex(o.octets), nullif(CAST(o.day AS char), '0000-00-00'), CAST(o.at AS char), CAST(o.seen AS char),
    CAST(time_to_sec(o.lasted) * 1000000 AS integer), CAST(o.made AS integer), o.ratio, CAST(o.small AS char), o.note, c.name, CAST(c.born AS char))
FROM orders o LEFT JOIN customers c ON o.customer = c.id ORDER BY o.id
"""
FIRST = """
SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = '';
INSERT INTO customers VALUES (7, 'Ann', '1990-02-28'), (8, 'Zoë 𝄞', NULL), (4294967295, '', '2000-02-29');
INSERT INTO orders VALUES
    (1, 7, 12.50, 18446744073709551615, 255, 1, b'1', b'1000000001', 'a,c', 'new', '{"a": [1, 2]}', x'00ff', '2026-01-31', '2026-01-31 10:00:00.000001',
     '2026-01-31 10:00:00.001', '01:02:03.5', 2026, 0.1, 1.5, 'plain'),
    (18446744073709551615, 4294967295, -0.01, 0, 0, 0, b'0', b'0', '', 'done', '"x"', '', '0000-00-00', '1000-01-01 00:00:00', NULL, '-00:00:01', 1901, -1e300, 0, ''),
    (3, 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 8, 9999999999.99, 1, 1, 127, b'1', b'1111111111', 'b', 'new', 'null', x'0a', '9999-12-31', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '838:59:59', 2155, 1, -2.25, repeat('é', 5000));
"""
THEN = """
SET NAMES utf8mb4; SET time_zone = '+00:00';
START TRANSACTION; UPDATE orders SET id = 1001 WHERE id = 1; UPDATE orders SET total = total + 1, note = NULL WHERE id = 1001; COMMIT;
START TRANSACTION; DELETE FROM orders WHERE id = 3; INSERT INTO orders (id, customer) VALUES (3, 7); ROLLBACK;
DELETE FROM orders WHERE id = 4; UPDATE customers SET name = 'Anna' WHERE id = 7; UPDATE customers SET id = 9 WHERE id = 8;
INSERT INTO orders (id, customer, tags) VALUES (5, 9, 'b,c');
"""
TRUNCATED = "TRUNCATE customers; INSERT INTO customers VALUES (9, 'after', NULL)"


def plain(value: Any) -> Any:
    """A value as the query above writes it."""
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return str(value) if isinstance(value, Decimal | date) else value


class Lake:
    """What rejoin makes of the topics."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def joined(self) -> list[list[Any]]:
        """Reads what is new; the rows of the join."""
        topology = Topology(load(str(self._root / "t.py")), lake_config(str(self._root / "lake")), str(self._root))
        run_topology(topology, no_spark, f"test {len(topology.ledger.runs())}")
        found = sorted(rows(topology, "orders_with_customer"), key=lambda row: int(row["id"]))
        return [[plain(row[name]) for name in (*TYPES, "customer_name", "customer_born")] for row in found]


def of_database(database: MariaDb) -> list[list[Any]]:
    found = database.documents("SET NAMES utf8mb4; SET time_zone = '+00:00';" + JOIN)
    for row in found:
        row[7] = None if row[7] is None else int(row[7], 16).to_bytes(2, "little").hex().upper()
        row[13], row[14] = (
            None if text is None else datetime.fromisoformat(text).isoformat(" ", "microseconds") for text in (row[13], row[14])
        )
        row[18] = None if row[18] is None else float(row[18])
    return found


def until_equal(lake: Lake, database: MariaDb, log: Path) -> None:
    expected, deadline = of_database(database), time.monotonic() + 120
    while (found := lake.joined()) != expected:
        assert time.monotonic() < deadline, f"{found}\n{expected}\n{log.read_text()[-2000:]}"
        time.sleep(1)


def test_mariadb_by_kafka_connect(broker: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_SOURCE_KAFKA", broker.address)
    monkeypatch.chdir(tmp_path)
    with mariadb(tmp_path) as database:
        database.sql(TABLES + FIRST)
        with connect(tmp_path, broker.address, database) as (_, log):
            deadline = time.monotonic() + 120
            while (found := CliRunner().invoke(main, ["discover", "kafka://kafka/shop.shop.*"])).exit_code or found.stdout.count(
                "table("
            ) < 2:
                assert time.monotonic() < deadline, found.stdout + found.stderr + log.read_text()[-3000:]
                time.sleep(1)
            (tmp_path / "t.py").write_text(found.stdout)
            plan = load("t.py")
            assert {c.name: str(c.type) for c in plan.table("orders").columns} == TYPES
            lake = Lake(tmp_path)
            until_equal(lake, database, log)
            database.sql(THEN)
            until_equal(lake, database, log)
            database.sql(TRUNCATED)
            until_equal(lake, database, log)

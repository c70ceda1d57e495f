"""How fast changes are published: `python bench/publish.py [changes]`. Starts its own broker and database; writes docs/sinks.md's tables.

Every row is a delivery of the same changes by `rejoin.steps.deliver.step`, best of two; the raw client's time beside it is that of a loop that hands over bytes which are
ready: the producer's `produce()`, and psycopg's `COPY` and merge.
"""

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "include")]

import psycopg  # noqa: E402
import pyarrow as pa  # noqa: E402
from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient  # noqa: E402
from confluent_kafka.cimpl import NewTopic  # noqa: E402
from integration.made import COLUMNS, Lake  # noqa: E402
from integration.servers import kafka, postgres  # noqa: E402

from rejoin.lake import table_names  # noqa: E402
from rejoin.lake.read import change_feed  # noqa: E402
from rejoin.plan.model.sinks import KafkaSink  # noqa: E402
from rejoin.sinks.kafka.records import Records, json_encoding  # noqa: E402

PARTITIONS = 6
SETTINGS = {
    "defaults: exactly once, 10,000 records per transaction": "",
    "1,000 records per transaction": ", batch=1_000",
    "100,000 records per transaction": ", batch=100_000",
    "at least once": ', guarantee="at_least_once"',
    "at least once, no idempotence": ', guarantee="at_least_once", producer={"enable.idempotence": False}',
    "at least once, no idempotence, acks=1": ', guarantee="at_least_once", producer={"enable.idempotence": False, "acks": 1}',
    "linger.ms=0": ', producer={"linger.ms": 0}',
    "linger.ms=50": ', producer={"linger.ms": 50}',
    "batch.size=16384 (Java's default)": ', producer={"batch.size": 16384}',
    "buffer.memory=1000000": ', producer={"buffer.memory": 1000000}',
    "compression.type=lz4": ', producer={"compression.type": "lz4"}',
    "compression.type=zstd": ', producer={"compression.type": "zstd"}',
    'value="row"': ', value="row"',
    'value="key"': ', value="key"',
}
_NUMBERS = itertools.count(1)


def best(work: Callable[[], float], times: int = 2) -> float:
    return min(work() for _ in range(times))


def batches(lake: Lake) -> list[pa.RecordBatch]:
    topology = lake.topology()
    states = topology.ledger.states(topology.ledger.head())
    log, output = (
        change_feed.TableAt(topology.refs.require(name, states[name]), states[name]) for name in (table_names.changes("people"), "people")
    )
    columns = [c for c, _ in COLUMNS]
    return list(change_feed.changes(log, output, change_feed.RunRange(0, 1, net=False), ["id"], columns))


def raw_kafka(address: str, rows: list[pa.RecordBatch], *, transactional: bool) -> float:
    sink = KafkaSink("kafka", "raw")
    made = Records("town", "people", ("id",), sink, json_encoding(sink, pa.schema(COLUMNS)))
    ready = [(r.key, r.value, list(r.headers)) for batch in rows for r in made.of(batch)]
    topic = _topic(address)
    extra = {"transactional.id": topic} if transactional else {}
    settings = {
        "bootstrap.servers": address,
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": 0,
        "enable.idempotence": True,
    }
    producer = Producer({**settings, **extra})
    if transactional:
        producer.init_transactions(30)
    started = time.monotonic()
    if transactional:
        producer.begin_transaction()
    for key, value, headers in ready:
        producer.produce(topic, key=key, value=value, headers=headers)
    producer.flush(60)
    if transactional:
        producer.commit_transaction(60)
    return time.monotonic() - started


def raw_postgres(url: str, rows: list[pa.RecordBatch]) -> float:
    ready = [tuple(r["_after"].values()) for batch in rows for r in batch.to_pylist()]
    schema = f"raw{next(_NUMBERS)}"
    columns = "id bigint PRIMARY KEY, name text, paid numeric(12,2), share double precision, born date, seen timestamptz, photo bytea, active boolean"
    with psycopg.connect(url, prepare_threshold=None) as db:
        db.execute(f"CREATE SCHEMA {schema}")
        db.execute(f"CREATE TABLE {schema}.people ({columns})")
        db.commit()
        started = time.monotonic()
        db.execute(f"CREATE TEMPORARY TABLE staging (LIKE {schema}.people) ON COMMIT DROP")
        with db.cursor().copy("COPY staging FROM STDIN") as copy:
            for row in ready:
                copy.write_row(row)
        db.execute(f"INSERT INTO {schema}.people SELECT * FROM staging ORDER BY id")
        db.commit()
    return time.monotonic() - started


def _topic(address: str) -> str:
    name = f"t{next(_NUMBERS)}"
    admin = AdminClient({"bootstrap.servers": address})  # without a name it would be gone before the answer
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    return name


def delivered(lake: Lake, address: str, settings: str) -> tuple[float, dict[str, float]]:
    topic, detail = _topic(address), dict[str, float]()
    lake.declare(f'kafka("{topic}", name="{topic}", start="changes"{settings})')
    os.environ[f"REJOIN_SINK_{topic.upper()}"] = address
    done = lake.topology().deliver(f"people.{topic}")
    detail.update(done.detail)
    return done.seconds, detail


def delivered_postgres(lake: Lake, url: str) -> float:
    name = f"p{next(_NUMBERS)}"
    lake.declare(f'postgres("{name}.people", name="{name}", start="changes")')
    os.environ[f"REJOIN_SINK_{name.upper()}"] = url
    return float(lake.topology().deliver(f"people.{name}").seconds)


def main(count: int) -> None:
    lines = ["## Throughput", ""]
    with tempfile.TemporaryDirectory() as folder, kafka(Path(folder)) as broker, postgres() as database:
        url, address = database.replace("+psycopg", ""), broker.address
        lake = Lake(Path(folder) / "lake", "")
        lake.run({key: lake.row(key) for key in range(count)})
        rows = batches(lake)
        size = sum(b.num_rows for b in rows)
        assert size == count
        delivered(lake, address, "")  # warm
        made = {
            "Kafka, `rejoin`, exactly once": best(lambda: delivered(lake, address, "")[0]),
            "Kafka, raw `produce()`, one transaction": best(lambda: raw_kafka(address, rows, transactional=True)),
            "Kafka, raw `produce()`, no transaction": best(lambda: raw_kafka(address, rows, transactional=False)),
            "PostgreSQL, `rejoin`": best(lambda: delivered_postgres(lake, url)),
            "PostgreSQL, raw `COPY` and insert": best(lambda: raw_postgres(url, rows)),
        }
        cpus = os.cpu_count()
        lines += [
            f"{count:,} changes of eight columns, broker, database and client on one busy machine of {cpus} cores (`python bench/publish.py`).",
            "",
        ]
        lines += [
            "A raw client gets bytes or rows that are ready; `rejoin` reads the changes, sorts and encodes them, and moves its cursor.",
            "",
        ]
        lines += ["| | seconds | changes/s |", "|---|---|---|"]
        lines += [f"| {name} | {seconds:.2f} | {count / seconds:,.0f} |" for name, seconds in made.items()]
        lines += ["", "By setting (exactly once, envelope as JSON, six partitions, unless it says otherwise):", ""]
        lines += ["| setting | records/s | records per batch | bytes per batch | queue ms | compression |", "|---|---|---|---|---|---|"]
        for name, settings in SETTINGS.items():
            seconds, detail = min((delivered(lake, address, settings) for _ in range(2)), key=lambda found: found[0])
            shown = [f"{count / seconds:,.0f}", f"{detail['records-per-batch-avg']:,.0f}", f"{detail['batch-size-avg']:,.0f}"]
            shown += [f"{detail['record-queue-time-avg']:.1f}", f"{detail['compression-rate-avg']:.2f}"]
            lines.append(f"| {name} | {' | '.join(shown)} |")
            print(lines[-1], flush=True)
    page = ROOT / "docs" / "sinks.md"
    text = page.read_text().split("<!-- throughput -->")[0]
    page.write_text(text + "<!-- throughput -->\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)

"""What is on a topic, for readers of other makes; partitioners and interceptors of the user's own; the producer's settings at work."""

import base64
import json
import subprocess
from pathlib import Path

import hooks
import pytest
from golden.murmur2 import partition_of
from integration.made import Lake, plain
from integration.servers import KafkaServer
from topics import check_once_and_in_order, folded, read

from rejoin.errors import SetupError, SinkRecordRefused

pytestmark = [pytest.mark.usefixtures("address"), pytest.mark.kafka, pytest.mark.slow]


def test_a_java_consumer_reads_the_table_with_every_key_where_a_java_producer_would_have_put_it(
    lake: Lake, broker: KafkaServer, topic: str
) -> None:
    lake.run({key: lake.row(key) for key in range(-50, 150)})
    lake.declare(f'kafka("{topic}", partitions=7)')
    lake.topology().deliver("people.kafka")
    lake.run(lake.some(30))
    lake.topology().deliver("people.kafka")
    command = ["java", "-cp", broker.class_path, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    source = Path(__file__).parent / "ReadTopic.java"
    done = subprocess.run([*command, str(source), broker.address, topic], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    state, used = {}, set()
    for line in done.stdout.splitlines():
        partition, javas, key, value = line.split(" ")
        assert partition == javas == str(partition_of(base64.b64decode(key), 7))
        used.add(partition)
        number = json.loads(base64.b64decode(key))["id"]
        state[number] = None if value == "-" else json.loads(base64.b64decode(value))["after"]
    assert {k: v for k, v in state.items() if v is not None} == plain(lake.rows())
    assert len(used) == 7 and None in state.values()


def test_a_partitioner_of_the_users_own(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=4, partitioner="hooks:all_on_the_last")')
    lake.topology().deliver("people.kafka")
    assert {r.partition for r in read(broker.address, topic)} == {3}


def test_a_partition_that_there_is_not_and_a_partitioner_that_there_is_not(lake: Lake, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=4, partitioner="hooks:none_there_is")')
    with pytest.raises(SinkRecordRefused, match="gave 4"):
        lake.topology().deliver("people.kafka")
    lake.declare(f'kafka("{topic}", partitions=4, partitioner="hooks:nothing")')
    with pytest.raises(SetupError, match="cannot be imported"):
        lake.topology().deliver("people.kafka")


def test_an_interceptor_sees_what_is_sent_and_what_is_acknowledged(lake: Lake, broker: KafkaServer, topic: str) -> None:
    hooks.ACKNOWLEDGED.clear()
    lake.declare(f'kafka("{topic}", partitions=2, interceptors=["hooks:Marking"])')
    done = lake.topology().deliver("people.kafka")
    records = read(broker.address, topic)
    assert sorted((r.key, r.partition, None) for r in records) == sorted(hooks.ACKNOWLEDGED)  # type: ignore[type-var]
    assert len(records) == done.records


def test_an_interceptor_that_changes_a_key_is_refused(lake: Lake, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=2, interceptors=["hooks:OtherKey"])')
    with pytest.raises(SinkRecordRefused, match="key"):
        lake.topology().deliver("people.kafka")


def test_batching_and_compression_do_what_they_are_set_to_and_the_metrics_show_it(
    lake: Lake, broker: KafkaServer, topic: str, tmp_path: Path
) -> None:
    lake.run({key: lake.row(key) for key in range(3000)})
    found = {}
    for name, settings in {"single": '"batch.size": 1, "linger.ms": 0', "large": '"linger.ms": 200, "compression.type": "zstd"'}.items():
        lake.declare(f'kafka("{topic}{name}", name="{name}", partitions=1, producer={{{settings}}})')
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(f"REJOIN_SINK_{name.upper()}", broker.address)
            found[name] = lake.topology().deliver(f"people.{name}").detail
    assert found["single"]["record-send-total"] == found["large"]["record-send-total"] == len(lake.rows())
    assert found["single"]["records-per-batch-avg"] == 1
    assert found["large"]["records-per-batch-avg"] > 100
    assert found["large"]["compression-rate-avg"] < found["single"]["compression-rate-avg"] / 2
    assert found["large"]["record-queue-time-avg"] > 0


def test_rows_and_keys_alone_and_a_key_as_text(lake: Lake, broker: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("row", "key"):
        monkeypatch.setenv(f"REJOIN_SINK_{value.upper()}", broker.address)
        lake.declare(f'kafka("{topic}{value}", name="{value}", value="{value}", key="text", partitions=2)')
        lake.topology().deliver(f"people.{value}")
    rows = {int(r.key): json.loads(r.value or b"") for r in read(broker.address, f"{topic}row")}
    assert rows == plain(lake.rows())
    assert {(int(r.key), r.value) for r in read(broker.address, f"{topic}key")} == {(key, b"") for key in lake.rows()}


def test_changes_after_a_snapshot_in_several_transactions_fold_to_the_table(lake: Lake, broker: KafkaServer, topic: str) -> None:
    lake.declare(f'kafka("{topic}", partitions=3, batch=4)')
    lake.topology().deliver("people.kafka")
    lake.run(lake.some(20))
    lake.topology().deliver("people.kafka")
    records = read(broker.address, topic)
    check_once_and_in_order(records)
    assert folded(records) == plain(lake.rows())

"""A real statistics record of the client as the metrics that a summary shows."""

import json
from pathlib import Path

from rejoin.sinks.kafka.producer_metrics import Metrics

SAMPLE = (Path(__file__).parent / "statistics.json").read_text()


def test_a_real_record_becomes_kafkas_metrics() -> None:
    found, metrics = json.loads(SAMPLE), Metrics("p")
    metrics.add(SAMPLE)
    made, topic = metrics.summary(), found["topics"]["p"]
    assert made["record-send-total"] == sum(p["txmsgs"] for p in topic["partitions"].values()) > 0
    assert (made["batch-total"], made["batch-size-avg"]) == (390, round(96459092 / 390, 3))
    assert made["record-queue-time-avg"] == round(sum(b["int_latency"]["sum"] for b in found["brokers"].values()) / 1000 / 442824, 3)
    assert made["buffer-available-bytes"] == found["msg_size_max"] - found["msg_size"]
    assert 0 < made["compression-rate-avg"] < 2


def test_intervals_are_summed_up_and_the_least_room_is_kept() -> None:
    metrics, fuller = Metrics("p"), json.loads(SAMPLE)
    fuller["msg_size"] = fuller["msg_size_max"] - 10
    for text in (SAMPLE, json.dumps(fuller), SAMPLE):
        metrics.add(text)
    assert metrics.summary()["batch-total"] == 3 * 390 and metrics.summary()["buffer-available-bytes"] == 10


def test_before_any_statistics_everything_is_zero() -> None:
    assert not any(Metrics("p").summary().values())

"""librdkafka's statistics -> the producer metrics that a run summary shows. Pure."""

import json
from typing import Any


class Metrics:
    """What a producer did to one topic, added up over its statistics. Averages in the statistics are of one interval each, so they are summed up."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._last: dict[str, Any] = {}
        self._sums = dict.fromkeys(("batches", "batched", "batch_bytes", "queued", "queued_us"), 0)
        self._least_buffer: int | None = None
        self.errors = 0
        """Records that were refused or given up."""

    def add(self, statistics: str) -> None:
        """One statistics callback."""
        found: dict[str, Any] = json.loads(statistics)
        if (topic := found["topics"].get(self._topic)) is not None:
            self._sums["batches"] += topic["batchcnt"]["cnt"]
            self._sums["batched"] += topic["batchcnt"]["sum"]
            self._sums["batch_bytes"] += topic["batchsize"]["sum"]
        for broker in found["brokers"].values():
            self._sums["queued"] += broker["int_latency"]["cnt"]
            self._sums["queued_us"] += broker["int_latency"]["sum"]
        free = found["msg_size_max"] - found["msg_size"]
        self._least_buffer = free if self._least_buffer is None else min(self._least_buffer, free)
        self._last = found

    @property
    def seen(self) -> int:
        """Records that the statistics know to be sent and acknowledged."""
        return int(self._sent("txmsgs"))

    def _sent(self, what: str) -> float:
        topic = self._last.get("topics", {}).get(self._topic, {"partitions": {}})
        return float(sum(p[what] for p in topic["partitions"].values()))

    def summary(self) -> dict[str, float]:
        """By the names of Kafka's own metrics; sizes in bytes, times in milliseconds. ``buffer-available-bytes`` is the least that was seen."""
        sums, brokers = self._sums, self._last.get("brokers", {}).values()
        return {
            "record-send-total": self.seen,
            "batch-total": sums["batches"],
            "batch-size-avg": _share(sums["batch_bytes"], sums["batches"]),
            "records-per-batch-avg": _share(sums["batched"], sums["batches"]),
            "record-queue-time-avg": _share(sums["queued_us"] / 1000, sums["queued"]),
            "compression-rate-avg": _share(sums["batch_bytes"], self._sent("txbytes")),
            "buffer-available-bytes": self._least_buffer or 0,
            "record-retry-total": sum(b["txretries"] for b in brokers),
            "record-error-total": self.errors,
        }


def _share(part: float, whole: float) -> float:
    return round(part / whole, 3) if whole else 0.0

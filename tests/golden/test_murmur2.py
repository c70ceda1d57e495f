"""The partition of a key is the one that a Java producer chooses: vectors recorded from Kafka's own code."""

import json
from pathlib import Path

import pytest
from golden.murmur2 import murmur2, partition_of

VECTORS = [json.loads(line) for line in (Path(__file__).parent / "murmur2.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("vector", VECTORS, ids=[v["hex"][:20] for v in VECTORS])
def test_murmur2_and_partitions_are_javas(vector: dict[str, object]) -> None:
    key = bytes.fromhex(str(vector["hex"]))
    signed = int.from_bytes(murmur2(key).to_bytes(4, "big"), "big", signed=True)
    assert (signed, partition_of(key, 6), partition_of(key, 12)) == (vector["murmur2"], vector["partition_6"], vector["partition_12"])

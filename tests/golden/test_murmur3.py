"""The value hash is Kafka's: same bytes, same hash."""

import json

import mmh3
import pyarrow as pa
import pytest
from traces import HERE

from rejoin.statements import provenance, value_hash

VECTORS = [json.loads(line) for line in (HERE / "murmur3.jsonl").read_bytes().splitlines()]


def test_there_are_vectors() -> None:
    assert len(VECTORS) == 32


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{len(v['hex']) // 2}_bytes_{v['hex'][:8]}")
def test_our_hash_of_bytes_is_kafkas(vector: dict[str, object]) -> None:
    data = bytes.fromhex(str(vector["hex"]))
    (ours,) = value_hash.murmur3(pa.array([data], pa.binary())).to_pylist()
    assert [int.from_bytes(half, "little", signed=True) for half in (ours[:8], ours[8:])] == vector["kafka"]
    assert ours == mmh3.hash_bytes(data, provenance.SEED)

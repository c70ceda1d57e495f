"""The hash of an output row in plain Python: the same bytes as ``hashing.provenance``, for a row that is looked at without a statement."""

from collections.abc import Sequence

import mmh3

SEED = 104729
"""The seed of Kafka's ``Murmur3.hash128``, so that equal bytes have the hash that Kafka Streams gives them."""


def hashed_bytes(encoded: bytes) -> bytes:
    """The 16 bytes of murmur3 x64 128 of an encoding."""
    return mmh3.hash_bytes(encoded, SEED)


def provenance_hash(fingerprint: str, hashes: Sequence[bytes | None]) -> bytes:
    """The hash of an output row.

    Args:
        fingerprint: of the node's definition.
        hashes: the hash of the left row, then of each edge's right row (None = no right row).
    """
    parts = [_encoded("s", fingerprint.encode()), *(b"-" if h is None else _encoded("x", h) for h in hashes)]
    return hashed_bytes(b"".join(parts))


def _encoded(letter: str, payload: bytes) -> bytes:
    return f"{letter}{len(payload)}:".encode() + payload

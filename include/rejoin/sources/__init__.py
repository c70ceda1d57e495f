"""Sources: bytes that others wrote -> events, exactly or quarantined, never guessed.

``available`` finds what is new and pins it (the cut), ``read`` turns a pin into the events frame (ingest). pyspark is imported by
``read`` only when it is called.
"""

from rejoin.sources.declared_columns import drift
from rejoin.sources.events import RARE
from rejoin.sources.pins import Pin, available, ignored
from rejoin.sources.raw_records import read_again_here, read_again_on_workers, read_raw, read_raw_here, row_columns
from rejoin.sources.read import coded_errors, read, read_along, read_here, unpacked
from rejoin.sources.transports.files import PinnedFile

__all__ = [
    "RARE",
    "Pin",
    "PinnedFile",
    "available",
    "coded_errors",
    "drift",
    "ignored",
    "read",
    "read_again_here",
    "read_again_on_workers",
    "read_along",
    "read_here",
    "read_raw",
    "read_raw_here",
    "row_columns",
    "unpacked",
]

"""Sources: records that others wrote -> events, exactly or quarantined, never guessed.

``waiting`` finds what is new and pins it (the cut), ``read`` turns a pin into the events frame (ingest). A source is a transport (where records
are), a format (how they are written) and a shape (what they say). pyspark is imported by ``read`` only when it is called.
"""

from rejoin.plan.pin import Part, Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.declared_columns import drift
from rejoin.sources.events import RARE
from rejoin.sources.raw_records import read_again_here, read_again_on_workers, read_raw, read_raw_here, row_columns
from rejoin.sources.read import coded_errors, going_on, read, read_along, read_here, read_streams, unpacked, waiting
from rejoin.sources.recognition import SAMPLE, about, hint
from rejoin.sources.transports.transport import GoingOn, Waiting

__all__ = [
    "RARE",
    "SAMPLE",
    "GoingOn",
    "Part",
    "Pin",
    "SourceAccess",
    "Waiting",
    "about",
    "coded_errors",
    "drift",
    "going_on",
    "hint",
    "read",
    "read_again_here",
    "read_again_on_workers",
    "read_along",
    "read_here",
    "read_raw",
    "read_raw_here",
    "read_streams",
    "row_columns",
    "unpacked",
    "waiting",
]

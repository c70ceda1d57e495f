"""rejoin: denormalized tables kept fresh by incremental joins on Spark and Iceberg.

A topology file needs these names only, a notebook ``Lake`` as well; none of them imports Spark before it runs something.
"""

from rejoin.declare.expectations import between, computable, condition, fresh, in_set, matched, matches, not_null, row_count, unique
from rejoin.declare.sinks import kafka, postgres
from rejoin.declare.sources import captured, debezium, feed, iceberg, records, snapshot
from rejoin.declare.topology import Topology
from rejoin.notebook import Lake

__all__ = [
    "Lake",
    "Topology",
    "between",
    "captured",
    "computable",
    "condition",
    "debezium",
    "feed",
    "fresh",
    "iceberg",
    "in_set",
    "kafka",
    "matched",
    "matches",
    "not_null",
    "postgres",
    "records",
    "row_count",
    "snapshot",
    "unique",
]

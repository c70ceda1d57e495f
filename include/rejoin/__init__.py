"""rejoin: denormalized tables kept fresh by incremental joins on Spark and Iceberg.

A topology file needs these names only, a notebook ``Lake`` as well; none of them imports Spark before it runs something.
"""

from rejoin.declare.changes import arrival, changes
from rejoin.declare.expectations import (
    between,
    computable,
    condition,
    fresh,
    in_set,
    matched,
    matches,
    not_empty,
    not_null,
    row_count,
    unique,
)
from rejoin.declare.formats import csv, installed_format, json, parquet
from rejoin.declare.landed_by import airbyte, dms, fivetran, flattened
from rejoin.declare.sinks import kafka, opensearch, postgres
from rejoin.declare.sources import captured, debezium, feed, iceberg, records, snapshot
from rejoin.declare.topology import Topology
from rejoin.notebook import Lake

__all__ = [
    "Lake",
    "Topology",
    "airbyte",
    "arrival",
    "between",
    "captured",
    "changes",
    "computable",
    "condition",
    "csv",
    "debezium",
    "dms",
    "feed",
    "fivetran",
    "flattened",
    "fresh",
    "iceberg",
    "in_set",
    "installed_format",
    "json",
    "kafka",
    "matched",
    "matches",
    "not_empty",
    "not_null",
    "opensearch",
    "parquet",
    "postgres",
    "records",
    "row_count",
    "snapshot",
    "unique",
]

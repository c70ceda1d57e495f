"""rejoin: denormalized tables kept fresh by incremental foreign-key joins on Spark and Iceberg.

A topology file needs these names only; none of them imports Spark.
"""

from rejoin.destinations import kafka, postgres
from rejoin.topology import Topology, debezium, snapshot

__all__ = ["Topology", "debezium", "kafka", "postgres", "snapshot"]

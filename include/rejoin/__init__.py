"""rejoin: denormalized tables kept fresh by incremental foreign-key joins on Spark and Iceberg.

A topology file needs these names only; none of them imports Spark.
"""

from rejoin.topology import Topology, debezium, kafka, postgres, snapshot

__all__ = ["Topology", "debezium", "kafka", "postgres", "snapshot"]

"""The rows of a topology's output and its folded changes, read from its lake in a process of its own: ``stored_rows.py FILE LAKE ROOT``."""

import json
import sys

from integration.shop import folded, output

from rejoin.lake.config import lake_config
from rejoin.plan.check.topology_file import load
from rejoin.steps.run.topology import Topology

if __name__ == "__main__":
    topology = Topology(load(sys.argv[1]), lake_config(sys.argv[2]), sys.argv[3])
    assert topology.config.warehouse.startswith("s3://")
    print(json.dumps([list(output(topology).values()), list(folded(topology).values())]))

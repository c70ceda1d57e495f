"""A lake in Python, for notebooks: ``rejoin.Lake("lake").read("orders_enriched").to_pandas()``."""

from pathlib import Path
from typing import TYPE_CHECKING

from rejoin.declare.topology import Topology
from rejoin.plan.model.policy import RunOptions

if TYPE_CHECKING:
    from rejoin.lake.ledger.records import Run
    from rejoin.lake.query.user_queries import Rows
    from rejoin.lake.query.visible_tables import TableInfo


class Lake:
    """The tables that a lake's readers see. Reading needs no Spark.

    Args:
        location: as ``rejoin --lake``: a directory, or a ``.toml`` file that names a catalog, a warehouse and a ledger.
    """

    def __init__(self, location: str | Path = "lake") -> None:
        self.location = str(location)

    def tables(self, *, topology: str | None = None) -> "list[TableInfo]":
        """The source tables and outputs as of the newest runs.

        Raises:
            RunUnknown: there is no lake, or no run was committed yet.
            UnknownTable: the lake has no such topology.
        """
        from rejoin.lake.query.visible_tables import cuts

        return [table for cut in cuts(self.location, topology) for table in cut.tables()]

    def read(self, table: str, *, as_of: int | None = None, topology: str | None = None) -> "Rows":
        """The rows of a source table (its current rows) or output, as of the newest run or an earlier one.

        Raises:
            RunUnknown: there is no lake, no run was committed yet, or there is no such run.
            UnknownTable: there is no such table; or several topologies have one of this name, and ``topology`` names none of them.
            SnapshotExpired: the run is beyond retention.
        """
        from rejoin.lake.query.user_queries import whole
        from rejoin.lake.query.visible_tables import cuts

        return whole(cuts(self.location, topology, as_of), table)

    def sql(self, query: str, *, as_of: int | None = None, topology: str | None = None) -> "Rows":
        """The rows that a SELECT in DuckDB's SQL returns; all tables of a topology are read as of the same run.

        Raises:
            QueryRefused: the query has a mistake, or is not one SELECT over tables of the lake.
            RunUnknown, UnknownTable, SnapshotExpired: as ``read``.
        """
        from rejoin.lake.query.user_queries import query as asked
        from rejoin.lake.query.visible_tables import cuts

        return asked(cuts(self.location, topology, as_of), query)

    def run(self, topology: Topology | str | Path, *, root: str | Path = ".", options: RunOptions | None = None) -> "Run":
        """Runs a topology, or a topology file, once, as ``rejoin run`` does. Returns the committed run.

        Args:
            topology: what to run.
            root: where relative source paths start.
            options: options of this run.

        Raises:
            TopologyError: the topology has mistakes; nothing was run.
            RejoinError: any other reason; nothing is visible, except for ``SinksBehind``.
        """
        from functools import partial

        from rejoin.lake.config import lake_config
        from rejoin.lake.ledger import run_owner
        from rejoin.lake.spark.session import session
        from rejoin.plan.check.compile import compile
        from rejoin.plan.check.topology_file import load
        from rejoin.steps.run import schedule
        from rejoin.steps.run import topology as conduct

        plan = compile(topology) if isinstance(topology, Topology) else load(str(topology))
        opened = conduct.Topology(plan, lake_config(self.location), str(Path(root).resolve()))
        who, left = run_owner.this_process(), opened.ledger.open_run()
        if left is not None and left.owner == who and left.standing == "failed":
            # It would go on with the plan and the input of the run that failed, which may be corrected by now.
            opened.ledger.abandon(left.number, "run again by the same process")
        return schedule.run_topology(opened, partial(session, opened.config), who, options=options or conduct.EVERYTHING)

"""A topology under test: rows in, one run, changes out."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rejoin.declare.topology import Topology
from rejoin.engines.choice import EngineChoice
from rejoin.errors import BadTestTable, EngineRefused, UnknownTable
from rejoin.plan.model.policy import RunOptions
from rejoin.plan.model.sources import Meaning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoin.engines.relation import Relation
    from rejoin.notebook import Lake
    from rejoin.testing.grid import Grid
    from rejoin.testing.landing import Owner

MEMORY = Path("/dev/shm")
ROOM = 32 << 20
"""Bytes that have to be free in memory; a test's lake takes one or two megabytes."""


class Changes(Mapping[str, "Grid"]):
    """What a run changed, by output: ``changes["orders_enriched"]`` (also of a source table). They are read on access.

    Args:
        outputs: the names of the outputs.
        read: gives the changes of one.
    """

    def __init__(self, outputs: list[str], read: "Callable[[str], Grid]") -> None:
        self._outputs, self._read = outputs, read

    def __getitem__(self, name: str) -> "Grid":
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        return "\n\n".join(repr(grid) for grid in self.values())


class Driver:
    """Runs a topology on rows that are written as texts, on a lake of its own in a temporary directory, in memory where there is room.

    A context manager: at its end the directory is removed.

    Args:
        topology: a topology file as ``rejoin run`` takes it (``shop.py``, ``shop.py:name``), or a topology.
        engine: ``local`` (this process, without Spark), ``auto`` or ``spark``.

    Raises:
        TopologyFileError, TopologyError: as ``rejoin explain``.
    """

    def __init__(self, topology: Topology | str | Path, *, engine: str = "local") -> None:
        self._engine, self._gone = EngineChoice(engine), False
        self._directory = Path(tempfile.mkdtemp(prefix="rejoin-test-", dir=_memory()))
        self.clock: datetime | None = None
        """When the rows of the next runs were committed in their source; None: now."""
        self._owners: dict[str, Owner] = {}
        try:
            self._start(topology)
        except BaseException:
            self.close()
            raise

    @property
    def root(self) -> Path:
        """Where relative source paths start. A test may put files of its own there."""
        return self._directory

    @property
    def lake(self) -> "Lake":
        """The lake, for questions in SQL."""
        from rejoin.notebook import Lake

        return Lake(self._location)

    @property
    def _location(self) -> Path:
        return self._directory / "lake"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the test: the directory and all connections are gone."""
        from rejoin.lake.config import existing_config
        from rejoin.lake.disconnect import disconnect

        if not self._gone:
            self._gone = True
            if (config := existing_config(str(self._location))) is not None:
                disconnect(config)
            shutil.rmtree(self._directory)

    def restart(self, topology: Topology | str | Path | None = None) -> None:
        """Goes on as another process would: the lake, the files and the rows stay, nothing else.

        Args:
            topology: another topology of the same name, an edited one for instance; None: the same again.
        """
        from rejoin.lake.config import lake_config
        from rejoin.lake.disconnect import disconnect

        disconnect(lake_config(str(self._location)))
        self._start(self._declared if topology is None else topology)

    def run(self, options: RunOptions = RunOptions(), /, **tables: str) -> Changes:  # noqa: B008 -- frozen
        """Lands changed rows and runs the topology once. Returns what that changed.

        Args:
            options: what is asked of this run.
            tables: by table the rows that are new, or have changed, or (``- 1``) are gone. See docs/testing.md.

        Raises:
            BadTestTable: a text is no such table; nothing was run.
            EngineRefused: the run needs Spark.
            RejoinError: whatever stops a run; nothing of it is visible.
        """
        from rejoin.steps.run import schedule

        at = self.clock or datetime.now(UTC)
        for name, text in tables.items():
            self._owner(name).deliver(text, at)
        self._check_delivered()
        ledger = self._topology.ledger
        if (left := ledger.open_run()) is not None:
            # It would go on with the files that made it fail, instead of newer ones.
            ledger.abandon(left.number, "run again by its test")
        run = schedule.run_topology(self._topology, self._spark, self._who, options=options)
        outputs = [node.name for node in self._plan.nodes if node.published]
        return Changes(outputs, lambda name: self._changes(name, run.number))

    def table(self, name: str) -> "Grid":
        """The rows of an output or source table (its current rows) that readers see.

        Raises:
            UnknownTable: there is none of this name.
        """
        from rejoin.testing.grid import Change, Grid

        self._check(name)
        reader = self._reader()
        rows = reader.current(name).here().to_pylist(maps_as_pydicts="strict") if reader.has(name) else []
        key = self._plan.key_of(name)
        found = [Change("", None, {**row["_row"], **{k: row[k] for k in key}}) for row in rows]
        return Grid(name, key, self._schema(name), found, changed=False)

    def quarantine(self, name: str) -> "Grid":
        """What is kept aside of a source table or output: its key (null where it cannot be read), ``code`` and ``reason``.

        Raises:
            UnknownTable: there is none of this name.
        """
        import pyarrow as pa

        from rejoin.lake.query.quarantine_reader import entries
        from rejoin.testing.grid import Change, Grid

        self._check(name)
        key, schema = self._plan.key_of(name), self._schema(name)
        columns = pa.schema([*(schema.field(k) for k in key), ("code", pa.string()), ("reason", pa.string())])
        ledger = self._topology.ledger
        kept = entries(ledger, self._topology.refs, name) if ledger.head() is not None else []
        found = [Change("", None, {**e.key, "code": e.code, "reason": e.reason}) for e in kept]
        return Grid(f"quarantine of {name}", key, columns, found, changed=False)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _start(self, topology: Topology | str | Path) -> None:
        from rejoin.lake.config import lake_config
        from rejoin.lake.ledger.run_owner import this_process
        from rejoin.plan.check.compile import compile
        from rejoin.plan.check.topology_file import load
        from rejoin.steps.run import topology as conduct
        from rejoin.testing.landing import Owner, testable

        plan = testable(compile(topology) if isinstance(topology, Topology) else load(str(topology)))
        config = replace(lake_config(str(self._location)), engine=self._engine)
        self._declared, self._plan, self._who = topology, plan, this_process()
        self._topology = conduct.Topology(plan, config, str(self.root))
        mine = [t for t in plan.tables if t.versions_of is None]
        owners = self._owners
        self._owners = {t.name: owners[t.name].of(t) if t.name in owners else Owner(t, self.root) for t in mine}

    def _spark(self) -> "SparkSession":
        if self._engine is EngineChoice.LOCAL:
            raise EngineRefused(
                f"topology {self._plan.topology!r} has expressions that only Spark can check; nothing was run",
                expected="expressions that rejoin knows (docs/topology.md, Types), with engine 'local'",
                next_step='test it with engine="auto" (needs Java and the packages of rejoin[spark])',
            )
        from rejoin.lake.spark.session import session

        return session(self._topology.config)

    def _owner(self, name: str) -> "Owner":
        if name not in self._owners:
            raise UnknownTable(f"topology {self._plan.topology!r} has no source table {name!r}", expected=", ".join(self._owners))
        return self._owners[name]

    def _check_delivered(self) -> None:
        """Refuses what a run would refuse, in words of the test.

        Raises:
            BadTestTable: a table of snapshots was never given a row.
        """
        never = [o.table.name for o in self._owners.values() if o.table.source.meaning is Meaning.SNAPSHOT and not o.delivered]
        if never:
            raise BadTestTable(
                f"the source of {', '.join(never)} is snapshots, of which there is none yet; nothing was run",
                expected="at least one row of it in the first run",
            )

    def _check(self, name: str) -> None:
        known = self._plan.names
        if name not in known:
            raise UnknownTable(f"topology {self._plan.topology!r} has no table {name!r}", expected=", ".join(known))

    def _reader(self) -> Any:
        from rejoin.engines.duckdb_engine import DuckdbEngine
        from rejoin.lake.read.reader import Reader

        ledger = self._topology.ledger
        return Reader(DuckdbEngine(self._plan), self._plan, ledger.states(ledger.head()), self._topology.refs)

    def _changes(self, name: str, run: int) -> "Grid":
        from rejoin.testing.grid import Change, Grid

        self._check(name)
        found: Relation | None = self._reader().changes(name, run)
        rows = [] if found is None else found.here().to_pylist(maps_as_pydicts="strict")
        key = self._plan.key_of(name)
        changes = [Change(_op(r), _side(r, "_before", key), _side(r, "_after", key)) for r in rows]
        return Grid(f"changes of {name} in run {run}", key, self._schema(name), changes, changed=True)

    def _schema(self, name: str) -> Any:
        """The columns of a table or output. One whose type only Spark can tell has the type that is stored."""
        import pyarrow as pa

        from rejoin.sources.events import arrow_type

        reader = self._reader()
        stored = {f.name: f.type for f in reader.schema(name)} if reader.has(name) else {}
        return pa.schema([(c.name, stored.get(c.name) or arrow_type(c.type or "STRING")) for c in self._plan.columns_of(name)])


def _op(row: Mapping[str, Any]) -> str:
    """I, U or D, by what there is before and after."""
    return "I" if row["_before"] is None else "D" if row["_after"] is None else "U"


def _side(row: Mapping[str, Any], side: str, key: tuple[str, ...]) -> dict[str, Any] | None:
    return None if row[side] is None else {**row[side], **{k: row[k] for k in key}}


def _memory() -> Path | None:
    """A folder in memory with room for a lake; None: where temporary files are."""
    return MEMORY if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM else None

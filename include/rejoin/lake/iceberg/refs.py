"""Branches and tags of Iceberg tables, by metadata commits alone: no Spark, so any process can finish what another one began."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot

from rejoin.engines.iceberg_nulls import keep_nulls
from rejoin.errors import LedgerConflict, SnapshotExpired
from rejoin.lake import table_names
from rejoin.lake.config import CATALOG, LakeConfig
from rejoin.lake.iceberg.commits import SnapshotContents, begin, commit, refs_of, rewrite
from rejoin.lake.iceberg.recent_writes import RecentWrites
from rejoin.lake.iceberg.snapshot_producers import ChangeTransaction
from rejoin.lake.ledger.connections import Connections

CATALOGS = Connections[Catalog](lambda catalog: catalog.close())
"""Catalogs, each with its pool of connections."""


def catalog(config: LakeConfig) -> Catalog:
    """The Iceberg catalog of a lake: one a process."""
    keep_nulls()
    settings = config.pyiceberg_settings()
    return CATALOGS.of(key_of(config), "" if config.catalog == "rest" else settings["uri"], lambda: load_catalog(CATALOG, **settings))


def key_of(config: LakeConfig) -> tuple[tuple[str, str], ...]:
    """What tells the catalog of a lake from others."""
    return tuple(sorted(config.pyiceberg_settings().items()))


class Refs:
    """The branches and tags of one topology's tables; ``recent``: what was written through them in this process."""

    def __init__(self, config: LakeConfig, topology: str) -> None:
        self._catalog = catalog(config)
        self.topology, self.recent = topology, RecentWrites()

    def table(self, name: str) -> Table | None:
        """The newest metadata of a table, or None."""
        try:
            return self._catalog.load_table((self.topology, name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def tables(self) -> list[str]:
        """Names of all tables of the topology."""
        try:
            return sorted(identifier[-1] for identifier in self._catalog.list_tables(self.topology))
        except NoSuchNamespaceError:
            return []

    def ensure_namespace(self) -> None:
        """Makes the topology's namespace if there is none."""
        if not self._catalog.namespace_exists(self.topology):
            with suppress(NamespaceAlreadyExistsError):
                self._catalog.create_namespace(self.topology)

    def create(self, name: str, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Makes a table; another attempt may have made it in between."""
        with suppress(TableAlreadyExistsError):
            self._catalog.create_table((self.topology, name), schema, properties=dict(properties))

    def evolve(self, name: str, change: Callable[[Table], Callable[[Transaction], None] | None]) -> None:
        """Changes a table's columns, in one metadata commit.

        ``change``: what to do to the table as it is by now; None: nothing. It is asked again if others have changed the table meanwhile.
        """

        def changed(table: Table) -> None:
            if (made := change(table)) is not None:
                transaction = table.transaction()
                made(transaction)
                transaction.commit_transaction()

        self._commit(name, changed)

    def commit_files(self, name: str, branch: str, base: int, added: Sequence[DataFile], deletes: Sequence[DataFile] = ()) -> int:
        """Starts ``branch`` at ``base`` with one more snapshot that holds the files. Returns the snapshot's id."""
        made: list[int] = []
        self._commit(name, lambda table: made.append(commit(table, branch, base, added, deletes)))
        return made[-1]

    def commit_rewrite(
        self,
        name: str,
        branch: str,
        base: int,
        holds: SnapshotContents,
        columns: Callable[[Transaction], None] | None = None,
    ) -> int:
        """Starts ``branch`` at ``base`` with a snapshot of these files and no others (``commits.rewrite``). Returns its id."""
        made: list[int] = []
        self._commit(name, lambda table: made.append(rewrite(table, branch, base, holds, columns)))
        return made[-1]

    def start_branch(self, name: str, branch: str, base: int) -> None:
        """Creates ``branch`` at snapshot ``base``."""
        self._commit(name, lambda table: refs_of(table).create_branch(base, branch).commit())

    def empty(self, name: str) -> int:
        """The snapshot of the table before its first row, kept by a tag; what has no base state starts from it."""

        def change(table: Table) -> None:
            if not table.metadata.snapshots:
                begin(table, table_names.EMPTY)
            elif table_names.EMPTY not in table.refs():
                first = min(table.metadata.snapshots, key=lambda s: s.sequence_number or 0)
                refs_of(table).create_tag(first.snapshot_id, table_names.EMPTY).commit()

        self._commit(name, change)
        return self._existing(name).refs()[table_names.EMPTY].snapshot_id

    def head(self, name: str, branch: str) -> int:
        """The snapshot that a branch points to."""
        return self._existing(name).refs()[branch].snapshot_id

    def added(self, name: str, snapshot_id: int) -> dict[str, int]:
        """``rows`` and ``bytes`` that a snapshot added, as Iceberg recorded it; Iceberg leaves a number out when it is zero."""
        snapshot = self._existing(name).snapshot_by_id(snapshot_id)
        recorded = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
        return {"rows": int(recorded.get("added-records", 0)), "bytes": int(recorded.get("added-files-size", 0))}

    def require(self, name: str, snapshot_id: int) -> Table:
        """The table, if it still has the snapshot.

        Raises:
            SnapshotExpired: it has not.
        """
        table = self._existing(name)
        if table.snapshot_by_id(snapshot_id) is None:
            raise SnapshotExpired(
                f"snapshot {snapshot_id} of table {self.topology}.{name} is beyond retention",
                next_step="ask for a newer run; `rejoin history` lists them",
            )
        return table

    def roll_forward(self, name: str, run: int, snapshot_id: int | None, *, tagged: bool) -> None:
        """Makes ``main`` show what the ledger says and drops the run's attempt branches, in one metadata commit. Idempotent.

        Whoever does it late leaves what newer runs have made: ``main`` moves to what was written later, never back, and a snapshot that was expired
        meanwhile is not shown.

        Args:
            name: the table.
            run: the closed run.
            snapshot_id: what ``main`` shall point to, or something newer; None leaves it.
            tagged: also tag the snapshot with the run.
        """

        def change(table: Table) -> None:
            refs = table.refs()
            mine = [ref for ref in refs if table_names.is_branch_of(ref, run)]
            main = refs["main"].snapshot_id if "main" in refs else None
            shown = None if snapshot_id is None else table.snapshot_by_id(snapshot_id)
            moves = shown is not None and (main is None or _written(table, main) < _written(table, shown.snapshot_id))
            untagged = shown is not None and tagged and table_names.tag(run) not in refs
            if not mine and not moves and not untagged:
                return
            with refs_of(table) as changes:
                if shown is not None and moves:
                    changes.set_current_snapshot(shown.snapshot_id)
                if shown is not None and untagged:
                    changes.create_tag(shown.snapshot_id, table_names.tag(run))
                for ref in mine:
                    changes.remove_branch(ref)

        self._commit(name, change)

    def drop_branches(self, name: str, closed: Callable[[int], bool]) -> None:
        """Drops every attempt branch of runs that are closed."""

        def change(table: Table) -> None:
            left = [ref for ref in table.refs() if (run := table_names.run_of(ref)) is not None and closed(run)]
            if left:
                with refs_of(table) as changes:
                    for ref in left:
                        changes.remove_branch(ref)

        self._commit(name, change)

    def drop_tags(self, name: str, runs: list[int]) -> None:
        """Drops the tags of these runs."""
        tags = {table_names.tag(run) for run in runs}

        def change(table: Table) -> None:
            if left := tags & set(table.refs()):
                with refs_of(table) as changes:
                    for ref in sorted(left):
                        changes.remove_tag(ref)

        self._commit(name, change)

    def forget(self, name: str, kept: Collection[int], ours: Callable[[], None]) -> list[Snapshot]:
        """Drops every snapshot of a table but ``kept`` and those that a branch or tag points to, in one metadata commit. Returns the others.

        ``ours`` is asked when it is known which ones go, and may raise: what others add after it stays.
        """
        gone: list[Snapshot] = []

        def change(table: Table) -> None:
            stay = {*kept, *(ref.snapshot_id for ref in table.refs().values())}
            gone[:] = [s for s in table.metadata.snapshots if s.snapshot_id not in stay]
            ours()
            if gone:
                ChangeTransaction(table, autocommit=True).forget([s.snapshot_id for s in gone])

        self._commit(name, change)
        return gone

    def _existing(self, name: str) -> Table:
        return self._catalog.load_table((self.topology, name))

    def _commit(self, name: str, change: Callable[[Table], None]) -> None:
        """Metadata commits are optimistic: another commit to the same table in between only means once more."""
        for attempt in range(40):
            try:
                return change(self._existing(name))
            except (CommitFailedException, ValueError) as error:
                # PyIceberg's SQL catalog reports a snapshot that another commit has overtaken as a ValueError of this text.
                if isinstance(error, ValueError) and "older than last sequence number" not in str(error):
                    raise
                time.sleep(min(0.01 * 2**attempt, 0.5))
        raise LedgerConflict(f"table {self.topology}.{name}: 40 metadata commits met other writers", next_step="try again")


def _written(table: Table, snapshot_id: int) -> int:
    """When a snapshot was written, in the table's own order. A run starts from what the one before it wrote, so what it writes comes later."""
    snapshot = table.snapshot_by_id(snapshot_id)
    return 0 if snapshot is None else snapshot.sequence_number or 0

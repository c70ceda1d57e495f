"""What readers see of a lake: the tables of each topology as of one committed run, by their names, as SQL for DuckDB.

A source table is its current rows, an output its rows, both with the columns that the plan of the run names and no others. Any other table of
rejoin's own (``orders_enriched__changes``) is what is stored, with all its columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rejoin.errors import RunUnknown, UnknownTable
from rejoin.lake import table_names
from rejoin.lake.config import LakeConfig, is_there, lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.iceberg.snapshot_files import files_of, unique
from rejoin.lake.ledger.history import History, heads
from rejoin.lake.ledger.runs import RunState
from rejoin.lake.query.sandbox import Files
from rejoin.lake.read.duckdb_scan import relation, stored_types
from rejoin.lake.read.first_load import images, load_of
from rejoin.plan.model.column_names import by_name, folded
from rejoin.plan.model.plan import Plan
from rejoin.plan.sql.portable import duckdb_type
from rejoin.statements import load_reference
from rejoin.statements.dialect import DUCKDB
from rejoin.statements.own_columns import RUN


@dataclass(frozen=True)
class TableInfo:
    """A table of a lake: of which topology, whether it is a ``source`` or an ``output``, its key and all its columns."""

    topology: str
    name: str
    kind: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


class Cut:
    """The tables of one topology as of one committed run: the ledger's snapshots of that run, which fit together.

    Args:
        config: where the lake is.
        topology: the name of the topology.
        run: a committed run.
    """

    def __init__(self, config: LakeConfig, topology: str, run: int) -> None:
        self.topology, self.run = topology, run
        self._history, self._refs = History(config.ledger, topology), Refs(config, topology)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self._history.plan(self.run)

    @cached_property
    def _states(self) -> Mapping[str, int]:
        return self._history.states(self.run)

    def tables(self) -> list[TableInfo]:
        """The source tables and the outputs that the user named."""
        sources = [TableInfo(self.topology, t.name, "source", t.key, tuple(c.name for c in t.columns)) for t in self.plan.tables]
        outputs = [n for n in self.plan.nodes if n.published]
        return sources + [TableInfo(self.topology, n.name, "output", n.key, tuple(p.name for p in n.columns)) for n in outputs]

    def has(self, name: str) -> bool:
        """Whether a query can name the table: those of ``tables``, and all that rejoin keeps beside them."""
        return self._columns(name) is not None or ("__" in name and name in self._states)

    def last_with(self, name: str) -> int | None:
        """The newest committed run whose plan had a table or output of this name that the plan of this run does not have."""
        if name not in self._states:
            return None
        return next((n for n in self._history.committed() if _columns(self._history.plan(n), name) is not None), None)

    def text(self, name: str, files: Files) -> str:
        """The rows of a table that ``has`` knows, as a SELECT that reads ``files``.

        Raises:
            SnapshotExpired: the run is beyond retention.
        """
        columns = self._columns(name)
        if name not in self._states:
            return _nothing({column: _duck(kind) for column, kind in (columns or {}).items()})
        output = name.removesuffix(table_names.changes(""))
        if columns is None and name == table_names.changes(output) and output in self._states:
            return self._changes(name, output, files)
        return self._rows(name, columns, files)

    def _changes(self, name: str, output: str, files: Files) -> str:
        """The changes of all runs, with the rows that the first one has loaded."""
        table = self._refs.require(name, self._states[name])
        log, stored = self._rows(name, None, files), self._rows(output, None, files)
        if load_of(table, self._states[name]) is None:
            return log
        left = self.last_with(output) if _columns(self.plan, output) is None else None
        key = (self.plan if left is None else self._history.plan(left)).key_of(output)
        stored_now = self._refs.require(output, self._states[output]).schema()
        every = load_reference.changes(DUCKDB, key, images(table.schema(), stored_now))
        return f"WITH log AS MATERIALIZED ({log}), stored AS ({stored}) SELECT * FROM ({every})"

    def _rows(self, name: str, columns: Mapping[str, str | None] | None, files: Files) -> str:
        table = self._refs.require(name, self._states[name])
        found, types = files_of(table, self._states[name]), stored_types(table)
        wanted = _selected(columns, types)
        if not found.data:
            empty = _nothing(types)
            return f"SELECT {wanted} FROM ({empty})"
        rows = relation(table, found.data, found.deletes, called=files.added(table.io, (*found.data, *found.deletes)).__getitem__)
        if not self.plan.is_table(name):
            return f"SELECT {wanted} FROM {rows.inlined()}"
        key = self.plan.key_of(name)
        newest = "" if unique(table, found.data, key[0]) else _newest(key)
        return f"SELECT {wanted} FROM (SELECT * FROM {rows.inlined()} {newest}) WHERE _op <> 'D'"

    def _columns(self, name: str) -> dict[str, str | None] | None:
        return _columns(self.plan, name)


def cuts(location: str, topology: str | None = None, as_of: int | None = None) -> list[Cut]:
    """Every topology of a lake (or one) at its newest committed run, or one as of a run.

    Raises:
        RunUnknown: there is no lake, nothing was committed, or not the run.
        UnknownTable: the lake has no such topology; or it has several, of which one has to be named for ``as_of``.
    """
    location = str(Path(location).expanduser())
    if not is_there(location):
        raise RunUnknown(f"there is no lake at {location}", next_step="name another directory, or run a topology first")
    config = lake_config(location)
    known = heads(config.ledger)
    wanted = list(known) if topology is None else [topology]
    if topology not in (None, *known) or (as_of is not None and len(wanted) > 1):
        what = f"no topology {topology!r}" if topology else f"{len(known)} topologies, each with runs of its own"
        raise UnknownTable(f"the lake at {location} has {what}", expected=f"one of the topologies {', '.join(known) or '(none)'}")
    if as_of is not None and wanted and History(config.ledger, wanted[0]).run(as_of).state != RunState.COMMITTED:
        raise RunUnknown(f"topology {wanted[0]!r}: run {as_of} was not committed", next_step="see `rejoin history`")
    found = [(name, known[name] if as_of is None else as_of) for name in wanted]
    committed = [Cut(config, name, run) for name, run in found if run is not None]
    if not committed:
        raise RunUnknown(f"the lake at {location}: no run was committed yet", next_step="`rejoin run FILE`")
    return committed


def _columns(plan: Plan, name: str) -> dict[str, str | None] | None:
    """The columns of a table or output and Spark's types for them; None if the plan has none of this name."""
    if plan.is_table(name):
        return {c.name: c.type for c in plan.table(name).columns}
    node = next((n for n in plan.nodes if n.name == name), None)
    return None if node is None else {p.name: p.type for p in node.columns}


def _selected(columns: Mapping[str, str | None] | None, stored: Mapping[str, str]) -> str:
    """The columns (None: all that are stored) of a table that may not have them yet, or narrower."""
    if columns is None:
        return DUCKDB.names(stored)
    types = by_name(stored)
    texts = []
    for name, kind in columns.items():
        column = DUCKDB.name(name)
        was, now = types.get(folded(name)), _duck(kind)
        value = "NULL" if was is None else column
        texts.append(f"{value if kind is None or was == now else f'CAST({value} AS {now})'} AS {column}")
    return ", ".join(texts)


def _newest(key: Sequence[str]) -> str:
    return f"QUALIFY row_number() OVER (PARTITION BY {DUCKDB.names(key)} ORDER BY {RUN} DESC) = 1"


def _nothing(types: Mapping[str, str]) -> str:
    return f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {DUCKDB.name(name)}' for name, kind in types.items())} WHERE false"


def _duck(kind: str | None) -> str:
    """What DuckDB calls a type of a plan; where only Spark can tell, a text."""
    return duckdb_type(kind or "STRING")

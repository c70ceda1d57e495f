"""A lake of any topology, made without Spark: a test says which rows each run stored."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from rejoin.lake import table_names
from rejoin.lake.config import lake_config
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord, Write
from rejoin.lake.ledger.runs import RunKind
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Plan
from rejoin.sources.events import arrow_type

Rows = Sequence[Mapping[str, Any]]
_RUN, _OP, _HASH = ("_run", pa.int64()), ("_op", pa.string()), ("_hash", pa.binary())
_ASIDE = [(n, pa.string()) for n in ("_code", "_reason", "_raw")]


class MadeLake:
    """``location`` is the lake; tables that no run stored anything in are not there."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self.plan, self.location = plan, str(root / "lake")
        config = lake_config(self.location)
        self.ledger, self.refs = Ledger(config.ledger, plan.topology), Refs(config, plan.topology)
        self.refs.ensure_namespace()

    def run(self, rows: Mapping[str, Rows], pins: Mapping[str, Any] | None = None, skipped: Sequence[str] = ()) -> int:
        """One committed run. ``rows``: by table, what it appends; ``_run`` is filled in."""
        run = self.ledger.open(f"test {len(self.ledger.runs())}", self.plan, self._prints())
        self.ledger.pin(run.number, {t.name: (pins or {}).get(t.name) for t in self.plan.tables})
        writes = tuple(self._write(name, [{"_run": run.number, **row} for row in those], Table.append) for name, those in rows.items())
        self.ledger.register(run.number, StepRecord("all", {}, 0.1, 0), "a", writes)
        self.ledger.publish(run.number, skipped)
        return run.number

    def compact(self, rows: Mapping[str, Rows]) -> None:
        """A committed compaction. ``rows``: by table, all that is left."""
        run = self.ledger.open("compactor", self.plan, self._prints(), kind=RunKind.COMPACT)
        writes = tuple(self._write(name, those, Table.overwrite) for name, those in rows.items())
        self.ledger.register(run.number, StepRecord("compact", {}, 0.1, 0), "a", writes)
        self.ledger.publish(run.number)

    def expire(self, name: str, run: int) -> None:
        """Drops the state that a table had after a run."""
        table = self.refs.table(name)
        assert table is not None
        table.maintenance.expire_snapshots().by_id(self.ledger.states(run)[name]).commit()

    def _prints(self) -> dict[str, str]:
        return {n.name: fingerprint(self.plan, n) for n in self.plan.nodes}

    def _write(self, name: str, rows: Rows, how: Callable[[Table, pa.Table], None]) -> Write:
        schema = self._schemas()[name]
        self.refs.create(name, schema, {})
        table = self.refs.table(name)
        assert table is not None
        how(table, pa.Table.from_pylist(list(rows), schema))
        return Write(name, table.metadata.current_snapshot_id)  # type: ignore[arg-type]

    def _schemas(self) -> dict[str, pa.Schema]:
        found: dict[str, pa.Schema] = {}
        for table in self.plan.tables:
            types = [(c.name, arrow_type(c.type)) for c in table.columns]
            keys, values = [t for t in types if t[0] in table.key], [t for t in types if t[0] not in table.key]
            before = ("_before", pa.struct([*values, _HASH]))
            found[table.name] = pa.schema([*keys, _RUN, _OP, ("_version", pa.string()), _HASH, *values, before])
            place = [("_source_file", pa.string()), ("_line", pa.int64()), ("_version", pa.string())]
            found[table_names.quarantine(table.name)] = pa.schema([*keys, _RUN, _OP, *_ASIDE, *place])
        for node in self.plan.nodes:
            types = [(p.name, arrow_type(p.type)) for p in node.columns]
            keys = [t for t in types if t[0] in node.key]
            row = pa.struct([*types, _HASH])
            found[node.name] = pa.schema([*types, _RUN, _HASH])
            found[table_names.changes(node.name)] = pa.schema([_RUN, _OP, *keys, ("_before", row), ("_after", row)])
            found[table_names.quarantine(node.name)] = pa.schema([*keys, _RUN, _OP, *_ASIDE])
            primary = [(f"pk_{i}", t) for i, (_, t) in enumerate(keys, 1)]
            for edge in node.edges:
                right = found[edge.right.table]
                foreign = [(f"fk_{i}", right.field(k).type) for i, k in enumerate(self.plan.key_of(edge.right.table), 1)]
                found[table_names.subscriptions(node, edge)] = pa.schema([*foreign, *primary, _RUN, _OP, _HASH])
        return found

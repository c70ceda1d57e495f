"""An attempt at a step over tables that are written as texts: for what a step asks in passing."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from statement_tables import table_of
from stored_tables import StoredTables

from rejoin.context.facts import Facts
from rejoin.context.work import Cut, Work
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import LocalRelation, Relation
from rejoin.lake.ledger.left_out_nodes import LeftOutNode
from rejoin.lake.ledger.records import AttemptContext, Run, StepRecord
from rejoin.lake.ledger.runs import RunKind, RunState
from rejoin.lake.read.reader import Reader
from rejoin.lake.read.table_sizes import Sizes
from rejoin.lake.write.writer import Writer
from rejoin.plan.model.plan import Plan
from rejoin.plan.pin import Part, Pin
from rejoin.sources import SourceAccess

RUN = 3


def attempt(
    lake: StoredTables, plan: Plan, *steps: StepRecord, rebuild: tuple[str, ...] = (), behind: Mapping[str, LeftOutNode] | None = None
) -> Work:
    """At a step of run 3, which starts from the lake. ``steps``: those that have ended; ``rebuild``: outputs that it makes anew; ``behind``: those that were
    left out.
    """
    engine, sizes = DuckdbEngine(plan), Sizes(lambda: lake.refs, lake.states)
    run = Run(plan.topology, RUN, RunKind.RUN, RunState.OPEN, "test", None, plan, rebuild, 0.0, None, None)
    reader = Reader(engine, plan, lake.states, lake.refs)
    facts = Facts(run, AttemptContext({}, {}, {}, {step.step: step for step in steps}, dict(behind or {})), sizes, sizes)
    return Work(engine, facts, reader, reader, Writer(engine, lake.refs, lake.states, RUN, "a"))


def relation(text: str) -> Relation:
    """Rows of this process. ``text``: as the inputs of ``check``."""
    return LocalRelation(table_of(text))


def landed(root: Path, name: str, lines: Sequence[str]) -> Cut:
    """A cut of a feed that is one file of lines."""
    text = "".join(f"{line}\n" for line in lines)
    (root / name).write_text(text)
    part = Part(name, len(text), {"sha256": sha256(text.encode()).hexdigest()})
    return Cut(Pin("debezium", (part,), 1), SourceAccess(str(root)))

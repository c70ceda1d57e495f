"""The ledger's tables and their database. A few rows a run; SQLite or PostgreSQL."""

from contextlib import suppress
from functools import lru_cache

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    and_,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from rejoin.lake.ledger.connections import Connections
from rejoin.lake.ledger.sqlite import is_sqlite, write_ahead

metadata = MetaData()


class _Word(TypeDecorator[str]):
    """A text that is compared with members of an enumeration. Of a plain String SQLAlchemy asks its mapper what such a member is, and fails if another
    thread has that imported halfway, as PyIceberg's catalog does.
    """

    impl = String(16)
    cache_ok = True


topologies = Table(
    "rejoin_topologies",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("version", Integer, nullable=False),  # grows with every open, publish and abandon: the compare-and-swap
    Column("head", Integer),  # the newest committed run
)

runs = Table(
    "rejoin_runs",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("kind", _Word, nullable=False),  # run | compact | expire | mend | drop
    Column("state", _Word, nullable=False),  # open | committed | abandoned
    Column("owner", String(512), nullable=False),
    Column("lease_until", Float, nullable=False),  # seconds since the epoch; 0 = the owner said that it failed
    Column("base", Integer),  # the committed run that this run starts from
    Column("plan", Text, nullable=False),  # JSON, pinned
    Column("rebuild", Text, nullable=False),  # JSON list of nodes whose definition is new, or that the run repairs
    Column("fingerprints", Text, nullable=False),  # JSON: node -> fingerprint of its definition
    Column("opened_at", Float, nullable=False),
    Column("closed_at", Float),
    Column("rolled_forward", Boolean, nullable=False),
    Column("note", Text),  # why it failed or was abandoned
)

# A row holds a plan, and SQLite reads all of it to pass over it: who looks for the few runs that are not closed and done reads these instead.
RUNS_BY = (
    Index("rejoin_runs_by_state", runs.c.topology, runs.c.state, runs.c.run),
    Index("rejoin_runs_by_done", runs.c.topology, runs.c.rolled_forward, runs.c.run),
)

pins = Table(
    "rejoin_pins",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("source", String(64), primary_key=True),
    Column("pin", Text, nullable=False),  # JSON: exactly what this run reads; null = nothing new
)

steps = Table(
    "rejoin_steps",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("step", String(256), primary_key=True),
    Column("attempt", String(64), nullable=False),
    Column("counts", Text, nullable=False),  # JSON: what the attempt that won has counted
    Column("seconds", Float, nullable=False),
    Column("jobs", Integer),  # Spark jobs, where the session can tell
    Column("ended_at", Float, nullable=False),
    Column("detail", Text),  # JSON: how it was done (reads, the choice of a refresh), for people
    Column("ending", String(16)),  # what became of its work: plan.results.Ending
)

tries = Table(
    "rejoin_tries",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("step", String(256), primary_key=True),
    Column("tries", Integer, nullable=False),
    Column("began_at", Float, nullable=False),  # the newest try
    Column("error", Text),  # code and message, if the newest try has failed
)

verified = Table(
    "rejoin_verified",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("fast", Boolean, primary_key=True),  # by stored hashes; else by recomputing everything
    Column("differences", BigInteger, nullable=False),
    Column("ended_at", Float, nullable=False),
)

writes = Table(
    "rejoin_writes",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("table_name", String(256), primary_key=True),
    Column("step", String(256), nullable=False),
    Column("snapshot_id", BigInteger, nullable=False),
    Column("transient", Boolean, nullable=False),  # read within the run only (responses), never published
)

states = Table(
    "rejoin_states",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("table_name", String(256), primary_key=True),
    Column("snapshot_id", BigInteger, nullable=False),
)

cursors = Table(
    "rejoin_cursors",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("sink", String(256), primary_key=True),
    Column("attempt", Integer, nullable=False),  # grows with every delivery that begins; only the newest may move the cursor
    Column("position", Text),  # JSON: how far the sink is
    Column("needs", Integer),  # the oldest run whose data it still needs
    Column("moved_at", Float),
)

deliveries = Table(
    "rejoin_deliveries",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("sink", String(256), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("records", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("upto", Integer),  # the run that the sink is at after it
    Column("failed", Text),  # code and message, where it did not reach the newest run
    Column("detail", Text, nullable=False),  # JSON: the sink's own numbers (producer metrics), for people
    Column("ended_at", Float, nullable=False),
)

files = Table(
    "rejoin_files",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("source", String(64), primary_key=True),
    Column("path", String(1024), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("run", Integer, nullable=False),
)

generations = Table(
    "rejoin_generations",
    metadata,
    Column("topology", String(64), primary_key=True),
    Column("source", String(64), primary_key=True),
    Column("run", Integer, primary_key=True),  # that changed it; counts once that is committed
    Column("state", Text, nullable=False),  # JSON: lake.ledger.generations.Generations
)


@lru_cache(maxsize=64)  # a step asks ten times
def of_run(table: Table, topology: str, run: int) -> ColumnElement[bool]:
    """The condition that a row of one of these tables belongs to a run."""
    return and_(table.c.topology == topology, table.c.run == run)


ENGINES = Connections[Engine](Engine.dispose)
"""Pools of connections of who writes."""


def connected(url: str) -> Engine:
    """One pool of connections a database and process; the tables are there."""
    return ENGINES.of(url, url, lambda: _connected(url))


def _connected(url: str) -> Engine:
    database = make_url(url)
    engine = create_engine(database, pool_pre_ping=not is_sqlite(database))
    if is_sqlite(database):
        write_ahead(database)

        # Several processes write: wait for the lock, and take it at the start, so that no transaction has to restart half-way.
        @event.listens_for(engine, "connect")
        def _settings(connection, _record):  # type: ignore[no-untyped-def]
            connection.isolation_level = None
            connection.execute("PRAGMA busy_timeout=30000")

        @event.listens_for(engine, "begin")
        def _begin(connection):  # type: ignore[no-untyped-def]
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    _create_tables(engine)
    return engine


def _create_tables(engine: Engine) -> None:
    """Makes the tables, and adds the columns and indexes that later versions of rejoin have added."""
    try:
        metadata.create_all(engine)
    except (OperationalError, IntegrityError):  # another process made them between the check and the create
        metadata.create_all(engine)
    there = {index["name"] for index in inspect(engine).get_indexes(runs.name)}
    for index in (i for i in RUNS_BY if i.name not in there):
        with suppress(OperationalError, ProgrammingError, IntegrityError):  # or another process has made it
            index.create(engine)
    for column in {"detail", "ending"} - {c["name"] for c in inspect(engine).get_columns(steps.name)}:
        with suppress(OperationalError, ProgrammingError), engine.begin() as db:  # or another process has added it
            db.execute(text(f"ALTER TABLE {steps.name} ADD COLUMN {column} TEXT"))

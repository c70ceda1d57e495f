"""Whether a feed still has the declared columns: a column that was renamed at its source would become null without a word."""

from rejoin import sources
from rejoin.engines.relation import Engine, Relation
from rejoin.lake.read.reader import Reader
from rejoin.plan.model.plan import Table
from rejoin.steps.ingest.raw_records import raw_of


def check_columns(engine: Engine, table: Table, events: Relation, before: Reader, pin: sources.Pin, access: sources.SourceAccess) -> None:
    """Stops the run if a declared column is gone from the feed, or was never there.

    An event may lack a column that its source did not have yet: it is older than one that has it, or than what is stored. So what counts
    is the newest position.

    Args:
        engine: runs the statements.
        table: the table.
        events: the events of the cut.
        before: the tables as of the run's base.
        pin: what the events were read from.
        access: how the source is reached.

    Raises:
        SchemaDrift: the newest event lacks a column that is not declared as optional.
    """
    sql, names = engine.sql, [c.name for c in table.columns if c.name not in table.key and c.name not in table.optional]
    having = (
        f"max(CASE WHEN NOT {sql.has('_absent', sql.literal(name))} THEN _position END) AS having_{i}" for i, name in enumerate(names)
    )
    found = engine.one(f"SELECT {', '.join(['max(_position) AS newest', *having])} FROM events WHERE _kind = 'upsert'", events=events)
    stored = before.newest_version(table.name)
    gone = [n for i, n in enumerate(names) if str(found["newest"] or "") > max(str(found[f"having_{i}"] or ""), stored)]
    if gone:
        last = engine.query("SELECT _file, _line FROM events WHERE _kind = 'upsert' ORDER BY _position DESC LIMIT 1", events=events)
        texts = raw_of(engine, table, pin, access, last).here()["_raw"].to_pylist()
        raise sources.drift(table, "the newest event", gone, sources.row_columns(texts[0] if texts else ""))

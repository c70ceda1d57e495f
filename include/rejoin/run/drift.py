"""Whether a feed still has the declared columns: a column that was renamed at its source would become null without a word."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rejoin import sources
from rejoin.lake.reader import Reader
from rejoin.plan.model import Table


def check_columns(table: Table, events: DataFrame, before: Reader, pin: sources.Pin, root: str) -> None:
    """Stops the run if a declared column is gone from the feed, or was never there.

    An event may lack a column that its source did not have yet: it is older than one that has it, or than what is stored. So what counts
    is the newest position.

    Args:
        table: the table.
        events: the events of the cut.
        before: the tables as of the run's base.
        pin: what the events were read from.
        root: where relative paths start.

    Raises:
        SchemaDrift: the newest event lacks a column that is not declared as optional.
    """
    names = [c.name for c in table.columns if c.name not in table.key and c.name not in table.optional]
    upserts = events.where("_kind = 'upsert'")
    lacks = [F.array_contains("_absent", name) for name in names]
    newest = [
        *(F.max(F.when(lack, F.col("_position"))).alias(f"lacking_{i}") for i, lack in enumerate(lacks)),
        *(F.max(F.when(~lack, F.col("_position"))).alias(f"having_{i}") for i, lack in enumerate(lacks)),
    ]
    found = upserts.agg(*newest).first()
    assert found is not None
    stored = before.newest_version(table.name)
    gone = [n for i, n in enumerate(names) if (found[f"lacking_{i}"] or "") > max(found[f"having_{i}"] or "", stored)]
    if gone:
        last = upserts.where(F.array_contains("_absent", gone[0])).orderBy(F.desc("_position")).select("_file", "_line").limit(1)
        text = sources.read_raw(events.sparkSession, table, pin, root, last).first()
        raise sources.drift(table, "the newest event", gone, sources.row_columns(text["_raw"] if text else ""))

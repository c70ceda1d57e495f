"""Records as they were written, for those that have to be shown or kept."""

from collections import defaultdict

from rejoin import sources
from rejoin.engines.relation import Engine, Relation
from rejoin.plan.model.plan import Table


def raw_of(engine: Engine, table: Table, pin: sources.Pin, access: sources.SourceAccess, places: Relation) -> Relation:
    """``_file``, ``_line`` and ``_raw`` of the records of a pin at some places (``_file``, ``_line``)."""
    lines = defaultdict[str, set[int]](set)
    for row in places.here().to_pylist():
        lines[row["_file"]].add(row["_line"])
    found = sources.read_raw_here(table, pin, access, {file: frozenset(some) for file, some in lines.items()}, large=engine.in_process)
    if found is not None:
        return engine.rows(found)
    spark = engine.by_spark(f"records of {table.name!r} are read again")
    return spark.of(sources.read_raw(spark.spark, table, pin, access, spark.frame(places)), places)

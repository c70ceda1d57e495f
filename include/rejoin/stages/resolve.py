"""resolve: left changes and responses become real net changes of the output (KIP-213: ResponseJoin).

In order: ``pair`` every affected key with its left row and its responses; ``missing`` names the right rows that no valid response brought,
``fill`` adds them; ``join`` makes the new output rows; ``difference`` keeps what really changed.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from rejoin.plan.model import Edge, JoinKind, Node
from rejoin.stages.columns import HASH, numbered
from rejoin.stages.frames import equal, null_struct, nullable, packed, quoted, renamed, viewed
from rejoin.stages.hashing import provenance
from rejoin.stages.subscribe import foreign_key


def touched(
    changes: DataFrame | None, responses: Mapping[str, DataFrame], key: tuple[str, ...], again: DataFrame | None = None
) -> DataFrame:
    """The keys (columns ``key`` of the left table) that got a response, or are in ``again``, though their left row did not change: their
    left rows have to be looked up. A key may be there more than once.
    """
    pks = numbered("pk", len(key))
    answers = [renamed(r, pks, key) for r in responses.values()]
    answered = reduce(DataFrame.union, answers if again is None else [*answers, again])
    return answered if changes is None else answered.join(changes.select(*key), on=list(key), how="left_anti")


def affected(changes: DataFrame | None, touched: DataFrame | None, key: tuple[str, ...]) -> DataFrame:
    """The keys (columns ``key``) that ``pair`` can come to: those of changed left rows and those of ``touched``."""
    keys = [] if changes is None else [changes.select(*key)]
    return reduce(DataFrame.union, keys if touched is None else [*keys, touched])


def pair(
    node: Node, changes: DataFrame | None, lefts: DataFrame | None, responses: Mapping[str, DataFrame], key: tuple[str, ...]
) -> DataFrame:
    """Every affected key once: ``pk_1``.., ``l`` (left row through the view or null), ``changed``, and for edge i ``r<i>``,
    ``stale_<i>`` (a response came that was made for another version of the left row: dropped), ``lacks_<i>`` (no valid response
    tells the right row).

    Args:
        node: the node.
        changes: ``Changes`` of the left table in this run, None if there are none.
        lefts: ``Rows`` of the left table for the keys of ``touched``, as of this run; None if no edge responded.
        responses: edge name -> ``Responses``; an edge that is not there did not respond at all.
        key: key columns of the left table.
    """
    pks = numbered("pk", len(key))
    sides = []
    if changes is not None:
        now = renamed(changes, key, pks, "_after", F.lit(True).alias("changed"))
        sides.append(viewed(now, "_after", node.left, "l").drop("_after"))
    if lefts is not None:
        found = renamed(lefts, key, pks, "_row", F.lit(False).alias("changed"))
        sides.append(viewed(found, "_row", node.left, "l").drop("_row"))
    frame = reduce(DataFrame.unionByName, sides)
    for number, edge in enumerate(node.edges, start=1):
        frame = _with_response(frame, number, edge, responses.get(edge.name), pks)
    return frame


def _with_response(frame: DataFrame, number: int, edge: Edge, responses: DataFrame | None, pks: list[str]) -> DataFrame:
    """A changed row that nobody answered has no right row, that is what its instruction says; an unchanged one has to be looked up."""
    subscribed = F.expr(f"({foreign_key(edge)}) IS NOT NULL")
    if responses is None:
        return frame.withColumns({f"stale_{number}": F.lit(False), f"lacks_{number}": subscribed & ~F.col("changed")})
    answers = responses.select(*pks, "left_hash", F.col("right").alias(f"r{number}"), F.lit(True).alias("answered"))
    met = frame.join(answers, on=pks, how="left")
    answered = F.coalesce(F.col("answered"), F.lit(False))
    stale = answered & ~F.col("left_hash").eqNullSafe(F.col(f"l.{HASH}")) & F.col("l").isNotNull()
    valid = F.when(answered & ~stale, F.col(f"r{number}"))
    return met.withColumns(
        {f"stale_{number}": stale, f"lacks_{number}": subscribed & (stale | (~answered & ~F.col("changed"))), f"r{number}": valid}
    ).drop("left_hash", "answered")


def missing(frame: DataFrame, number: int, edge: Edge, key: tuple[str, ...]) -> DataFrame:
    """The distinct right keys (columns ``key``) of edge ``number`` that ``fill`` needs."""
    lacking = frame.where(f"lacks_{number}").withColumn("fk", F.expr(foreign_key(edge)))
    return lacking.select(*(F.col(f"fk.{c}").alias(k) for c, k in zip(numbered("fk", len(key)), key, strict=True))).distinct()


def fill(frame: DataFrame, number: int, edge: Edge, rights: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Fills ``r<i>`` of the rows that lack it from the right ``Rows`` as of this run."""
    fks = numbered("fk", len(key))
    found = viewed(renamed(rights, key, fks, "_row"), "_row", edge.right, "found").drop("_row")
    asking = frame.withColumn("fk", F.expr(f"CASE WHEN lacks_{number} THEN {foreign_key(edge)} END"))
    met = asking.join(found, on=[F.col(f"fk.{c}") == F.col(c) for c in fks], how="left")
    known = (
        F.col("found")
        if f"r{number}" not in frame.columns
        else F.when(F.col(f"lacks_{number}"), F.col("found")).otherwise(F.col(f"r{number}"))
    )
    return met.withColumn(f"r{number}", known).drop("fk", "found", *fks)


def absent(frame: DataFrame, number: int, edge: Edge, rights: DataFrame) -> DataFrame:
    """Adds a null ``r<i>`` where no affected key has a right row on this edge; ``rights`` only lends its type."""
    shape = viewed(rights, "_row", edge.right, "right")
    return frame.withColumn(f"r{number}", null_struct(shape, "right"))


def join(node: Node, frame: DataFrame, fingerprint: str) -> DataFrame:
    """The paired frame with every ``r<i>`` filled -> ``pk_1``.. and ``new``: the output row with its ``_hash``, null if there is none."""
    present = [F.col("l").isNotNull()] + [F.col(f"r{i}").isNotNull() for i, e in enumerate(node.edges, 1) if e.kind is JoinKind.INNER]
    if node.where:
        present.append(F.expr(node.where))
    fields = [*((p.name, p.sql) for p in node.columns), (HASH, HASH)]
    hashes = [f"l.{HASH}", *(f"r{i}.{HASH}" for i in range(1, len(node.edges) + 1))]
    hashed = frame.withColumn(HASH, provenance(fingerprint, hashes))
    row = F.when(reduce(Column.__and__, present), packed(fields))
    return hashed.select(*[c for c in frame.columns if c.startswith("pk_")], row.alias("new"))


def difference(node: Node, made: DataFrame, old: DataFrame | None, *, everything: bool, gone: Sequence[StructField] = ()) -> DataFrame:
    """New output rows and the old output -> ``Changes`` of the output with ``_op`` ``N`` for affected keys whose row stays the same.

    A row that loses a value because its column is dropped has changed: who follows the changes would else find the old value there when
    a column of that name comes back.

    Args:
        node: the node.
        made: the frame of ``join``.
        old: ``Rows`` of the output before this run; None if it never had one.
        everything: ``old`` is the whole output and keys that ``made`` lacks are gone (the node is rebuilt).
        gone: columns that ``old`` has after the node's own, and the node no longer has.
    """
    pks = numbered("pk", len(node.key))
    if old is None:
        both = made.withColumn("old", null_struct(made, "new"))
    else:
        *new, hashed = nullable(made, "new").fields
        stored = renamed(old, node.key, pks, F.col("_row").cast(StructType([*new, *gone, hashed])).alias("old"))
        both = made.join(stored, on=pks, how="full" if everything else "left")
    kept = ((f"new.{quoted(p.name)}", f"old.{quoted(p.name)}") for p in node.columns)
    same = equal([*kept, *(("NULL", f"old.{quoted(f.name)}") for f in gone)])
    op = (
        F.when(F.col("old").isNull() & F.col("new").isNull(), "N")
        .when(F.col("old").isNull(), "I")
        .when(F.col("new").isNull(), "D")
        .when(same, "N")
        .otherwise("U")
    )
    keys = [F.col(c).alias(k) for c, k in zip(pks, node.key, strict=True)]
    return both.select(*keys, op.alias("_op"), F.col("old").alias("_before"), F.col("new").alias("_after"))

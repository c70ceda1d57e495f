"""The rows that an output had before a run: which way they are got is one value, made in one place, and told with the step.

Of a star, and of groups with arrays, they can be made once more instead of read. A stored row's hash says of which definition and of which versions of its left and
right rows it was made (``statements.value_hash.provenance``), of a group of which values. What these were the run knows: they are in its changes, or looked up
already. So of the output itself only hashes are read, and where one is that of the row made anew, that row is what is stored. All others are read.

This relies on more than equal hashes: a row of a source that came while its output was not in the topology was hashed without the columns that only
that output reads, so two versions that differ in these have one hash. But when the output came back, it was compared as a whole, and since then every
row that is not held back is that of the newest versions (I1). So keys that are held back are read, whatever their hash.
"""

from dataclasses import dataclass
from enum import StrEnum

import pyarrow.compute as pc

from rejoin.context.work import Work
from rejoin.engines.relation import LocalRelation, NeedsSpark, Relation
from rejoin.joins.kind import JoinResults
from rejoin.lake.read.lookups import LookupKeys
from rejoin.limits import limits
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Node
from rejoin.steps.resolve import statements


class Way(StrEnum):
    """How the old rows are got."""

    NONE = "none"
    """There are none: the output is new."""
    ALL = "all"
    """The whole output is read."""
    READ = "read"
    """Those of the results that can change are read."""
    MADE = "made"
    """They are made once more; what their hashes do not prove is read."""


@dataclass(frozen=True)
class OldRows:
    """The way, and why it is taken, as a part of a sentence."""

    way: Way
    why: str


def chosen(work: Work, node: Node, found: JoinResults, *, sifted: bool) -> OldRows:
    """The way to the old rows of results. ``sifted``: rows that cannot be computed are taken aside."""
    values = max(found.values, found.at_most * len(node.columns))
    if not work.before.has(node.name):
        return OldRows(Way.NONE, "the output is new")
    if found.stored is None:
        return OldRows(Way.ALL, "every row is compared")
    if found.before is None:
        return OldRows(Way.READ, "they are many, or nothing at hand tells what they were made of")
    if not work.engine.in_process:
        return OldRows(Way.READ, "Spark reads them")
    if sifted:
        return OldRows(Way.READ, "some rows cannot be computed")
    if values <= limits().read_values:
        return OldRows(Way.READ, f"they have {values:,} values at most")
    return OldRows(Way.MADE, f"they have up to {values:,} values")


def made_again(work: Work, node: Node, found: JoinResults) -> Relation:
    """``Relation`` of an output before this run, for results that are known as they were before it."""
    try:
        proven = LocalRelation(_proven(work, node, found).here())
    except NeedsSpark:  # an expression has no value for a row that was held back
        return work.before.lookup(node.name, _keys(found))
    others = proven.arrow.filter(pc.is_null(proven.arrow["_row"])).select(list(node.key))
    if not others.num_rows:
        return proven
    read = work.before.lookup(node.name, LookupKeys(LocalRelation(others), others.num_rows, others))
    return work.engine.query("SELECT * FROM proven WHERE _row IS NOT NULL UNION ALL SELECT * FROM read", proven=proven, read=read)


def _keys(found: JoinResults) -> LookupKeys:
    """The keys of such results."""
    ((_, keys),) = found.stored or ()
    return keys


def _proven(work: Work, node: Node, found: JoinResults) -> Relation:
    """The same, ``_row`` being null where it has to be read."""
    sql, held = work.engine.sql, found.held
    assert found.before is not None
    made = work.engine.query(statements.join(sql, work.engine.node(node), fingerprint(work.facts.plan, node)), state=found.before())
    inputs = {"made": made, "stored": work.before.hashes(node.name, _keys(found)), **({} if held is None else {"held": held})}
    return work.engine.query(statements.proven(sql, node, held=held is not None), **inputs)

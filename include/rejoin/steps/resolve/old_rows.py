"""The rows of an output before a run, made once more instead of read.

A stored row's hash says of which definition and of which versions of its left and right rows it was made (``statements.value_hash.provenance``). What these
versions were the run knows: they are in its changes, or looked up already. So of the output itself only hashes are read, and where one is that of
the row made anew, that row is what is stored. All others are read.

This relies on more than equal hashes: a row of a source that came while its output was not in the topology was hashed without the columns that only
that output reads, so two versions that differ in these have one hash. But when the output came back, it was compared as a whole, and since then every
row that is not held back is that of the newest versions (I1). So keys that are held back are read, whatever their hash.
"""

from collections.abc import Mapping

import pyarrow.compute as pc

from rejoin.context.work import Work
from rejoin.engines.relation import LocalRelation, NeedsSpark, Relation
from rejoin.joins.foreign_key import resolve as star
from rejoin.lake.read.lookups import LookupKeys
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Node
from rejoin.steps.resolve import statements
from rejoin.steps.resolve.right_rows import filled, lacking


def earlier(work: Work, node: Node, paired: Mapping[str, Relation], keys: LookupKeys, held: Relation | None) -> Relation:
    """``Relation`` of an output before this run.

    Args:
        work: the attempt.
        node: the node, a star of foreign keys without rows that are in the output alone.
        paired: inputs of ``star.pair``. Of these count ``changes`` and ``lefts``.
        keys: of the output, all among those of these inputs.
        held: those of them that are held back before this run; None: none are.
    """
    try:
        proven = LocalRelation(_proven(work, node, paired, keys, held).here())
    except NeedsSpark:  # an expression has no value for a row that was held back
        return work.before.lookup(node.name, keys)
    others = proven.arrow.filter(pc.is_null(proven.arrow["_row"])).select(list(node.key))
    if not others.num_rows:
        return proven
    read = work.before.lookup(node.name, LookupKeys(LocalRelation(others), others.num_rows, others))
    return work.engine.query("SELECT * FROM proven WHERE _row IS NOT NULL UNION ALL SELECT * FROM read", proven=proven, read=read)


def _proven(work: Work, node: Node, paired: Mapping[str, Relation], keys: LookupKeys, held: Relation | None) -> Relation:
    """The same, ``_row`` being null where it has to be read."""
    sql, spoken, key = work.engine.sql, work.engine.node(node), work.facts.plan.key_of(node.left.table)
    sides: dict[str, Relation] = {name: paired[name] for name in ("changes", "lefts") if name in paired}
    before = work.engine.query(star.lefts_before(sql, key, changed="changes" in sides, looked_up="lefts" in sides), **sides)
    pair = star.pair(sql, spoken, key, {}, changed=False, looked_up=True)
    state = LocalRelation(work.engine.query(pair, lefts=before).here())
    known = filled(work, work.before, node, state, lacking(node, state.arrow), state)
    made = work.engine.query(statements.join(sql, spoken, fingerprint(work.facts.plan, node)), state=known)
    inputs = {"made": made, "stored": work.before.hashes(node.name, keys), **({} if held is None else {"held": held})}
    return work.engine.query(statements.proven(sql, node, held=held is not None), **inputs)

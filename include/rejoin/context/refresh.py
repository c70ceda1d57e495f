"""Which way a run brings an output up to date: by following the changes, or by recomputing all of it and comparing."""

from rejoin.limits import limits
from rejoin.plan.model.policy import Fuse, Policy, Refresh


def why_recompute(policy: Policy, *, rebuilt: bool, affected: int, rows: int) -> str | None:
    """The reason to recompute; None if the changes are to be followed.

    Args:
        policy: the output's.
        rebuilt: its definition is new.
        affected: rows that this run may change, known or estimated.
        rows: left rows.
    """
    if rebuilt:
        return "its definition is new"
    if policy.refresh is Refresh.FULL:
        return "refresh is full"
    if policy.fuse is Fuse.RECOMPUTE:
        return "the run was told to recompute"
    if policy.refresh is Refresh.AUTO and rows > limits().full_rows and affected > limits().full_share * rows:
        return f"{affected:,} of {rows:,} rows are affected"
    return None

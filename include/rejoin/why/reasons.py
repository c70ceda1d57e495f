"""What the stored rows of one key imply: what each edge found, and why there is no row. Pure, and no SQL of the user is evaluated.

Filters are concluded: a row that is there has passed all of them, a left row that is subscribed to anything has passed that of its side, and
the stored hash of an output row says which right rows it was made from. If only one cause is left, it is that one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.match import AsOf, JoinKind, SameKey
from rejoin.plan.model.plan import Edge, Node, Plan, View
from rejoin.statements.own_columns import HELD_CODE
from rejoin.statements.provenance import provenance_hash
from rejoin.why.answer import Cause, Match, Reason

_COLUMN = re.compile(r"\b(t|l|r\d+)\.`([^`]+)`")
_WIDENED = re.compile(r"^CAST\((l\.`[^`]+`) AS BIGINT\)$")
"""What the plan makes of an INT column that is the foreign key of a BIGINT key."""


@dataclass(frozen=True)
class StoredRight:
    """What is stored on the right of an edge: the foreign key of the live subscription (None: there is none), and of the right row of
    that key, if there is one, its hash. ``match``: what the edge found, where the join itself tells it.
    """

    foreign_key: tuple[Any, ...] | None
    there: bool
    hash: bytes | None
    match: Match | None = None


@dataclass(frozen=True)
class StoredKey:
    """What is stored of a key.

    Args:
        left: the row of the left table; None: there is none.
        left_hash: its hash.
        rights: what is on the right, edge by edge.
        there: the output has a row.
        hash: of this row.
        held: the code by which the newest state of the row is held back; None: it is not.
        kept: the run left the output as it was, so that the row may be older than what it is made of.
        told: why there is no row, where the join itself tells it.
    """

    left: Mapping[str, Any] | None
    left_hash: bytes | None
    rights: tuple[StoredRight, ...]
    there: bool
    hash: bytes | None
    held: str | None = None
    kept: bool = False
    told: tuple[Reason, ...] = ()

    @property
    def made(self) -> bool:
        """Whether the joins give a row, be it held back."""
        return not self.kept and self.left is not None and (self.held == HELD_CODE if self.held else self.there)

    @property
    def subscribed(self) -> bool:
        return any(r.foreign_key is not None for r in self.rights)


def judge(plan: Plan, node: Node, seen: StoredKey) -> tuple[list[Match], list[Reason], bool]:
    """What each edge found, and the reasons why the output has no row, or not the newest one: all of them hold if the third result is
    True, else at least one of them does.
    """
    if node.match is not None or node.two_sided:
        return _of_two_sides(node, seen)
    matches = [_match(node, edge, right, seen) for edge, right in zip(node.edges, seen.rights, strict=True)]
    matches = _proven(plan, node, seen, matches)
    if seen.kept:
        return matches, [Reason(Cause.SKIPPED, node.name)], True
    if seen.left is None:
        return matches, [] if seen.there else [Reason(Cause.LEFT_ROW, node.left.table)], True
    if seen.held is not None:
        return matches, [Reason(Cause.HELD, node.name)], True
    if seen.there:
        return matches, [], True
    if sure := list(_sure(node, seen, matches)):
        return matches, sure, True
    suspects = _suspects(node, seen, matches)
    if len(suspects) != 1:
        return matches, suspects or [Reason(Cause.UNTOLD, node.name)], False
    if suspects[0].cause is Cause.LEFT_FILTER:
        matches = [Match.UNASKED] * len(matches)
    elif suspects[0].cause is Cause.RIGHT_FILTER:
        matches = [Match.FILTERED if e.name == suspects[0].of else m for e, m in zip(node.edges, matches, strict=True)]
    return matches, suspects, True


def _of_two_sides(node: Node, seen: StoredKey) -> tuple[list[Match], list[Reason], bool]:
    """The same of a join that is no star of foreign keys of its left rows: what the join itself tells, and no more."""
    matches = []
    for edge, right in zip(node.edges, seen.rights, strict=True):
        sure = (right.foreign_key is not None or right.match is not None) and not seen.kept
        sure = sure and not (right.there and edge.right.where is not None and not seen.there)
        matches.append(right.match or (Match.FOUND if right.there else Match.ABSENT) if sure else Match.UNKNOWN)
    if seen.kept:
        return matches, [Reason(Cause.SKIPPED, node.name)], True
    if seen.held is not None:
        return matches, [Reason(Cause.HELD, node.name)], True
    if seen.there:
        return matches, [], True
    if seen.left is None and not any(right.there for right in seen.rights):
        return matches, [Reason(Cause.NO_SIDE, node.name)], True
    if told := [*seen.told, *_lacking(node, seen)]:
        return matches, told, True
    return matches, [Reason(Cause.UNTOLD, node.name)], False


def _lacking(node: Node, seen: StoredKey) -> Iterator[Reason]:
    """The side that a result of this kind cannot do without."""
    edge = node.edges[0]
    of_left = isinstance(node.match, AsOf) or (isinstance(node.match, SameKey) and not edge.kind.keeps_right)
    if of_left and seen.left is None:
        yield Reason(Cause.LEFT_ROW, node.left.table)
    if isinstance(node.match, SameKey) and not edge.kind.keeps_left and not seen.rights[0].there:
        yield Reason(Cause.ABSENT, edge.name)


def _match(node: Node, edge: Edge, right: StoredRight, seen: StoredKey) -> Match:
    if seen.left is None or _left_filtered(node, seen):
        return Match.UNASKED
    if seen.kept:  # subscriptions are as old as the output
        return Match.UNKNOWN
    if right.foreign_key is None:
        passed = seen.made or seen.subscribed or node.left.where is None
        null = None in (plain_values(node.left, edge, seen.left) or ())
        return Match.NULL if null or (passed and seen.held in (None, HELD_CODE)) else Match.UNKNOWN
    if not right.there:
        return Match.ABSENT
    if edge.right.where is None or (seen.made and edge.kind is JoinKind.INNER):
        return Match.FOUND
    return Match.UNKNOWN


def _proven(plan: Plan, node: Node, seen: StoredKey, matches: Sequence[Match]) -> list[Match]:
    """Of right rows that may be filtered out: whether the output row was made from them. Not known where its hash is older than they are. An output row that
    is not held back is that of the newest rows (I1), so its hash only tells which of them took part.
    """
    open_ = [i for i, m in enumerate(matches) if m is Match.UNKNOWN and seen.rights[i].foreign_key is not None]
    if not open_ or not seen.made or seen.held is not None:
        return list(matches)
    print_, proofs = fingerprint(plan, node), []
    for tried in product((Match.FOUND, Match.FILTERED), repeat=len(open_)):
        guess = list(matches)
        for index, match in zip(open_, tried, strict=True):
            guess[index] = match
        hashes = [r.hash if m is Match.FOUND else None for r, m in zip(seen.rights, guess, strict=True)]
        if provenance_hash(print_, [seen.left_hash, *hashes]) == seen.hash:
            proofs.append(guess)
    return proofs[0] if proofs else list(matches)


def _left_filtered(node: Node, seen: StoredKey) -> bool:
    """Whether the left filter drops the row for sure: a foreign key that is a plain column has a value, and nothing is subscribed by it."""
    if node.left.where is None or seen.left is None or seen.made or seen.kept or seen.held or seen.subscribed:
        return False
    keys = [plain_values(node.left, edge, seen.left) for edge in node.edges]
    return any(values is not None and None not in values for values in keys)


def _sure(node: Node, seen: StoredKey, matches: Sequence[Match]) -> Iterator[Reason]:
    if _left_filtered(node, seen):
        yield _filtered_left(node)
    for edge, match in zip(node.edges, matches, strict=True):
        if edge.kind is JoinKind.INNER and match is Match.NULL:
            yield Reason(Cause.NULL, edge.name, foreign_key_shown(edge))
        if edge.kind is JoinKind.INNER and match is Match.ABSENT:
            yield Reason(Cause.ABSENT, edge.name)


def _suspects(node: Node, seen: StoredKey, matches: Sequence[Match]) -> list[Reason]:
    found = [_filtered_left(node)] if node.left.where is not None and not seen.subscribed else []
    for edge, right, match in zip(node.edges, seen.rights, matches, strict=True):
        if edge.kind is JoinKind.INNER and match is Match.UNKNOWN:
            known = right.foreign_key is not None
            sql = shown(edge.right.where or "") if known else foreign_key_shown(edge)
            found.append(Reason(Cause.RIGHT_FILTER if known else Cause.RIGHT_UNKNOWN, edge.name, sql))
    return found + ([Reason(Cause.FILTER, node.name, shown(node.where, node))] if node.where is not None else [])


def _filtered_left(node: Node) -> Reason:
    return Reason(Cause.LEFT_FILTER, node.left.table, shown(node.left.where or ""))


def plain_column(view: View, name: str) -> str | None:
    """The stored column that a column of a view is, as it is; None if it is made by an expression."""
    found = _COLUMN.fullmatch(view.column(name).sql)
    return None if found is None else found[2]


def plain_values(left: View, edge: Edge, row: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The foreign key of a left row, where it is made of columns as they are (INT may become BIGINT); else None."""
    view = {f"l.`{p.name}`": p.sql for p in left.columns}
    found = [_COLUMN.fullmatch(view.get(_WIDENED.sub(r"\1", part), "")) for part in edge.foreign_key]
    columns = [m[2] for m in found if m is not None]
    return tuple(row.get(c) for c in columns) if len(columns) == len(found) else None


def foreign_key_shown(edge: Edge) -> str:
    """The foreign key as the user knows it."""
    return ", ".join(shown(_WIDENED.sub(r"\1", part)) for part in edge.foreign_key)


def shown(sql: str, node: Node | None = None) -> str:
    """A text of a plan as the user knows it: columns without the plan's aliases; of a node's filter with the names of its edges."""

    def column(match: re.Match[str]) -> str:
        right = match[1].startswith("r") and node is not None
        return f"{node.edges[int(match[1][1:]) - 1].name}.{match[2]}" if right and node is not None else match[2]

    return _COLUMN.sub(column, sql)

"""What stored rows imply: which cause is left when all others are excluded, and that more than one is no conclusion."""

from dataclasses import replace
from typing import Any

import pytest
from plans import Shop, star

from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.model.plan import Node, Plan
from rejoin.statements.provenance import provenance_hash
from rejoin.why.answer import Cause, Match
from rejoin.why.reasons import StoredKey, StoredRight, judge, shown

NONE = StoredRight(None, there=False, hash=None)
FOUND, LOST = StoredRight((1,), there=True, hash=b"r"), StoredRight((1,), there=False, hash=None)


def made(shop: Shop) -> tuple[Plan, Node]:
    plan = shop.compile()
    return plan, plan.nodes[-1]


def seen(row: dict[str, Any] | None, *rights: StoredRight, there: bool = False, **others: Any) -> StoredKey:
    return StoredKey(row, b"l", rights, there, b"o" if there else None, **others)


ROW = {"customer_id": 1, "product_id": 2}
STAR = {
    "a left row that is not subscribed by a column with a value": (
        seen(ROW, NONE, NONE), [Match.UNASKED, Match.UNASKED], [Cause.LEFT_FILTER], True,
    ),
    "a null foreign key": (seen({"customer_id": None}, NONE, NONE), [Match.NULL, Match.NULL], [Cause.NULL], True),
    "no right row": (seen(ROW, LOST, FOUND), [Match.ABSENT, Match.FOUND], [Cause.ABSENT], True),
    "only the filter after the joins is left": (seen(ROW, FOUND, NONE), [Match.FOUND, Match.NULL], [Cause.FILTER], True),
    "no left row": (seen(None, NONE, NONE), [Match.UNASKED, Match.UNASKED], [Cause.LEFT_ROW], True),
    "held back": (seen(ROW, FOUND, LOST, held="EXPECTATION"), [Match.FOUND, Match.ABSENT], [Cause.HELD], True),
    "not computable": (seen(ROW, NONE, NONE, held="NOT_COMPUTABLE"), [Match.UNKNOWN, Match.UNKNOWN], [Cause.HELD], True),
    "kept": (seen(ROW, FOUND, FOUND, there=True, kept=True), [Match.UNKNOWN, Match.UNKNOWN], [Cause.SKIPPED], True),
    "there": (seen(ROW, FOUND, NONE, there=True), [Match.FOUND, Match.NULL], [], True),
}  # fmt: skip


@pytest.mark.parametrize(("stored", "matches", "causes", "certain"), STAR.values(), ids=STAR)
def test_of_a_star_with_filters_on_both_ends(stored: StoredKey, matches: list[Match], causes: list[Cause], certain: bool) -> None:
    shop = Shop()
    star(shop)
    plan, node = made(shop)
    found = judge(plan, node, stored)
    assert (found[0], [r.cause for r in found[1]], found[2]) == (matches, causes, certain)


def test_two_filters_that_both_may_drop_a_row_are_no_conclusion() -> None:
    shop = Shop()
    active = shop.customers.filter("active")
    shop.orders.join(active, "customer_id", ["order_id", "name"]).filter("name <> 'x'").named("out")
    plan, node = made(shop)
    matches, reasons, certain = judge(plan, node, seen(ROW, FOUND))
    assert (matches, certain) == ([Match.UNKNOWN], False)
    assert [(r.cause, r.of, r.sql) for r in reasons] == [
        (Cause.RIGHT_FILTER, "customers", "active"),
        (Cause.FILTER, "out", "customers.name <> 'x'"),
    ]


def test_the_only_filter_of_an_inner_join_is_a_conclusion() -> None:
    shop = Shop()
    shop.orders.join(shop.customers.filter("active"), "customer_id", ["order_id", "name"]).named("out")
    plan, node = made(shop)
    matches, reasons, certain = judge(plan, node, seen(ROW, FOUND))
    assert (matches, [r.cause for r in reasons], certain) == ([Match.FILTERED], [Cause.RIGHT_FILTER], True)


def test_a_computed_foreign_key_behind_a_filter_is_no_conclusion() -> None:
    shop = Shop()
    shop.orders.filter("total > 0").join(shop.customers, "customer_id + 1", ["order_id", "name"]).named("out")
    plan, node = made(shop)
    matches, reasons, certain = judge(plan, node, seen(ROW, NONE))
    assert (matches, certain) == ([Match.UNKNOWN], False)
    assert [(r.cause, r.sql) for r in reasons] == [(Cause.LEFT_FILTER, "total > 0"), (Cause.RIGHT_UNKNOWN, "customer_id + 1")]


def test_a_filter_alone_and_no_cause_at_all() -> None:
    shop = Shop()
    shop.orders.filter("total > 0").select(["order_id"]).named("out")
    plan, node = made(shop)
    assert [r.cause for r in judge(plan, node, seen(ROW))[1]] == [Cause.LEFT_FILTER]
    bare = replace(node, left=replace(node.left, where=None))
    assert [(r.cause) for r in judge(plan, bare, seen(ROW))[1]] == [Cause.UNTOLD]


@pytest.mark.parametrize("matches", [(Match.FOUND, Match.FILTERED), (Match.FILTERED, Match.FOUND), (Match.FILTERED, Match.FILTERED)])
def test_the_hash_of_a_row_proves_which_filtered_right_rows_it_was_made_from(matches: tuple[Match, Match]) -> None:
    shop = Shop()
    first = shop.orders.left_join(shop.customers.filter("active"), "customer_id", ["left.*", "name"])
    first.left_join(shop.products.filter("title <> 'x'"), "product_id", ["order_id", "name", "title"]).named("out")
    plan, node = made(shop)
    stored = seen(ROW, FOUND, replace(FOUND, hash=b"p"), there=True)
    assert judge(plan, node, stored)[0] == [Match.UNKNOWN, Match.UNKNOWN], "a hash of older rows proves nothing"
    hashes = [h if m is Match.FOUND else None for h, m in zip((b"r", b"p"), matches, strict=True)]
    proven = replace(stored, hash=provenance_hash(fingerprint(plan, node), [b"l", *hashes]))
    assert judge(plan, node, proven)[0] == list(matches)


def test_a_plan_s_text_is_shown_without_the_plan_s_aliases() -> None:
    assert shown("t.`Total` > 0 AND CAST(l.`a_1` AS BIGINT) = 3") == "Total > 0 AND CAST(a_1 AS BIGINT) = 3"

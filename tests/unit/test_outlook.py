"""What the next run makes of what is stored, by plans alone: what is new, rebuilt, changed, left behind or refused, and who has to agree."""

import dataclasses

import pytest

from rejoin import Topology, debezium, kafka, not_null, postgres, records, snapshot
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.change.outlook import Change, Entry, Stored, outlook, rows_at_most
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.plan.model.policy import Horizon, RunOptions

ORDERS = "id BIGINT, customer_id INT, total DECIMAL(10,2), note STRING"


def shop(
    orders: str = ORDERS,
    *,
    left: str = "id > 0",
    join: str = "left_join",
    fk: str = "customer_id",
    select: tuple[str, ...] = ("left.id", "left.note", "right.name AS customer"),
    where: str = "",
    name: str = "enriched",
    output: str = "",
    output_key: str = "id",
    path: str = "customers",
    expected: bool = False,
    sink: object = None,
    more: bool = False,
    refresh: str = "auto",
) -> Plan:
    t = Topology("shop")
    o = t.table("orders", key="id", schema=orders, source=debezium("orders"))
    c = t.table("customers", key="id", schema="id INT, name STRING", source=snapshot(path))
    if expected:
        c.expect(not_null("name"), severity="quarantine")
    made = getattr(o.filter(left), join)(c, fk, list(select))
    made = made.filter(where) if where else made
    enriched = made.named(name, refresh=refresh)
    if sink is not None:
        enriched.to(sink)
    enriched.select(["id"]).named("ids")
    if output:
        c.select([f"id AS {output_key}", "name"]).named(output)
    if more:
        s = t.table("shops", key="id", schema="id INT", source=snapshot("shops"))
        s.select(["id"]).named("all_shops")
    return compile(t)


def after(*plans: Plan, kept: tuple[str, ...] = ()) -> Stored:
    """A lake after one run of each plan; the last one left ``kept`` as they were."""
    runs = list(enumerate(plans, start=1))[::-1]
    head, last = runs[0]
    names = {n for p in plans for n in (*(t.name for t in p.tables), *(n.name for n in p.nodes))}
    had = {n: next((r, p) for r, p in runs if n in {*(t.name for t in p.tables), *(x.name for x in p.nodes)}) for n in names}
    prints = {n.name: fingerprint(last, n) for n in last.nodes if n.name not in kept}
    made = {n: next((r, p) for r, p in runs if (r < head or n not in kept) and n in {x.name for x in p.nodes}) for n in names if n in kept}
    return Stored(head, last, prints, had, made, lambda _: ())


def entry(plan: Plan, stored: Stored, name: str) -> Entry:
    return next(e for e in outlook(plan, stored).entries if e.name == name)


STAR = shop()
EDITS = {
    "an expression": (
        shop(select=("left.id", "left.note", "upper(right.name) AS customer")),
        "column customer: r1.`name` becomes upper(r1.`name`)",
    ),
    "a column more": (shop(select=("left.id", "left.note", "left.total", "right.name AS customer")), "column total is new"),
    "a column less": (shop(select=("left.id", "right.name AS customer")), "column note is dropped"),
    "the order of columns": (shop(select=("left.id", "right.name AS customer", "left.note")), "the columns stand in another order"),
    "the kind of join": (shop(join="join"), "join with customers: left join becomes inner join"),
    "the foreign key": (shop(fk="CAST(id AS INT)"), "join with customers, foreign key: l.`customer_id` becomes CAST(l.`id` AS INT)"),
    "the filter before": (shop(left="id > 1"), "left side, filter: t.`id` > 0 becomes t.`id` > 1"),
    "a filter after": (shop(where="customer IS NOT NULL"), "filter is new: r1.`name` IS NOT NULL"),
    "a wider type that is read": (
        shop(ORDERS.replace("id BIGINT, customer_id INT", "id BIGINT, customer_id BIGINT"), fk="CAST(customer_id AS INT)"),
        "column customer_id of orders: INT becomes BIGINT",
    ),
}


@pytest.mark.parametrize(("edited", "why"), EDITS.values(), ids=EDITS.keys())
def test_an_edited_output_is_rebuilt_and_says_which_field_changed_and_somebody_has_to_agree(edited: Plan, why: str) -> None:
    found = entry(edited, after(STAR), "enriched")
    assert (found.change, found.asks) == (Change.REBUILT, True)
    assert why in found.why
    reader = entry(edited, after(STAR), "ids")
    assert (reader.change, reader.asks, reader.why) == (Change.CHANGED, False, ("follows the changes of enriched",))


UNASKED = {
    "nothing": (STAR, {}),
    "another path": (shop(path="new_customers"), {"customers": "source path: 'customers' becomes 'new_customers'"}),
    "an expectation": (shop(expected=True), {"customers": "rows that are held back are judged again"}),
    "a column that nothing reads": (
        shop(f"{ORDERS}, more DATE"),
        {"orders": "column more DATE is new: null in stored rows until their next change"},
    ),
    "a column that nothing read": (shop(ORDERS.replace("total DECIMAL(10,2), ", "")), {"orders": "column total is no longer read"}),
    "a wider type that nothing reads": (
        shop(ORDERS.replace("10,2", "12,2")),
        {"orders": "column total: DECIMAL(10,2) becomes DECIMAL(12,2)"},
    ),
    "how it is refreshed": (shop(refresh="full"), {}),
}


@pytest.mark.parametrize(("edited", "why"), UNASKED.values(), ids=UNASKED.keys())
def test_what_touches_no_output_is_told_and_nobody_is_asked(edited: Plan, why: dict[str, str]) -> None:
    found = outlook(edited, after(STAR))
    assert not found.asks and not found.refused
    assert {e.name for e in found.entries if e.change is not Change.SAME} == set(why)
    for name, sentence in why.items():
        assert sentence in entry(edited, after(STAR), name).why


def test_first_runs_and_additions_are_new_and_nobody_is_asked() -> None:
    for stored, plan in ((None, shop(sink=kafka("t"), output="people")), (after(STAR), shop(output="people", more=True))):
        found = outlook(plan, stored)
        new = {e.name for e in found.entries if e.change is Change.NEW}
        assert not found.asks and not found.refused
        assert {"people"} <= new
        assert stored is not None or new == {e.name for e in found.entries}
        assert stored is None or new == {"people", "shops", "all_shops"}


def test_what_is_renamed_is_new_and_left_behind_and_asks() -> None:
    found = {e.name: e for e in outlook(shop(name="joined"), after(STAR)).entries}
    assert found["joined"].change is Change.NEW
    assert (found["enriched"].change, found["enriched"].asks) == (Change.LEFT, True)
    assert found["ids"].change is Change.REBUILT
    assert found["ids"].why == ("left side: enriched becomes joined",)


def test_what_was_left_behind_before_is_not_told_again_and_what_comes_back_is_rebuilt() -> None:
    full, away = shop(output="people", more=True), STAR
    assert {e.name for e in outlook(away, after(full)).entries if e.asks} == {"people", "shops", "all_shops"}
    assert not outlook(away, after(full, away)).asks
    back = {e.name: e for e in outlook(full, after(full, away)).entries}
    assert (back["shops"].change, back["shops"].asks) == (Change.BACK, False)
    assert back["shops"].why == ("goes on with the rows that run 1 left",)
    assert (back["people"].change, back["people"].asks) == (Change.BACK, True)


def test_an_output_that_a_run_kept_is_rebuilt_unasked_unless_it_was_edited_since_it_was_made() -> None:
    kept = after(STAR, STAR, kept=("enriched",))
    found = entry(STAR, kept, "enriched")
    assert (found.change, found.asks, found.why) == (Change.REBUILT, False, ("run 2 left it as run 1 had made it",))
    edited = shop(join="join")
    for stored in (kept, after(STAR, edited, kept=("enriched",))):
        found = entry(edited, stored, "enriched")
        assert (found.change, found.asks) == (Change.REBUILT, True)
        assert "join with customers: left join becomes inner join" in found.why
    only_others = shop(join="join", output="people", more=True).with_options(RunOptions(only=("people",)))
    assert [entry(only_others, after(STAR), n).change for n in ("enriched", "all_shops", "people")] == [
        Change.SAME,
        Change.SAME,
        Change.NEW,
    ]
    assert not outlook(only_others, after(STAR)).asks


def test_an_output_with_a_fingerprint_of_another_version_is_rebuilt_unasked() -> None:
    found = entry(STAR, dataclasses.replace(after(STAR), prints={}), "enriched")
    assert (found.change, found.asks, found.why) == (Change.REBUILT, False, ("made by another version of rejoin",))


KAFKA, POSTGRES = kafka("people"), postgres("public.people")
SINKS = {
    "the same": (KAFKA, kafka("people"), Change.SAME, False, ()),
    "batches": (KAFKA, kafka("people", batch=5, producer={"linger.ms": 1}), Change.CHANGED, False, ("batch: 10000 becomes 5", "producer: other settings")),
    "the value": (KAFKA, kafka("people", value="row"), Change.CHANGED, True, ("value: 'envelope' becomes 'row'",)),
    "the topic": (KAFKA, kafka("others"), Change.CHANGED, True, ("topic: 'people' becomes 'others'",)),
    "the table": (POSTGRES, postgres("public.others"), Change.CHANGED, True, ("table: 'public.people' becomes 'public.others'",)),
    "another kind": (postgres("public.people", name="x"), kafka("people", name="x"), Change.CHANGED, True, ()),
    "gone": (KAFKA, None, Change.LEFT, True, ("gets nothing more; the target stays as it is",)),
    "new": (None, KAFKA, Change.NEW, False, ("gets all rows once, then changes",)),
    "new, from the start": (None, kafka("people", start="changes"), Change.NEW, False, ("gets every change since the first run",)),
}  # fmt: skip


@pytest.mark.parametrize(("was", "now", "change", "asks", "why"), SINKS.values(), ids=SINKS.keys())
def test_a_sink_asks_if_its_readers_notice(was: object, now: object, change: Change, asks: bool, why: tuple[str, ...]) -> None:
    found = [e for e in outlook(shop(sink=now), after(shop(sink=was))).entries if e.kind == "sink"]
    assert [(e.change, e.asks) for e in found] == [(change, asks)]
    assert set(why) <= set(found[0].why)


def test_a_sink_of_a_rebuilt_output_gets_net_changes_and_says_which_columns_come_and_go() -> None:
    edited = shop(select=("left.id", "left.total", "right.name AS customer"), sink=POSTGRES)
    found = entry(edited, after(shop(sink=POSTGRES)), "enriched.postgres")
    assert (found.change, found.asks) == (Change.CHANGED, True)
    assert found.why == (
        "postgres public.people",
        "gets the net changes of the rebuild",
        "column note is no longer delivered",
        "column total is new: add it to the table first, unless it is there",
    )


REFUSED = {
    "a narrower column": (shop(ORDERS.replace("id BIGINT, customer_id", "id INT, customer_id")), "SCHEMA_REFUSED", "column 'id' of table 'orders'"),
    "another key": (shop(output="people", output_key="customer"), "SCHEMA_REFUSED", "the key of 'people' was (id) and is now (customer)"),
    "another type of an output's column": (shop(select=("left.id", "length(left.note) AS note", "right.name AS customer")), "SCHEMA_REFUSED", "column 'note' of output 'enriched' is STRING and cannot become INT"),
    "no rebuild allowed": (shop(join="join", refresh="incremental_strict"), "REFRESH_REFUSED", "output 'enriched' would have to be recomputed"),
}  # fmt: skip


@pytest.mark.parametrize(("edited", "code", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_next_run_would_refuse_is_refused_with_its_code(edited: Plan, code: str, what: str) -> None:
    [error] = [e for e in outlook(edited, after(shop(output="people"))).refused if what in e.what]
    assert error.code == code and error.next_step


def joined(customer: str = "right.name") -> Plan:
    """A stream that keeps for a day, each record with the row that it arrived to."""
    t = Topology("shop")
    schema = "id BIGINT, k STRING, at TIMESTAMP"
    views = t.stream("views", id="id", key="k", schema=schema, event_time="at", retention="1 day", source=records("views/"))
    people = t.table("people", key="k", schema="k STRING, name STRING", source=snapshot("people"))
    views.left_join(people, as_of="arrival", select=["left.id", f"{customer} AS customer"], name="named")
    return compile(t)


def test_an_edit_of_a_join_that_has_let_records_go_is_refused() -> None:
    kept, gone = after(joined()), after(joined().with_horizons((Horizon("views", 5, 7),)))
    edited = joined("upper(right.name)")
    assert not outlook(edited, kept).refused and not outlook(joined(), gone).refused
    [error] = outlook(edited, gone).refused
    assert error.code == "SCHEMA_REFUSED" and "old records of views were let go" in error.what


def test_a_name_that_stood_for_something_else_is_refused() -> None:
    people = shop(output="people")
    t = Topology("shop")
    t.table("people", key="id", schema="id INT, name STRING", source=snapshot("people")).select(["id"]).named("ids_of_people")
    [error] = outlook(compile(t), after(people)).refused
    assert "'people' was an output in run 1" in error.what


def test_rows_are_those_of_the_left_side_where_nothing_is_stored() -> None:
    assert rows_at_most(STAR, "ids", {"orders": 7}) == 7
    assert rows_at_most(STAR, "ids", {"orders": 7, "enriched": 3, "ids": 2}) == 2
    assert rows_at_most(STAR, "orders", {}) == 0

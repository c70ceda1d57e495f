"""What a topology says of groups: what it comes to, and every mistake."""

import re
from collections.abc import Callable

import pytest

from rejoin import Topology, debezium, records
from rejoin.declare.expectations import computable
from rejoin.declare.topology import Relation
from rejoin.errors import TopologyError
from rejoin.plan import explain
from rejoin.plan.change.edits import node_edits
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.check.compile import compile
from rejoin.plan.model import json_form
from rejoin.plan.model.grouping import Aggregate, Value
from rejoin.plan.model.plan import Node, Plan
from rejoin.plan.model.steps import steps
from rejoin.plan.sql.portable.plans import why_not

ORDERS = "id BIGINT, c BIGINT, amount DECIMAL(10,2), q INT, big BIGINT, note STRING, f FLOAT, paid BOOLEAN, wide DECIMAL(38,2)"


class Shop:
    def __init__(self) -> None:
        self.on = Topology("shop")
        self.orders = self.on.table("orders", key="id", schema=ORDERS, source=debezium("orders/"))
        self.customers = self.on.table("customers", key="id", schema="id BIGINT, name STRING", source=debezium("customers/"))

    def visits(self) -> Relation:
        return self.on.stream(
            "visits", id="v", key="c", event_time="at", schema="v BIGINT, c BIGINT, at TIMESTAMP", source=records("visits/")
        )

    def pairs(self) -> Relation:
        return self.on.table("pairs", key=["a", "b"], schema="a INT, b INT, x INT", source=debezium("pairs/"))

    def plan(self) -> Plan:
        made = compile(self.on)
        assert json_form.from_json(json_form.to_json(made)) == made
        return made


def made(declare: Callable[[Shop], Relation]) -> tuple[Plan, Node]:
    shop = Shop()
    declare(shop).named("out")
    plan = shop.plan()
    return plan, plan.node("out")


def test_groups_are_a_node_of_their_own_with_a_subscription_of_every_member() -> None:
    plan, node = made(
        lambda shop: shop.orders.filter("q > 0").group_by("c", "q % 2 AS odd").aggregate(n="count(*)", top="max(q)", sum="sum(q)")
    )
    assert (node.key, node.edges, node.left.where, node.null_keys) == (("c", "odd"), (), "t.`q` > 0", True)
    assert node.grouping is not None
    assert node.grouping.keys == (Value("c", "l.`c`", "BIGINT"), Value("odd", "l.`q` % 2", "INT"))
    assert node.grouping.values == (Value("v_1", "l.`q`", "INT"),)
    assert node.grouping.aggregates == (
        Aggregate("n", "count", (), "BIGINT"), Aggregate("top", "max", ("v_1",), "INT"), Aggregate("sum", "sum", ("v_1",), "BIGINT"),
    )  # fmt: skip
    assert [(s.id, s.after) for s in steps(plan) if s.target == "out"] == [
        ("subscribe.out", ("ingest.orders",)),
        ("resolve.out", ("subscribe.out",)),
        ("validate.out", ("resolve.out",)),
    ]
    assert plan.table("orders").used == ("c", "q")


def test_a_filter_and_a_select_behind_groups_are_part_of_their_node() -> None:
    groups = lambda shop: shop.orders.group_by("c").aggregate(n="count(*)")  # noqa: E731
    _, node = made(lambda shop: groups(shop).filter("n > 1").select(["n + 1 AS more", "c AS customer"]))
    assert (node.where, node.key) == ("l.`n` > 1", ("customer",))
    assert [(c.name, c.sql) for c in node.columns] == [("more", "l.`n` + 1"), ("customer", "l.`c`")]


def test_groups_that_are_joined_are_a_node_before_the_join() -> None:
    plan, node = made(
        lambda shop: shop.customers.left_join(
            shop.orders.group_by("c").aggregate(n="count(*)"), foreign_key="id", select=["left.*", "right.n"]
        )
    )
    groups = plan.node(node.edges[0].right.table)
    assert not groups.published and groups.grouping is not None and groups.used == ("n",)


def test_null_is_no_key_where_the_columns_are_those_of_the_key() -> None:
    assert not made(lambda shop: shop.pairs().group_by("a").aggregate(n="count(*)"))[1].null_keys
    assert made(lambda shop: shop.pairs().group_by("a", "x").aggregate(n="count(*)"))[1].null_keys


@pytest.mark.parametrize(
    ("written", "type_", "values"),
    [
        ("count(*)", "BIGINT", []),
        ("COUNT( * ) filter (where paid)", "BIGINT", ["CASE WHEN l.`paid` THEN true END"]),
        ("count(note)", "BIGINT", ["l.`note`"]),
        ("count(DISTINCT upper(note))", "BIGINT", ["upper(l.`note`)"]),
        ("count_distinct(note)", "BIGINT", ["l.`note`"]),
        ("sum(q)", "BIGINT", ["l.`q`"]),
        ("sum(amount)", "DECIMAL(20,2)", ["l.`amount`"]),
        ("sum(wide)", "DECIMAL(38,2)", ["l.`wide`"]),
        ("sum(f)", "DOUBLE", ["l.`f`"]),
        ("avg(big)", "DOUBLE", ["l.`big`"]),
        ("avg(amount)", "DECIMAL(14,6)", ["l.`amount`"]),
        ("avg(wide)", "DECIMAL(38,6)", ["l.`wide`"]),
        ("min(note)", "STRING", ["l.`note`"]),
        ("max(coalesce(note, '(,)'))", "STRING", ["coalesce(l.`note`, '(,)')"]),
        ("max(CAST(soundex(note) AS STRING))", "STRING", ["CAST(soundex(l.`note`) AS STRING)"]),
        ("bool_or(paid)", "BOOLEAN", ["l.`paid`"]),
        ("min_by(note, amount)", "STRING", ["l.`note`", "l.`amount`"]),
        ("max_by(q, f) FILTER (WHERE q > 1)", "INT", ["CASE WHEN l.`q` > 1 THEN l.`q` END", "CASE WHEN l.`q` > 1 THEN l.`f` END"]),
        ("collect(note)", "ARRAY<STRING>", ["l.`note`"]),
        (
            "COLLECT(q + 1 order by amount desc, concat(note, ',') ASC limit 3)",
            "ARRAY<INT>",
            ["l.`q` + 1", "l.`amount`", "concat(l.`note`, ',')"],
        ),
        ("collect(struct(id, q % 2 AS odd))", "ARRAY<STRUCT<id: BIGINT, odd: INT>>", ["l.`id`", "l.`q` % 2"]),
        (
            "collect(CAST(note AS INT) ORDER BY id) FILTER (WHERE paid)",
            "ARRAY<INT>",
            ["CASE WHEN l.`paid` THEN CAST(l.`note` AS INT) END", "l.`id`", "CASE WHEN l.`paid` THEN true END"],
        ),
    ],
)
def test_an_aggregate_has_the_type_that_spark_gives_it(written: str, type_: str, values: list[str]) -> None:
    _, node = made(lambda shop: shop.orders.group_by("c").aggregate(out=written))
    assert node.grouping is not None
    assert [a.type for a in node.grouping.aggregates] == [type_] == [c.type for c in node.columns if c.name == "out"]
    assert [v.sql for v in node.grouping.values] == values


def chain(shop: Shop, groups: int) -> Relation:
    """Documents in documents."""
    made = shop.orders.select(["id", "c", "q AS n"])
    for _ in range(groups):
        made = made.group_by("c").aggregate(n="collect(struct(n))")
    return made


def test_documents_are_nested_up_to_eight_types_deep() -> None:
    _, node = made(lambda shop: chain(shop, 4))
    assert node.columns[1].type == "ARRAY<STRUCT<n: " * 4 + "INT" + ">>" * 4


COUNT = {"n": "count(*)"}
MISTAKES: dict[str, tuple[Callable[[Shop], Relation], str]] = {
    "no key": (lambda s: s.orders.group_by().aggregate(**COUNT), "BAD_OPTION group_by: at least one column"),
    "no aggregate": (lambda s: s.orders.group_by("c").aggregate(), "BAD_OPTION aggregate: at least one column"),
    "an expression without a name": (lambda s: s.orders.group_by("c + 1").aggregate(**COUNT), "BAD_EXPRESSION group_by: 'c + 1': the column c + 1 needs a name"),
    "a rounded key": (lambda s: s.orders.group_by("f").aggregate(**COUNT), "BAD_TYPE group_by: 'f': it is FLOAT, and rounded numbers cannot be keys"),
    "a key twice": (lambda s: s.orders.group_by("c", "q AS c").aggregate(**COUNT), "DUPLICATE_NAME group_by: 'q AS c': two group keys are named 'c'"),
    "a key named as a column": (lambda s: s.orders.group_by("c AS N").aggregate(**COUNT), "DUPLICATE_NAME two columns of the groups are named"),
    "a name of ours": (lambda s: s.orders.group_by("c").aggregate(_n="count(*)"), "UNSAFE_NAME aggregate _n='count(*)': column name '_n' starts"),
    "no text": (lambda s: s.orders.group_by("c").aggregate(n=3), "BAD_EXPRESSION aggregate n=3: a text with one aggregate is expected"),  # type: ignore[arg-type]
    "no call": (lambda s: s.orders.group_by("c").aggregate(n="amount"), "BAD_EXPRESSION aggregate n='amount': one aggregate is expected"),
    "an open parenthesis": (lambda s: s.orders.group_by("c").aggregate(n="sum(q"), "BAD_EXPRESSION aggregate n='sum(q': one aggregate is expected"),
    "an open quote": (lambda s: s.orders.group_by("c").aggregate(n="max('q)"), "BAD_EXPRESSION aggregate n=\"max('q)\": not valid SQL"),
    "more than an aggregate": (lambda s: s.orders.group_by("c").aggregate(n="sum(q) + 1"), "BAD_EXPRESSION aggregate n='sum(q) + 1': an aggregate stands alone"),
    "an empty filter": (lambda s: s.orders.group_by("c").aggregate(n="count(*) FILTER (WHERE)"), "BAD_EXPRESSION aggregate n='count(*) FILTER (WHERE)': an aggregate stands alone"),
    "a filter that is no condition": (lambda s: s.orders.group_by("c").aggregate(n="count(*) FILTER (WHERE q)"), "BAD_EXPRESSION aggregate n='count(*) FILTER (WHERE q)': a filter must be BOOLEAN"),
    "an unknown column": (lambda s: s.orders.group_by("c").aggregate(n="sum(nix)"), "UNKNOWN_COLUMN aggregate n='sum(nix)': unknown column 'nix'"),
    "no aggregate of rejoin": (lambda s: s.orders.group_by("c").aggregate(n="upper(note)"), "BAD_EXPRESSION aggregate n='upper(note)': upper() is no aggregate"),
    "an aggregate in another": (lambda s: s.orders.group_by("c").aggregate(n="sum(max(q))"), "FORBIDDEN_FUNCTION aggregate n='sum(max(q))': max() is not allowed"),
    "a type that it does not take": (lambda s: s.orders.group_by("c").aggregate(n="sum(note)"), "BAD_TYPE aggregate n='sum(note)': sum() does not take STRING"),
    "a type that is not known": (lambda s: s.orders.group_by("c").aggregate(n="max(get(split(note, ','), 0))"), "BAD_TYPE aggregate n=\"max(get(split(note, ','), 0))\": its type is not certain; write CAST"),
    "too few arguments": (lambda s: s.orders.group_by("c").aggregate(n="min_by(q)"), "BAD_EXPRESSION aggregate n='min_by(q)': min_by() takes 2 argument(s), not 1"),
    "distinct": (lambda s: s.orders.group_by("c").aggregate(n="sum(DISTINCT q)"), "BAD_EXPRESSION aggregate n='sum(DISTINCT q)': sum() takes no DISTINCT"),
    "collect of two": (lambda s: s.orders.group_by("c").aggregate(n="collect(id, q)"), "BAD_EXPRESSION aggregate n='collect(id, q)': collect() takes 1 argument(s), not 2"),
    "collect distinct": (lambda s: s.orders.group_by("c").aggregate(n="collect(DISTINCT q)"), "BAD_EXPRESSION aggregate n='collect(DISTINCT q)': collect() takes no DISTINCT"),
    "collect a star": (lambda s: s.orders.group_by("c").aggregate(n="collect(*)"), "BAD_EXPRESSION aggregate n='collect(*)': an expression without AS"),
    "collect none": (lambda s: s.orders.group_by("c").aggregate(n="collect(q LIMIT 0)"), "BAD_EXPRESSION aggregate n='collect(q LIMIT 0)': collect(element ORDER BY ... LIMIT n) is expected"),
    "collect some": (lambda s: s.orders.group_by("c").aggregate(n="collect(q LIMIT few)"), "BAD_EXPRESSION aggregate n='collect(q LIMIT few)': collect(element ORDER BY ... LIMIT n) is expected"),
    "collect in no order": (lambda s: s.orders.group_by("c").aggregate(n="collect(q ORDER BY)"), "BAD_EXPRESSION aggregate n='collect(q ORDER BY)': collect(element ORDER BY ... LIMIT n) is expected"),
    "collect the limit first": (lambda s: s.orders.group_by("c").aggregate(n="collect(q LIMIT 2 ORDER BY q)"), "BAD_EXPRESSION aggregate n='collect(q LIMIT 2 ORDER BY q)': collect(element ORDER BY ... LIMIT n) is expected"),
    "collect by an unknown column": (lambda s: s.orders.group_by("c").aggregate(n="collect(q ORDER BY nix DESC)"), "UNKNOWN_COLUMN aggregate n='collect(q ORDER BY nix DESC)': ORDER BY: unknown column 'nix'"),
    "nulls somewhere else": (lambda s: s.orders.group_by("c").aggregate(n="collect(q ORDER BY q NULLS LAST)"), "BAD_EXPRESSION aggregate n='collect(q ORDER BY q NULLS LAST)': ORDER BY: "),
    "a field without a name": (lambda s: s.orders.group_by("c").aggregate(n="collect(struct(q + 1))"), "BAD_EXPRESSION aggregate n='collect(struct(q + 1))': the column q + 1 needs a name"),
    "a field twice": (lambda s: s.orders.group_by("c").aggregate(n="collect(struct(q, id AS Q))"), "DUPLICATE_NAME aggregate n='collect(struct(q, id AS Q))': two fields of the struct are named 'Q'"),
    "a field of no type": (lambda s: s.orders.group_by("c").aggregate(n="collect(struct(get(split(note, ','), 0) AS x))"), "BAD_TYPE aggregate n=\"collect(struct(get(split(note, ','), 0) AS x))\": its type is not certain"),
    "documents that are too deep": (lambda s: chain(s, 5), "BAD_TYPE aggregate n='collect(struct(n))': type ARRAY<STRUCT<n: ARRAY<"),
    "an order of arrays": (
        lambda s: s.orders.group_by("c", "q").aggregate(n="collect(id)").group_by("c").aggregate(m="collect(q ORDER BY n)"),
        "BAD_TYPE aggregate m='collect(q ORDER BY n)': ORDER BY: it is ARRAY<BIGINT>, and members are ordered by single values",
    ),
    "nested by too few": (lambda s: s.pairs().nest(s.orders, "c", name="rows", select=["id"]), "FK_COUNT without a foreign_key two tables are joined by their keys, which have not as many"),
    "nested by another type": (lambda s: s.customers.nest(s.orders, "note", name="rows", select=["id"]), "FK_TYPE "),
    "nested under a name that is there": (lambda s: s.customers.nest(s.orders, "c", name="name", select=["id"]), "DUPLICATE_NAME "),
    "nested of an unknown column": (lambda s: s.customers.nest(s.orders, "c", name="rows", select=["nix"]), "UNKNOWN_COLUMN aggregate rows='collect(struct(nix))': unknown column 'nix'"),
    "nested in an unknown order": (lambda s: s.customers.nest(s.orders, "c", name="rows", select=["id"], order_by="nix"), "UNKNOWN_COLUMN aggregate rows='collect(struct(id) ORDER BY nix)': ORDER BY: unknown"),
    "a stream": (lambda s: s.visits().group_by("c").aggregate(**COUNT), "BAD_OPTION group_by: visits is a stream"),
    "a key that is lost": (lambda s: s.orders.group_by("c").aggregate(**COUNT).select(["n"]), "KEY_LOST select: the key column 'c' of the groups"),
    "two rows for null": (
        lambda s: s.orders.group_by("c").aggregate(**COUNT).full_join(s.orders.group_by("c").aggregate(m="count(*)")), "BAD_OPTION full_join by keys that may be null",
    ),
    "members without a value held back": (
        lambda s: s.orders.group_by("c").aggregate(**COUNT).named("held").expect(computable(), severity="quarantine"), "BAD_OPTION expect on 'held': computable: a member",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_code(mistake: str) -> None:
    declare, expected = MISTAKES[mistake]
    shop = Shop()
    relation = declare(shop)
    if mistake != "members without a value held back":
        relation.named("out")
    with pytest.raises(TopologyError) as refused:
        compile(shop.on)
    assert any(f"{p.code} {p.message}".startswith(expected) for p in refused.value.problems), refused.value


def test_what_is_nested_is_a_group_that_is_joined_by_its_key_and_never_null() -> None:
    plan, node = made(lambda s: s.customers.nest(s.orders, "c", name="order", select=["id", "upper(note) AS note"], order_by="q DESC, id"))
    assert [(c.name, c.sql) for c in node.columns][2:] == [("order", "coalesce(r1.`order`, array())")]
    groups = plan.node(node.edges[0].right.table).grouping
    assert groups is not None and [made.type for made in groups.aggregates] == ["ARRAY<STRUCT<id: BIGINT, note: STRING>>"]
    assert groups.written[1] == {"order": "collect(struct(l.`id` AS id, upper(l.`note`) AS note) ORDER BY l.`q` DESC, l.`id`)"}
    assert why_not(plan, node) is None


def test_groups_that_nobody_names_are_unused() -> None:
    shop = Shop()
    shop.orders.group_by("c").aggregate(n="count(*)")
    with pytest.raises(TopologyError, match="this aggregate is never used"):
        compile(shop.on)


def test_people_read_keys_and_aggregates_in_the_plan() -> None:
    plan, _ = made(lambda shop: shop.orders.group_by("c", "q % 2 AS odd").aggregate(kinds="count(DISTINCT note)", n="count(*)"))
    text = explain.text(plan)
    assert (
        "    group by c = l.`c`\n             odd = l.`q` % 2\n    made of  kinds = count(DISTINCT l.`note`)\n             n = count(*)\n"
        in text
    )
    assert "t_orders -->|group by| t_out" in explain.mermaid(plan)


def test_people_read_what_is_collected() -> None:
    written = {"a": "collect(struct(id, note AS n) ORDER BY q DESC, id LIMIT 3)", "b": "collect(note) FILTER (WHERE paid)"}
    plan, _ = made(lambda shop: shop.orders.group_by("c").aggregate(**written))
    text = explain.text(plan)
    assert "a = collect(struct(l.`id` AS id, l.`note` AS n) ORDER BY l.`q` DESC, l.`id` LIMIT 3)\n" in text
    assert "b = collect(l.`note`) FILTER (WHERE CASE WHEN l.`paid` THEN true END)\n" in text
    assert "of the rows would change, or an array had more than 100,000 elements\n" in text


@pytest.mark.parametrize("most", [0, True, 2.5, "10"])
def test_max_members_is_a_whole_number(most: object) -> None:
    shop = Shop()
    shop.orders.named("out", max_members=most)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match=f"max_members is {most!r}; expected a whole number from 1"):
        compile(shop.on)


def test_intermediate_groups_take_max_members_from_their_output_and_a_plan_that_lacks_it_has_the_default() -> None:
    shop = Shop()
    shop.customers.nest(shop.orders, "c", name="orders", select=["id"]).named("out", max_members=7)
    plan = compile(shop.on)
    assert [node.policy.max_members for node in plan.nodes] == [7, 7]
    before = re.sub(r',\s*"max_members":\s*7|"max_members":\s*7,\s*', "", json_form.to_json(plan))
    assert "max_members" not in before
    assert json_form.from_json(before).node("out").policy.max_members == 100_000


def test_an_edit_of_groups_is_a_new_definition_and_told_in_words() -> None:
    old, was = made(lambda shop: shop.orders.group_by("c").aggregate(n="count(*)", top="max(q)"))
    new, now = made(lambda shop: shop.orders.group_by("q AS c").aggregate(n="count(note)", top="max(big)"))
    assert fingerprint(old, was) != fingerprint(new, now)
    assert was.grouping is not None and now.grouping is not None and was.grouping.name != now.grouping.name
    assert node_edits(old, new, "out") == (
        "column c: BIGINT becomes INT",
        "column top: INT becomes BIGINT",
        "group key c: l.`c` becomes l.`q`",
        "column n: count(*) becomes count(l.`note`)",
        "column top: max(l.`q`) becomes max(l.`big`)",
    )
    plain, _ = made(lambda shop: shop.orders.select(["id AS c", "c AS n", "q AS top"]))
    assert "its rows are groups now" in node_edits(plain, new, "out")
    assert "its rows are no groups any more" in node_edits(new, plain, "out")

"""Statements of groups: what members send, which groups they touch, and what a group is made of."""

import pytest
from statement_tables import SQL, check, spoken

from rejoin import Topology, debezium
from rejoin.joins.group import statements as group
from rejoin.joins.group import totals
from rejoin.joins.outer import statements as outer
from rejoin.plan.check.compile import compile

KEY = ("s", "o")


def _plan() -> Topology:
    made = Topology("shop")
    lines = made.table("lines", list(KEY), "s INT, o INT, c STRING, q INT, w DOUBLE, d DECIMAL(5,2), ok BOOLEAN", debezium("lines")).filter(
        "q < 9"
    )
    lines.group_by("c").aggregate(n="count(*)", q="sum(q)").named("few")
    lines.group_by("c").aggregate(n="count(*)", some="count(q)", total="sum(q)", mean="avg(q)", money="sum(d)").named("whole")
    lines.group_by("c").aggregate(
        n="count(*)",
        some="count(q)",
        kinds="count(DISTINCT q)",
        total="sum(q)",
        money="sum(d)",
        weight="sum(w)",
        mean="avg(q)",
        share="avg(w)",
        low="min(q)",
        high="max(c)",
        every="bool_and(ok)",
        one="bool_or(ok)",
        lightest="min_by(o, w)",
        heaviest="max_by(o, w)",
        good="sum(q) FILTER (WHERE ok)",
        every_q="collect(q)",
        by_weight="collect(o ORDER BY w, q DESC)",
        light="collect(struct(o, c AS k) ORDER BY w DESC LIMIT 2)",
        kept="collect(q ORDER BY o) FILTER (WHERE ok)",
    ).named("many")
    return made


PLAN = compile(_plan())
FEW, MANY = spoken(PLAN, "few"), spoken(PLAN, "many")
LINE = "STRUCT(s INT, o INT, c VARCHAR, q INT, w DOUBLE, d DECIMAL(5,2), ok BOOLEAN, _hash BLOB)"


def line(o: int, c: str, q: int, h: str = "h") -> str:
    return f"{{s: 1, o: {o}, c: {c}, q: {q}, _hash: {h}}}"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("NULL", line(1, "a", 3), "a | 1 | S | 3 | h", id="comes"),
        pytest.param(line(1, "a", 3), "NULL", "a | 1 | D | NULL | NULL", id="goes"),
        pytest.param(line(1, "a", 3), line(1, "a", 4, "i"), "a | 1 | S | 4 | i", id="stays in its group"),
        pytest.param(line(1, "a", 3), line(1, "b", 3), "a | 1 | D | NULL | h\n b | 1 | S | 3 | h", id="moves"),
        pytest.param(line(1, "NULL", 3), line(1, "b", 3), "NULL | 1 | D | NULL | h\n b | 1 | S | 3 | h", id="leaves the group of null"),
        pytest.param("NULL", line(1, "NULL", 3), "NULL | 1 | S | 3 | h", id="comes to the group of null"),
        pytest.param(line(1, "a", 3), line(1, "b", 9), "a | 1 | D | NULL | h", id="is shown no more"),
        pytest.param(line(1, "a", 9), line(1, "b", 9), "", id="was never shown"),
    ],
)
def test_a_member_says_which_group_it_leaves_and_which_one_it_has(before: str, after: str, expected: str) -> None:
    changes = f"s INT | o INT | _before {LINE} | _after {LINE}\n 1 | 1 | {before} | {after}"
    assert FEW.grouping is not None
    check(group.joined(SQL, FEW.left, FEW.grouping, KEY, 7), f"fk_1 | pk_2 | _op | v_1 | _hash\n {expected}", changes=changes)


def test_members_of_all_rows_are_those_that_the_view_shows() -> None:
    lefts = f"s INT | o INT | _row {LINE}\n 1 | 1 | {line(1, 'a', 3)}\n 1 | 2 | {line(2, 'NULL', 4)}\n 1 | 3 | {line(3, 'a', 9)}"
    check(group.members(SQL, FEW, KEY), "fk_1 | pk_1 | pk_2 | v_1\n a | 1 | 1 | 3\n NULL | 1 | 2 | 4", lefts=lefts)


def test_groups_are_touched_once_null_among_them() -> None:
    sent, again = "fk_1\n a\n a\n NULL\n NULL", "c\n b\n NULL"
    check(group.touched(SQL, [("sent", ["fk_1"]), ("again", ["c"])], 1), "fk_1\n a\n b\n NULL", sent=sent, again=again)


MEMBERS = """
  fk_1 | pk_1 INT | pk_2 INT | v_1 INT | v_2 DECIMAL(5,2) | v_3 DOUBLE | v_4 VARCHAR | v_5 BOOLEAN | v_6 INT | v_7 INT | v_8 BOOLEAN
  a    | 1        | 2        | 3       | 1.25             | 1e16       | a           | true        | 2       | 3       | true
  a    | 1        | 1        | 3       | 0.25             | -1e16      | a           | NULL        | 1       | NULL    | NULL
  a    | 1        | 3        | NULL    | NULL             | 1          | a           | false       | 3       | NULL    | NULL
  a    | 2        | 1        | 4       | 2                | -1e16      | a           | true        | 1       | 4       | true
  NULL | 1        | 4        | NULL    | NULL             | NULL       | NULL        | NULL        | 4       | NULL    | NULL
"""


@pytest.mark.parametrize(
    ("column", "of_a", "of_null"),
    [
        ("n", "4", "1"),
        ("some", "3", "0"),
        ("kinds", "2", "0"),
        ("total", "10", "NULL"),
        ("money", "3.50", "NULL"),
        ("weight", "-1e+16", "NULL"),  # in the order of the keys: -1e16 + 1e16 + 1 - 1e16
        ("mean", "3.3333333333333335", "NULL"),
        ("share", "-2500000000000000.0", "NULL"),
        ("low", "3", "NULL"),
        ("high", "a", "NULL"),
        ("every", "false", "NULL"),
        ("one", "true", "NULL"),
        ("lightest", "1", "NULL"),
        ("heaviest", "2", "NULL"),
        ("good", "7", "NULL"),
        ("every_q", "[3, 3, NULL, 4]", "[NULL]"),
        ("by_weight", "[1, 1, 3, 2]", "[4]"),
        ("light", "[{'o': 2, 'k': a}, {'o': 3, 'k': a}]", "[{'o': 4, 'k': NULL}]"),
        ("kept", "[4, 3]", "[]"),
    ],
)
def test_an_aggregate_is_made_of_all_members_in_the_order_of_their_keys(column: str, of_a: str, of_null: str) -> None:
    expected = f"pk_1 | l.c | l.{column} | octet_length(l._hash)\n a | a | {of_a} | 16\n NULL | NULL | {of_null} | 16"
    check(group.groups(SQL, MANY, 2), expected, members=MEMBERS)


def test_totals_of_members_follow_those_that_come_and_go() -> None:
    grouping = spoken(PLAN, "whole").grouping
    assert grouping is not None and totals.without_inverse(grouping) is None
    members = "fk_1 | v_1 INT | v_2 DECIMAL(5,2)"
    whole = "fk_1 | n | n_v_1 | n_v_2 | s_v_1 | s_v_2"
    rows = f"{members}\n a | 3 | 1.25\n a | NULL | 0.50\n NULL | NULL | NULL"
    check(totals.of_members(SQL, grouping), f"{whole}\n a | 2 | 1 | 2 | 3 | 1.75\n NULL | 1 | 0 | 0 | 0 | 0.00", members=rows)
    typed = "fk_1 | n BIGINT | n_v_1 BIGINT | n_v_2 BIGINT | s_v_1 DECIMAL(30,0) | s_v_2 DECIMAL(15,2)"
    known, come = f"{typed}\n a | 2 | 1 | 2 | 3 | 1.75\n NULL | 1 | 0 | 0 | 0 | 0", f"{typed}\n a | 1 | 1 | 1 | 7 | 1"
    gone = f"{typed}\n a | 1 | 1 | 1 | 3 | 1.25\n NULL | 1 | 0 | 0 | 0 | 0"
    after = f"{whole}\n a | 2 | 1 | 2 | 7 | 1.50\n NULL | 0 | 0 | 0 | 0 | 0.00"
    check(totals.followed(SQL, grouping), after, known=known, come=come, gone=gone)


def test_groups_without_members_are_stored_as_deleted_and_are_no_results() -> None:
    node = spoken(PLAN, "whole")
    assert node.grouping is not None
    known = "fk_1 | n BIGINT | n_v_1 BIGINT | n_v_2 BIGINT | s_v_1 DECIMAL(30,0) | s_v_2 DECIMAL(15,2)\n a | 1 | 1 | 1 | 3 | 1.75\n NULL | 0 | 0 | 0 | 0 | 0"
    stored = "fk_1 | n | s_v_2 | _run | _op\n a | 1 | 1.75 | 7 | S\n NULL | 0 | 0.00 | 7 | D"
    check(totals.kept(SQL, node.grouping, 7), stored, totals=known)
    check(group.told(SQL, node), "pk_1 | l.n | l.total\n a | 1 | 3", totals=known)


@pytest.mark.parametrize(("op", "expected"), [("", "a | 1 | S\n a | 2 | D\n NULL | 3 | S"), ("S", "a | 1 | S\n NULL | 3 | S")])
def test_of_what_is_sent_only_that_to_groups_with_known_totals_is_taken(op: str, expected: str) -> None:
    sent, known = "fk_1 | pk_1 | _op\n a | 1 | S\n a | 2 | D\n b | 1 | S\n NULL | 3 | S", "fk_1\n a\n NULL"
    text = totals.of_these(SQL, ["fk_1"], ["fk_1", "pk_1", "_op"], op=op)
    check(text, f"fk_1 | pk_1 | _op\n {expected}", sent=sent, known=known)


def test_the_longest_array_of_a_column_is_that_of_the_group_with_most_members_that_pass_its_filter() -> None:
    assert MANY.grouping is not None
    check(group.longest(SQL, MANY.grouping), "every_q | by_weight | kept\n 4 | 4 | 2", members=MEMBERS)


def test_a_group_told_by_totals_is_that_of_its_members() -> None:
    node = spoken(PLAN, "whole")
    assert node.grouping is not None
    members = (
        "fk_1 | pk_1 INT | pk_2 INT | v_1 INT | v_2 DECIMAL(5,2)\n a | 1 | 1 | 3 | 1.25\n a | 1 | 2 | 4 | NULL\n b | 1 | 3 | NULL | NULL"
    )
    of_members = f"SELECT * FROM ({group.groups(SQL, node, 2)})"
    by_totals = f"SELECT * FROM ({group.told(SQL, node).replace('FROM totals', f'FROM ({totals.of_members(SQL, node.grouping)})')})"
    check(f"{of_members} EXCEPT ALL {by_totals}", "pk_1", members=members)
    check(
        by_totals,
        "pk_1 | l.n | l.some | l.total | l.mean | l.money\n a | 2 | 2 | 7 | 3.5 | 1.25\n b | 1 | 0 | NULL | NULL | NULL",
        members=members,
    )


@pytest.mark.parametrize(
    ("aggregate", "told"),
    [
        ("sum(d)", False),
        ("sum(wide)", True),
        ("sum(w)", True),
        ("avg(q)", False),
        ("avg(w)", True),
        ("count(DISTINCT q)", True),
        ("min(q)", True),
    ],
)
def test_aggregates_without_an_inverse_are_told_by_all_members_only(aggregate: str, told: bool) -> None:
    made = Topology("shop")
    lines = made.table("lines", "o", "o INT, c STRING, q INT, w DOUBLE, d DECIMAL(28,2), wide DECIMAL(29,2)", debezium("lines"))
    lines.group_by("c").aggregate(n="count(*)", x=aggregate).named("groups")
    grouping = compile(made).node("groups").grouping
    assert grouping is not None
    assert (totals.without_inverse(grouping) is not None) == told


def test_equal_groups_have_equal_hashes_and_others_have_not() -> None:
    few = "fk_1 | pk_1 INT | pk_2 INT | v_1 INT\n a | 1 | 1 | 3\n a | 1 | 2 | 4\n b | 1 | 3 | 7"
    hashes = f"SELECT count(DISTINCT l._hash) AS found FROM ({group.groups(SQL, FEW, 2)})"
    check(hashes, "found\n 2", members=few)
    check(f"SELECT count(DISTINCT x._hash) AS found FROM (SELECT l AS x FROM ({group.groups(SQL, FEW, 2)}) UNION ALL SELECT l FROM ({group.groups(SQL, FEW, 2)}))", "found\n 2", members=few)  # fmt: skip


def test_a_right_row_whose_whole_key_is_null_is_one_like_any_other() -> None:
    given = {"sent": ("fk_1",), "changes": ("c",), "held": ("right",)}
    sent, changes, held = "fk_1\n a", "c\n NULL", "l_1 | l_2 | right\n 1 | NULL | NULL\n 2 | 1 | b\n NULL | NULL | c"
    check(outer.touched(SQL, given, ["c"], ["l_1", "l_2"]), "c\n a\n b\n c\n NULL", sent=sent, changes=changes, held=held)
    check(outer.touched(SQL, {"held": ("right",)}, ["c"], ["l_1", "l_2"]), "c\n b\n c", held=held)

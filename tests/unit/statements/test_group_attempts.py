"""What the computation of groups reads and keeps: members before a run, stored totals, those of large groups."""

from pathlib import Path

import pytest
from attempts import attempt, relation
from limited import limited
from statement_tables import check_rows
from stored_tables import StoredTables

from rejoin import Topology, debezium
from rejoin.joins.group.changes import GroupKind
from rejoin.lake import table_names
from rejoin.lake.read.lookups import LookupKeys
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan

RUN = 3


def _plan() -> Plan:
    made = Topology("shop")
    lines = made.table("lines", "o", "o INT, c STRING, q INT", debezium("lines"))
    lines.group_by("c").aggregate(n="count(*)", q="sum(q)").named("groups")
    return compile(made)


PLAN = _plan()
NODE = PLAN.node("groups")
assert NODE.grouping is not None
GROUPING = NODE.grouping


@pytest.fixture
def lake(tmp_path: Path) -> StoredTables:
    return StoredTables(tmp_path, "shop")


def _keys(text: str) -> LookupKeys:
    return LookupKeys(relation(text), 9)


def test_members_before_a_run_are_those_that_it_has_not_sent(lake: StoredTables) -> None:
    sent = "fk_1 | pk_1 INT | _run BIGINT | _op | _hash BLOB | v_1 INT\n"
    rows = "a | 1 | 1 | S | h | 5\n a | 2 | 2 | S | h | 6\n a | 1 | 3 | S | h | 7\n a | 2 | 3 | D | h | NULL\n b | 3 | 3 | S | h | 8"
    lake.write(table_names.subscriptions(NODE, GROUPING), sent + rows)
    now, before = attempt(lake, PLAN).now.members_and_before(NODE, GROUPING, _keys("fk_1\n a\n b"), RUN)
    check_rows(now.here(), "fk_1 | pk_1 | v_1\n a | 1 | 7\n b | 3 | 8")
    check_rows(before.here(), "fk_1 | pk_1 | v_1\n a | 1 | 5\n a | 2 | 6")


def test_stored_totals_are_the_newest_of_groups_that_have_members(lake: StoredTables) -> None:
    header = "fk_1 | n BIGINT | n_v_1 BIGINT | s_v_1 DECIMAL(30,0) | _run BIGINT | _op\n"
    rows = "a | 3 | 3 | 9 | 1 | S\n a | 4 | 4 | 10 | 2 | S\n b | 3 | 3 | 9 | 1 | S\n b | 0 | 0 | 0 | 2 | D\n c | 5 | 5 | 5 | 1 | S"
    lake.write(table_names.totals(NODE, GROUPING), header + rows)
    found = attempt(lake, PLAN).now.totals(NODE, GROUPING, _keys("fk_1\n a\n b"))
    assert found is not None
    check_rows(found.here(), "fk_1 | n | s_v_1\n a | 4 | 10")


def test_totals_of_large_groups_are_kept(lake: StoredTables, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, large_group=2)
    kind = GroupKind(attempt(lake, PLAN), NODE)
    made = kind._totals(relation("fk_1 | v_1 INT\n a | 1\n a | 2\n a | 3\n b | 4\n b | 5"), 5)
    check_rows(made.here(), "fk_1 | n | s_v_1\n a | 3 | 6\n b | 2 | 9")
    (large,) = kind._kept
    check_rows(large.here(), "fk_1 | n | s_v_1\n a | 3 | 6")

"""What the pages read of a lake: known numbers, and what is not known said so."""

import sqlite3
from pathlib import Path

import pytest
from limited import limited
from small_lake import DAG_RUN, NASTY, SUBSCRIPTIONS, append, make, plan
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from rejoin.errors import RunUnknown, UnknownTable
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger import history
from rejoin.lake.ledger.history import History
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.tries import tried
from rejoin.lake.query import bounded_looks
from rejoin.lake.query.bounded_looks import Newest, Refused, Skew
from rejoin.page.gather import Lake
from rejoin.page.model import Kind, Rows, TableLine


@pytest.fixture
def lake(location: str) -> Lake:
    return Lake(location)


def line(lake: Lake, name: str) -> TableLine:
    return next(t for t in lake.topology("shop").tables if t.name == name)


def test_a_lake_that_is_not_there_has_no_topologies_and_is_not_made(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    assert lake.topologies() == []
    assert (lake.of_dag("shop"), lake.of_dag_run("shop", "x")) == (None, None)
    with pytest.raises(UnknownTable, match="nothing was run"):
        lake.topology("shop")
    assert not (tmp_path / "lake").exists()


def test_a_directory_without_a_ledger_has_no_topologies_and_gets_no_ledger(tmp_path: Path) -> None:
    assert Lake(str(tmp_path)).topologies() == []
    assert not (tmp_path / "ledger.db").exists()


def test_an_unknown_topology_or_run_or_table_is_refused(lake: Lake) -> None:
    with pytest.raises(UnknownTable, match="no topology 'nope'"):
        lake.topology("nope")
    with pytest.raises(RunUnknown, match="no run 9"):
        lake.run("shop", 9)
    with pytest.raises(UnknownTable, match="no table 'nope'"):
        lake.table("shop", "nope")


def test_a_topology_without_a_committed_run_has_a_graph_and_no_tables(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert lake.config is not None
    Ledger(lake.config.ledger, "shop").open("me", plan(), {})
    page = lake.topology("shop")
    assert (page.published, page.tables, [f.input for f in page.fresh]) == (None, (), [None, None])
    assert lake.line("shop").published is None
    with pytest.raises(RunUnknown, match="no run was committed yet"):
        lake.table("shop", "orders")


def test_rows_are_what_readers_see_and_stored_rows_what_lies_there(lake: Lake) -> None:
    orders, sent = line(lake, "orders"), line(lake, SUBSCRIPTIONS)
    assert (orders.kind, orders.rows, orders.stored, orders.files) == (Kind.SOURCE, Rows(5), 8, 2)
    assert (sent.kind, sent.rows, sent.stored) == (Kind.SUBSCRIPTIONS, Rows(5), 7)
    assert line(lake, "enriched__changes").kind is Kind.CHANGES


def test_what_is_too_large_to_count_is_only_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, counted_rows=4)
    assert line(lake, "orders").rows == Rows(8, exact=False, why="more than 4 stored versions are not counted")


def test_the_last_change_is_that_of_the_newest_committed_run_that_made_one(lake: Lake) -> None:
    orders, enriched = line(lake, "orders"), line(lake, "enriched")
    assert orders.change is not None
    assert (orders.change.run, orders.change.counts) == (2, (("changes", 2),))
    assert enriched.change is not None
    assert (enriched.change.run, dict(enriched.change.counts)) == (2, {"inserted": 0, "updated": 1, "deleted": 1})
    assert (enriched.written_by, line(lake, "orders__quarantine").written_by) == (1, 2)


def test_freshness_is_when_the_newest_input_was_taken_not_when_a_run_found_nothing(lake: Lake) -> None:
    page = lake.topology("shop")
    orders, customers = page.fresh
    assert orders.input is not None
    assert (orders.input.run, orders.input.files) == (1, (("landing/orders/1.jsonl", 2048),))
    assert customers.input is None
    first = next(r for r in page.runs if r.number == 1)
    assert (orders.taken_at, orders.published_at) == (first.steps[0].ended_at, first.closed_at)
    assert page.published is not None
    assert page.published.number == 2
    assert page.looked_at == page.published.steps[0].ended_at


def test_runs_come_newest_first_and_a_page_of_older_ones_on_request(lake: Lake) -> None:
    assert [(r.number, r.state) for r in lake.topology("shop").runs] == [(3, "open"), (2, "committed"), (1, "committed")]
    assert [r.number for r in lake.topology("shop", before=3).runs] == [2, 1]


def test_a_run_shows_every_step_of_its_plan_and_what_it_wrote(lake: Lake) -> None:
    page = lake.run("shop", 1)
    assert {s.step: s.line is not None for s in page.steps} == {
        "cut": True,
        "ingest.orders": True,
        "ingest.customers": False,
        "subscribe.enriched": True,
        "respond.enriched.customers": False,
        "resolve.enriched": True,
        "validate.enriched": True,
        "publish": False,
    }
    assert {w.table: w.added.rows for w in page.writes if w.added} == {
        "orders": 6,
        "orders__quarantine": 1,
        SUBSCRIPTIONS: 6,
        "enriched": 6,
        "enriched__changes": 6,
    }
    assert "orders" in page.visible


def test_the_history_of_an_outputs_key_is_its_net_changes(lake: Lake) -> None:
    view = lake.table("shop", "enriched", ("1",)).key_view
    assert view is not None
    assert [(e.run, e.change.op, e.change.changed) for e in view.events] == [(2, "U", {"note"}), (1, "I", frozenset())]
    assert view.events[0].change.before == {"id": 1, "note": "first", "customer": None}


def test_the_history_of_a_sources_key_is_its_versions_and_a_deleted_row_is_gone(lake: Lake) -> None:
    view = lake.table("shop", "orders", ("2",)).key_view
    assert view is not None
    assert view.row is None
    assert [(e.run, e.change.op) for e in view.events] == [(2, "D"), (1, "U")]
    assert (view.events[0].change.before, view.events[0].change.after) == ({"id": 2, "customer_id": 7, "note": "first"}, None)


def test_a_key_that_does_not_fit_is_refused(lake: Lake) -> None:
    for key in (("x",), ("1", "2"), ("1.5",), ("1e0",), ("",), (" 1",), (str(2**63),), ("9" * 50,)):
        with pytest.raises(UnknownTable, match="key"):
            lake.table("shop", "orders", key)
    for same in ("1", "+1", "001"):
        view = lake.table("shop", "orders", (same,)).key_view
        assert view is not None and view.row is not None and view.row["id"] == 1


def test_the_status_is_of_the_published_run_with_what_is_kept_aside_and_the_newest_comparison(tmp_path: Path) -> None:
    lake = Lake(make(tmp_path))
    assert lake.config is not None
    ledger, before = Ledger(lake.config.ledger, "shop"), lake.topology("shop", within=60).status
    assert (before.verified, before.within) == (None, 60)
    assert before.published_at == ledger.run(2).closed_at
    assert [(p.run, p.changes) for p in before.paces] == [(1, 6), (2, 0)], "oldest first; run 2 validated nothing"
    assert before.aside == (("orders", Rows(1)),), "what was released is not counted"
    assert before.open is not None and before.open.number == 3
    ledger.verified(1, 4, fast=False)
    ledger.verified(2, 3, fast=True)
    ledger.verified(2, 0, fast=True)
    found = lake.topology("shop").status.verified
    assert found is not None
    assert (found.run, found.fast, found.differences) == (2, True, 0)


def test_a_ledger_of_an_older_rejoin_has_no_tries_and_no_comparison(tmp_path: Path) -> None:
    lake = Lake(make(tmp_path))
    assert lake.config is not None
    with sqlite3.connect(tmp_path / "lake" / "ledger.db") as db:
        db.execute("DROP TABLE rejoin_tries")
        db.execute("DROP TABLE rejoin_verified")
    assert lake.topology("shop").status.verified is None
    assert {s.tried for s in lake.run("shop", 1).steps} == {None}


def test_tries_of_a_step_are_counted_and_the_newest_error_kept(tmp_path: Path) -> None:
    lake = Lake(make(tmp_path))
    assert lake.config is not None
    ledger = Ledger(lake.config.ledger, "shop")
    ledger.began(3, "ingest.orders")
    ledger.broke(3, "ingest.orders", "SOURCE_MISSING x")
    first = tried(lake.config.ledger, "shop", 3)["ingest.orders"]
    ledger.began(3, "ingest.orders")
    second = tried(lake.config.ledger, "shop", 3)["ingest.orders"]
    assert [(t.tries, t.error) for t in (first, second)] == [(1, "SOURCE_MISSING x"), (2, None)]


def test_a_run_shows_some_of_its_changes_with_the_columns_that_differ(lake: Lake) -> None:
    (sample,) = lake.run("shop", 2).samples
    assert (sample.output, sample.key) == ("enriched", ("id",))
    assert sample.changes is not None
    assert [(c.op, c.changed) for c in sample.changes] == [("U", {"note"}), ("D", frozenset())]
    (first,) = lake.run("shop", 1).samples
    assert first.changes is not None and len(first.changes) == 6


def test_a_key_is_searched_in_every_table(lake: Lake) -> None:
    found = lake.search("shop", "2")
    assert [(h.table, h.keys) for h in found.hits] == [("orders", ((2,),)), ("enriched", ((2,),))], "deleted, but it was there"
    assert lake.search("shop", "no number").hits == ()
    assert lake.search("shop", "99").hits == ()


def test_a_table_that_is_too_large_is_not_searched(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, searched_rows=1)
    assert [h.keys for h in lake.search("shop", "2").hits] == [None, None]


def test_an_output_has_its_sql_and_a_source_has_none(lake: Lake) -> None:
    sql = lake.table("shop", "enriched").sql
    assert sql is not None and "LEFT JOIN" in sql
    assert lake.table("shop", "orders").sql is None


def test_quarantined_records_come_with_their_reasons(lake: Lake) -> None:
    refusals = lake.table("shop", "orders").refusals
    assert refusals is not None
    assert refusals.by_code == (("VALUE_TYPE", 1),)
    assert isinstance(refusals.found, Newest)
    assert refusals.found.all
    assert [(r["_op"], r["_raw"]) for r in refusals.found.rows] == [("R", None), (None, NASTY)]


def test_only_the_newest_refused_records_are_read(location: str, tmp_path: Path) -> None:
    lake = Lake(make(tmp_path))
    assert lake.config is not None
    refs = Refs(lake.config, "shop")
    rows = [{"_run": n, "_code": "C", "_reason": "r"} for n in (5, 5, 4)]
    written = append(refs, "orders__quarantine", rows)
    table = refs.require("orders__quarantine", written.snapshot_id)
    found = bounded_looks.newest(table, written.snapshot_id, 2)
    assert isinstance(found, Newest)
    assert ([r["_run"] for r in found.rows], found.all) == ([5, 5], False)
    assert bounded_looks.newest(table, written.snapshot_id, 10) == Newest(
        bounded_looks.newest(table, written.snapshot_id, 10).rows, all=True
    )  # type: ignore[union-attr]


def test_a_newest_file_that_is_too_large_is_not_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, newest_file_rows=0)
    refusals = lake.table("shop", "orders").refusals
    assert refusals is not None
    assert isinstance(refusals.found, Refused)


def test_skew_counts_live_subscribers(lake: Lake) -> None:
    assert lake.table("shop", SUBSCRIPTIONS).skew == Skew(5, 4, (((7,), 2), ((4,), 1), ((5,), 1), ((6,), 1)), sampled=1)


def test_skew_of_more_subscriptions_is_sampled_by_primary_key_and_of_too_many_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(make(tmp_path))
    assert lake.config is not None
    refs = Refs(lake.config, "shop")
    written = append(refs, SUBSCRIPTIONS, [{"fk_1": i % 2, "pk_1": 100 + i, "_run": 3, "_op": "S"} for i in range(4000)])
    table = refs.require(SUBSCRIPTIONS, written.snapshot_id)
    limited(monkeypatch, skew_rows=1000)
    found = bounded_looks.skew(table, written.snapshot_id, ["fk_1"], ["pk_1"], 2)
    assert isinstance(found, Skew)
    assert found.sampled == 5
    assert [k for k, _ in sorted(found.top)] == [(0,), (1,)]
    assert all(1400 < n < 2600 for _, n in found.top)
    limited(monkeypatch, skew_refused=1000)
    assert isinstance(bounded_looks.skew(table, written.snapshot_id, ["fk_1"], ["pk_1"]), Refused)


def test_a_dag_finds_its_topology_by_its_runs_or_by_its_name(lake: Lake) -> None:
    assert [lake.of_dag(d) for d in ("shop_dag", "shop", "shop_d", "%")] == ["shop", "shop", None, None]
    assert lake.dag_of("shop") == "shop_dag"
    found = lake.of_dag_run("shop_dag", DAG_RUN)
    assert found is not None
    assert (found[0], found[1].number) == ("shop", 2)
    assert lake.of_dag_run("shop_dag", DAG_RUN[:-1]) is None


def test_reading_the_ledger_takes_no_lock_and_cannot_write(location: str) -> None:
    lake = Lake(location)
    assert lake.config is not None
    url = lake.config.ledger
    with Ledger(url, "shop").transaction():  # a writer holds the lock
        assert History(url, "shop").runs(1)[0].number == 3
    with history.connected(url).connect() as db, pytest.raises(OperationalError, match="readonly"):
        db.execute(text("DELETE FROM rejoin_runs"))

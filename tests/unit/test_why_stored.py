"""``rejoin why`` on lakes made by hand: keys of every type, versions, what is set aside, states that are gone."""

import base64
import json
import shlex
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from made_lake import MadeLake

from rejoin import Topology, debezium, snapshot
from rejoin.cli import main
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan


def shop() -> Plan:
    shop = Topology("shop")
    orders = shop.table("orders", key="id", schema="id BIGINT, customer BIGINT, note STRING", source=debezium("orders"))
    customers = shop.table("customers", key="id", schema="id BIGINT, name STRING", source=snapshot("customers"))
    orders.left_join(customers, "customer", ["left.id", "right.name AS name"]).named("enriched")
    return compile(shop)


def ask(lake: MadeLake, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["why", *arguments, "--lake", lake.location, "--root", str(Path(lake.location).parent)])


def told(lake: MadeLake, *arguments: str) -> dict[str, Any]:
    done = ask(lake, *arguments, "--json")
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def version(key: int, op: str = "I", **values: Any) -> dict[str, Any]:
    return {"id": key, "_op": op, "_version": "1", "_hash": b"h" if op != "D" else None, **values}


@pytest.fixture
def lake(tmp_path: Path) -> MadeLake:
    """One order of a customer."""
    made = MadeLake(tmp_path, shop())
    row = {"id": 1, "name": "Ann", "_hash": b"o"}
    pins = {"customers": {"kind": "snapshot", "files": [{"path": "c/1.csv", "size": 9, "sha256": "x"}], "ordinal": 1, "superseded": 0, "columns": []}}  # fmt: skip
    made.run(
        {
            "orders": [version(1, customer=7, note="n")],
            "customers": [version(7, name="Ann")],
            "enriched__subscriptions__customers": [{"fk_1": 7, "pk_1": 1, "_op": "S"}],
            "enriched": [row],
            "enriched__changes": [{"_op": "I", "id": 1, "_after": row}],
        },
        pins,
    )
    return made


ODD = {
    "at": datetime(2024, 1, 1, 12, tzinfo=UTC),
    "amount": Decimal("1.50"),
    "raw": b"\x00\xff",
    "day": date(2024, 2, 29),
    "ok": True,
    "who": "o'b \"[red]ø",
}
ASKED = ("2024-01-01T12:00:00Z", "1.50", base64.b64encode(b"\x00\xff").decode(), "2024-02-29", "true", "o'b \"[red]ø")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> MadeLake:
    """A key of six columns, joined with itself."""
    topology = Topology("odd")
    schema = "at TIMESTAMP, amount DECIMAL(10,2), raw BINARY, day DATE, ok BOOLEAN, who STRING, x DOUBLE"
    table = topology.table("readings", key=list(ODD), schema=schema, source=snapshot("r"))
    table.left_join(table, list(ODD), ["left.*", "right.x AS y"]).named("twice")
    made = MadeLake(tmp_path_factory.mktemp("odd"), compile(topology))
    keys = {f"{of}_{i}": v for of in ("fk", "pk") for i, v in enumerate(ODD.values(), 1)}
    row = {**ODD, "x": float("nan"), "y": float("nan"), "_hash": b"o"}
    made.run(
        {
            "readings": [{**ODD, "x": float("nan"), "_op": "I", "_version": "1", "_hash": b"h"}],
            "twice__subscriptions__readings": [{**keys, "_op": "S"}],
            "twice": [row],
            "twice__changes": [{**ODD, "_op": "I", "_after": row}],
        }
    )
    return made


def test_a_key_of_columns_of_every_type_is_followed_through_the_foreign_key(odd: MadeLake) -> None:
    found = told(odd, "twice", *ASKED)
    (right,) = found["rights"]
    assert (found["state"], right["match"], right["row"]["state"]) == ("there", "found", "there")
    assert list(right["row"]["key"]) == list(ODD)
    assert right["row"]["record"]["unlocated"] == "its run's files have no such record"
    assert told(odd, "twice", *ASKED[:-1], "another")["state"] == "never"


def test_keys_are_printed_as_a_shell_takes_them_and_texts_that_look_like_markup_as_they_are(odd: MadeLake) -> None:
    printed = ask(odd, "twice", *ASKED).stdout.splitlines()[-1]
    key = printed.partition("readings ")[2].partition(" by ")[0]
    again = shlex.split(key)
    assert "[red]" in key and told(odd, "twice", *again)["state"] == "there"


@pytest.mark.parametrize("at", range(5))
def test_a_text_that_is_no_value_of_its_column_is_refused(odd: MadeLake, at: int) -> None:
    done = ask(odd, "twice", *(["?"] * at), *["?"] * (6 - at))
    assert (done.exit_code, "does not fit the key" in done.stderr) == (2, True)


def test_a_newer_version_that_changes_nothing_does_not_count_but_is_named(lake: MadeLake) -> None:
    lake.run({"orders": [version(1, "N", customer=7, note="other")]})
    record = told(lake, "enriched", "1")["left"]["record"]
    assert (record["run"], record["fate"], record["later"]) == (1, "applied", 2)
    assert "run 2 had a newer record" in ask(lake, "enriched", "1").stdout


def test_where_compaction_has_left_only_a_version_that_changed_nothing_that_one_is_told(lake: MadeLake) -> None:
    lake.run({"orders": [version(5, "N", customer=None)]})
    record = told(lake, "orders", "5")["record"]
    assert (record["run"], record["fate"], record["later"]) == (2, "no-op", None)


def test_the_newest_subscription_is_the_foreign_key(lake: MadeLake) -> None:
    moved = [{"fk_1": 7, "pk_1": 1, "_op": "D"}, {"fk_1": 8, "pk_1": 1, "_op": "S"}]
    lake.run({"orders": [version(1, "U", customer=8)], "enriched__subscriptions__customers": moved})
    assert told(lake, "enriched", "1")["rights"][0]["foreign_key"] == [8]
    assert told(lake, "enriched", "1", "--as-of", "1")["rights"][0]["foreign_key"] == [7]


def test_a_row_of_a_table_that_is_held_back_or_was_released_tells_where_it_came_from(lake: MadeLake) -> None:
    aside = {"id": 3, "_code": "EXPECTATION", "_reason": "note is not null", "_source_file": "o/9.jsonl", "_line": 4, "_raw": "{}"}
    lake.run({"orders__quarantine": [{**aside, "_op": "Q", "_version": "00.3"}]})
    held = told(lake, "enriched", "3")
    assert (held["state"], held["left"]["state"], held["left"]["record"]) == ("never", "held", None)
    assert [(e["reason"], e["file"], e["line"]) for e in held["left"]["quarantined"]] == [("note is not null", "o/9.jsonl", 4)]
    lake.run({"orders__quarantine": [{**aside, "_op": "R"}], "orders": [version(3, note="now") | {"_version": "00.3"}]})
    released = told(lake, "enriched", "3")["left"]
    assert (released["state"], released["quarantined"]) == ("there", [])
    assert (released["record"]["run"], released["record"]["file"], released["record"]["line"]) == (3, "o/9.jsonl", 4)


def test_a_refused_record_that_was_replayed_tells_where_it_came_from(lake: MadeLake) -> None:
    replayed = {"id": 4, "_op": "R", "_code": "REPLAYED", "_source_file": "o/2.jsonl", "_line": 8}
    lake.run({"orders__quarantine": [replayed], "orders": [version(4)]})
    record = told(lake, "orders", "4")["record"]
    assert (record["run"], record["file"], record["line"]) == (2, "o/2.jsonl", 8)


def test_an_output_that_the_run_left_as_it_was_may_be_older_than_what_it_is_made_of(lake: MadeLake) -> None:
    lake.run({"customers": [version(7, "D", _before={"name": "Ann"})]}, skipped=["enriched"])
    found = told(lake, "enriched", "1")
    assert (found["row"]["name"], [r["cause"] for r in found["reasons"]], found["rights"][0]["match"]) == ("Ann", ["skipped"], "unknown")
    assert "the next one recomputes it" in ask(lake, "enriched", "1").stdout


def test_the_file_of_a_record_is_told_though_it_is_gone(lake: MadeLake) -> None:
    record = told(lake, "customers", "7")["record"]
    assert (record["file"], record["line"]) == ("c/1.csv", None)
    assert "c/1.csv (line not known: source file 'c/1.csv'" in ask(lake, "enriched", "1").stdout


def test_a_state_beyond_retention_and_runs_and_names_that_are_not_there_are_refused(lake: MadeLake, tmp_path: Path) -> None:
    lake.run({"orders": [version(2)]})
    lake.expire("orders", 1)
    cases = {
        ("enriched", "1", "--as-of", "1"): (4, "SNAPSHOT_EXPIRED"),
        ("enriched", "1", "--as-of", "9"): (4, "RUN_UNKNOWN"),
        ("nothing", "1"): (2, "UNKNOWN_TABLE"),
        ("enriched__changes", "1"): (2, "rejoin's own"),
        ("enriched", "1", "2"): (2, "1 column"),
        ("enriched", "x"): (2, "does not fit"),
    }
    for arguments, (code, message) in cases.items():
        done = ask(lake, *arguments)
        assert (done.exit_code, message in done.stderr) == (code, True), (arguments, done.stderr)
    nowhere = CliRunner().invoke(main, ["why", "enriched", "1", "--lake", str(tmp_path / "none")])
    assert (nowhere.exit_code, "there is no lake" in nowhere.stderr) == (4, True)


def test_a_topology_without_a_committed_run_says_so(tmp_path: Path) -> None:
    made = MadeLake(tmp_path, shop())
    made.ledger.open("test", made.plan, {})
    done = ask(made, "enriched", "1")
    assert (done.exit_code, "no run was committed yet" in done.stderr) == (4, True)


def test_an_output_of_empty_tables_never_had_the_row(tmp_path: Path) -> None:
    made = MadeLake(tmp_path, shop())
    made.run({"orders": [], "enriched": []})
    found = told(made, "enriched", "1")
    assert (found["state"], found["left"]["state"], found["rights"][0]["match"]) == ("never", "never", "unasked")


def test_what_a_compaction_has_dropped_is_found_in_the_state_before_it_until_that_is_expired(lake: MadeLake) -> None:
    lake.run({"customers": [version(7, "D", _before={"name": "Ann"})], "orders": [version(1, "N", customer=7)]})
    lake.compact({"customers": [], "orders": [version(1, "N", customer=7) | {"_run": 2}]})
    found = told(lake, "enriched", "1")
    assert (found["left"]["record"]["run"], found["left"]["record"]["later"]) == (1, 2)
    right = found["rights"][0]["row"]
    assert (right["state"], right["record"]["run"], right["record"]["op"]) == ("removed", 2, "D")
    lake.expire("customers", 2)
    assert told(lake, "enriched", "1")["rights"][0]["row"]["state"] == "untold"
    assert "what was before the last compaction is expired" in ask(lake, "enriched", "1").stdout


def test_a_change_by_another_definition_says_so(lake: MadeLake) -> None:
    lake.plan = replace(lake.plan, nodes=(replace(lake.plan.nodes[0], where="l.`id` > 1"),))
    row = {"id": 1, "name": "Ann", "_hash": b"o"}
    lake.run({"enriched__changes": [{"_op": "D", "id": 1, "_before": row}], "enriched": [{"id": 9, "_hash": b"p"}]})
    assert told(lake, "enriched", "1")["changed"]["redefined"] is True
    assert told(lake, "enriched", "1", "--as-of", "1")["changed"]["redefined"] is False
    assert "removed by run 2, which had another definition of it: " in ask(lake, "enriched", "1").stdout


def test_long_values_are_shortened_and_lines_are_whole_where_there_is_no_terminal(lake: MadeLake) -> None:
    row = {"id": 1, "name": "x" * 9000, "_hash": b"o"}
    lake.run({"enriched__changes": [{"_op": "U", "id": 1, "_before": {"id": 1, "name": "Ann"}, "_after": row}]})
    printed = ask(lake, "enriched", "1").stdout
    assert f'name "Ann" -> "{"x" * 79}...\n' in printed
    assert [line for line in printed.splitlines() if "c/1.csv" in line and "pinned by the cut and is gone)" in line]
    assert told(lake, "enriched", "1")["changed"]["after"]["name"] == "x" * 9000

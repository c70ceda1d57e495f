"""What a name stood for is remembered: an edited topology is compared with every run that had the name, not only with the last one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from rejoin import Topology, debezium, snapshot
from rejoin.cli import main
from rejoin.declare.declarations import SourceDeclaration
from rejoin.errors import SchemaRefused
from rejoin.lake.config import lake_config
from rejoin.lake.ledger.ledger import Ledger
from rejoin.lake.ledger.records import StepRecord, Write
from rejoin.plan.change.fingerprint import fingerprint
from rejoin.plan.check.compile import compile
from rejoin.plan.model.plan import Plan
from rejoin.steps.run import opening
from rejoin.steps.run.topology import Topology as OnLake

ORDERS = "id BIGINT, customer_id BIGINT, note STRING"


def plan(
    *names: str, key: str = "id", source: SourceDeclaration | None = None, output_key: str = "id", schema: str = "id BIGINT, name STRING"
) -> Plan:
    """Orders, and of these: ``customers`` (a table), ``noted`` (an output), ``customers_output`` (an output named customers)."""
    t = Topology("t")
    orders = t.table("orders", key="id", schema=ORDERS, source=debezium("orders"))
    orders.select(["id", "note"]).named("always")
    if "customers" in names:
        t.table("customers", key=key, schema=schema, source=source or snapshot("customers"))
    if "noted" in names:
        orders.select([f"id AS {output_key}", "note"]).named("noted")
    if "customers_output" in names:
        orders.select(["id", "note"]).named("customers")
    return compile(t)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Of a lake in which nothing was run."""
    return Ledger(lake_config(str(tmp_path / "lake")).ledger, "t")


def nothing(_: str) -> tuple[str, ...]:
    """Stored columns, of a lake without tables."""
    return ()


def commit(ledger: Ledger, *plans: Plan) -> None:
    """A committed run of each plan, which wrote all of its tables."""
    for number, one in enumerate(plans, start=1):
        run = ledger.open(f"run {number}", one, {n.name: fingerprint(one, n) for n in one.nodes})
        writes = tuple(Write(name, number) for name in (*(t.name for t in one.tables), *(n.name for n in one.nodes)))
        ledger.register(run.number, StepRecord("all", {}, 0.0, 0), "first", writes)
        ledger.publish(run.number)


FULL, AWAY = plan("customers", "noted"), plan()
REFUSED = {
    "another key": (plan("customers", key="name"), r"key of 'customers' was \(id\) and is now \(name\)"),
    "a narrower column": (plan("customers", schema="id INT, name STRING"), "column 'id' of table 'customers' was declared BIGINT"),
    "another path": (
        plan("customers", source=snapshot("others")),
        "was read from snapshot 'customers' and is now read from snapshot 'others'",
    ),
    "another kind of source": (plan("customers", source=debezium("customers")), "is now read from debezium 'customers'"),
    "an output of a table": (
        plan("customers_output"),
        "'customers' was a table in run 1, whose rows are still stored, and is now an output",
    ),
    "another key of an output": (plan("noted", output_key="order_id"), r"key of 'noted' was \(id\) and is now \(order_id\)"),
}


@pytest.mark.parametrize("after", [REFUSED[name] for name in REFUSED], ids=list(REFUSED))
def test_fault_a9_a_name_that_was_away_for_a_run_does_not_come_back_with_another_meaning(ledger: Ledger, after: tuple[Plan, str]) -> None:
    commit(ledger, FULL, AWAY, AWAY)
    past = opening.of_ledger(ledger, nothing)
    assert past is not None
    with pytest.raises(SchemaRefused, match=after[1]):
        opening.refuse(past, after[0])


def test_fault_a9_a_table_does_not_become_an_output_in_the_next_run(ledger: Ledger) -> None:
    commit(ledger, FULL)
    past = opening.of_ledger(ledger, nothing)
    assert past is not None
    with pytest.raises(SchemaRefused, match="is now an output"):
        opening.refuse(past, plan("customers_output"))


def test_fault_a9_what_comes_back_as_it_was_or_wider_is_taken_and_what_was_never_stored_means_nothing(ledger: Ledger) -> None:
    commit(ledger, FULL, AWAY)
    past = opening.of_ledger(ledger, nothing)
    assert past is not None
    for again in (
        FULL,
        plan("customers", source=snapshot("customers/", max_delete_share=1.0), schema="id BIGINT, name STRING, more STRING"),
    ):
        opening.refuse(past, again)
    opening.refuse(
        opening.PastRuns(past.head, past.stored - {"customers"}, past.committed, past.plan, nothing), plan("customers", key="name")
    )


def test_fault_a9_the_newest_run_that_had_the_name_counts(ledger: Ledger) -> None:
    commit(ledger, plan("customers", source=snapshot("old")), FULL, AWAY)
    past = opening.of_ledger(ledger, nothing)
    assert past is not None
    opening.refuse(past, FULL)
    with pytest.raises(SchemaRefused, match="since run 2, was read from snapshot 'customers'"):
        opening.refuse(past, plan("customers", source=snapshot("old")))


def test_fault_a9_no_run_is_opened(ledger: Ledger, tmp_path: Path) -> None:
    commit(ledger, FULL, AWAY)
    for number in (1, 2):
        ledger.rolled_forward(number)
    topology = OnLake(plan("customers", key="name"), lake_config(str(tmp_path / "lake")), str(tmp_path))
    with pytest.raises(SchemaRefused, match="key of 'customers'"):
        topology.open("me")
    assert ledger.open_run() is None


FILE = """
from rejoin import Topology, debezium, snapshot

t = Topology("t")
orders = t.table("orders", key="id", schema="id BIGINT, customer_id BIGINT, note STRING", source=debezium("orders"))
orders.select(["id", "note"]).named("always")
{more}
"""


@pytest.fixture
def explained(tmp_path: Path) -> Callable[[str], tuple[int, str]]:
    """Exit code and text of `rejoin explain` of a topology with some more lines, against a lake."""

    def explain(more: str) -> tuple[int, str]:
        (tmp_path / "t.py").write_text(FILE.format(more=more))
        done = CliRunner().invoke(main, ["explain", str(tmp_path / "t.py"), "--lake", str(tmp_path / "lake")])
        return done.exit_code, done.output + str(done.exception or "")

    return explain


def test_fault_a9_explain_says_against_the_lake_what_the_next_run_makes_of_its_tables(
    explained: Callable[[str], tuple[int, str]], ledger: Ledger
) -> None:
    customers = 't.table("customers", key="{key}", schema="id BIGINT, name STRING", source=snapshot("customers"))'
    assert "against the lake" not in explained("")[1]
    commit(ledger, FULL, plan("noted"))
    code, text = explained(customers.format(key="id") + '\norders.select(["id"]).named("ids")')
    told = " ".join(text.partition("against the lake")[2].split())
    assert code == 0
    assert (
        "whose newest run is 2 new output ids comes back table customers goes on with the rows that run 1 left left behind output noted"
        in told
    )
    assert "always" not in told and "orders" not in told, "what stays as it is"
    code, text = explained(customers.format(key="name"))
    assert code != 0
    assert "SCHEMA_REFUSED the key of 'customers' was (id) and is now (name)" in text


def test_explain_and_plan_agree_on_an_output_that_the_last_run_left_out(
    explained: Callable[[str], tuple[int, str]], ledger: Ledger
) -> None:
    commit(ledger, AWAY)
    run = ledger.open("run 2", AWAY, {})
    ledger.publish(run.number, ("always",))
    code, text = explained("")
    assert code == 0
    assert "rebuilt output always run 2 left it as run 1 had made it" in " ".join(text.split())


def test_explain_makes_no_ledger_where_there_is_none(explained: Callable[[str], tuple[int, str]], tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    assert explained("")[0] == 0
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "flags", [("--json", "--mermaid"), ("--json", "--sql"), ("--run", "1", "--mermaid"), ("--run", "1", "--sql"), ("--mermaid", "--sql")]
)
def test_explain_refuses_flags_that_ask_for_two_things(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(FILE.format(more=""))
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "t.py"), *flags])
    assert done.exit_code == 2 and "exclude each other" in done.output

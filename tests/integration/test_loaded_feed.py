"""The feed of an output begins with a reference to its rows (``statements.load_reference``). Everyone who reads the feed sees all changes nevertheless."""

import os
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from feeds import changes_of, rolled_back, stored_ops
from integration.conftest import Sessions
from sparkless import no_spark

from rejoin import Topology, debezium
from rejoin.engines.duckdb_engine import DuckdbEngine
from rejoin.engines.relation import Engine
from rejoin.engines.spark.engine import SparkEngine
from rejoin.errors import SnapshotExpired, Unexpected
from rejoin.lake import table_names
from rejoin.lake.ledger.run_owner import this_process
from rejoin.lake.query.point_query import PointQuery
from rejoin.lake.read import change_feed
from rejoin.lake.read.reader import Reader
from rejoin.operate.compact import compact
from rejoin.operate.expire import expire
from rejoin.report.samples import samples
from rejoin.statements.load_reference import LOADED
from rejoin.testing import Driver

pytestmark = pytest.mark.slow
NODES = {"starred": ("id",), "every": ("id", "region")}
Change = tuple[int, str, tuple[Any, ...] | None, tuple[Any, ...] | None]


def pairs() -> Topology:
    """An output by the left key, and one whose keys have null parts."""
    made = Topology("pairs")
    people = made.table("people", key="id", schema="id BIGINT, home STRING, name STRING", source=debezium("landing/people"))
    regions = made.table("regions", key="code", schema="code STRING, title STRING", source=debezium("landing/regions"))
    made.table("later", key="id", schema="id BIGINT, note STRING", source=debezium("landing/later"))
    people.left_join(regions, "home", ["left.*", "right.title"]).named("starred")
    people.full_join(regions, "home", ["left.id", "right.code AS region", "left.name", "right.title"]).named("every")
    return made


def some(seed: random.Random, run: int) -> dict[str, str]:
    """Rows that are new, changed, gone, and back; in the first run all there are."""
    people = [f"{i} | {seed.choice(['a', 'b', 'c', 'NULL'])} | n{seed.randrange(4)}" for i in range(12) if not run or seed.random() < 0.3]
    gone = [f"- {i}" for i in range(12) if run and seed.random() < 0.15 and not any(p.startswith(f"{i} |") for p in people)]
    regions = [f"{c} | t{seed.randrange(3)}" for c in "abcd" if not run or seed.random() < 0.3]
    lost = [f"- {c}" for c in "abcd" if run and seed.random() < 0.15 and not any(r.startswith(c) for r in regions)]
    given = {"people": [*people, *gone], "regions": [*regions, *lost]}
    return {table: "\n".join(lines) for table, lines in given.items() if lines}


@pytest.fixture(scope="module", params=[0, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 2))])
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    seed = int(os.environ.get("REJOIN_SEED") or 20_261_124) + request.param
    print(f"REJOIN_SEED={seed - request.param}")
    with Driver(pairs()) as made:
        rng = random.Random(seed)
        for run in range(6):
            made.run(**some(rng, run))
        yield made


def shown(changes: Sequence[dict[str, Any]]) -> list[Change]:
    def side(row: dict[str, Any] | None) -> tuple[Any, ...] | None:
        return None if row is None else tuple(row[c] for c in row if not c.startswith("_"))

    return sorted(((c["_run"], c["_op"], side(c["_before"]), side(c["_after"])) for c in changes), key=repr)


def shown_in(changes: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[Change]:
    """The same in some columns, null where a row has none of that name."""
    sides = ({s: None if c[s] is None else {k: c[s].get(k) for k in columns} for s in ("_before", "_after")} for c in changes)
    return shown([{**c, **side} for c, side in zip(changes, sides, strict=True)])


def everyone(driver: Driver, node: str, engines: Sequence[Engine] = (), columns: Sequence[str] = ()) -> dict[str, list[Change]]:
    """What each reader says that the changes of all runs are. ``columns``: only in these."""
    topology = driver._topology
    states, key = topology.ledger.states(topology.ledger.head()), NODES[node]
    log, output = (change_feed.TableAt(topology.refs.require(n, states[n]), states[n]) for n in (table_names.changes(node), node))
    wanted = columns or [p.name for p in topology.plan.node(node).columns]
    show = partial(shown_in, columns=wanted)
    runs = range(1, topology.ledger.head() + 1)
    sink = [
        c
        for n in runs
        for b in change_feed.changes(log, output, change_feed.RunRange(n - 1, n, net=False), key, wanted)
        for c in b.to_pylist()
    ]
    point = [
        {"_run": n, **{f"_{k}": v for k, v in c.items()}} for n in runs for c in PointQuery(topology.ledger, topology.refs).changes(node, n)
    ]
    asked = driver.lake.sql(f"SELECT * FROM {table_names.changes(node)}").to_arrow().to_pylist()
    found = {"a sink": show(sink), "rejoin changes": show(point), "SQL": show(asked)}
    for engine in (DuckdbEngine(topology.plan), *engines):
        reader = Reader(engine, topology.plan, states, topology.refs)
        found[f"the feed by {type(engine).__name__}"] = show(reader.feed(node).here().to_pylist())
        every = [{"_run": n, **c} for n in runs if (made := reader.changes(node, n)) is not None for c in made.here().to_pylist()]
        if not columns:  # a run sees the columns of the plan
            found[f"each run by {type(engine).__name__}"] = show(every)
    return found


@pytest.mark.invariant("I5")
@pytest.mark.parametrize("node", NODES)
def test_every_reader_sees_all_changes_and_they_fold_to_the_output(driver: Driver, node: str) -> None:
    expected = shown(changes_of(driver._topology, node))
    assert stored_ops(driver._topology, node)[1] == [LOADED], "the first run stores no copy of its rows"
    assert len([c for c in expected if c[0] == 1]) > 10 and len(expected) > 20
    for reader, found in everyone(driver, node).items():
        assert found == expected, reader
    state: dict[Any, Any] = {}
    for _, op, before, after in sorted(expected, key=lambda c: c[0]):
        assert before is None or state.pop(before[: len(NODES[node])]) == before
        assert op == ("D" if after is None else "I" if before is None else "U")
        if after is not None:
            assert state.setdefault(after[: len(NODES[node])], after) is after
    rows = driver.lake.sql(f"SELECT * FROM {node}").to_arrow().to_pylist()
    assert sorted(state.values(), key=repr) == sorted((tuple(r.values()) for r in rows), key=repr)


@pytest.mark.parametrize("node", NODES)
def test_the_history_of_a_key_goes_back_to_the_run_that_loaded_it(driver: Driver, node: str) -> None:
    query, changes = PointQuery(driver._topology.ledger, driver._topology.refs), changes_of(driver._topology, node)
    keys = {tuple(c[k] for k in NODES[node]) for c in changes}
    for key in keys:
        of_key = sorted((c for c in changes if tuple(c[k] for k in NODES[node]) == key), key=lambda c: -c["_run"])
        found = query.history(node, tuple(None if k is None else str(k) for k in key), 100)
        assert [(c["run"], c["op"]) for c in found] == [(c["_run"], c["_op"]) for c in of_key]
        assert shown([{f"_{k}": v for k, v in c.items()} for c in found]) == shown(of_key)


def test_a_page_shows_rows_that_were_loaded(driver: Driver) -> None:
    topology = driver._topology
    found = samples(topology.refs, topology.plan, 1, topology.ledger.states(1))
    for sample in found:
        assert sample.changes and all(c.op == "I" and c.before is None and c.after is not None for c in sample.changes)
        assert {tuple((c.after or {}).values()) for c in sample.changes} <= {
            c[3] for c in shown(changes_of(topology, sample.output)) if c[0] == 1
        }


COLUMNS = ["id", "home", "name", "title"]


def edited(columns: list[str]) -> Topology:
    """The first output alone, with these columns."""
    made = Topology("pairs")
    people = made.table("people", key="id", schema="id BIGINT, home STRING, name STRING", source=debezium("landing/people"))
    regions = made.table("regions", key="code", schema="code STRING, title STRING", source=debezium("landing/regions"))
    people.left_join(regions, "home", ["left.id", *columns]).named("starred")
    return made


@pytest.mark.parametrize("failed_first", [False, True], ids=["", "after a failed first run"])
@pytest.mark.parametrize(
    ("before", "after"),
    [(["left.home", "left.name"], ["left.name"]), (["left.name"], ["left.home", "left.name"]), (["left.home"], ["right.title"])],
    ids=["a column goes", "a column comes", "one goes, one comes"],
)
def test_the_feed_of_the_load_can_be_read_whatever_columns_come_and_go(
    before: list[str], after: list[str], monkeypatch: pytest.MonkeyPatch, *, failed_first: bool
) -> None:
    with Driver(edited(["left.home", "left.name", "right.title"] if failed_first else before)) as driver:
        if failed_first:
            with monkeypatch.context() as stopped:
                stopped.setattr("rejoin.crash.point", _stop)
                with pytest.raises(Unexpected, match="RuntimeError"):
                    driver.run(people="1 | a | n\n2 | b | n", regions="a | t")
            driver.restart(edited(before))
        driver.run(people="1 | a | n\n2 | b | n", regions="a | t")
        driver.restart(edited(after))
        for rows in ({}, {"people": "2 | a | m\n3 | a | n"}, {"people": "- 1"}):
            driver.run(**rows)
            expected = shown_in(changes_of(driver._topology, "starred"), COLUMNS)
            for reader, found in everyone(driver, "starred", columns=COLUMNS).items():
                assert found == expected, reader


def _stop(name: str) -> None:
    if name == "load.starred:changes":
        raise RuntimeError(name)


def test_the_feed_of_an_output_that_left_the_topology_is_still_whole() -> None:
    with Driver(pairs()) as driver:
        driver.run(people="1 | a | n\n2 | b | n", regions="a | t")
        driver.run(people="1 | a | m")
        expected = shown(changes_of(driver._topology, "every"))
        driver.restart(edited(["left.home", "left.name", "right.title"]))
        driver.run()
        assert shown(driver.lake.sql("SELECT * FROM every__changes").to_arrow().to_pylist()) == expected


@pytest.mark.invariant("I5")
@pytest.mark.parametrize("node", NODES)
def test_the_feed_is_the_same_by_spark_after_a_compaction_and_when_old_snapshots_are_gone(
    driver: Driver, node: str, sessions: Sessions
) -> None:
    expected = shown(changes_of(driver._topology, node))

    compact(driver._topology, no_spark, this_process())
    spark = sessions(driver._topology)
    for reader, found in everyone(driver, node, [SparkEngine(spark)]).items():
        assert found == expected, reader
    with Driver(pairs()) as other:
        other.run(people="1 | a | n", regions="a | t")
        other.run(people="1 | a | m\n2 | b | n")
        topology = other._topology
        before = shown(changes_of(topology, node))
        assert shown(rolled_back(topology, node)) == before
        expire(topology, this_process(), timedelta(0))
        with pytest.raises(SnapshotExpired):
            changes_of(topology, node)
        for reader, found in everyone(other, node).items():
            assert found == before, reader

"""Steps as the only task of a Spark job (by Spark Connect: ``test_crashes.py``): the same rows as by the process and by Spark SQL, errors as they are, and a lost task costs a retry."""

import io
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from integration.conftest import Sessions
from integration.stored import Stored, engines, stored
from integration.test_refresh import Shop
from limited import limited
from rich.console import Console

from rejoin.errors import BadRecords, NotComputable
from rejoin.lake import table_names
from rejoin.lake.iceberg.refs import Refs
from rejoin.lake.ledger.records import Run
from rejoin.plan.model.policy import Fuse, Refresh
from rejoin.report.history import decisions

pytestmark = [pytest.mark.slow, pytest.mark.by_spark, pytest.mark.timeout(600)]

STAGES = {"ingest.orders", "ingest.customers", "subscribe.enriched", "respond.enriched.customers", "resolve.enriched"}


def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every step that has something to do is bulk."""
    limited(monkeypatch, task_rows=0, task_bytes=0)


def rows_through(shop: Shop, after: Callable[[Run], None]) -> Stored:
    """All rows after a first load, changes of some, half and a tenth of all rows, and a recomputation."""
    for number, every in enumerate((0, 31, 2, 10)):
        if number:
            shop.orders(range(0, 2_000, every), f"change {number}")
            shop.customers([f"c{number}", "c0"], f"change {number}")
        after(shop.run(Refresh.FULL if number == 3 else Refresh.INCREMENTAL, Fuse.APPLY))
    return stored(shop)


def test_every_row_of_every_table_is_the_same_by_tasks_by_the_process_and_by_spark_sql(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    shops = {name: Shop(tmp_path / name, sessions) for name in ("local", "spark", "task")}
    done: list[dict[str, Any]] = []
    found = {}
    for name, shop in shops.items():
        monkeypatch.setenv("REJOIN_ENGINE", "local" if name == "local" else "spark")
        if name == "task":
            sent(monkeypatch)
        found[name] = rows_through(shop, lambda run, shop=shop: done.append(engines(shop, run.number)))  # type: ignore[misc]
    assert [set(of_run.values()) for of_run in done] == [{name} for name in shops for _ in range(4)]
    assert set(done[-2]) == STAGES
    assert found["task"] == found["local"]
    assert found["task"] == found["spark"]
    assert sum(map(len, found["task"].values())) > 9_000
    jobs = [step.jobs for step in shops["task"].topology.ledger.steps(2).values() if step.detail.get("engine") == "task"]
    assert jobs == [1] * len(STAGES)
    assert shops["task"].differences() == 0


def where(shop: Shop, run: Run) -> dict[str, tuple[str, str]]:
    """Who did each step, and why."""
    steps = shop.topology.ledger.steps(run.number)
    return {name: (done.detail["engine"], done.detail["engine_why"]) for name, done in steps.items() if "engine" in done.detail}


def test_only_bulk_steps_are_tasks_and_explain_says_why(tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path, sessions)
    limited(monkeypatch, task_rows=1_500)  # of 2,000 orders and 40 customers, whose files are small
    first = shop.run()
    assert where(shop, first) == {
        "ingest.orders": ("spark", "asked for"),
        "ingest.customers": ("spark", "asked for"),
        "subscribe.enriched": ("task", "2,000 rows for the only executor"),
        "resolve.enriched": ("task", "2,040 rows for the only executor"),
    }
    shop.orders(range(10), "few")
    assert {engine for engine, _ in where(shop, shop.run()).values()} == {"spark"}
    limited(monkeypatch, task_bytes=50_000)
    shop.orders(range(1_000), "many")
    shop.customers(["c0"], "one")
    later = shop.run(Refresh.INCREMENTAL, Fuse.APPLY)
    engine, why = where(shop, later)["ingest.orders"]
    assert engine == "task" and why.endswith(" bytes for the only executor"), why
    assert where(shop, later)["ingest.customers"] == ("spark", "asked for")
    console = Console(file=io.StringIO(), width=200)
    decisions(console, first, list(shop.topology.ledger.steps(first.number).values()))
    assert "resolve.enriched task 2,040 rows for the only executor" in " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_what_is_not_portable_comes_back_and_is_done_by_spark_sql(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(monkeypatch)
    shop = Shop(tmp_path, sessions)
    file = tmp_path / "t.py"
    file.write_text(file.read_text().replace('"right.name AS name"', '"soundex(right.name) AS name"'))
    found = where(shop, shop.run())
    assert found["resolve.enriched"] == ("spark", "column name: soundex is not proven equal in DuckDB")
    assert found["ingest.orders"][0] == "task"
    assert shop.differences() == 0


def test_a_value_that_cannot_be_computed_is_told_as_by_spark_sql(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for name in ("spark", "task"):
        if name == "task":
            sent(monkeypatch)
        shop = Shop(tmp_path / name, sessions)
        file = tmp_path / name / "t.py"
        file.write_text(file.read_text().replace('"right.name AS name"', '"left.id DIV (left.id - 7) AS name"'))
        with pytest.raises(NotComputable, match="output 'enriched' cannot be computed for 1 rows") as told:
            shop.run()
        said.append(str(told.value))
        assert shop.topology.ledger.head() is None
    assert said[0] == said[1]


def test_an_error_in_the_input_is_the_same_error_with_the_same_words(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for engine in ("local", "spark"):
        monkeypatch.setenv("REJOIN_ENGINE", engine)
        sent(monkeypatch)
        shop = Shop(tmp_path / engine, sessions)
        file, bad = tmp_path / engine / "t.py", tmp_path / engine / "landing" / "orders" / "99999999.jsonl"
        file.write_text(file.read_text().replace('debezium("landing/orders")', 'debezium("landing/orders", on_bad_record="fail")'))
        bad.write_text("no JSON\n" * 50)
        with pytest.raises(BadRecords) as told:
            shop.run()
        assert told.value.exit_code == BadRecords.exit_code
        assert told.value.__cause__ is None
        said.append(str(told.value))
        step = shop.topology.ledger.steps(1)
        assert "ingest.orders" not in step
    assert said[0] == said[1]
    assert "ingest" in said[0] or "orders" in said[0]


def test_where_duckdb_has_not_enough_memory_spark_sql_does_the_step(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, sessions)
    sent(monkeypatch)
    monkeypatch.setenv("REJOIN_MEMORY", "1KB")
    found = where(shop, shop.run())
    assert ("spark", "its task gave up: DuckDB says OutOfMemoryException") in found.values()
    assert shop.differences() == 0
    monkeypatch.delenv("REJOIN_MEMORY")
    shop.orders(range(1_000), "more")
    assert {engine for engine, _ in where(shop, shop.run()).values()} == {"task"}  # the same workers have memory again


def busy(process: psutil.Process) -> list[psutil.Process]:
    """The Python worker below a process that does a task of ours: it has the executor's folder open."""
    found = []
    for one in process.children(recursive=True):
        with suppress(OSError, psutil.Error):  # it may have ended
            if any("blockmgr" in str(fd.readlink()) for fd in Path(f"/proc/{one.pid}/fd").iterdir()) and "python" in one.name():
                found.append(one)
    return found


def branches(refs: Refs, run: int) -> set[str]:
    """Tables with branches that attempts of a run have made."""
    tables = {name: refs.table(name) for name in refs.tables()}
    return {name for name, table in tables.items() if table is not None and any(table_names.is_branch_of(ref, run) for ref in table.refs())}


def test_a_worker_that_is_killed_in_the_middle_of_a_task_costs_a_retry_by_spark_sql(
    tmp_path: Path, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, shop = (Shop(tmp_path / name, sessions) for name in ("undisturbed", "killed"))
    undisturbed.run()
    sent(monkeypatch)
    refs, killed = shop.topology.refs, list[int]()

    def kill() -> None:
        """Once the step has made its first table: rows come next."""
        deadline = time.monotonic() + 120
        while not {"enriched", table_names.changes("enriched")} & set(refs.tables()):
            assert time.monotonic() < deadline, "nothing was written"
        for one in busy(psutil.Process()):
            one.kill()
            killed.append(one.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    run = shop.run()
    killer.join()
    assert len(killed) == 1
    engine, why = where(shop, run)["resolve.enriched"]
    assert engine == "spark", "the task had ended already"
    assert why.startswith("its task was lost ("), why
    assert stored(shop) == stored(undisturbed)
    assert branches(refs, 1) == set(), "what the lost task wrote is dropped"

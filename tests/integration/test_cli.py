"""The command line as a user meets it: what it prints, and what its exit codes mean."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from integration.by_hand import edit, without
from integration.forked import Forked
from integration.shop import Shop, output

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # one of the longest files: tests/conftest.py begins with these


def rejoin(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return Forked("rejoin.cli", [str(a) for a in arguments], {**os.environ, **environment}).wait(500)


@pytest.mark.by_spark
def test_a_user_runs_looks_verifies_and_compacts(tmp_path: Path, remote: str) -> None:
    shop = Shop(tmp_path)
    lake = ("--lake", shop.lake)
    for spark in ({}, {"SPARK_REMOTE": remote}):
        shop.next_batch()
        ran = rejoin("run", shop.file, *lake, "--root", shop.root, **spark)
        assert ran.returncode == 0, ran.stderr
        assert (
            " rows read, " in ran.stdout
            and "next: rejoin get enriched " in ran.stdout
            and f"rejoin verify --lake {shop.lake}" in ran.stdout
        )
        assert ("Spark jobs" in ran.stdout) != bool(spark), "a server's jobs are not counted"
        lines = ran.stderr.splitlines()
        assert [
            line for line in lines if not re.match(r" *\d+\.\d s  (start of Spark|\d of \d+ steps|[a-z]+(\.[\w.]+)?: |now )", line)
        ] == []
        assert any("ingest.orders: " in line for line in lines) and (spark or any("start of Spark: " in line for line in lines))
    assert "- Spark jobs" in rejoin("history", "--run", 2, *lake).stdout
    idle = rejoin("run", shop.file, *lake, "--root", shop.root)
    assert (idle.stderr, len(idle.stdout.splitlines())) == ("", 1)
    assert idle.stdout.endswith("; nothing new\n")
    for_machines = rejoin("run", shop.file, *lake, "--root", shop.root, "--json")
    assert (for_machines.stderr, json.loads(for_machines.stdout)["run"]) == ("", 4)
    key = next(iter(shop.orders))
    got = rejoin("get", "enriched", key, *lake)
    assert json.loads(got.stdout) == shop.expected()[key]
    assert rejoin("get", "orders", key, *lake).returncode == 0
    assert rejoin("get", "enriched", 424242, *lake).returncode == 4
    wrong = rejoin("get", "nothing", key, *lake)
    assert wrong.returncode == 2
    assert "UNKNOWN_TABLE" in wrong.stderr
    changes = [json.loads(line) for line in rejoin("changes", "enriched", "--run", 2, *lake).stdout.splitlines()]
    assert changes
    assert all(c["before"] != c["after"] for c in changes)
    first = [json.loads(line) for line in rejoin("changes", "enriched", "--run", 1, *lake).stdout.splitlines()]
    some = first[0]["after"]
    assert json.loads(rejoin("get", "enriched", some["id"], "--as-of", 1, *lake).stdout) == some
    runs = [json.loads(line) for line in rejoin("history", "--json", *lake).stdout.splitlines()]
    assert [(r["run"], r["state"]) for r in runs] == [(n, "committed") for n in range(1, 5)]
    assert "resolve.enriched" in rejoin("history", "--run", 2, *lake).stdout
    before = output(shop.topology())
    compacted = rejoin("compact", *lake, SPARK_REMOTE=remote)
    assert compacted.returncode == 0, compacted.stderr
    assert "tables compacted in" in compacted.stdout and " s  compact.enriched: " in compacted.stderr
    assert output(shop.topology()) == before == shop.expected()
    for how in ((), ("--fast",)):
        verified = rejoin("verify", *how, *lake, SPARK_REMOTE=remote)
        assert verified.returncode == 0, verified.stderr
        assert "0 differences" in verified.stdout and " s  verify.enriched: " in verified.stderr
    assert rejoin("abandon", "--run", 2, *lake).returncode == 4
    assert rejoin("abandon", *lake).returncode == 4


def test_verify_finds_a_row_that_was_edited_by_hand_and_repair_brings_it_back(tmp_path: Path, remote: str) -> None:
    shop = Shop(tmp_path)
    shop.next_batch()
    assert rejoin("run", shop.file, "--lake", shop.lake, "--root", shop.root, SPARK_REMOTE=remote).returncode == 0
    edit(shop.topology(), "enriched", without(next(iter(shop.orders))))
    found = rejoin("verify", "--lake", shop.lake, SPARK_REMOTE=remote)
    assert found.returncode == 1
    assert "1 differences" in found.stdout and found.stdout.endswith(f"next: rejoin repair --full --lake {shop.lake}\n")
    fast = rejoin("verify", "--fast", "--lake", shop.lake, SPARK_REMOTE=remote)
    assert fast.returncode == 1 and fast.stdout.endswith(f"next: rejoin repair --lake {shop.lake}\n")
    repaired = rejoin("repair", "--lake", shop.lake, "--json", SPARK_REMOTE=remote)
    assert (repaired.returncode, repaired.stderr) == (0, "")
    done = json.loads(repaired.stdout)
    [output_] = done.pop("outputs")
    assert done == {"topology": "shop", "fast": True, "run": 2, "differences": 0}
    changed = {"inserted": 1, "updated": 0, "deleted": 0}
    assert output_ == {"output": "enriched", "compared": True, "found": 1, "recomputed": True, **changed, "differences": 0}
    assert output(shop.topology()) == shop.expected()
    intact = rejoin("repair", "--lake", shop.lake, SPARK_REMOTE=remote)
    assert intact.returncode == 0 and intact.stdout.endswith("0 differences\nnothing to recompute, so no run was opened\n")
    runs = [json.loads(line) for line in rejoin("history", "--json", "--lake", shop.lake).stdout.splitlines()]
    assert [(r["run"], r["rebuilt"]) for r in runs] == [(1, ["enriched"]), (2, ["enriched"])]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "missing.py"), 2, "TOPOLOGY_FILE"),
        (("history", "--lake", "/nowhere/at/all"), 4, "there is no lake at"),
        (("run",), 2, "Missing argument"),
        (("history", "--lake", "missing.toml"), 5, "SETUP"),
    ],
)
def test_a_mistake_is_one_message_and_an_exit_code(arguments: tuple[str, ...], code: int, message: str) -> None:
    done = rejoin(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_has_help_that_says_what_it_does() -> None:
    page = rejoin("--help").stdout
    for command in ("run", "explain", "plan", "verify", "history", "get", "changes", "why", "compact", "abandon", "replay", "demo"):
        assert command in page
        assert len(rejoin(command, "--help").stdout) > 200
    assert "Exit codes" in page


def test_all_mistakes_of_a_topology_file_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "from rejoin import Topology, snapshot\n"
        "t = Topology('bad')\n"
        "a = t.table('a', key='id', schema='id BIGINT, b STRING', source=snapshot('a'))\n"
        "b = t.table('b', key='id', schema='id BIGINT', source=snapshot('b'))\n"
        "a.join(b, foreign_key='b', select=['left.*'], name='one')\n"
        "a.filter('rand() > 0.5').named('two')\n"
        "a.filter('nothing = 1').named('three')\n"
    )
    done = rejoin("explain", file)
    assert done.returncode == 2
    for line, code in ((5, "FK_TYPE"), (6, "FORBIDDEN_FUNCTION"), (7, "UNKNOWN_COLUMN")):
        assert f"bad.py:{line}: {code}" in done.stderr

"""``--version``, and what Tab offers in bash, by the lines of docs/operations.md."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner
from small_lake import make

from rejoin.cli import main, versions

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
PROGRAM = f"#!{sys.executable}\nfrom rejoin.cli import main\nmain()\n"


def documented(shell: str) -> str:
    """The line that docs/operations.md says to put into the shell's settings."""
    [line] = re.findall(rf"^(\S.*\S) +# {shell}, in ~/", OPERATIONS.read_text(), re.MULTILINE)
    return str(line)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a topology file, a lake, and a program ``rejoin``."""
    folder = tmp_path_factory.mktemp("shell")
    make(folder)
    (folder / "topology.py").touch()
    (folder / "bin").mkdir()
    program = folder / "bin" / "rejoin"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return folder


def environment(place: Path, **more: str) -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("REJOIN_")}
    return {**kept, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": ":".join(sys.path), **more}


@pytest.fixture
def offered(place: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """What bash's script is told after these words, the last of them unfinished."""
    monkeypatch.chdir(place)
    monkeypatch.delenv("REJOIN_LAKE", raising=False)

    def ask(typed: str) -> list[str]:
        words = typed.split(" ")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        return BashComplete(main, {}, "rejoin", "_REJOIN_COMPLETE").complete().split("\n")

    return ask


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("rejoin hi", ["plain,history"]),
        ("rejoin run to", ["file,to"]),
        ("rejoin run --refresh f", ["plain,full"]),
        ("rejoin history --lake la", ["file,la"]),
        ("rejoin get ", ["plain,enriched", "plain,orders", "plain,customers"]),
        ("rejoin get --topology shop ord", ["plain,orders"]),
        ("rejoin changes ", ["plain,enriched"]),
        ("rejoin history --topology ", ["plain,shop"]),
        ("rejoin get --topology other ", [""]),
        ("rejoin get --lake nowhere ", [""]),
        ("rejoin get --lake topology.py ", [""]),
    ],
)
def test_tab_offers_what_can_follow(place: Path, offered: Callable[[str], list[str]], typed: str, expected: list[str]) -> None:
    assert offered(typed) == expected
    assert not (place / "nowhere").exists(), "a lake is not made by pressing Tab"


def test_tab_offers_the_tables_of_the_lake_that_the_environment_names(
    place: Path, tmp_path: Path, offered: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered("rejoin changes ") == [""]
    monkeypatch.setenv("REJOIN_LAKE", str(place / "lake"))
    assert offered("rejoin changes ") == ["plain,enriched"]
    assert list(tmp_path.iterdir()) == []


def test_bash_completes_commands_files_and_tables_as_documented(place: Path) -> None:
    typed = ["rejoin ab\t", "rejoin explain topo\t", "rejoin get enr\t", "rejoin history --lake la\t"]
    asked = [f"{documented('bash')}\n", *(f"{line}\x01echo GOT \n" for line in typed), "exit\n"]  # ^A: what stands there now is echoed
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=place,
        env=environment(place, TERM="dumb", PS1="$ "),
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, "".join(asked).encode())
    said, until = b"", time.monotonic() + 120
    while time.monotonic() < until and select.select([ours], [], [], 60)[0]:
        try:
            said += os.read(ours, 4096)
        except OSError:  # it has ended
            break
    assert shell.wait(60) == 0
    os.close(ours)
    found = [line.removeprefix("GOT ").split() for line in said.decode().replace("\r", "").split("\n") if line.startswith("GOT ")]
    assert found == [
        ["rejoin", "abandon"],
        ["rejoin", "explain", "topology.py"],
        ["rejoin", "get", "enriched"],
        ["rejoin", "history", "--lake", "lake/"],
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_of_each_shell_makes_its_script(place: Path, shell: str) -> None:
    assert f"_REJOIN_COMPLETE={shell}_source rejoin" in documented(shell)
    done = subprocess.run(
        ["rejoin"], env=environment(place, _REJOIN_COMPLETE=f"{shell}_source"), capture_output=True, text=True, check=True
    )
    assert f"_REJOIN_COMPLETE={shell}_complete" in done.stdout


def test_version_is_that_of_the_package_in_one_line() -> None:
    done = CliRunner().invoke(main, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"rejoin {metadata.version('rejoin')}\n")


def test_versions_names_what_results_depend_on_and_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(versions.PACKAGES, "Airflow", "apache-airflow-of-another-world")
    lines = CliRunner().invoke(main, ["--versions"]).stdout.splitlines()
    assert lines[0] == f"rejoin {metadata.version('rejoin')}"
    assert f"Spark {metadata.version('pyspark')}" in lines
    assert "Airflow not installed" in lines


def test_versions_names_iceberg_only_if_its_jar_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REJOIN_JARS", str(tmp_path))
    assert "Iceberg not installed" in CliRunner().invoke(main, ["--versions"]).stdout.splitlines()
